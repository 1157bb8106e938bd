"""The CPU model: runs a plan on bytes, looking at every operand exactly as each step says."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from rulecheck.backends import arithmetic
from rulecheck.backends.arena import Arena
from rulecheck.backends.elementwise import POINTWISE, REDUCE, round_result
from rulecheck.backends.offsets import (
    Offsets,
    of_access,
    of_bias,
    of_layout,
    of_product,
    of_reduction,
    of_run,
)
from rulecheck.dtypes import Array, Floats, to_storage, widen
from rulecheck.records import (
    CastStep,
    DType,
    Failure,
    FailureKind,
    FillStep,
    GemmStep,
    MatmulStep,
    MatrixLayout,
    Outcome,
    Plan,
    PointwiseStep,
    ReduceStep,
    Step,
)

_MAX_ELEMENTS = 1 << 25  # of one step's largest intermediate: 256 MiB of float64
_MAX_BYTES = 1 << 31  # of all values together


class CpuModel:
    """cuBLASLt and the dialect's own ops on a CPU; needs no GPU and takes any plan."""

    name = "cpu"

    def supports(self, plan: Plan) -> Failure | None:
        """Return a Failure for an op without arithmetic or a step that is too large."""
        held = sum(spec.count * spec.dtype.bytes for spec in plan.values)
        if held > _MAX_BYTES:
            message = f"the values hold {held} bytes; the CPU model stops at {_MAX_BYTES}"
            return Failure(FailureKind.UNSUPPORTED, message)
        for step in plan.steps:
            refused = _refuse_op(step)
            if refused is not None:
                return refused
            if _work(step) > _MAX_ELEMENTS:
                message = f"a step handles {_work(step)} elements; the CPU model stops at "
                return Failure(FailureKind.UNSUPPORTED, message + str(_MAX_ELEMENTS))
        return None

    def run(self, plan: Plan, inputs: tuple[bytes, ...], timeout_s: float) -> Outcome | Failure:
        """Run a plan; see ``Backend.run``. The time limit is checked between steps."""
        refused = self.supports(plan)
        if refused is not None:
            return refused
        deadline = time.monotonic() + timeout_s
        arena = Arena(plan, inputs)
        with np.errstate(all="ignore"):
            for index, step in enumerate(plan.steps):
                if time.monotonic() > deadline:
                    message = f"stopped before step {index} of {len(plan.steps)}"
                    return Failure(FailureKind.TIMEOUT, f"{message} after {timeout_s} s")
                arena.step = index
                _RUN[type(step)](plan, arena, step)
                arena.check_canaries()
        return Outcome(arena.contents(), tuple(arena.events))


def _refuse_op(step: Step) -> Failure | None:
    if isinstance(step, PointwiseStep):
        known = POINTWISE.get(step.op)
        arity = len(step.operands)
        if known is None or known[0] != arity:
            message = f"the CPU model has no op {step.op!r} of {arity} operands"
            return Failure(FailureKind.UNSUPPORTED, message)
    elif isinstance(step, ReduceStep) and step.op not in REDUCE:
        return Failure(FailureKind.UNSUPPORTED, f"the CPU model has no reduction {step.op!r}")
    return None


def _work(step: Step) -> int:
    """Return the elements of the largest array that a step makes."""
    match step:
        case GemmStep():
            call = step.call
            sizes = (m.rows * m.cols * m.batch_count for m in (call.a, call.b, call.c, call.d))
            return max(sizes)
        case MatmulStep():
            return max(step.base.size * len(step.iters), step.lhs_access.size)
        case ReduceStep():
            return step.base.size * len(step.iters)
        case PointwiseStep():
            return step.out_access.size
        case CastStep():
            return step.count
        case FillStep():
            return 1


def _matrix(arena: Arena, value: int, layout: MatrixLayout, operand: str) -> Floats:
    """Read a matrix [batch, rows, cols] as the call looks at it."""
    stored = arena.read(value, layout.dtype, of_layout(layout), operand)
    return widen(stored, layout.dtype)


def _scale(arena: Arena, value: int | None, operand: str) -> float:
    """Read a device scalar; a scale pointer without a value is a constant 1."""
    if value is None:
        return 1.0
    return float(arena.read(value, DType.F32, of_run(1), operand)[0])


