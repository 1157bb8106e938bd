"""Ops that are not library calls: each read stays inside its buffer, types agree."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from rulecheck.contract import codes
from rulecheck.contract.clauses import ILLEGAL, MISREAD, Place, agree, violation
from rulecheck.contract.extents import access_writes_twice, share
from rulecheck.records import (
    Access,
    CastStep,
    FillStep,
    MatmulStep,
    PointwiseStep,
    ReduceStep,
    Violation,
)

_READ_HINT = "require of its shape and strides that every element read lies inside the buffer"
_WRITE_HINT = "require of the output's strides that they address each element once, in the buffer"


def check_pointwise(place: Place, step: PointwiseStep) -> Iterator[Violation]:
    """Yield what is wrong with an elementwise op."""
    for position, (value, access) in enumerate(zip(step.operands, step.accesses, strict=True)):
        yield from _shape(place, str(position), access, step.out_access)
        offsets = _Range(access.lowest, access.extent - 1, access.size)
        yield from _inside(place, str(position), value, offsets)
    yield from _agreement(place, step.op, step.operands)
    yield from _write(place, step.out, step.out_access)


def check_reduce(place: Place, step: ReduceStep) -> Iterator[Violation]:
    """Yield what is wrong with a reduction."""
    yield from _shape(place, "0", step.base, step.out_access)
    if step.iters and step.base.size:
        low = step.base.lowest + min(step.iters)
        high = step.base.extent - 1 + max(step.iters)
        count = step.base.size * len(step.iters)
        yield from _inside(place, "0", step.source, _Range(low, high, count))
    yield from _write(place, step.out, step.out_access)


def check_matmul(place: Place, step: MatmulStep) -> Iterator[Violation]:
    """Yield what is wrong with a broadcast multiply and sum."""
    yield from _shape(place, "0", step.base, step.out_access)
    reads = bool(step.iters and step.base.size)  # a sum over nothing, or of nothing, reads nothing
    for position, (value, access) in enumerate(
        ((step.lhs, step.lhs_access), (step.rhs, step.rhs_access)) if reads else ()
    ):
        product = access.size
        low = step.base.lowest + min(step.iters, default=0)
        high = step.base.extent - 1 + max(step.iters, default=0)
        if low < 0 or high >= product:
            yield violation(
                MISREAD,
                codes.EXTENT,
                place,
                str(position),
                None,
                expected=f"product elements 0 to {product - 1}",
                actual=f"{low} to {high}",
                message=f"the sum reads product elements {low} to {high} of {product}",
                hint=_READ_HINT,
            )
            return
        offsets = _Range(access.lowest, access.extent - 1, access.size)
        if not _fits(place, value, offsets):
            offsets = _visited(step.base, step.iters, access)  # perhaps not all are read
        yield from _inside(place, str(position), value, offsets)
    yield from _agreement(place, "Matmul", (step.lhs, step.rhs))
    yield from _write(place, step.out, step.out_access)


def check_cast(place: Place, step: CastStep) -> Iterator[Violation]:
    """Yield what is wrong with a conversion."""
    if step.count > 0:
        yield from _inside(place, "0", step.source, _Range(0, step.count - 1, step.count))
    held = place.value(step.out).count
    if step.count > held:
        yield _overrun(place, 0, step.count - 1, held)


def check_fill(place: Place, step: FillStep) -> Iterator[Violation]:
    """Yield what is wrong with a constant: it needs one element."""
    if place.value(step.out).count < 1:
        yield _overrun(place, 0, 0, place.value(step.out).count)


class _Range:
    """Offsets ``low`` to ``high`` (inclusive), read ``count`` times in all."""

    def __init__(self, low: int, high: int, count: int) -> None:
        self.low, self.high, self.count = low, high, count


def _fits(place: Place, value: int, offsets: _Range) -> bool:
    return offsets.count == 0 or (offsets.low >= 0 and offsets.high < place.value(value).count)


def _inside(place: Place, operand: str, value: int, offsets: _Range) -> Iterator[Violation]:
    if _fits(place, value, offsets):
        return
    spec = place.value(value)
    width = offsets.high - offsets.low + 1
    missing = max(0, offsets.high + 1 - max(spec.count, offsets.low)) + max(0, -offsets.low)
    yield violation(
        MISREAD,
        codes.EXTENT,
        place,
        operand,
        None,
        expected=f"offsets 0 to {spec.count - 1}",
        actual=f"offsets {offsets.low} to {offsets.high}",
        message=(
            f"input {operand} holds {spec.count} elements of {spec.dtype.value}; the op reads "
            f"offsets {offsets.low} to {offsets.high}, {share(missing, width)} that range outside"
        ),
        hint=_READ_HINT,
    )


@functools.lru_cache(maxsize=256)
def _visited(base: Access, iters: tuple[int, ...], access: Access) -> _Range:
    """Return the offsets that are really read, where not all of the product is."""
    flat = _sums(access)
    starts = _sums(base)
    seen = [flat[start + step] for start in starts for step in iters]
    return _Range(min(seen, default=0), max(seen, default=-1), len(seen))


def _sums(access: Access) -> list[int]:
    """Return an access's offsets in row-major order."""
    offsets = [0] if access.size else []
    for table in access.offsets:
        offsets = [start + step for start in offsets for step in table]
    return offsets


def _shape(place: Place, operand: str, access: Access, out: Access) -> Iterator[Violation]:
    if access.shape != out.shape:
        yield violation(
            ILLEGAL,
            codes.ILL_TYPED,
            place,
            operand,
            None,
            expected=out.shape,
            actual=access.shape,
            message=f"input {operand} is read over {access.shape}, the output over {out.shape}",
            hint="read every input over the shape of the output",
        )


def _agreement(place: Place, op: str, operands: tuple[int, ...]) -> Iterator[Violation]:
    """All inputs have one type; a constant is exempt, because it takes the type of the rest."""
    constants = {step.out for step in place.plan.steps if isinstance(step, FillStep)}
    typed = [(i, value) for i, value in enumerate(operands) if value not in constants]
    if not typed:
        return
    first = place.value(typed[0][1]).dtype
    for position, value in typed[1:]:
        dtype = place.value(value).dtype
        if not agree(first, dtype):
            yield violation(
                MISREAD,
                codes.ILL_TYPED,
                place,
                str(position),
                None,
                expected=first,
                actual=dtype,
                message=(
                    f"{op} reads all inputs as one type: input {typed[0][0]} holds {first.value}, "
                    f"input {position} holds {dtype.value}"
                ),
                hint=f"convert input {position} to {first.value}",
            )


def _write(place: Place, out: int, access: Access) -> Iterator[Violation]:
    held = place.value(out).count
    if access.size and (access.lowest < 0 or access.extent > held):
        yield _overrun(place, access.lowest, access.extent - 1, held)
    if access_writes_twice(access):
        yield violation(
            MISREAD,
            codes.WRITE,
            place,
            "out",
            None,
            expected="one address per element",
            actual=f"strides {access.offsets}",
            message="two elements of the output have one address",
            hint=_WRITE_HINT,
        )


def _overrun(place: Place, low: int, high: int, held: int) -> Violation:
    return violation(
        MISREAD,
        codes.WRITE,
        place,
        "out",
        None,
        expected=f"offsets 0 to {held - 1}",
        actual=f"offsets {low} to {high}",
        message=f"the output holds {held} elements; the op writes offsets {low} to {high}",
        hint=_WRITE_HINT,
    )
