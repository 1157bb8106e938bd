"""What every check shares: building a violation, looking at a plan's values, naming an operand."""

from __future__ import annotations

from typing import NamedTuple

from rulecheck.contract import codes
from rulecheck.contract.extents import bytes_outside, layout_span, share
from rulecheck.records import DType, GemmStep, MatrixLayout, Plan, ValueSpec, Verdict, Violation


class Place(NamedTuple):
    """Where a violation lies: a step of a plan."""

    plan: Plan
    step: int

    def value(self, index: int) -> ValueSpec:
        """Return what the producer of a value wrote."""
        return self.plan.values[index]


class Operand(NamedTuple):
    """A matrix of a call: its letter, how the call looks at it, and the value, if there is one."""

    letter: str
    layout: MatrixLayout
    value: int | None

    def field(self, kind: str) -> str:
        """Return the descriptor field of this operand: ``dtype``, ``ld``, ``stride``, ``order``."""
        low = self.letter.lower()
        return {"ld": f"ld{low}", "stride": f"stride_{low}"}.get(kind, f"{low}_{kind}")


def matrices(step: GemmStep) -> tuple[Operand, Operand, Operand, Operand]:
    """Return A, B, C and D of a call."""
    call = step.call
    return (
        Operand("A", call.a, step.a),
        Operand("B", call.b, step.b),
        Operand("C", call.c, step.c),
        Operand("D", call.d, step.out),
    )


def violation(
    verdict: Verdict,
    code: str,
    place: Place,
    operand: str,
    field: str | None,
    *,
    expected: object,
    actual: object,
    message: str,
    hint: str,
) -> Violation:
    """Build a violation; types are spelled by name."""
    return Violation(
        verdict, code, place.step, operand, field, _spell(expected), _spell(actual), message, hint
    )


def _spell(value: object) -> str:
    return value.value if isinstance(value, DType) else str(value)


def agree(left: DType, right: DType) -> bool:
    """Return whether two types are the same bytes with the same meaning (TF32 is F32)."""
    return left.storage is right.storage


def outside(layout: MatrixLayout, spec: ValueSpec, verb: str) -> str | None:
    """Say how much of what the layout touches lies outside a buffer; None if nothing does.

    Args:
        layout: how the call looks at the buffer.
        spec: the buffer.
        verb: ``read`` or ``written``.
    """
    span = layout_span(layout)
    held = spec.count * spec.dtype.bytes
    if span.low >= 0 and (span.high + 1) * layout.dtype.bytes <= held:
        return None
    before, past, total = bytes_outside(layout, held)
    return describe(before, past, total, verb)


def describe(before: int, past: int, total: int, verb: str) -> str:
    """Say how many of ``total`` bytes lie before or past a buffer."""
    what = {"read": "read", "written": "write"}[verb]
    parts = []
    if past:
        parts.append(
            f"{past} of the {total} bytes {verb} lie past its end ({share(past, total)} the {what})"
        )
    if before:
        parts.append(
            f"{before} of the {total} bytes {verb} lie before its start "
            f"({share(before, total)} the {what})"
        )
    return " and ".join(parts)


def extent_field(operand: Operand, rows_field: str, spec: ValueSpec) -> str:
    """Return the field to blame for an extent: the stride, the leading dimension, or the rows."""
    layout = operand.layout
    flat = MatrixLayout(layout.dtype, layout.rows, layout.cols, layout.ld, layout.order)
    if layout.batch_count > 1 and outside(flat, spec, "read") is None:
        return operand.field("stride")
    tight = MatrixLayout(layout.dtype, layout.rows, layout.cols, layout.min_ld, layout.order)
    if layout.ld > layout.min_ld and outside(tight, spec, "read") is None:
        return operand.field("ld")
    return rows_field


ILLEGAL = Verdict.ILLEGAL
MISREAD = Verdict.MISREAD
__all__ = [
    "ILLEGAL",
    "MISREAD",
    "Operand",
    "Place",
    "agree",
    "codes",
    "describe",
    "extent_field",
    "matrices",
    "outside",
    "violation",
]
