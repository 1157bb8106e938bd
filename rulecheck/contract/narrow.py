"""Rules for 8-bit matmuls: layout, alignment, scale pointers, and known gaps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rulecheck.contract import codes
from rulecheck.contract.clauses import ILLEGAL, Place, matrices, violation
from rulecheck.errors import UserError
from rulecheck.records import DType, GemmCall, GemmStep, Violation

_ALIGNMENT_BYTES = 16
_FIRST_FP8 = 89  # sm_89 is the first architecture with fp8 matmuls
_TN_ONLY = frozenset({89, 90, 120, 121})  # elsewhere (10.x) other transposes exist


def capability(device: str) -> int:
    """Return the compute capability of ``sm_90`` (or ``sm_90a``) as a number, here 90.

    Raises:
        UserError: the name is no such thing.
    """
    match = re.fullmatch(r"sm_(\d{2,3})[a-z]?", device)
    if match is None:
        raise UserError(f"unknown device {device!r}", "name it as sm_90 or sm_100")
    return int(match[1])


def check_narrow(place: Place, step: GemmStep, device: str) -> Iterator[Violation]:
    """Yield broken rules of fp8 matmuls, and scale pointers where there may be none."""
    call = step.call
    narrow = call.a.dtype.is_fp8 or call.b.dtype.is_fp8
    yield from _scale_pointers(place, call, narrow=narrow)
    if not narrow:
        return
    sm = capability(device)
    if sm < _FIRST_FP8:
        yield violation(
            ILLEGAL,
            codes.SUPPORT,
            place,
            "A",
            "a_dtype",
            expected=f"sm_{_FIRST_FP8} or newer",
            actual=device,
            message=f"{device} has no fp8 matmul",
            hint="use 16-bit operands on this device",
        )
        return
    yield from _layouts(place, step, sm)
    yield from _alignment(place, step)


def _layouts(place: Place, step: GemmStep, sm: int) -> Iterator[Violation]:
    call = step.call
    transposes = (("A", "a_layout", call.transa, "T"), ("B", "b_layout", call.transb, "N"))
    for letter, field, actual, expected in transposes:
        if sm in _TN_ONLY and actual.replace("C", "T") != expected:
            yield violation(
                ILLEGAL,
                codes.FP8,
                place,
                letter,
                field,
                expected=expected,
                actual=actual,
                message=f"fp8 needs A transposed and B not; {field} is {actual}",
                hint=f"require {field} = {expected} for fp8 operands",
            )
    for operand in matrices(step):
        if operand.layout.order != "COL":
            field = operand.field("order")
            yield violation(
                ILLEGAL,
                codes.FP8,
                place,
                operand.letter,
                field,
                expected="COL",
                actual=operand.layout.order,
                message=f"fp8 needs column order; {field} is {operand.layout.order}",
                hint=f"require {field} = COL for fp8 operands",
            )


def _alignment(place: Place, step: GemmStep) -> Iterator[Violation]:
    """Leading dimensions, k, and the columns of C and D are multiples of 16 bytes; n is free."""
    call = step.call
    bytes_of = [
        (operand.letter, operand.field("ld"), operand.layout.ld * operand.layout.dtype.bytes)
        for operand in matrices(step)
    ]
    size = min(call.c.dtype.bytes, call.d.dtype.bytes)
    bytes_of += [("A", "k", call.k * call.a.dtype.bytes), ("D", "m", call.m * size)]
    for letter, field, length in bytes_of:
        if length % _ALIGNMENT_BYTES:
            yield violation(
                ILLEGAL,
                codes.FP8,
                place,
                letter,
                field,
                expected=f"a multiple of {_ALIGNMENT_BYTES} bytes",
                actual=f"{length} bytes",
                message=f"fp8 needs {field} in multiples of {_ALIGNMENT_BYTES} bytes, not {length}",
                hint=f"require that {field} is such a multiple",
            )


def _scale_pointers(place: Place, call: GemmCall, *, narrow: bool) -> Iterator[Violation]:
    """Scale pointers belong to fp8 operands; C's is allowed in any fp8 matmul."""
    pointers = (
        ("A", call.a_scale, call.a.dtype.is_fp8),
        ("B", call.b_scale, call.b.dtype.is_fp8),
        ("C", call.c_scale, narrow),
        ("D", call.d_scale, call.d.dtype.is_fp8),
    )
    for letter, given, allowed in pointers:
        if given and not allowed:
            dtype = {"A": call.a, "B": call.b, "C": call.c, "D": call.d}[letter].dtype
            yield violation(
                ILLEGAL,
                codes.SCALE,
                place,
                letter,
                f"{letter.lower()}_dtype",
                expected="no scale pointer",
                actual=f"a scale for {dtype.value}",
                message=f"{letter} is {dtype.value} and has a scale pointer; only fp8 operands may",
                hint="fold the scale into α, or keep it as an op of its own",
            )


def known_gap(call: GemmCall) -> str | None:
    """Return a documented doubt about an fp8 epilogue, or None.

    These come from another project's list of cases it lets fail, so they are notes and never
    violations: the library may well have the kernel.
    """
    if not call.a.dtype.is_fp8 or not call.epilogue.startswith("GELU"):
        return None
    if call.d.dtype.is_fp8:
        return f"{call.epilogue} with an fp8 D may be unsupported"
    if call.c.dtype is DType.F32 and call.d.dtype is DType.F32:
        return f"{call.epilogue} with fp8 operands and F32 C and D may be unsupported"
    return None