def _gemm(plan: Plan, arena: Arena, step: GemmStep) -> None:  # noqa: ARG001 - one signature
    call = step.call
    operands = []
    for value, layout, trans, name in (
        (step.a, call.a, call.transa, "A"),
        (step.b, call.b, call.transb, "B"),
    ):
        matrix = _matrix(arena, value, layout, name)
        matrix = arithmetic.load_operand(matrix, layout.dtype, call.compute_type)
        operands.append(matrix if trans == "N" else matrix.transpose(0, 2, 1))
    scales = arithmetic.Scales(
        _scale(arena, step.a_scale, "a_scale"), _scale(arena, step.b_scale, "b_scale")
    )
    total = arithmetic.accumulate(
        call, arithmetic.multiply(*operands), _residual(arena, step), scales
    )
    total = arithmetic.add_bias(call, total, _bias(arena, step))
    result = arithmetic.narrow(call, arithmetic.activate(call, total))
    arena.write(step.out, call.d.dtype, of_layout(call.d), result)


def _residual(arena: Arena, step: GemmStep) -> Floats | None:
    """Read C, unless β is 0. In place, D's buffer starts out with C's bytes."""
    call = step.call
    if call.beta == 0.0:
        return None
    source = step.out if step.c is None else step.c
    if call.c_is_d and source != step.out:
        held, target = arena.bytes_of(source), arena.bytes_of(step.out)
        shared = min(held.size, target.size)
        target[:shared] = held[:shared]
        source = step.out
    return _matrix(arena, source, call.c, "C")


def _bias(arena: Arena, step: GemmStep) -> Floats | None:
    """Read the bias as the type that the library takes it for; a null one is not read."""
    call = step.call
    if not call.uses_bias or step.bias is None:
        return None
    offsets = of_bias(call.m, call.d.batch_count, call.bias_batch_stride)
    return widen(arena.read(step.bias, call.bias_type, offsets, "bias"), call.bias_type)


def _load(plan: Plan, arena: Arena, value: int, offsets: Offsets, operand: str) -> Array:
    """Read elements of a value as what they are."""
    dtype = plan.values[value].dtype
    return widen(arena.read(value, dtype, offsets, operand), dtype)


def _store(plan: Plan, arena: Arena, out: int, offsets: Offsets, values: Array) -> None:
    """Round to the output's type and write."""
    dtype = plan.values[out].dtype
    arena.write(out, dtype, offsets, to_storage(values, dtype))


def _is_double(plan: Plan, operands: tuple[int, ...]) -> bool:
    return any(plan.values[value].dtype is DType.F64 for value in operands)


def _matmul(plan: Plan, arena: Arena, step: MatmulStep) -> None:
    lhs = of_product(step.base, step.iters, step.lhs_access)
    rhs = of_product(step.base, step.iters, step.rhs_access)
    left = _load(plan, arena, step.lhs, lhs, "0")
    right = _load(plan, arena, step.rhs, rhs, "1")
    total = np.einsum("ok,ok->o", left, right)
    double = _is_double(plan, (step.lhs, step.rhs))
    _store(plan, arena, step.out, of_access(step.out_access), round_result(total, double=double))


def _pointwise(plan: Plan, arena: Arena, step: PointwiseStep) -> None:
    operands = [
        _load(plan, arena, value, of_access(access), str(position))
        for position, (value, access) in enumerate(zip(step.operands, step.accesses, strict=True))
    ]
    result = np.asarray(POINTWISE[step.op][1](*operands))
    double = _is_double(plan, step.operands)
    _store(plan, arena, step.out, of_access(step.out_access), round_result(result, double=double))


def _reduce(plan: Plan, arena: Arena, step: ReduceStep) -> None:
    terms = _load(plan, arena, step.source, of_reduction(step.base, step.iters), "0")
    result = REDUCE[step.op](terms)
    double = _is_double(plan, (step.source,))
    _store(plan, arena, step.out, of_access(step.out_access), round_result(result, double=double))


def _cast(plan: Plan, arena: Arena, step: CastStep) -> None:
    run = of_run(step.count)
    _store(plan, arena, step.out, run, _load(plan, arena, step.source, run, "0"))


def _fill(plan: Plan, arena: Arena, step: FillStep) -> None:
    _store(plan, arena, step.out, of_run(1), np.array([step.number]))


_RUN: dict[type, Callable[..., None]] = {
    GemmStep: _gemm,
    MatmulStep: _matmul,
    PointwiseStep: _pointwise,
    ReduceStep: _reduce,
    CastStep: _cast,
    FillStep: _fill,
}
