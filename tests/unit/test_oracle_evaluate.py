"""Graphs as written, with roundings left out, and without any; against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rulecheck.backends.cpu import CpuModel
from rulecheck.compare import Allowed, compare
from rulecheck.contract import check_plan
from rulecheck.dtypes import decode, encode
from rulecheck.oracle import Accumulator, InputKind, Range, draw_inputs, evaluate, roundings
from rulecheck.records import DType, Epilogue, Outcome, Plan, ValueSpec
from tests import legal_runs
from tests.gemms import gemm, plan_of
from tests.luminal_terms import Graph, Value

Floats = npt.NDArray[np.float64]
ACCUMULATOR = Accumulator()
MODEL = CpuModel()
FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16, DType.E4M3, DType.E5M2)
BF16, F16, F32, F64 = DType.BF16, DType.F16, DType.F32, DType.F64


def chain(dtype: DType = BF16, **changes: Value) -> Plan:
    """Cast(AB + R) to F32, written out: three roundings in a 16-bit type."""
    graph = Graph()
    types: dict[str, Value] = {f"{operand}_dtype": dtype for operand in "abcd"}
    product = graph.gemm(graph.leaf("A", dtype), graph.leaf("B", dtype), **types, **changes)
    total = graph.pointwise("Add", (35,), product, graph.leaf("R", dtype))
    return graph.plan(graph.cast(total, 35, F32))


def written(plan: Plan, data: tuple[bytes, ...], *, unrounded: bool = False) -> Range:
    return evaluate(plan, data, ACCUMULATOR, unrounded=unrounded)[plan.result]


def skipping(plan: Plan, data: tuple[bytes, ...], *steps: int) -> Range:
    return evaluate(plan, data, ACCUMULATOR, skip=frozenset(steps))[plan.result]


def holds(outer: Range, inner: Range) -> bool:
    return bool(((outer.low <= inner.low) & (inner.high <= outer.high)).all())


# ---- as written ------------------------------------------------------------------------------


def test_every_op_rounds_to_its_own_type() -> None:
    """AB = 256, R = 1.5: bf16 keeps 258 of 257.5, and 256 of the product comes first."""
    plan = chain()
    ones = encode(np.concatenate([np.ones(5), np.zeros(50)]), BF16)
    many = encode(np.full(77, 256.0), BF16)
    data = (ones, many, encode(np.full(35, 1.5), BF16))
    value = written(plan, data)
    assert value.mid.tolist() == [258.0] * 35
    assert skipping(plan, data, 1).mid.tolist() == [257.5] * 35
    assert written(plan, data, unrounded=True).mid.tolist() == [257.5] * 35


def test_integers_give_degenerate_ranges_through_a_whole_graph() -> None:
    for dtype in (F32, F16, BF16, F64):
        plan = chain(dtype)
        data = draw_inputs(plan, InputKind.INTEGERS, 0)
        value = written(plan, data)
        assert np.array_equal(value.low, value.high)
        assert np.array_equal(value.low, value.mid)


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
def test_runs_that_differ_at_every_step_lie_in_the_range(dtype: DType) -> None:
    """Freedom passes through roundings: each step of a run takes another legal way."""
    graph = Graph()
    types: dict[str, Value] = {f"{operand}_dtype": dtype for operand in "abcd"}
    product = graph.gemm(graph.leaf("A", dtype), graph.leaf("B", dtype), **types)
    total = graph.pointwise("Add", (35,), product, graph.leaf("R", dtype))
    last = graph.gemm(
        total, graph.leaf("V", dtype), **types, n=3, k=7, ldb=7, alpha=1 / 3, epilogue="RELU"
    )
    plan = graph.plan(last)
    first_call, second_call = (step.call for step in (plan.steps[0], plan.steps[2]))  # type: ignore[union-attr]  # both are calls
    rng = np.random.default_rng(0)
    for seed in range(6):
        data = draw_inputs(plan, InputKind.REALS, seed)
        value = written(plan, data)
        a, b, r, v = (decode(part, dtype) for part in data)
        given = legal_runs.Matrices(a.reshape(11, 5).T, b.reshape(7, 11).T, np.zeros((5, 7)), None)
        firsts = list(legal_runs.runs(first_call, given, seed))
        for first in firsts:
            added = legal_runs.store(first + r.reshape(7, 5).T, dtype)
            second = legal_runs.Matrices(added, v.reshape(3, 7).T, np.zeros((5, 3)), None)
            for result in legal_runs.runs(second_call, second, int(rng.integers(99))):
                flat = result.T.reshape(-1)
                assert ((flat >= value.low) & (flat <= value.high)).all()


# ---- roundings -------------------------------------------------------------------------------


def test_roundings_are_the_steps_that_lose_bits() -> None:
    assert roundings(chain(BF16)) == (0, 1)
    assert roundings(chain(F32)) == ()
    assert roundings(chain(F64)) == (2,)  # the cast of F64 to F32


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [
        (F32, BF16, True),
        (F32, F16, True),
        (F64, F32, True),
        (F64, BF16, True),
        (F16, BF16, True),
        (BF16, F16, True),
        (DType.E4M3, DType.E5M2, True),
        (DType.E5M2, DType.E4M3, True),
        (F16, DType.E4M3, True),
        (BF16, F32, False),
        (F16, F32, False),
        (F32, F64, False),
        (BF16, BF16, False),
        (DType.E4M3, F16, False),
        (DType.E4M3, BF16, False),
        (DType.E5M2, F16, False),
        (F32, DType.I32, False),
    ],
)
def test_a_cast_rounds_where_its_target_cannot_hold_its_source(
    source: DType, target: DType, counts: bool
) -> None:
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("x", source), 4, target))
    assert roundings(plan) == ((0,) if counts else ())


def test_a_constant_rounds_only_where_something_is_wider() -> None:
    def constant(value: float, dtype: DType) -> Plan:
        graph = Graph()
        scalar = graph.op(graph.add("Constant", graph.literal("f64", value)))
        zero = graph.strides(0)
        kind = graph.add("Mul", graph.shape(4), graph.strides(1), zero, graph.strides(1))
        return graph.plan(graph.op(kind, graph.leaf("x", dtype), scalar))

    assert roundings(constant(1 / 3, F64)) == (0,)
    assert roundings(constant(0.5, F64)) == ()
    assert roundings(constant(1 / 3, F32)) == ()


def widened(plan: Plan, *steps: int) -> Plan:
    """The plan with the results of some steps stored as F32."""
    values = list(plan.values)
    for step in steps:
        out = plan.steps[step].out
        values[out] = ValueSpec(F32, values[out].count)
    return replace(plan, values=tuple(values))


@pytest.mark.parametrize("steps", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("kind", InputKind)
def test_a_rounding_left_out_is_a_wider_buffer(steps: tuple[int, ...], kind: InputKind) -> None:
    plan = chain(F16)
    data = draw_inputs(plan, kind, 3)
    expected = written(widened(plan, *steps), data)
    for part, other in zip(skipping(plan, data, *steps), expected, strict=True):
        assert np.array_equal(part, other)


def test_leaving_out_the_cast_of_f64_keeps_f64() -> None:
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("x", F64), 4, F32))
    data = (encode(np.array([1 / 3, 1 + 2**-40, 0.5, 1e300]), F64),)
    assert skipping(plan, data, 0).mid.tolist() == [1 / 3, 1 + 2**-40, 0.5, 1e300]
    assert written(plan, data).mid[0] == float(np.float32(1 / 3))


# ---- without any rounding --------------------------------------------------------------------


def exact_chain(data: tuple[bytes, ...], dtype: DType) -> list[Fraction]:
    """AB + R over the rationals, in the memory order of D."""
    a, b, r = ([Fraction(value) for value in decode(part, dtype)] for part in data)
    return [
        sum((a[row + 5 * j] * b[j + 11 * col] for j in range(11)), Fraction(0)) + r[row + 5 * col]
        for col in range(7)
        for row in range(5)
    ]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from((F32, BF16, F16)))
def test_the_rational_result_lies_in_the_range_without_rounding(seed: int, dtype: DType) -> None:
    plan = chain(dtype)
    data = draw_inputs(plan, InputKind.REALS, seed)
    value = written(plan, data, unrounded=True)
    for position, exact in enumerate(exact_chain(data, dtype)):
        assert Fraction(value.low[position]) <= exact <= Fraction(value.high[position])
    assert float((value.high - value.low).max()) < 1e-12


def test_scalars_are_not_narrowed_without_rounding() -> None:
    plan = chain(F32, alpha=1 / 3)
    data = (encode(np.ones(55), F32), encode(np.ones(77), F32), encode(np.zeros(35), F32))
    assert abs(written(plan, data, unrounded=True).mid[0] - 11 / 3) < 1e-14
    assert abs(written(plan, data).mid[0] - 11 / 3) > 1e-9


# ---- the model obeys the oracle --------------------------------------------------------------


@st.composite
def wild_bytes(draw: st.DrawFn, plan: Plan) -> tuple[bytes, ...]:
    """Any bytes: NaN, infinities and subnormals among them; or all of order 1."""
    seed = draw(st.integers(0, 9999))
    if draw(st.booleans()):
        return draw_inputs(plan, InputKind.REALS, seed)
    rng = np.random.default_rng(seed)
    specs = [plan.values[leaf.value] for leaf in plan.inputs]
    return tuple(rng.bytes(spec.count * spec.dtype.bytes) for spec in specs)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Plan, tuple[bytes, ...]]:
    """Chains of ops over one shape, with bytes for their leaves."""
    graph = Graph()
    dtype = draw(st.sampled_from(FLOATS))
    root = graph.leaf("x0", dtype)
    for position in range(draw(st.integers(1, 4))):
        name = draw(
            st.sampled_from(
                ("Add", "Mul", "Mod", "LessThan", "Exp2", "Log2", "Sin", "Recip", "Sqrt", "Cast")
            )
        )
        if name == "Cast":
            dtype = draw(st.sampled_from(FLOATS))
            root = graph.cast(root, 6, dtype)
        elif name in ("Add", "Mul", "Mod", "LessThan"):
            root = graph.pointwise(name, (6,), root, graph.leaf(f"y{position}", dtype))
            dtype = DType.BOOL if name == "LessThan" else dtype
        else:
            root = graph.pointwise(name, (6,), root)
        if dtype is DType.BOOL:
            break
    plan = graph.plan(root)
    return plan, draw(wild_bytes(plan))


def model(plan: Plan, data: tuple[bytes, ...]) -> Floats:
    outcome = MODEL.run(plan, data, 20.0)
    assert isinstance(outcome, Outcome)
    return decode(outcome.buffers[plan.result], plan.values[plan.result].dtype)


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_chains_of_ops_on_the_model_lie_in_their_range(
    case: tuple[Plan, tuple[bytes, ...]],
) -> None:
    plan, data = case
    assert check_plan(plan) == ()
    assert compare(model(plan, data), Allowed(*written(plan, data))).within


@st.composite
def calls(draw: st.DrawFn) -> Plan:
    epilogue: Epilogue = draw(st.sampled_from(get_args(Epilogue)))
    call = gemm(
        4,
        3,
        5,
        draw(st.sampled_from((F32, F64, BF16, F16))),
        alpha=draw(st.sampled_from((1.0, 0.0, -1.0, 1 / 3))),
        beta=draw(st.sampled_from((0.0, 1.0, -0.5, 1 / 3))),
        epilogue=epilogue,
        batch=draw(st.integers(1, 3)),
    )
    return plan_of(call)


def tame(plan: Plan, data: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Keep NaN and infinities; finite numbers so small that no F32 sum overflows on the way."""
    kept = []
    for leaf, part in zip(plan.inputs, data, strict=True):
        dtype = plan.values[leaf.value].dtype
        values = decode(part, dtype)
        large = np.isfinite(values) & (np.abs(values) > 1e6)
        kept.append(encode(np.where(large, 1e4, values), dtype))
    return tuple(kept)


