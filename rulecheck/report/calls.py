"""A matmul call as flat fields with the names that rule authors use, and what changed."""

from __future__ import annotations

import msgspec

from rulecheck.records import GemmCall
from rulecheck.report.plain import number

_LAYOUT = (
    ("dtype", "{}_dtype"),
    ("rows", "{}_rows"),
    ("cols", "{}_cols"),
    ("ld", "ld{}"),
    ("order", "{}_order"),
    ("batch_count", "{}_batch_count"),
    ("batch_stride", "stride_{}"),
)


def call_fields(call: GemmCall) -> dict[str, str]:
    """Return every attribute of ``call`` by name, spelled for people."""
    fields = {"m": str(call.m), "n": str(call.n), "k": str(call.k)}
    for key, value in msgspec.to_builtins(call).items():
        if key in ("a", "b", "c", "d"):
            fields |= {name.format(key): spell(value[part]) for part, name in _LAYOUT}
        else:
            fields[key] = spell(value)
    return fields


def spell(value: object) -> str:
    """Spell one attribute of a call."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    return str(value)


def changed_fields(before: GemmCall, after: GemmCall) -> list[tuple[str, str, str]]:
    """Return (field, before, after) for each attribute that differs."""
    old = call_fields(before)
    new = call_fields(after)
    return [(name, old[name], new[name]) for name in new if old[name] != new[name]]


def describe_call(call: GemmCall) -> str:
    """Return the call in one sentence: shape, scalars, epilogue, and each operand."""
    parts = [
        f"m={call.m} n={call.n} k={call.k}",
        f"alpha {number(call.alpha)}, beta {number(call.beta)}, epilogue {call.epilogue}",
        f"compute {call.compute_type}",
        f"A^{call.transa} B^{call.transb}",
    ]
    for name in ("a", "b", "c", "d"):
        layout = getattr(call, name)
        text = f"{name.upper()} {layout.dtype.value} {layout.order} ld {layout.ld}"
        if layout.batch_count > 1:
            text += f" batch {layout.batch_count} stride {layout.batch_stride}"
        parts.append(text)
    return "; ".join(parts)
