"""What holds for every case and every comparison."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rulecheck.backends.cpu import CpuModel
from rulecheck.children import numerics
from rulecheck.compare import Allowed, compare
from rulecheck.dtypes import decode, encode, ulp
from rulecheck.oracle import Accumulator, InputKind, draw_inputs, evaluate
from rulecheck.records import (
    Comparable,
    DType,
    Judged,
    JudgeRequest,
    Outcome,
    Plan,
    Verdict,
)
from tests.case_bytes import digest, plans_of
from tests.gemms import Sample, samples
from tests.luminal_terms import Graph
from tests.rule_texts import RULES

ROOT = Path(__file__).parents[2]
MODEL = CpuModel()
Floats = npt.NDArray[np.float64]
FINITE = st.floats(-1e30, 1e30, allow_nan=False)
ROOM = st.floats(0, 1e20, allow_nan=False)


@st.composite
def ranges(draw: st.DrawFn) -> Allowed:
    """Ranges of some elements, each with its own room on either side, some with none."""
    rows = draw(st.lists(st.tuples(FINITE, ROOM, ROOM), min_size=1, max_size=12))
    mid, below, above = (np.array(column) for column in zip(*rows, strict=True))
    return Allowed(mid, mid - below, mid + above)


def beyond(allowed: Allowed, index: int, upwards: bool) -> float:
    """The written value moved by twice its bound and one step."""
    middle = float(allowed.mid[index])
    end = float((allowed.high if upwards else allowed.low)[index])
    moved = middle + 2 * (end - middle)
    return math.nextafter(moved, math.inf if upwards else -math.inf)


@given(ranges(), st.data(), st.booleans())
def test_twice_the_bound_is_always_caught(
    allowed: Allowed, data: st.DataObject, upwards: bool
) -> None:
    index = data.draw(st.integers(0, allowed.mid.size - 1))
    got = allowed.mid.copy()
    got[index] = beyond(allowed, index, upwards)
    found = compare(got, allowed)
    assert not found.within
    assert found.outside.tolist() == [position == index for position in range(got.size)]
    assert (found.worst, found.differing) == (index, 1)
    assert found.ratio > 1


@given(ranges(), st.data())
def test_whatever_lies_in_the_range_is_legal(allowed: Allowed, data: st.DataObject) -> None:
    share = data.draw(st.floats(0, 1))
    got = np.clip(allowed.low + share * (allowed.high - allowed.low), allowed.low, allowed.high)
    found = compare(got, allowed)
    assert found.within
    assert 0 <= found.ratio <= 1


@given(ranges(), st.data(), st.sampled_from((math.nan, math.inf, -math.inf)))
def test_what_is_not_finite_is_always_caught(
    allowed: Allowed, data: st.DataObject, value: float
) -> None:
    index = data.draw(st.integers(0, allowed.mid.size - 1))
    got = allowed.mid.copy()
    got[index] = value
    found = compare(got, allowed)
    assert not found.within
    assert (found.worst, found.ratio) == (index, math.inf)


@given(ranges(), st.data())
def test_a_number_where_nan_is_written_is_always_caught(
    allowed: Allowed, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, allowed.mid.size - 1))
    parts = [part.copy() for part in allowed]
    for part in parts:
        part[index] = math.nan
    assert not compare(allowed.mid, Allowed(*parts)).within
    assert compare(parts[0], Allowed(*parts)).within


@given(ranges(), st.integers(0, 24))
def test_missing_and_further_elements_are_never_compared(allowed: Allowed, count: int) -> None:
    assume(count != allowed.mid.size)
    with pytest.raises(ValueError, match="elements compared"):
        compare(np.resize(allowed.mid, count), allowed)


@pytest.mark.parametrize("sample", samples(24), ids=lambda sample: sample.name)
def test_any_element_of_a_call_that_moves_by_twice_its_bound_is_caught(sample: Sample) -> None:
    plan, inputs = sample.plan(), sample.inputs()
    outcome = MODEL.run(plan, inputs, 30.0)
    assert isinstance(outcome, Outcome)
    dtype = plan.values[4].dtype
    allowed = Allowed(*evaluate(plan, inputs, Accumulator())[4])
    got = decode(outcome.buffers[4], dtype)
    written = np.flatnonzero(~np.isnan(allowed.mid))
    assert compare(got[written], Allowed(*(part[written] for part in allowed))).within
    step = ulp(allowed.mid, dtype)
    above, below = allowed.high - allowed.mid, allowed.mid - allowed.low
    for index in written:
        for sign in (1, -1):
            bound = max(above[index], below[index])
            moved = allowed.mid.copy()
            moved[index] += sign * (2 * bound + step[index])
            found = compare(moved, allowed)
            assert found.worst == index
            assert found.outside.sum() == 1


# ---- one case, one result ----------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_a_case_has_the_same_bytes_whenever_it_is_made(name: str) -> None:
    first, second = plans_of(RULES[name]), plans_of(RULES[name])
    assert len(first) == len(second) > 10
    for one, other in zip(first, second, strict=True):
        assert digest(one, 0) == digest(other, 0)
    assert digest(first[0], 0) != digest(first[0], 1)


PRINT = """
from tests.case_bytes import digest, plans_of
from tests.rule_texts import RULES
for plan in plans_of(RULES["layout"]):
    print(digest(plan, 0))
