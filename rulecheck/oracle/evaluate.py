"""Evaluating a plan over float64 arrays: as written, with roundings left out, or in float64.

* as written: every op in float64, its result rounded to its type; with the range of values that
  a legal run may give instead (``Range``);
* with some roundings left out (``skip``): the alternatives that explain a moved rounding;
* ``unrounded``: float64 throughout; the range then covers float64's own error, so two graphs
  that are equal over the reals have overlapping ranges.

The plan must satisfy the contract: nothing here reads outside a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rulecheck import dtypes
from rulecheck.oracle.indexing import Ints, access_offsets, reduction_offsets
from rulecheck.oracle.intervals import Floats, Range, maximum, spread, truth
from rulecheck.oracle.pointwise import POINTWISE
from rulecheck.oracle.products import (
    Accumulator,
    Arithmetic,
    Product,
    gemm,
    matmul,
    product_of,
    sum_error,
)
from rulecheck.records import (
    CastStep,
    DType,
    FillStep,
    GemmStep,
    MatmulStep,
    Plan,
    PointwiseStep,
    ReduceStep,
    Step,
)

NARROW = frozenset({DType.F16, DType.BF16, DType.E4M3, DType.E5M2})


def roundings(plan: Plan) -> tuple[int, ...]:
    """Steps whose result is rounded to fewer bits than the type that they compute in.

    A constant counts where F64 is around and its own type does not hold it.
    """
    found = []
    wide = any(value.dtype is DType.F64 for value in plan.values)
    for index, step in enumerate(plan.steps):
        target = plan.values[step.out].dtype
        if not target.is_float:
            continue
        if isinstance(step, FillStep):
            number = np.array([step.number])
            if wide and not np.array_equal(dtypes.round_to(number, target), number):
                found.append(index)
            continue
        source = plan.values[step.source].dtype if isinstance(step, CastStep) else None
        narrow = target in NARROW or (source is DType.F64 and target is not DType.F64)
        if narrow and (source is None or _narrows(source, target)):
            found.append(index)
    return tuple(found)


def _narrows(source: DType, target: DType) -> bool:
    return source is not target and not (
        dtypes.significand_bits(source) <= dtypes.significand_bits(target)
        and dtypes.max_finite(source) <= dtypes.max_finite(target)
        and dtypes.smallest_subnormal(source) >= dtypes.smallest_subnormal(target)
    )


def evaluate(
    plan: Plan,
    inputs: tuple[bytes, ...],
    accumulator: Accumulator,
    *,
    skip: frozenset[int] = frozenset(),
    unrounded: bool = False,
) -> tuple[Range, ...]:
    """Evaluate a plan; one range per value, [count] each, NaN where nothing was written.

    Args:
        plan: steps over buffers; it satisfies the contract.
        inputs: the bytes of each leaf, in the order of ``plan.inputs``.
        accumulator: the backend's way of summing.
        skip: steps whose rounding to a narrow type is left out (they keep the type they compute
            in, F32 or F64).
        unrounded: float64 throughout.
    """
    run = _Evaluation(plan, accumulator, skip, unrounded=unrounded)
    for leaf, data in zip(plan.inputs, inputs, strict=True):
        values = dtypes.decode(data, plan.values[leaf.value].dtype)
        run.ranges[leaf.value] = Range.exactly(values)
    with np.errstate(all="ignore"):
        for index, step in enumerate(plan.steps):
            _EVALUATE[type(step)](run, index, step)
    return tuple(run.ranges)


def products(plan: Plan, inputs: tuple[bytes, ...]) -> Iterator[Product]:
    """Every product of a plan, over operands without any rounding."""
    ranges = list(evaluate(plan, inputs, Accumulator(), unrounded=True))
    run = _Evaluation(plan, Accumulator(), frozenset(), unrounded=True)
    for step in plan.steps:
        if isinstance(step, GemmStep):
            yield product_of(step, ranges, run.arithmetic(step.a, step.b))
        elif isinstance(step, MatmulStep):
            yield product_of(step, ranges, run.arithmetic(step.lhs, step.rhs))


class _Evaluation:
    def __init__(
        self, plan: Plan, accumulator: Accumulator, skip: frozenset[int], *, unrounded: bool
    ) -> None:
        self.plan = plan
        self.accumulator = accumulator
        self.skip = skip
        self.unrounded = unrounded
        self.ranges: list[Range] = [Range.exactly(np.zeros(0))] * len(plan.values)

    def arithmetic(self, *operands: int) -> Arithmetic:
        """How a step over these operands computes: in F64 if one of them is F64, else in F32."""
        types = [self.plan.values[value].dtype for value in operands]
        wide = self.unrounded or DType.F64 in types
        return Arithmetic(
            self.accumulator,
            wide=wide,
            fp8=any(dtype.is_fp8 for dtype in types),
            tf32=DType.TF32 in types,
            keep_scalars=self.unrounded,
        )

    def store(self, index: int, offsets: Ints | None, value: Range) -> None:
        """Round a result to its buffer's type and scatter it (None: already in memory order)."""
        out = self.plan.steps[index].out
        spec = self.plan.values[out]
        if not self.unrounded:
            value = self._round(value, spec.dtype, index in self.skip)
        elif spec.dtype is DType.BOOL:
            value = truth(value)
        if offsets is not None:
            value = value.scatter(offsets, spec.count)
        self.ranges[out] = value

    def _round(self, value: Range, target: DType, skip: bool) -> Range:
        if target is DType.BOOL:
            return truth(value)
        if skip and target not in NARROW:
            return value
        kept = DType.F32 if skip else target

        def rounded(values: Floats) -> Floats:
            return dtypes.round_to(values, kept, through_f32=kept is not DType.F64)

        if value.is_exact:
            return Range.exactly(rounded(value.mid))
        return Range(*(rounded(part) for part in value))


