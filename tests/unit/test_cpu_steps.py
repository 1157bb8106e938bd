"""The model's ops that are not library calls, its limits, and choices the library leaves open."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from rulecheck.backends import arithmetic
from rulecheck.backends.cpu import CpuModel
from rulecheck.dtypes import Floats, decode, encode
from rulecheck.records import (
    Access,
    CastStep,
    DType,
    Failure,
    FailureKind,
    FillStep,
    GemmCall,
    GemmStep,
    InputSpec,
    MatmulStep,
    Outcome,
    Plan,
    PointwiseStep,
    ReduceStep,
    Step,
    ValueSpec,
)
from tests.accesses import strided
from tests.gemms import Operands, gemm, plan_of, unpack

F32, F64, BF16, F16 = DType.F32, DType.F64, DType.BF16, DType.F16
MODEL = CpuModel()


def run(plan: Plan, *inputs: bytes) -> Outcome:
    outcome = MODEL.run(plan, inputs, 10.0)
    assert isinstance(outcome, Outcome), outcome
    return outcome


def unary(step: Step, numbers: list[float], dtype: DType, out: ValueSpec) -> Floats:
    """Run one step from value 0 to value 1."""
    values = (ValueSpec(dtype, len(numbers)), out)
    plan = Plan(values, (InputSpec(0, "x"),), (step,), 1)
    return decode(run(plan, encode(np.array(numbers), dtype)).buffers[1], out.dtype)


def pointwise(op: str, dtype: DType, *operands: list[float], out: DType | None = None) -> Floats:
    count = len(operands[0])
    access = strided((count,), (1,))
    last = len(operands)
    values = (*(ValueSpec(dtype, count) for _ in operands), ValueSpec(out or dtype, count))
    step = PointwiseStep(last, op, tuple(range(last)), (access,) * last, access)
    plan = Plan(values, tuple(InputSpec(i, str(i)) for i in range(last)), (step,), last)
    outcome = run(plan, *(encode(np.array(numbers), dtype) for numbers in operands))
    return decode(outcome.buffers[last], out or dtype)


@pytest.mark.parametrize(
    ("op", "left", "right", "expected"),
    [
        ("Add", [1.5, -2], [0.25, 3], [1.75, 1]),
        ("Mul", [1.5, -2], [0.25, 3], [0.375, -6]),
        ("Mod", [5.5, -5.5], [2, 2], [1.5, -1.5]),
        ("LessThan", [1, 2], [2, 2], [1, 0]),
    ],
)
def test_binary_ops(op: str, left: list[float], right: list[float], expected: list[float]) -> None:
    assert np.array_equal(pointwise(op, F32, left, right), expected)


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        ("Exp2", [3, -1], [8, 0.5]),
        ("Log2", [8, 0.5, 0], [3, -1, -np.inf]),
        ("Sin", [0, np.pi / 2], [0, 1]),
        ("Recip", [4, 0], [0.25, np.inf]),
        ("Sqrt", [9, -1], [3, np.nan]),
    ],
)
def test_unary_ops(op: str, numbers: list[float], expected: list[float]) -> None:
    assert np.array_equal(pointwise(op, F32, numbers), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
def test_pointwise_is_torchs_rounding(dtype: DType) -> None:
    torch = pytest.importorskip("torch")
    kind = {F32: torch.float32, F16: torch.float16, BF16: torch.bfloat16}[dtype]
    rng = np.random.default_rng(0)
    left, right = (decode(encode(rng.standard_normal(200), dtype), dtype) for _ in range(2))
    for op, torch_op in (("Add", torch.add), ("Mul", torch.mul)):
        got = pointwise(op, dtype, list(left), list(right))
        expected = torch_op(*(torch.from_numpy(x).to(kind) for x in (left, right)))
        assert np.array_equal(got, expected.to(torch.float64).numpy())


def test_less_than_makes_booleans() -> None:
    assert np.array_equal(pointwise("LessThan", F32, [1, 3], [2, 2], out=DType.BOOL), [1, 0])


def test_integers_are_exact_and_wrap() -> None:
    big = 2.0**31 - 1
    assert np.array_equal(pointwise("Add", DType.I32, [big, 5], [1, 6]), [-(2.0**31), 11])
    assert np.array_equal(pointwise("Mod", DType.I32, [-7, 7], [3, 3]), [-1, 1])
    assert np.array_equal(pointwise("Mul", DType.I32, [46341], [46341]), [46341**2 - 2**32])


def test_f64_is_not_narrowed() -> None:
    assert pointwise("Add", F64, [1.0], [2.0**-50])[0] == 1 + 2.0**-50
    assert pointwise("Add", F32, [1.0], [2.0**-50])[0] == 1


def test_constant_is_weakly_typed() -> None:
    access, scalar = strided((2,), (1,)), strided((2,), (0,))
    values = (ValueSpec(BF16, 2), ValueSpec(F32, 1), ValueSpec(BF16, 2))
    steps = (FillStep(1, 1 / 3), PointwiseStep(2, "Mul", (0, 1), (access, scalar), access))
    outcome = run(Plan(values, (InputSpec(0, "x"),), steps, 2), encode(np.array([3.0, 6.0]), BF16))
    assert np.array_equal(decode(outcome.buffers[2], BF16), [1, 2])


def test_outputs_may_be_permuted() -> None:
    step = PointwiseStep(1, "Exp2", (0,), (strided((2, 3), (3, 1)),), strided((2, 3), (1, 2)))
    got = unary(step, [0, 1, 2, 3, 4, 5], F32, ValueSpec(F32, 6))
    assert np.array_equal(got, [1, 8, 2, 16, 4, 32])


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        ("Sum", [1, 2, 3, 4, 5, 6], [6, 15]),
        ("Max", [1, 3, 2, -4, -5, -6], [3, -4]),
        ("Sum", [1, np.nan, 3, np.inf, 1, 1], [np.nan, np.inf]),
        ("Max", [1, np.nan, 3, np.inf, 1, 1], [np.nan, np.inf]),
    ],
)
def test_reductions(op: str, numbers: list[float], expected: list[float]) -> None:
    step = ReduceStep(1, op, 0, strided((2,), (3,)), (0, 1, 2), strided((2,), (1,)))
    got = unary(step, numbers, F32, ValueSpec(F32, 2))
    assert np.array_equal(got, expected, equal_nan=True)


def test_reductions_round_once() -> None:
    step = ReduceStep(1, "Sum", 0, strided((1,), (0,)), tuple(range(3)), strided((1,), (1,)))
    assert unary(step, [256, 1, 1], BF16, ValueSpec(BF16, 1))[0] == 258


@pytest.mark.parametrize(("op", "expected"), [("Sum", 0.0), ("Max", -np.inf)])
def test_reductions_of_nothing(op: str, expected: float) -> None:
    step = ReduceStep(1, op, 0, strided((1,), (0,)), (), strided((1,), (1,)))
    assert unary(step, [7], F32, ValueSpec(F32, 1))[0] == expected


def test_integer_reductions() -> None:
    step = ReduceStep(1, "Max", 0, strided((1,), (0,)), (0, 1), strided((1,), (1,)))
    assert unary(step, [-7, -3], DType.I32, ValueSpec(DType.I32, 1))[0] == -3


@pytest.mark.parametrize(
    ("source", "target", "number", "expected"),
    [
        (F32, BF16, 257.0, 256.0),
        (F32, F16, 65520.0, np.inf),
        (F32, DType.E4M3, 1e6, 448.0),
        (BF16, F32, 1.5, 1.5),
        (F32, DType.I32, -2.7, -2.0),
        (DType.I32, F32, 2.0**24 + 1, 2.0**24),
        (F32, DType.BOOL, 0.5, 1.0),
        (DType.BOOL, F32, 1.0, 1.0),
    ],
)
def test_casts(source: DType, target: DType, number: float, expected: float) -> None:
    assert unary(CastStep(1, 0, 1), [number], source, ValueSpec(target, 1))[0] == expected


def test_cast_takes_the_first_elements_in_memory_order() -> None:
    got = unary(CastStep(1, 0, 2), [1, 2, 3], F32, ValueSpec(BF16, 3))
    assert np.array_equal(got, [1, 2, np.nan], equal_nan=True)


def test_matmul_accumulates_wide_and_rounds_once() -> None:
    base = strided((2, 4), (12, 3))
    step = MatmulStep(
        2,
        0,
        1,
        base,
        (0, 1, 2),
        strided((2, 4, 3), (3, 0, 1)),
        strided((2, 4, 3), (0, 1, 4)),
        strided((2, 4), (4, 1)),
    )
    values = (ValueSpec(BF16, 6), ValueSpec(BF16, 12), ValueSpec(BF16, 8))
    lhs, rhs = np.array([256.0, 1, 1, 1, 2, 3]), np.arange(12.0) % 5 + 1
    plan = Plan(values, (InputSpec(0, "l"), InputSpec(1, "r")), (step,), 2)
    outcome = run(plan, encode(lhs, BF16), encode(rhs, BF16))
    expected = decode(encode(lhs.reshape(2, 3) @ rhs.reshape(3, 4), BF16), BF16)
    assert np.array_equal(decode(outcome.buffers[2], BF16), expected)


def test_reads_outside_are_events_of_their_step() -> None:
    values = (ValueSpec(F32, 2), ValueSpec(F32, 1), ValueSpec(F32, 3))
    plan = Plan(values, (InputSpec(0, "x"),), (FillStep(1, 1.0), CastStep(2, 0, 3)), 2)
    outcome = run(plan, encode(np.array([1.0, 2.0]), F32))
    (event,) = outcome.events
    assert (event.step, event.operand, event.count, event.start, event.stop) == (1, "0", 1, 8, 12)
    assert np.isnan(decode(outcome.buffers[2], F32)[2])


ONES = np.ones((1, 2, 2))


def single(call: GemmCall, operands: Operands) -> Floats:
    """Run one call; D as [batch, m, n]."""
    return unpack(run(plan_of(call), *operands.packed(call)).buffers[4], call.d)


def test_relu_turns_nan_into_zero() -> None:
    call = gemm(2, 2, 2, F32, epilogue="RELU")
    assert (single(call, Operands(ONES * np.nan, ONES, ONES, np.ones(2))) == 0).all()


def test_relu_policy_on_nan_is_one_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "RELU_KEEPS_NAN", True)
    call = gemm(2, 2, 2, F32, epilogue="RELU")
    assert np.isnan(single(call, Operands(ONES * np.nan, ONES, ONES, np.ones(2)))).all()
    assert (single(call, Operands(-ONES, ONES, ONES, np.ones(2))) == 0).all()


def test_alpha_zero_keeps_nan() -> None:
    call = gemm(2, 2, 2, F32, alpha=0.0)
    assert np.isnan(single(call, Operands(ONES * np.nan, ONES, ONES, np.ones(2)))).all()


def test_zero_results_are_positive() -> None:
    call = gemm(2, 2, 2, F32, alpha=-1.0)
    result = single(call, Operands(ONES * 0, ONES, ONES, np.ones(2)))
    assert not np.signbit(result).any()


@pytest.mark.parametrize(
    ("compute", "bits"), [("32F", 23), ("32F_FAST_TF32", 10), ("32F_FAST_16BF", 7)]
)
def test_fast_modes_narrow_f32_operands(compute: str, bits: int) -> None:
    call = replace(gemm(1, 1, 1, F32), compute_type=compute)
    one = np.ones((1, 1, 1))
    steps = [2.0**-bit for bit in range(1, 24)]
    seen = [
        single(call, Operands(one + step, one, one, np.ones(1)))[0, 0, 0] == 1 + step
        for step in steps
    ]
    assert seen == [bit <= bits for bit in range(1, 24)]


def test_half_compute_rounds_every_stage() -> None:
    call = replace(gemm(1, 1, 2, F16), compute_type="16F", scale_type=F16, epilogue="BIAS")
    operands = Operands(
        np.array([[[2048.0, 1.0]]]), np.ones((1, 2, 1)), np.ones((1, 1, 1)), np.ones(1)
    )
    assert single(call, operands)[0, 0, 0] == 2048  # 2049 and then 2049 tie to even, twice
    wide = replace(call, compute_type="32F", scale_type=F32)
    assert single(wide, operands)[0, 0, 0] == 2050


def test_in_place_c_is_overwritten() -> None:
    call = gemm(2, 2, 2, F32, beta=1.0, c_is_d=True)
    operands = Operands(ONES, ONES, 5 * ONES, np.ones(2))
    assert (single(call, operands) == 7).all()


def test_in_place_without_c_reads_poison() -> None:
    call = gemm(2, 2, 2, F32, beta=1.0, c_is_d=True)
    plan = plan_of(call)
    plan = replace(plan, steps=(replace(plan.steps[0], c=None),))
    inputs = Operands(ONES, ONES, ONES, np.ones(2)).packed(call)
    assert np.isnan(decode(run(plan, *inputs).buffers[4], F32)).all()


def test_bias_of_each_batch() -> None:
    call = gemm(2, 1, 1, F32, epilogue="BIAS", batch=2, bias_batch_stride=2)
    plan = plan_of(call)
    plan = replace(plan, values=(*plan.values[:3], ValueSpec(F32, 4), plan.values[4]))
    zeros = Operands(np.zeros((2, 2, 1)), np.zeros((2, 1, 1)), np.zeros((2, 2, 1)), np.arange(4.0))
    outcome = run(plan, *zeros.packed(call))
    assert np.array_equal(unpack(outcome.buffers[4], call.d)[:, :, 0], [[0, 1], [2, 3]])


def test_missing_bias_and_scales_are_left_out() -> None:
    call = gemm(2, 2, 2, F32, epilogue="BIAS", a_scale=True)
    plan = plan_of(call)
    plan = replace(plan, steps=(GemmStep(4, call, 0, 1, None, None),))
    inputs = Operands(ONES, ONES, ONES, np.ones(2)).packed(call)
    assert np.array_equal(decode(run(plan, *inputs).buffers[4], F32), [2, 2, 2, 2])


def failure(plan: Plan, timeout_s: float = 10.0) -> Failure:
    found = MODEL.run(
        plan, tuple(bytes(v.count * v.dtype.bytes) for v in plan.values[:1]), timeout_s
    )
    assert isinstance(found, Failure)
    return found


@pytest.mark.parametrize("op", ["Tanh", "Add"])
def test_unknown_ops_are_unsupported(op: str) -> None:
    access = strided((1,), (1,))
    step = PointwiseStep(1, op, (0,), (access,), access)
    plan = Plan((ValueSpec(F32, 1),) * 2, (InputSpec(0, "x"),), (step,), 1)
    found = failure(plan)
    assert found.kind is FailureKind.UNSUPPORTED
    assert op in found.message


def test_unknown_reductions_are_unsupported() -> None:
    step = ReduceStep(1, "Prod", 0, strided((1,), (1,)), (0,), strided((1,), (1,)))
    plan = Plan((ValueSpec(F32, 1),) * 2, (InputSpec(0, "x"),), (step,), 1)
    assert "Prod" in failure(plan).message


def test_huge_steps_are_refused_before_any_memory_is_taken() -> None:
    shape = (1 << 13, 1 << 13)
    tables = tuple(range(1 << 13))
    access = Access(shape, ((0,) * (1 << 13), tables))
    step = PointwiseStep(1, "Sin", (0,), (access,), access)
    plan = Plan((ValueSpec(F32, 1),) * 2, (InputSpec(0, "x"),), (step,), 1)
    assert failure(plan).kind is FailureKind.UNSUPPORTED


def test_huge_values_are_refused() -> None:
    plan = Plan((ValueSpec(F32, 1), ValueSpec(F32, 1 << 40)), (InputSpec(0, "x"),), (), 1)
    assert failure(plan).kind is FailureKind.UNSUPPORTED


def test_time_limit() -> None:
    plan = Plan((ValueSpec(F32, 1),) * 2, (InputSpec(0, "x"),), (CastStep(1, 0, 1),), 1)
    found = failure(plan, timeout_s=-1.0)
    assert found.kind is FailureKind.TIMEOUT
    assert "before step 0 of 1" in found.message