@settings(max_examples=150, deadline=None)
@given(st.data(), calls())
def test_calls_on_the_model_lie_in_their_range(data: st.DataObject, plan: Plan) -> None:
    """Also for NaN and infinities, by position."""
    drawn = tame(plan, data.draw(wild_bytes(plan)))
    assert check_plan(plan) == ()
    assert compare(model(plan, drawn), Allowed(*written(plan, drawn))).within


# ---- inputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unrounded", [False, True])
def test_integers_wrap_and_floats_saturate_as_on_the_model(unrounded: bool) -> None:
    graph = Graph()
    numbers = np.array([0.0, -1.0, 2.0**31, -(2.0**31) - 1, 2.0**40 + 5, 2.0**63, -(2.0**70)])
    wide = graph.cast(graph.leaf("A", F64), numbers.size, DType.I64)
    plan = graph.plan(graph.cast(wide, numbers.size, DType.I32))
    data = (encode(numbers, F64),)
    outcome = MODEL.run(plan, data, 10.0)
    assert isinstance(outcome, Outcome)
    expected = [0, -1, -(2**31), 2**31 - 1, 5, -1, 0]
    assert decode(outcome.buffers[plan.result], DType.I32).tolist() == expected
    assert written(plan, data, unrounded=unrounded).mid.tolist() == expected
