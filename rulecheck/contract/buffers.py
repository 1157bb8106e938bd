"""A call against its buffers: type, extent, bias, scales, aliases."""

from __future__ import annotations

from collections.abc import Iterator

from rulecheck.contract import codes
from rulecheck.contract.clauses import (
    ILLEGAL,
    MISREAD,
    Operand,
    Place,
    agree,
    describe,
    extent_field,
    matrices,
    outside,
    violation,
)
from rulecheck.contract.extents import writes_twice
from rulecheck.records import (
    CastStep,
    DType,
    FillStep,
    GemmStep,
    MatmulStep,
    PointwiseStep,
    ReduceStep,
    Step,
    Violation,
)

_BIAS_HINT = "pin the epilogue to a form without bias, or require a {} bias on the left side"


def check_buffers(place: Place, step: GemmStep) -> Iterator[Violation]:
    """Yield what is wrong between a call and the buffers it is given."""
    for operand in matrices(step)[:2]:
        yield from _read(place, step, operand)
    yield from _residual(place, step)
    yield from _clamped(place, step)
    yield from _bias(place, step)
    yield from _scales(place, step)
    yield from _output(place, step)
    yield from _aliases(place, step)


def _read(place: Place, step: GemmStep, operand: Operand) -> Iterator[Violation]:
    """One operand that is read: its type, or else its extent."""
    assert operand.value is not None, "A and B always have a value"
    spec = place.value(operand.value)
    layout, letter = operand.layout, operand.letter
    missing = outside(layout, spec, "read")
    if not agree(layout.dtype, spec.dtype):
        message = f"{letter} is read as {layout.dtype.value} and holds {spec.dtype.value}"
        yield violation(
            MISREAD,
            codes.DTYPE,
            place,
            letter,
            operand.field("dtype"),
            expected=spec.dtype,
            actual=layout.dtype,
            message=f"{message}; {missing}" if missing else message,
            hint=_dtype_hint(operand, spec.dtype),
        )
    elif missing:
        field = extent_field(operand, _rows_field(step, letter), spec)
        yield violation(
            MISREAD,
            codes.EXTENT,
            place,
            letter,
            field,
            expected=f"at most {spec.count} elements",
            actual=_span_text(operand),
            message=f"{letter} holds {spec.count} elements of {spec.dtype.value}; {missing}",
            hint=f"require of {field} that the last element read lies inside {letter}'s buffer",
        )


def _dtype_hint(operand: Operand, held: DType) -> str:
    wanted = operand.layout.dtype.value
    convert = f"convert {operand.letter} to {wanted} in the new input list"
    if operand.letter == "C":
        return f"guard β = 0 (then C is not read), or {convert}"
    return f"keep {operand.field('dtype')} = {held.value}, or {convert}"


def _rows_field(step: GemmStep, letter: str) -> str:
    if letter == "A":
        return "m" if step.call.transa == "N" else "k"
    if letter == "B":
        return "k" if step.call.transb == "N" else "n"
    return "m"


def _span_text(operand: Operand) -> str:
    layout = operand.layout
    text = f"{layout.rows} x {layout.cols} {layout.order}, ld {layout.ld}"
    if layout.batch_count > 1:
        text += f", batch {layout.batch_count} with stride {layout.batch_stride}"
    return text


def _residual(place: Place, step: GemmStep) -> Iterator[Violation]:
    """C, which is read only if β is not zero; cuBLAS says C need not be valid otherwise."""
    call = step.call
    if call.beta == 0.0:
        return
    unwritten = step.c == step.out and not _has_earlier_writer(place, step.out)
    if step.c is not None and not unwritten:
        yield from _read(place, step, matrices(step)[2])
        return
    is_d = call.c_is_d or unwritten
    pointer = "points at D, which nothing has written" if is_d else "is missing"
    yield violation(
        MISREAD if is_d else ILLEGAL,
        codes.ALIAS,
        place,
        "C",
        "beta",
        expected="0.0",
        actual=call.beta,
        message=f"C is read because β = {call.beta}, and it {pointer}",
        hint="guard β = 0 (then C is not read), or pass C in the new input list",
    )


def _has_earlier_writer(place: Place, value: int) -> bool:
    earlier = place.plan.steps[: place.step]
    leaves = (leaf.value for leaf in place.plan.inputs)
    return value in leaves or any(step.out == value for step in earlier)


def _clamped(place: Place, step: GemmStep) -> Iterator[Violation]:
    """A leading dimension that the launch raised: another layout than the op declares.

    With a single column (or row) the leading dimension is never used, so nothing changes.
    """
    operands = {operand.letter: operand for operand in matrices(step)}
    for letter, declared, used in step.clamped:
        layout = operands[letter].layout
        lines = layout.cols if layout.order == "COL" else layout.rows
        if lines <= 1 or (letter == "C" and step.call.beta == 0.0):
            continue
        field = operands[letter].field("ld")
        verb = "written" if letter == "D" else "read"
        yield violation(
            MISREAD,
            codes.LEADING_DIMENSION,
            place,
            letter,
            field,
            expected=declared,
            actual=used,
            message=(
                f"the op declares {field} = {declared}, below the minimum {layout.min_ld}; the "
                f"launch raises it to {used}, so {letter} is {verb} with another layout"
            ),
            hint=(
                f"require {field} ≥ {layout.min_ld} (the {_line(layout.order)} of {letter}) on the "
                "left side"
            ),
        )


def _line(order: str) -> str:
    return "rows" if order == "COL" else "columns"


