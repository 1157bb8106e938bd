"""What holds for every call and every plan, sane or not."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rulecheck.backends.cpu import CpuModel
from rulecheck.contract import check_plan
from rulecheck.dtypes import decode, encode, round_to
from rulecheck.records import (
    CastStep,
    DType,
    Epilogue,
    GemmCall,
    InputSpec,
    MatrixLayout,
    Order,
    Outcome,
    Plan,
    PointwiseStep,
    ReadEvent,
    Transpose,
    ValueSpec,
)
from tests.accesses import strided
from tests.gemms import Sample, gemm, places, plan_of

MODEL = CpuModel()
FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16, DType.E4M3, DType.E5M2)
EXTENT = st.integers(1, 6)


@st.composite
def layouts(draw: st.DrawFn, rows: int, cols: int, batch: int) -> MatrixLayout:
    order: Order = draw(st.sampled_from(("COL", "ROW")))
    return MatrixLayout(
        draw(st.sampled_from(FLOATS)),
        rows,
        cols,
        draw(st.integers(0, 9)),
        order,
        batch,
        draw(st.integers(-20, 40)) if batch > 1 else 0,
    )


@st.composite
def wild_calls(draw: st.DrawFn) -> GemmCall:
    """Calls that multiply; nothing else need be right about them."""
    m, n, k, batch = (draw(EXTENT) for _ in range(4))
    trans: list[Transpose] = [draw(st.sampled_from(("N", "T", "C"))) for _ in range(2)]
    epilogue: Epilogue = draw(
        st.sampled_from(("DEFAULT", "BIAS", "RELU", "RELU_BIAS", "GELU", "GELU_BIAS"))
    )
    return GemmCall(
        draw(st.sampled_from(("32F", "32F_FAST_TF32", "64F", "16F"))),
        draw(st.sampled_from((DType.F32, DType.F64, DType.F16))),
        trans[0],
        trans[1],
        draw(layouts(*((m, k) if trans[0] == "N" else (k, m)), batch)),
        draw(layouts(*((k, n) if trans[1] == "N" else (n, k)), batch)),
        draw(layouts(m, n, batch)),
        draw(layouts(m, n, batch)),
        draw(st.sampled_from((1.0, 0.0, -1.0, 1 / 3))),
        draw(st.sampled_from((1.0, 0.0, 0.5))),
        epilogue,
        c_is_d=draw(st.booleans()),
    )


@st.composite
def wild_plans(draw: st.DrawFn) -> Plan:
    """A call over buffers of any type and size."""
    plan = plan_of(draw(wild_calls()))
    spec = st.builds(ValueSpec, st.sampled_from(FLOATS), st.integers(0, 80))
    return replace(plan, values=tuple(draw(spec) for _ in plan.values))


def fill(plan: Plan, seed: int) -> tuple[bytes, ...]:
    """Random bytes: NaN, infinities and subnormals among them."""
    rng = np.random.default_rng(seed)
    specs = [plan.values[leaf.value] for leaf in plan.inputs]
    return tuple(rng.bytes(spec.count * spec.dtype.bytes) for spec in specs)


def run(plan: Plan, inputs: tuple[bytes, ...]) -> Outcome:
    outcome = MODEL.run(plan, inputs, 30.0)
    assert isinstance(outcome, Outcome)
    return outcome


def bytes_outside(layout: MatrixLayout, spec: ValueSpec) -> int:
    """Elements of a layout that do not lie in a buffer, counted one by one."""
    size, held = layout.dtype.bytes, spec.count * spec.dtype.bytes
    offsets = (offset * size for _, offset in places(layout))
    return sum(start < 0 or start + size > held for start in offsets)


def event_counts(events: tuple[ReadEvent, ...]) -> dict[str, int]:
    return {event.operand: event.count for event in events}


@settings(max_examples=200, deadline=None)
@given(wild_plans(), st.integers(0, 1000))
def test_same_plan_and_bytes_same_outcome(plan: Plan, seed: int) -> None:
    inputs = fill(plan, seed)
    first = run(plan, inputs)
    assert run(plan, inputs) == first
    assert first.buffers[:4] == inputs  # only D is written; canaries are checked while it runs


@settings(max_examples=200, deadline=None)
@given(wild_plans(), st.integers(0, 1000))
def test_every_access_outside_is_an_event_and_nothing_else_is(plan: Plan, seed: int) -> None:
    outcome = run(plan, fill(plan, seed))
    (step,) = plan.steps
    call = step.call  # type: ignore[union-attr]  # plan_of makes a GemmStep
    seen = event_counts(outcome.events)
    read = {"A": (call.a, 0), "B": (call.b, 1)}
    if call.beta != 0.0:
        read["C"] = (call.c, 4 if call.c_is_d else 2)
    read["D"] = (call.d, 4)
    for letter, (layout, value) in read.items():
        assert seen.pop(letter, 0) == bytes_outside(layout, plan.values[value]), letter
    assert set(seen) <= {"bias"}


@settings(max_examples=200, deadline=None)
@given(wild_plans(), st.integers(0, 1000))
def test_a_plan_that_keeps_the_contract_has_no_events(plan: Plan, seed: int) -> None:
    violations = check_plan(plan)
    outcome = run(plan, fill(plan, seed))
    extents = {v.operand for v in violations if v.code in ("RC201", "RC202", "RC205", "RC207")}
    in_place = {"C"} if any(v.code in ("RC204", "RC206") for v in violations) else set()
    assert {event.operand for event in outcome.events} <= extents | in_place


@settings(max_examples=60, deadline=None)
@given(
    extents=st.tuples(EXTENT, EXTENT, EXTENT),
    dtype=st.sampled_from((DType.F32, DType.F16, DType.BF16, DType.F64)),
    trans=st.sampled_from(("NN", "NT", "TN", "TT")),
    orders=st.sampled_from(("CCCC", "RCCC", "CRCC", "CCRR", "RRRR")),
    beta=st.sampled_from((0.0, 1.0, -1.0, 0.5)),
    alpha=st.sampled_from((1.0, 2.0, -1.0)),
    batch=st.integers(1, 3),
    seed=st.integers(0, 1000),
    pads=st.tuples(*[st.integers(0, 3)] * 4),
)
def test_exact_calls_agree_with_torch(
    *,
    extents: tuple[int, int, int],
    dtype: DType,
    trans: str,
    orders: str,
    beta: float,
    alpha: float,
    batch: int,
    seed: int,
    pads: tuple[int, int, int, int],
) -> None:
    call = gemm(
        *extents, dtype, trans=trans, orders=orders, alpha=alpha, beta=beta, batch=batch, pads=pads
    )
    sample = Sample("drawn", call, seed, exact=True)
    assert check_plan(sample.plan()) == ()
    assert sample.departures(run(sample.plan(), sample.inputs())) == 0


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=20),
    st.sampled_from((DType.F16, DType.BF16, DType.E4M3, DType.E5M2)),
)
def test_cast_steps_are_the_rounding_of_dtypes(numbers: list[float], target: DType) -> None:
    count = len(numbers)
    plan = Plan(
        (ValueSpec(DType.F32, count), ValueSpec(target, count)),
        (InputSpec(0, "x"),),
        (CastStep(1, 0, count),),
        1,
    )
    outcome = run(plan, (encode(np.array(numbers), DType.F32),))
    expected = round_to(np.array(numbers), target)
    assert np.array_equal(decode(outcome.buffers[1], target), expected, equal_nan=True)


@settings(max_examples=100, deadline=None)
@given(EXTENT, EXTENT, st.integers(-4, 8), st.integers(-4, 8), st.integers(0, 40))
def test_pointwise_reads_outside_are_events(
    rows: int, cols: int, row_step: int, col_step: int, held: int
) -> None:
    source, out = strided((rows, cols), (row_step, col_step)), strided((rows, cols), (cols, 1))
    values = (ValueSpec(DType.F32, held), ValueSpec(DType.F32, rows * cols))
    step = PointwiseStep(1, "Sqrt", (0,), (source,), out)
    plan = Plan(values, (InputSpec(0, "x"),), (step,), 1)
    outcome = run(plan, (encode(np.ones(held), DType.F32),))
    offsets = [i * row_step + j * col_step for i in range(rows) for j in range(cols)]
    outside = sum(not 0 <= offset < held for offset in offsets)
    assert sum(event.count for event in outcome.events) == outside
    assert np.isnan(decode(outcome.buffers[1], DType.F32)).sum() == outside
    assert bool(check_plan(plan)) is bool(outside)
