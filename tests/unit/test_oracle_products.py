"""The range of a product holds every legal run, is exact where sums are, and is not idle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rulecheck.dtypes import decode, encode, ulp
from rulecheck.oracle import Accumulator, Range, evaluate
from rulecheck.oracle.products import Arithmetic, sum_error
from rulecheck.records import (
    DType,
    Epilogue,
    GemmCall,
    InputSpec,
    MatmulStep,
    Plan,
    ReduceStep,
    ValueSpec,
)
from tests import legal_runs
from tests.accesses import strided
from tests.gemms import Operands, draw, gemm, plan_of, unpack

Floats = npt.NDArray[np.float64]
ACCUMULATOR = Accumulator()
EPILOGUES: tuple[Epilogue, ...] = ("DEFAULT", "BIAS", "RELU", "RELU_BIAS", "GELU", "GELU_BIAS")
TYPES = (
    (DType.F32, DType.F32),
    (DType.F64, DType.F64),
    (DType.BF16, DType.BF16),
    (DType.F16, DType.F16),
    (DType.BF16, DType.F32),
    (DType.F16, DType.F32),
)
COMPUTE = ("32F_FAST_TF32", "32F_FAST_16BF", "32F_FAST_16F", "32F")


@st.composite
def calls(draw_from: st.DrawFn) -> GemmCall:
    """Legal calls of every regular type; sums long enough for orders to matter."""
    dtype, out = draw_from(st.sampled_from(TYPES))
    m, n = draw_from(st.sampled_from(((5, 7), (8, 8), (1, 6), (4, 1))))
    call = gemm(
        m,
        n,
        draw_from(st.sampled_from((1, 2, 11, 37, 64))),
        dtype,
        out=out,
        trans=draw_from(st.sampled_from(("NN", "NT", "TN", "TT"))),
        orders=draw_from(st.sampled_from(("CCCC", "RCCC", "CRCC"))),
        alpha=draw_from(st.sampled_from((1.0, 1 / 64, -1.0, 0.0, 1 / 3, 2.0))),
        beta=draw_from(st.sampled_from((0.0, 1.0, 0.5, -1.0, 1 / 3))),
        epilogue=draw_from(st.sampled_from(EPILOGUES)),
        pads=(draw_from(st.sampled_from((0, 3))), 0, 0, 0),
    )
    if dtype is DType.F32:
        call = replace(call, compute_type=draw_from(st.sampled_from(COMPUTE)))
    return call


def op(matrix: Floats, transpose: str) -> Floats:
    return np.asarray(matrix[0] if transpose == "N" else matrix[0].T)


def legal(call: GemmCall, operands: Operands, seed: int) -> list[Floats]:
    """Legal results [m, n]."""
    given = legal_runs.Matrices(
        op(operands.a, call.transa),
        op(operands.b, call.transb),
        operands.c[0],
        operands.bias if call.uses_bias else None,
    )
    return list(legal_runs.runs(call, given, seed))


def spread(call: GemmCall, operands: Operands) -> list[Floats]:
    """Low, written and high of D as matrices."""
    value = evaluate(plan_of(call), operands.packed(call), ACCUMULATOR)[4]
    return [unpack(encode(part, DType.F64), replace(call.d, dtype=DType.F64))[0] for part in value]


def spoil(operands: Operands, call: GemmCall, how: str) -> Operands:
    """Operands that are hard: sums that cancel, or values of very different size."""
    if how == "cancelling" and call.beta:
        product = op(operands.a, call.transa) @ op(operands.b, call.transb)
        near = legal_runs.store(-call.alpha * product / call.beta, call.c.dtype)
        return operands._replace(c=near[None])
    if how == "uneven":
        sizes = np.ldexp(1.0, np.arange(operands.a[0].size) % 9 - 4).reshape(operands.a.shape)
        return operands._replace(a=operands.a * sizes)
    return operands


@settings(max_examples=120, deadline=None)
@given(calls(), st.integers(0, 999), st.sampled_from(("plain", "cancelling", "uneven")))
def test_every_legal_run_lies_in_the_range(call: GemmCall, seed: int, how: str) -> None:
    operands = spoil(draw(call, seed, exact=False), call, how)
    _, low, high = spread(call, operands)
    for result in legal(call, operands, seed):
        assert (result >= low).all()
        assert (result <= high).all()


@pytest.mark.parametrize("k", [16, 96, 512])
@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [
        (DType.E4M3, DType.E4M3, DType.BF16, DType.BF16),
        (DType.E4M3, DType.E5M2, DType.F32, DType.F32),
        (DType.E5M2, DType.E4M3, DType.F16, DType.E4M3),
        (DType.E4M3, DType.E4M3, DType.BF16, DType.E5M2),
    ],
)
def test_narrow_accumulators_of_fp8_lie_in_the_range(
    a: DType, b: DType, c: DType, d: DType, k: int
) -> None:
    call = gemm(16, 8, k, a, trans="TN", alpha=1 / 64, beta=0.5, epilogue="RELU_BIAS")
    call = replace(
        call,
        b=replace(call.b, dtype=b),
        c=replace(call.c, dtype=c),
        d=replace(call.d, dtype=d),
        compute_type="32F",
    )
    for seed in range(3):
        operands = draw(call, seed, exact=False)
        _, low, high = spread(call, operands)
        for result in legal(call, operands, seed):
            assert (result >= low).all()
            assert (result <= high).all()


@settings(max_examples=60, deadline=None)
@given(calls(), st.integers(0, 999))
def test_small_integers_have_one_legal_result(call: GemmCall, seed: int) -> None:
    """Stage 1 is bitwise: the order of a sum cannot matter, so nothing is free."""
    third = call.alpha == 1 / 3 or call.beta == 1 / 3
    if third or call.epilogue.startswith("GELU") or call.compute_type != "32F":
        return
    operands = draw(call, 2 * seed, exact=True)
    mid, low, high = spread(call, operands)
    assert np.array_equal(low, high)
    for result in legal(call, operands, seed):
        assert np.array_equal(result, mid)


@settings(max_examples=60, deadline=None)
@given(calls(), st.integers(0, 999))
def test_the_written_value_lies_in_its_range(call: GemmCall, seed: int) -> None:
    operands = draw(call, seed, exact=False)
    mid, low, high = spread(call, operands)
    assert (low <= mid).all()
    assert (mid <= high).all()


def test_the_range_is_no_wider_than_the_bound() -> None:
    """A bound that holds everything shows nothing: error/bound of real runs is not tiny."""
    call = gemm(8, 8, 64, DType.F32, beta=1.0)
    ratios = []
    for seed in range(4):
        operands = draw(call, seed, exact=False)
        mid, low, high = spread(call, operands)
        total = np.abs(op(operands.a, "N")) @ np.abs(op(operands.b, "N"))
        allowed = (call.k + 1) * 2.0**-23 * total
        allowed += 4 * 2.0**-24 * (total + np.abs(operands.c[0])) + ulp(mid, DType.F32)
        assert (high - low <= 2.001 * allowed).all()
        ratios += [
            float((np.abs(result - mid) / np.maximum(high - mid, mid - low)).max())
            for result in legal(call, operands, seed)
        ]
    assert 0.01 < max(ratios) <= 1.0


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_c_is_not_looked_at_when_beta_is_zero(beta: float) -> None:
    call = gemm(5, 7, 11, beta=beta)
    operands = draw(call, 1, exact=True)
    poisoned = operands._replace(c=np.full_like(operands.c, np.nan))
    mid, _, _ = spread(call, poisoned)
    assert np.isnan(mid).all() == (beta != 0.0)


def test_nothing_is_lost_to_the_multiplier_where_operands_are_short() -> None:
    call = replace(gemm(5, 7, 11, DType.F32), compute_type="32F_FAST_16BF")
    short = draw(call, 2, exact=True)
    _, low, high = spread(call, short)
    assert np.array_equal(low, high)
    long = short._replace(a=short.a + 2.0**-12)
    _, low, high = spread(call, long)
    assert (low < high).all()


def test_scale_pointers_multiply() -> None:
    call = gemm(16, 8, 32, DType.E4M3, out=DType.F32, trans="TN", a_scale=True, b_scale=True)
    plan = plan_of(call)
    (step,) = plan.steps
    scales = (ValueSpec(DType.F32, 1), ValueSpec(DType.F32, 1))
    inputs = (*plan.inputs, InputSpec(5, "a_scale"), InputSpec(6, "b_scale"))
    scaled = replace(
        plan,
        values=(*plan.values, *scales),
        inputs=inputs,
        steps=(replace(step, a_scale=5, b_scale=6),),
    )
    data = draw(call, 0, exact=True).packed(call)
    pointers = (encode(np.array([0.5]), DType.F32), encode(np.array([-4.0]), DType.F32))
    plain = evaluate(plan, data, ACCUMULATOR)[4]
    found = evaluate(scaled, (*data, *pointers), ACCUMULATOR)[4]
    assert np.array_equal(found.mid, -2.0 * plain.mid)
    assert found.is_exact is plain.is_exact


# ---- the compiler's own sums of products -------------------------------------------------------


def matmul_plan(dtype: DType, out: DType, k: int) -> Plan:
    """2 x 3 of 2 x k times k x 3."""
    values = (ValueSpec(dtype, 2 * k), ValueSpec(dtype, 3 * k), ValueSpec(out, 6))
    step = MatmulStep(
        out=2,
        lhs=0,
        rhs=1,
        base=strided((2, 3), (3 * k, k)),
        iters=tuple(range(k)),
        lhs_access=strided((2, 3, k), (k, 0, 1)),
        rhs_access=strided((2, 3, k), (0, 1, 3)),
        out_access=strided((2, 3), (3, 1)),
    )
    return Plan(values, (InputSpec(0, "A"), InputSpec(1, "B")), (step,), 2)


def reduce_plan(dtype: DType, op_name: str, k: int) -> Plan:
    """Rows of 3 x k."""
    values = (ValueSpec(dtype, 3 * k), ValueSpec(dtype, 3))
    step = ReduceStep(1, op_name, 0, strided((3,), (k,)), tuple(range(k)), strided((3,), (1,)))
    return Plan(values, (InputSpec(0, "x"),), (step,), 1)


def numbers(dtype: DType, count: int, seed: int) -> bytes:
    return encode(np.random.default_rng(seed).standard_normal(count), dtype)


def inside(result: Floats, value: Range) -> bool:
    return bool(((result >= value.low) & (result <= value.high)).all())


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.BF16, DType.F64, DType.TF32])
@pytest.mark.parametrize("k", [1, 11, 64])
def test_sums_of_products_in_any_order_lie_in_the_range(dtype: DType, k: int) -> None:
    for seed in range(5):
        data = (numbers(dtype, 2 * k, seed), numbers(dtype, 3 * k, seed + 100))
        value = evaluate(matmul_plan(dtype, dtype, k), data, ACCUMULATOR)[2]
        a, b = decode(data[0], dtype).reshape(2, k), decode(data[1], dtype).reshape(k, 3)
        terms = a[:, None, :] * b.T[None, :, :]
        rng = np.random.default_rng(seed)
        for total in legal_runs.sums(terms, rng, fp8=False, wide=dtype is DType.F64):
            assert inside(legal_runs.store(total.reshape(-1), dtype), value)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.BF16, DType.F64])
def test_sums_in_any_order_lie_in_the_range(dtype: DType) -> None:
    for seed in range(5):
        data = numbers(dtype, 3 * 64, seed)
        value = evaluate(reduce_plan(dtype, "Sum", 64), (data,), ACCUMULATOR)[1]
        terms = decode(data, dtype).reshape(3, 64)
        rng = np.random.default_rng(seed)
        for total in legal_runs.sums(terms, rng, fp8=False, wide=dtype is DType.F64):
            assert inside(legal_runs.store(total, dtype), value)


def test_a_maximum_is_exact() -> None:
    data = numbers(DType.BF16, 15, 3)
    value = evaluate(reduce_plan(DType.BF16, "Max", 5), (data,), ACCUMULATOR)[1]
    assert value.is_exact
    assert np.array_equal(value.mid, decode(data, DType.BF16).reshape(3, 5).max(axis=1))


@pytest.mark.parametrize("plan", [matmul_plan(DType.BF16, DType.F32, 11)])
def test_integers_sum_exactly_whatever_the_order(plan: Plan) -> None:
    rng = np.random.default_rng(0)
    data = tuple(
        encode(rng.integers(-31, 32, plan.values[leaf.value].count), DType.BF16)
        for leaf in plan.inputs
    )
    assert np.array_equal(*evaluate(plan, data, ACCUMULATOR)[2][1:])


def test_the_freedom_of_a_sum_follows_its_accumulator() -> None:
    def error(**kinds: bool) -> float:
        flags = {"wide": False, "fp8": False, "tf32": False, "keep_scalars": False, **kinds}
        arithmetic = Arithmetic(ACCUMULATOR, **flags)
        third = np.full((1, 8), 1 / 3)
        return float(sum_error(arithmetic, third, third, np.array([2.0]))[0])

    assert error() == 9 * 2.0**-23 * 2
    assert error(fp8=True) == 9 * 2.0**-13 * 2
    assert error(wide=True) == 9 * 2.0**-53 * 2


def test_integers_beyond_the_accumulator_are_not_exact() -> None:
    arithmetic = Arithmetic(ACCUMULATOR, wide=False, fp8=False, tf32=False, keep_scalars=False)
    ones = np.ones((2, 4))
    totals = np.array([2.0**24 - 1, 4.0])
    assert not sum_error(arithmetic, ones, ones, totals).any()
    assert sum_error(arithmetic, ones, ones, totals + 1).all()
    assert sum_error(arithmetic, ones + 0.5, ones, totals).all()
    narrow = arithmetic._replace(fp8=True)
    assert sum_error(narrow, ones, ones, totals).all()
    assert not sum_error(narrow, ones, ones, np.array([2.0**13 - 1, 1.0])).any()
