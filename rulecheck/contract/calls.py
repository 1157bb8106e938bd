"""A call by itself: types, shapes, orders, leading dimensions, epilogue."""

from __future__ import annotations

from collections.abc import Iterator

from rulecheck.contract import codes
from rulecheck.contract.clauses import ILLEGAL, Operand, Place, matrices, violation
from rulecheck.contract.support import Mismatch, nearest, spell, support_row
from rulecheck.records import GemmCall, GemmStep, Violation

_MAX_BATCH = (1 << 31) - 1  # BATCH_COUNT is an int32 attribute
_PRODUCT_HINT = "op(A) is m x k, op(B) is k x n, C and D are m x n"


def check_range(place: Place, step: GemmStep) -> Iterator[Violation]:
    """Yield extents and counts that the library (or the launch) refuses; nothing else is sane."""
    call = step.call
    for name, extent in (("m", call.m), ("n", call.n), ("k", call.k)):
        if extent <= 0:
            yield violation(
                ILLEGAL,
                codes.RANGE,
                place,
                "D" if name != "k" else "A",
                name,
                expected="at least 1",
                actual=extent,
                message=f"{name} = {extent}: an empty matmul is refused",
                hint=f"require {name} ≥ 1",
            )
    for operand in matrices(step):
        count = operand.layout.batch_count
        if not 1 <= count <= _MAX_BATCH:
            yield violation(
                ILLEGAL,
                codes.RANGE,
                place,
                operand.letter,
                "batch_count",
                expected=f"1 to {_MAX_BATCH}",
                actual=count,
                message=f"the batch count of {operand.letter} is {count}",
                hint="require batch_count ≥ 1",
            )


def check_call(place: Place, step: GemmStep) -> Iterator[Violation]:
    """Yield what cuBLASLt refuses about the attributes alone."""
    yield from _support(place, step.call)
    yield from _shapes(place, step)
    yield from _residual_layout(place, step)
    for operand in matrices(step):
        yield from _leading_dimension(place, operand)
    yield from _epilogue(place, step.call)


def _support(place: Place, call: GemmCall) -> Iterator[Violation]:
    """The type combination is a row of the table; else the field that one change would repair."""
    if support_row(call) is not None:
        return
    repairs = nearest(call)
    if not repairs:
        types = (call.a, call.b, call.c, call.d)
        actual = ", ".join(layout.dtype.value for layout in types)
        yield violation(
            ILLEGAL,
            codes.SUPPORT,
            place,
            "A",
            "compute_type",
            expected="a row of the support table",
            actual=f"{call.compute_type} with {actual}",
            message=(
                f"cuBLASLt has no {call.compute_type} matmul with A, B, C, D = {actual} "
                f"and scale type {call.scale_type.value}"
            ),
            hint="see the support table; no change of one field is enough",
        )
        return
    repair = _choose(call, repairs)
    wanted = " or ".join(repair.expected)
    # Only an fp8 (or fp4) D may differ from C.
    differs = repair.field == "c_dtype" and not call.d.dtype.is_fp8
    yield violation(
        ILLEGAL,
        codes.C_AGAINST_D if differs else codes.SUPPORT,
        place,
        repair.field[0].upper() if repair.field[1] == "_" else "D",
        repair.field,
        expected=wanted,
        actual=repair.actual,
        message=(
            f"C is {call.c.dtype.value} and D is {call.d.dtype.value}: both must have one type"
            if differs
            else f"cuBLASLt has no such matmul: {repair.field} is {repair.actual}, "
            f"it would have to be {wanted}"
        ),
        hint=f"set {repair.field} to {wanted}",
    )


def _choose(call: GemmCall, repairs: tuple[Mismatch, ...]) -> Mismatch:
    """Prefer to blame C where it differs from D: C = D is the simplest rule of the table."""
    for repair in repairs:
        if repair.field == "c_dtype" and call.d.dtype.storage.value in repair.expected:
            return repair
    return repairs[0]


