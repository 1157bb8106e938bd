from __future__ import annotations

import numpy as np
import pytest

from rulecheck.backends.arena import POISON, Arena
from rulecheck.backends.offsets import Offsets, of_access, of_layout, of_product, of_run
from rulecheck.dtypes import decode, encode
from rulecheck.errors import InternalError
from rulecheck.records import Access, DType, InputSpec, MatrixLayout, Plan, ReadEvent, ValueSpec
from tests.accesses import strided

F32, BF16 = DType.F32, DType.BF16
VALUES = (ValueSpec(F32, 5), ValueSpec(BF16, 4), ValueSpec(F32, 3))
PLAN = Plan(VALUES, (InputSpec(0, "x"), InputSpec(1, "y")), (), 2)
X, Y = np.arange(1.0, 6.0), np.array([1.0, 2.0, 3.0, 4.0])


def arena() -> Arena:
    return Arena(PLAN, (encode(X, F32), encode(Y, BF16)))


def offsets(*numbers: int) -> Offsets:
    return of_access(Access((len(numbers),), (numbers,)))


def test_inputs_lie_in_their_buffers_and_the_rest_is_poison() -> None:
    memory = arena()
    x, y, out = memory.contents()
    assert np.array_equal(decode(x, F32), X)
    assert np.array_equal(decode(y, BF16), Y)
    assert out == bytes([POISON]) * 12
    assert np.isnan(decode(out, F32)).all()
    total = memory.memory.size - len(x) - len(y) - len(out)
    assert (memory.memory == POISON).sum() >= total


@pytest.mark.parametrize("inputs", [(b"", b""), (bytes(20),), (bytes(20), bytes(9))])
def test_inputs_must_fit(inputs: tuple[bytes, ...]) -> None:
    with pytest.raises(InternalError):
        Arena(PLAN, inputs)


def test_reads_inside() -> None:
    memory = arena()
    assert np.array_equal(memory.read(0, F32, of_run(3), "A"), X[:3])
    assert np.array_equal(memory.read(0, F32, offsets(4, 0, 4), "A"), [5, 1, 5])
    assert memory.events == []


def test_a_read_as_another_type_sees_the_same_bytes() -> None:
    memory = arena()
    seen = memory.read(1, F32, of_run(2), "C")
    assert seen.tobytes() == encode(Y, BF16)
    assert memory.events == []


def test_reads_past_the_end_are_poison_and_reported() -> None:
    memory = arena()
    memory.step = 7
    seen = memory.read(1, F32, of_run(4), "C").astype(np.float64)
    assert np.isfinite(seen[:2]).all()
    assert np.isnan(seen[2:]).all()
    assert memory.events == [ReadEvent(7, "C", "read", 2, 8, 16)]


def test_an_element_across_the_end_mixes_both() -> None:
    memory = arena()
    seen = memory.read(1, DType.I64, offsets(0, 1), "C")
    assert seen[1] == -1
    assert memory.events[0].start == 8
    plan = Plan((ValueSpec(BF16, 3),), (InputSpec(0, "x"),), (), 0)
    memory = Arena(plan, (encode(Y[:3], BF16),))
    (high,) = memory.read(0, F32, offsets(1), "C").view(np.uint32)
    assert high == 0xFFFF0000 | int.from_bytes(encode(Y[2:3], BF16), "little")
    assert memory.events == [ReadEvent(0, "C", "read", 1, 6, 8)]


def test_reads_before_the_start() -> None:
    memory = arena()
    seen = memory.read(0, F32, offsets(-2, 0), "A").astype(np.float64)
    assert np.isnan(seen[0])
    assert seen[1] == 1
    assert memory.events == [ReadEvent(0, "A", "read", 1, -8, -4)]


@pytest.mark.parametrize("far", [1 << 40, -(1 << 40)])
def test_reads_far_away_are_bounded(far: int) -> None:
    memory = arena()
    assert np.isnan(memory.read(0, F32, offsets(far, 0), "A").astype(np.float64)[0])
    assert len(memory.events) == 1


def test_other_values_are_never_seen_from_outside() -> None:
    memory = arena()
    everything = memory.read(1, BF16, offsets(*range(-200, 200)), "A").astype(np.float64)
    assert np.array_equal(everything[np.isfinite(everything)], Y)


def test_writes_inside() -> None:
    memory = arena()
    memory.write(2, F32, offsets(2, 0), np.array([8, 9], np.float32))
    out = decode(memory.contents()[2], F32)
    assert np.array_equal(out, [9, np.nan, 8], equal_nan=True)
    memory.check_canaries()


def test_writes_outside_are_reported_and_not_made() -> None:
    memory = arena()
    before = memory.memory.copy()
    memory.write(2, F32, offsets(1, 3, -1), np.array([1, 2, 3], np.float32))
    memory.check_canaries()
    assert memory.events == [ReadEvent(0, "D", "write", 2, -4, 16)]
    changed = np.flatnonzero(memory.memory != before)
    assert len(changed) <= 4
    assert np.array_equal(decode(memory.contents()[2], F32), [np.nan, 1, np.nan], equal_nan=True)


@pytest.mark.parametrize("place", [0, -1])
def test_a_broken_canary_is_our_bug(place: int) -> None:
    memory = arena()
    memory.memory[place] = 0
    with pytest.raises(InternalError, match="broke a canary"):
        memory.check_canaries()


@pytest.mark.parametrize("order", ["COL", "ROW"])
def test_layout_offsets(order: str) -> None:
    spec = MatrixLayout(F32, 2, 3, 5, order, 2, 40)  # type: ignore[arg-type]  # parametrised
    found = of_layout(spec).array
    assert found.shape == (2, 2, 3)
    assert found[1, 1, 2] == 40 + (1 + 2 * 5 if order == "COL" else 5 + 2)
    assert of_layout(spec).high == spec.extent - 1
    assert not of_layout(spec).dense


def test_dense_offsets_are_recognised() -> None:
    assert of_layout(MatrixLayout(F32, 2, 3, 3, "ROW")).dense
    assert not of_layout(MatrixLayout(F32, 2, 3, 2, "COL")).dense
    assert of_access(strided((2, 3), (3, 1))).dense
    assert not of_access(strided((2, 3), (0, 1))).dense
    assert of_access(strided((0, 3), (3, 1))).high == -1


def test_indices_that_the_product_lacks_are_nowhere() -> None:
    found = of_product(strided((2,), (2,)), (0, 1), strided((3,), (1,))).array
    assert np.array_equal(found[:, 0], [0, 2])
    assert found[1, 1] < -(1 << 30)
    empty = of_product(strided((1,), (1,)), (0,), strided((0,), (1,)))
    assert empty.high < 0