"""


def test_a_case_has_the_same_bytes_in_every_process() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", PRINT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("3", "4")
    ]
    assert printed[0] == printed[1] != ""


@settings(max_examples=60)
@given(
    st.sampled_from((DType.F32, DType.BF16, DType.F16, DType.F64, DType.E4M3)),
    st.integers(0, 2**63),
    st.sampled_from(InputKind),
)
def test_inputs_are_on_the_grid_of_their_type(dtype: DType, seed: int, kind: InputKind) -> None:
    maker_plan = plan_of_leaf(dtype)
    (data,) = draw_inputs(maker_plan, kind, seed)
    assert (data,) == draw_inputs(maker_plan, kind, seed)
    assert encode(decode(data, dtype), dtype) == data


def plan_of_leaf(dtype: DType) -> Plan:
    """A cast of 64 elements."""
    graph = Graph()
    return graph.plan(graph.cast(graph.leaf("i0.x", dtype), 64, DType.F32))


# ---- roundings that a fused op skips -------------------------------------------------------------


def chain_of(ops: list[tuple[str, bool]], *, wide: bool) -> Plan:
    """Ops on two Bf16 leaves, each rounded; wide: in F32, and only the result is rounded."""
    graph, size = Graph(), 24
    leaves = [graph.leaf(f"i0.{name}", DType.BF16) for name in "xy"]
    if wide:
        leaves = [graph.cast(leaf, size, DType.F32) for leaf in leaves]
    root = leaves[0]
    for op, other in ops:
        root = graph.pointwise(op, (size,), root, leaves[int(other)])
    return graph.plan(graph.cast(root, size, DType.BF16) if wide else root)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("Add", "Mul")), st.booleans()), min_size=2, max_size=9),
    st.integers(0, 99),
)
def test_a_fused_op_that_rounds_once_never_has_a_rounding_added(
    ops: list[tuple[str, bool]], seed: int
) -> None:
    item = Comparable(chain_of(ops, wide=False), chain_of(ops, wide=True))
    (judged,) = numerics.answer(JudgeRequest("cpu", seed, (item,))).answers
    assert isinstance(judged, Judged)
    found = judged.evidence
    assert found.verdict in (Verdict.AGREES, Verdict.ROUNDING_ELIDED, Verdict.VACUOUS)
    assert len(found.roundings) < len(ops)
    back = Comparable(item.member, item.original)
    (judged,) = numerics.answer(JudgeRequest("cpu", seed, (back,))).answers
    assert isinstance(judged, Judged)
    assert judged.evidence.verdict is not Verdict.ROUNDING_ELIDED


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), st.sampled_from(("Add", "Mul")))
def test_a_cast_that_overflows_is_a_mismatch_one_way_and_elided_the_other(
    seed: int, op: str
) -> None:
    """F32 numbers of every size; F16 holds few of them."""

    def plan(*, casts: bool) -> Plan:
        graph = Graph()
        root = graph.leaf("i0.x", DType.F32)
        if casts:
            root = graph.cast(graph.cast(root, 40, DType.F16), 40, DType.F32)
        return graph.plan(graph.pointwise(op, (40,), root, root))

    written, cast = plan(casts=False), plan(casts=True)
    items = (Comparable(written, cast), Comparable(cast, written))
    there, back = numerics.answer(JudgeRequest("cpu", seed, items)).answers
    assert isinstance(there, Judged)
    assert isinstance(back, Judged)
    assert there.evidence.verdict is Verdict.MISMATCH
    assert "are finite as written, inf in the member" in there.evidence.message
    assert back.evidence.verdict is Verdict.ROUNDING_ELIDED