def _shapes(place: Place, step: GemmStep) -> Iterator[Violation]:
    """The four matrices multiply, and all batch counts are equal."""
    call = step.call
    b_rows, b_cols = (call.b.rows, call.b.cols)
    if call.transb != "N":
        b_rows, b_cols = b_cols, b_rows
    a_rows = call.a.rows if call.transa == "N" else call.a.cols
    for field, letter, expected, actual in (
        ("m", "A", call.m, a_rows),
        ("k", "B", call.k, b_rows),
        ("n", "B", call.n, b_cols),
    ):
        if expected != actual:
            yield violation(
                ILLEGAL,
                codes.SHAPE,
                place,
                letter,
                field,
                expected=expected,
                actual=actual,
                message=f"{field} is {expected}, but {letter} says {actual}",
                hint=_PRODUCT_HINT,
            )
    for operand in matrices(step):
        if operand.layout.batch_count != call.d.batch_count and operand.letter != "C":
            yield violation(
                ILLEGAL,
                codes.SHAPE,
                place,
                operand.letter,
                "batch_count",
                expected=call.d.batch_count,
                actual=operand.layout.batch_count,
                message=(
                    f"{operand.letter} has batch count {operand.layout.batch_count}, "
                    f"D has {call.d.batch_count}"
                ),
                hint="give all matrices one batch count; stride 0 repeats a matrix",
            )


def _residual_layout(place: Place, step: GemmStep) -> Iterator[Violation]:
    """C and D have the same rows, columns, order and batch count; in place, one descriptor.

    This holds for β = 0 too: C's layout is still part of the call.
    """
    c, d = step.call.c, step.call.d
    fields = (
        ("m", "rows", c.rows, d.rows),
        ("n", "columns", c.cols, d.cols),
        ("c_order", "order", c.order, d.order),
        ("batch_count", "batch count", c.batch_count, d.batch_count),
    )
    wrong = [row for row in fields if row[2] != row[3]]
    in_place = step.call.beta != 0.0 and (step.call.c_is_d or step.c == step.out)
    if in_place and not wrong:
        strides = ("stride_c", "batch stride", c.batch_stride, d.batch_stride)
        wrong = [
            row
            for row in (("ldc", "leading dimension", c.ld, d.ld), strides)
            if row[2] != row[3] and (row[0] == "ldc" or d.batch_count > 1)
        ]
    for field, word, actual, expected in wrong:
        yield violation(
            ILLEGAL,
            codes.C_AGAINST_D,
            place,
            "C",
            field,
            expected=expected,
            actual=actual,
            message=(
                f"C has {word} {actual}, D has {expected}; "
                + ("in place they share one layout" if in_place else "they must be equal")
            ),
            hint=f"require the same {word} of C and D on the left side",
        )


def _leading_dimension(place: Place, operand: Operand) -> Iterator[Violation]:
    """Columns (rows) must not overlap. C alone may have ld 0, which repeats its first column."""
    layout = operand.layout
    if layout.ld >= layout.min_ld or (operand.letter == "C" and layout.ld == 0):
        return
    field = operand.field("ld")
    yield violation(
        ILLEGAL,
        codes.LEADING_DIMENSION,
        place,
        operand.letter,
        field,
        expected=f"at least {layout.min_ld}",
        actual=layout.ld,
        message=(
            f"{field} is {layout.ld}, below {layout.min_ld}, the extent of {operand.letter} along "
            f"its {layout.order} order"
        ),
        hint=f"require {field} ≥ {layout.min_ld}",
    )


def _epilogue(place: Place, call: GemmCall) -> Iterator[Violation]:
    """A bias needs a column-ordered D, and a type that the table's row names.

    A plain RELU or GELU on a row-ordered D is not documented as refused and passes.
    """
    if call.uses_bias and call.d.order == "ROW":
        yield violation(
            ILLEGAL,
            codes.EPILOGUE,
            place,
            "bias",
            "epilogue",
            expected="an epilogue without bias, or d_order COL",
            actual=f"{call.epilogue} with d_order ROW",
            message=f"{call.epilogue} is refused when D has ROW order",
            hint="lower the row-ordered op as its column-ordered transpose, or pin the epilogue",
        )
    row = support_row(call)
    if row is None or row.bias is None or not call.uses_bias:
        return  # only I8 rows, which no DType reaches, have no bias type
    if call.bias_type.storage.name != row.bias:
        yield violation(
            ILLEGAL,
            codes.BIAS,
            place,
            "bias",
            "epilogue",
            expected=spell(row.bias),
            actual=call.bias_type,
            message=(
                f"the bias type is {call.bias_type.value}; with these types it must be "
                f"{spell(row.bias)}"
            ),
            hint=f"convert the bias to {spell(row.bias)}",
        )