def _gemm(run: _Evaluation, index: int, step: GemmStep) -> None:
    offsets, value = gemm(step, run.ranges, run.arithmetic(step.a, step.b))
    run.store(index, offsets, value)


def _matmul(run: _Evaluation, index: int, step: MatmulStep) -> None:
    value = matmul(step, run.ranges, run.arithmetic(step.lhs, step.rhs))
    run.store(index, access_offsets(step.out_access), value)


def _pointwise(run: _Evaluation, index: int, step: PointwiseStep) -> None:
    args = [
        run.ranges[value].take(access_offsets(access))
        for value, access in zip(step.operands, step.accesses, strict=True)
    ]
    value = POINTWISE[step.op](run.arithmetic(*step.operands).unit, *args)
    run.store(index, access_offsets(step.out_access), value)


def _reduce(run: _Evaluation, index: int, step: ReduceStep) -> None:
    terms = run.ranges[step.source].take(reduction_offsets(step.base, step.iters))
    if step.op == "Max":
        value = maximum(terms, 1)
    else:
        arithmetic = run.arithmetic(step.source)
        sizes = np.abs(terms.mid)
        error = sum_error(arithmetic, sizes, np.ones_like(sizes), sizes.sum(axis=1))
        value = spread(terms.mid.sum(axis=1), error + terms.radius.sum(axis=1))
    run.store(index, access_offsets(step.out_access), value)


def _cast(run: _Evaluation, index: int, step: CastStep) -> None:
    value = run.ranges[step.source].take(np.arange(step.count))
    source, target = (run.plan.values[part].dtype for part in (step.source, step.out))
    if (source, target) == (DType.I64, DType.I32):
        # Integers wrap, as they do on the device; a float that is converted saturates, and the
        # largest Int64, which float64 does not hold, wraps to -1.
        held = np.clip(value.mid, -(2.0**63), 2.0**63)
        wrapped = np.mod(held + 2.0**31, 2.0**32) - 2.0**31
        value = Range.exactly(np.where(held == 2.0**63, -1.0, wrapped))
    run.store(index, None, value)


def _fill(run: _Evaluation, index: int, step: FillStep) -> None:
    number = np.array([step.number])
    target = run.plan.values[step.out].dtype
    if run.unrounded and target.is_float:
        # Literals that the type cannot tell apart stand for one constant: what it holds, and any
        # number that rounds to it. What the type holds exactly is meant exactly.
        held = dtypes.round_to(number, target)
        if np.isfinite(held).all() and not np.array_equal(held, number):
            half = dtypes.ulp(held, target) / 2
            ends = (np.minimum(held - half, number), np.maximum(held + half, number))
            run.store(index, None, Range(number, *ends))
            return
    run.store(index, None, Range.exactly(number))


_EVALUATE: dict[type[Step], Callable[..., None]] = {
    GemmStep: _gemm,
    MatmulStep: _matmul,
    PointwiseStep: _pointwise,
    ReduceStep: _reduce,
    CastStep: _cast,
    FillStep: _fill,
}