def _bias(place: Place, step: GemmStep) -> Iterator[Violation]:
    """The bias: a packed vector as long as D has rows, of the type the library takes it for."""
    call = step.call
    if not call.uses_bias:
        return
    kind = call.bias_type
    if step.bias is None:
        yield violation(
            ILLEGAL,
            codes.BIAS,
            place,
            "bias",
            "epilogue",
            expected="a bias vector",
            actual="none",
            message=f"the epilogue {call.epilogue} reads a bias and the call has none",
            hint="pin the epilogue to a form without bias, or pass the bias in the new input list",
        )
        return
    spec = place.value(step.bias)
    held = spec.count * spec.dtype.bytes
    batches = call.d.batch_count if call.bias_batch_stride else 1
    before = past = 0
    for batch in range(batches):
        start = batch * call.bias_batch_stride * kind.bytes
        stop = start + call.m * kind.bytes
        before += max(0, min(0, stop) - start)
        past += max(0, stop - max(held, start))
    missing = describe(before, past, batches * call.m * kind.bytes, "read")
    if not agree(kind, spec.dtype):
        message = f"bias is read as {kind.value} and holds {spec.dtype.value}"
        if call.bias_dtype is None:
            message += " (BIAS_DATA_TYPE is not set, so the library's default holds)"
        yield violation(
            MISREAD,
            codes.BIAS,
            place,
            "bias",
            "epilogue",
            expected=spec.dtype,
            actual=kind,
            message=f"{message}; {missing}" if missing else message,
            hint=_BIAS_HINT.format(kind.value),
        )
    elif missing:
        yield violation(
            MISREAD,
            codes.BIAS,
            place,
            "bias",
            "epilogue",
            expected=f"{call.m} elements (the rows of D)",
            actual=f"{spec.count} elements",
            message=f"the bias holds {spec.count} elements and D has {call.m} rows; {missing}",
            hint="fuse only a bias that runs along the rows of D in the library's frame",
        )


def _scales(place: Place, step: GemmStep) -> Iterator[Violation]:
    """Scale pointers are device scalars of F32."""
    for name, value in (("a_scale", step.a_scale), ("b_scale", step.b_scale)):
        if value is None:
            continue
        spec = place.value(value)
        if spec.dtype is DType.F32 and spec.count >= 1:
            continue
        yield violation(
            MISREAD,
            codes.SCALE,
            place,
            name,
            None,
            expected="one F32 element",
            actual=f"{spec.count} of {spec.dtype.value}",
            message=f"{name} is read as one F32 and holds {spec.count} of {spec.dtype.value}",
            hint="pass an F32 scalar as the scale",
        )


def _output(place: Place, step: GemmStep) -> Iterator[Violation]:
    """D: its type, its extent, and no element twice."""
    operand = matrices(step)[3]
    layout, spec = operand.layout, place.value(step.out)
    missing = outside(layout, spec, "written")
    if not agree(layout.dtype, spec.dtype):
        message = f"D is written as {layout.dtype.value} into a buffer of {spec.dtype.value}"
        yield violation(
            MISREAD,
            codes.DTYPE,
            place,
            "D",
            "d_dtype",
            expected=spec.dtype,
            actual=layout.dtype,
            message=f"{message}; {missing}" if missing else message,
            hint=f"keep d_dtype = {spec.dtype.value}",
        )
    elif missing:
        field = extent_field(operand, "m", spec)
        yield violation(
            MISREAD,
            codes.WRITE,
            place,
            "D",
            field,
            expected=f"at most {spec.count} elements",
            actual=_span_text(operand),
            message=f"D's buffer has {spec.count} elements; {missing}",
            hint=f"require of {field} that D stays inside the buffer of batch · m · n elements",
        )
    if layout.ld >= layout.min_ld and writes_twice(layout):
        field = "stride_d" if layout.batch_count > 1 else "ldd"
        yield violation(
            MISREAD,
            codes.WRITE,
            place,
            "D",
            field,
            expected="one address per element",
            actual=_span_text(operand),
            message=f"two elements of D have one address ({_span_text(operand)})",
            hint=f"require of {field} that the matrices of the batch do not overlap",
        )


def _aliases(place: Place, step: GemmStep) -> Iterator[Violation]:
    """D over an operand that is still being read; C in place only if nothing reads C later."""
    reads = {"A": step.a, "B": step.b, "bias": step.bias if step.call.uses_bias else None}
    reads |= {"a_scale": step.a_scale, "b_scale": step.b_scale}
    for letter, value in reads.items():
        if value == step.out:
            yield violation(
                MISREAD,
                codes.ALIAS,
                place,
                letter,
                None,
                expected="two buffers",
                actual="one buffer",
                message=f"D overwrites {letter} while the call reads it",
                hint=f"write D to a buffer of its own; only C may share D's ({letter} may not)",
            )
    in_place = step.call.c_is_d and step.call.beta != 0.0 and step.c is not None
    if not in_place or step.c == step.out:
        return
    later = place.plan.steps[place.step + 1 :]
    if step.c == place.plan.result or any(step.c in reads_of(other) for other in later):
        yield violation(
            MISREAD,
            codes.ALIAS,
            place,
            "C",
            None,
            expected="no later reader of C",
            actual="C is read again",
            message="D overwrites C in place, and a later step reads C again",
            hint="write D to a buffer of its own, or require that nothing else reads C",
        )


def reads_of(step: Step) -> tuple[int, ...]:
    """Return the values that a step reads."""
    match step:
        case GemmStep():
            values = (step.a, step.b, step.c, step.bias, step.a_scale, step.b_scale)
            return tuple(value for value in values if value is not None)
        case MatmulStep():
            return (step.lhs, step.rhs)
        case PointwiseStep():
            return step.operands
        case ReduceStep() | CastStep():
            return (step.source,)
        case FillStep():
            return ()
