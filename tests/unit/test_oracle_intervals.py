"""Ranges contain every value that their operands' values can give."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulecheck.ops import OPS
from rulecheck.oracle import intervals
from rulecheck.oracle.intervals import F32_ROUNDOFF, F64_ROUNDOFF, Range
from rulecheck.oracle.pointwise import POINTWISE

Floats = npt.NDArray[np.float64]
NUMBERS = st.floats(-100, 100, allow_nan=False, width=32)
RADII = st.sampled_from((0.0, 2**-20, 2**-7, 0.5, 3.0))
COUNT = 12


@st.composite
def ranges(draw: st.DrawFn, *, positive: bool = False) -> Range:
    """Ranges of a few elements; some exact, some with ends at the middle."""
    low, mid, high = [], [], []
    for _ in range(COUNT):
        middle = draw(NUMBERS)
        middle = abs(middle) + 1 if positive else middle
        below, above = draw(RADII), draw(RADII)
        below = min(below, middle / 2) if positive else below
        low.append(middle - below)
        mid.append(middle)
        high.append(middle + above)
    columns = [np.array(column) for column in (mid, low, high)]
    return Range.exactly(columns[0]) if draw(st.booleans()) else Range(*columns)


def samples(value: Range, seed: int, count: int = 7) -> list[Floats]:
    """Values inside a range: both ends, the middle, and points between."""
    rng = np.random.default_rng(seed)
    inner = [
        value.low + rng.random(value.mid.shape) * (value.high - value.low) for _ in range(count)
    ]
    inner = [np.clip(point, value.low, value.high) for point in inner]
    return [value.low, value.mid, value.high, *inner]


def assert_covers(result: Range, function: Callable[..., Floats], *args: Range, seed: int) -> None:
    columns = [samples(arg, seed + position) for position, arg in enumerate(args)]
    with np.errstate(all="ignore"):
        for points in zip(*columns, strict=True):
            values = function(*points)
            assert (values >= result.low).all()
            assert (values <= result.high).all()
    assert (result.low <= result.mid).all()
    assert (result.mid <= result.high).all()


def gelu(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


TWO: dict[str, tuple[Callable[..., Range], Callable[..., Floats]]] = {
    "add": (intervals.add, np.add),
    "multiply": (intervals.multiply, np.multiply),
    "less than": (intervals.less_than, lambda a, b: (a < b).astype(np.float64)),
}
ONE: dict[str, tuple[Callable[..., Range], Callable[..., Floats]]] = {
    "relu": (intervals.relu, lambda x: np.maximum(x, 0.0)),
    "gelu": (lambda a: intervals.gelu_tanh(a, 8 * F32_ROUNDOFF), gelu),
    "sine": (lambda a: intervals.sine(a, F32_ROUNDOFF), np.sin),
    "exp2": (lambda a: intervals.monotone(np.exp2, a), np.exp2),
    "widen": (lambda a: intervals.widen(a, np.full(COUNT, 0.25)), lambda x: x),
}


@pytest.mark.parametrize("name", TWO)
@given(ranges(), ranges(), st.integers(0, 99))
def test_two_operands(name: str, a: Range, b: Range, seed: int) -> None:
    make, function = TWO[name]
    assert_covers(make(a, b), function, a, b, seed=seed)


@pytest.mark.parametrize("name", ONE)
@given(ranges(), st.integers(0, 99))
def test_one_operand(name: str, a: Range, seed: int) -> None:
    make, function = ONE[name]
    assert_covers(make(a), function, a, seed=seed)


def test_the_range_of_gelu_is_its_image() -> None:
    """Extremes are at the ends or at the minimum; the tail is as narrow as it is flat."""
    mid = np.array([-8.0, -0.75, 2.0, -1.0])
    low, high = mid - np.array([0.01, 0.5, 0.5, 0.0]), mid + np.array([0.01, 0.5, 0.5, 0.0])
    found = intervals.gelu_tanh(Range(mid, low, high), 0.0)
    grid = np.linspace(low, high, 4001)
    exact = grid / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (grid + 0.044715 * grid**3)))
    np.testing.assert_allclose(found.low, exact.min(axis=0), rtol=1e-7)
    np.testing.assert_allclose(found.high, exact.max(axis=0), rtol=1e-7)
    assert 0 < found.high[0] - found.low[0] < 1e-17  # a Lipschitz constant of 1.13 gives 0.02


@pytest.mark.parametrize("x", [-5.0, -9.0, -11.0])
def test_gelu_does_not_cancel_in_the_tail(x: float) -> None:
    """x e^(2z) / (1 + e^(2z)), where float64's 1 + tanh(z) is a multiple of 2^-53 or 0."""
    twice = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    wanted = x * math.exp(twice) / (1 + math.exp(twice))
    found = intervals.gelu_tanh(Range.exactly(np.array([x])), 8 * F32_ROUNDOFF)
    assert found.mid[0] == pytest.approx(wanted, rel=1e-12)
    assert found.low[0] < gelu(np.array([x]))[0] < found.high[0]


@given(ranges(), ranges(positive=True), st.integers(0, 99))
def test_remainders(a: Range, b: Range, seed: int) -> None:
    assert_covers(intervals.remainder(a, b), np.fmod, a, b, seed=seed)


@given(ranges(), st.integers(0, 99))
def test_reciprocals(a: Range, seed: int) -> None:
    with np.errstate(divide="ignore"):
        result = intervals.reciprocal(a)
    columns = samples(a, seed)
    with np.errstate(divide="ignore"):
        for points in columns:
            nonzero = points != 0
            values = 1.0 / points
            assert ((values >= result.low) | ~nonzero).all()
            assert ((values <= result.high) | ~nonzero).all()


def test_a_reciprocal_is_unbounded_where_the_range_holds_zero() -> None:
    a = Range(np.array([0.5, 4.0]), np.array([-0.5, 2.0]), np.array([1.0, 8.0]))
    result = intervals.reciprocal(a)
    assert result.low.tolist() == [-math.inf, 0.125]
    assert result.high.tolist() == [math.inf, 0.5]
    assert result.mid.tolist() == [2.0, 0.25]


@given(ranges(positive=True), st.integers(0, 99))
@pytest.mark.parametrize("function", [np.sqrt, np.log2])
def test_functions_of_positive_numbers(
    function: Callable[[Floats], Floats], a: Range, seed: int
) -> None:
    assert_covers(intervals.monotone(function, a), function, a, seed=seed)


@pytest.mark.parametrize(
    ("name", "infimum", "at_one"), [("Sqrt", 0.0, 1.0), ("Log2", -math.inf, 0.0)]
)
def test_a_range_may_begin_below_the_domain(name: str, infimum: float, at_one: float) -> None:
    """Only where the value itself is outside the domain is the result NaN."""
    a = Range(np.array([0.0, 1.0, -4.0]), np.array([-1e-6, 1.0, -9.0]), np.array([1e-6, 1.0, -3.0]))
    with np.errstate(all="ignore"):
        result = POINTWISE[name](F32_ROUNDOFF, a)
    assert result.low[0] == infimum
    assert not np.isnan(result.high[0])
    assert result.mid[1] == at_one
    assert np.isnan(result.mid[2])


@given(ranges(), st.sampled_from((-1.0, 0.0, 1 / 3, 2.0)), st.integers(0, 99))
def test_maxima(a: Range, shift: float, seed: int) -> None:
    rows = Range(*(np.stack([part, part + shift, part * 0 + 1]) for part in a))
    assert_covers(intervals.maximum(rows, 0), lambda points: points.max(axis=0), rows, seed=seed)


@given(ranges())
def test_functions_of_exact_values_are_exact(a: Range) -> None:
    exact = Range.exactly(a.mid)
    for make in (intervals.relu, lambda x: intervals.add(x, x), lambda x: intervals.multiply(x, x)):
        assert make(exact).is_exact
    assert intervals.less_than(exact, exact).is_exact
    assert intervals.remainder(exact, Range.exactly(np.ones(COUNT))).is_exact
    assert intervals.maximum(exact, 0).is_exact


@given(ranges(), ranges(), st.sampled_from((0.0, 2**-9, 1.0)))
def test_wider_operands_never_give_a_narrower_range(a: Range, b: Range, amount: float) -> None:
    """Inclusion is kept, so a range computed from ranges is valid through a whole graph."""
    wide = Range(a.mid, a.low - amount, a.high + amount)
    cases = [(make(a), make(wide)) for make, _ in ONE.values()]
    cases += [(make(a, b), make(wide, b)) for make, _ in TWO.values()]
    for narrow, wider in cases:
        assert (wider.low <= narrow.low).all()
        assert (wider.high >= narrow.high).all()


# ---- the record ----------------------------------------------------------------------------------


def test_gathering_keeps_exactness_and_order() -> None:
    exact = Range.exactly(np.array([1.0, 2.0, 3.0]))
    index = np.array([[2, 0], [1, 1]])
    assert exact.take(index).is_exact
    assert exact.take(index).mid.tolist() == [[3.0, 1.0], [2.0, 2.0]]
    loose = intervals.spread(exact.mid, np.array([0.0, 1.0, 2.0]))
    taken = loose.take(index)
    assert not taken.is_exact
    assert (taken.low <= [[1.0, 1.0], [1.0, 1.0]]).all()


def test_scattering_leaves_nan_where_nothing_was_written() -> None:
    loose = Range(np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.array([2.0, 3.0]))
    for value in (loose, Range.exactly(loose.mid)):
        placed = value.scatter(np.array([3, 1]), 4)
        assert placed.is_exact is value.is_exact
        for part, original in zip(placed, value, strict=True):
            assert np.isnan(part[[0, 2]]).all()
            assert part[[3, 1]].tolist() == original.tolist()


def test_the_radius_is_the_larger_side() -> None:
    value = Range(np.array([1.0, 5.0]), np.array([0.0, 2.0]), np.array([4.0, 6.0]))
    assert value.radius.tolist() == [3.0, 3.0]
    assert Range.exactly(value.mid).radius.tolist() == [0.0, 0.0]


def test_flattening_keeps_all_three() -> None:
    grid = np.arange(6.0).reshape(1, 2, 3)
    assert Range.exactly(grid).flat().is_exact
    loose = Range(grid, grid - 1, grid + 1).flat()
    assert [part.shape for part in loose] == [(6,)] * 3
    assert loose.low.tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def test_widening_is_outward_and_leaves_what_needs_no_room() -> None:
    value = Range.exactly(np.array([1.0, 3.0, math.inf, math.nan]))
    assert intervals.widen(value, np.zeros(4)) is value
    wide = intervals.widen(value, np.array([0.5, 0.0, 0.5, 0.5]))
    assert wide.low[0] < 0.5
    assert wide.high[0] > 1.5
    assert (wide.low[1], wide.high[1]) == (3.0, 3.0)
    assert (wide.low[2], wide.high[2]) == (math.inf, math.inf)
    assert np.isnan(wide.low[3])


def test_rounding_freedom_is_nothing_where_f32_holds_the_result() -> None:
    exact = Range.exactly(np.array([3.0, 1 / 3, 2.0**24 + 1, 1e300]))
    moved = intervals.slack(exact, F32_ROUNDOFF)
    assert moved[0] == 0
    assert (moved[1:] > 0).all()
    assert (intervals.slack(intervals.spread(exact.mid, np.ones(4)), F32_ROUNDOFF) > 0).all()
    assert (intervals.slack(exact, F64_ROUNDOFF) > 0).all()
    assert intervals.fits_f32(exact.mid).tolist() == [True, False, False, False]


# ---- elementwise ops -----------------------------------------------------------------------------

IN_F32: dict[str, Callable[..., npt.NDArray[np.float32]]] = {
    "Add": lambda a, b: a + b,
    "Mul": lambda a, b: a * b,
    "Mod": np.fmod,
    "LessThan": lambda a, b: (a < b).astype(np.float32),
    "Exp2": np.exp2,
    "Log2": lambda a: np.log2(np.abs(a) + np.float32(1)),
    "Sin": np.sin,
    "Recip": lambda a: np.float32(1) / a,
    "Sqrt": lambda a: np.sqrt(np.abs(a)),
}
DOMAIN: dict[str, Callable[[Floats], Floats]] = {
    "Log2": lambda a: np.asarray(np.float32(np.abs(a)) + np.float32(1), dtype=np.float64),
    "Sqrt": np.abs,
}


def test_every_pointwise_op_has_arithmetic() -> None:
    computed = {
        spec.name for spec in OPS.values() if spec.family == "pointwise" and spec.arithmetic is None
    }
    assert set(POINTWISE) == computed
    assert set(IN_F32) == set(POINTWISE)


@pytest.mark.parametrize("name", POINTWISE)
@given(st.lists(NUMBERS, min_size=COUNT, max_size=COUNT), st.integers(0, 99))
def test_an_op_in_f32_stays_in_the_range_of_the_oracle(
    name: str, numbers: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    first = np.array(numbers)
    second = rng.standard_normal(COUNT).astype(np.float32).astype(np.float64)
    arity = OPS[name].inputs or 0
    args = [first, second][:arity]
    exact = [DOMAIN[name](arg) if name in DOMAIN else arg for arg in args]
    with np.errstate(all="ignore"):
        result = POINTWISE[name](F32_ROUNDOFF, *(Range.exactly(arg) for arg in exact))
        got = IN_F32[name](*(arg.astype(np.float32) for arg in args)).astype(np.float64)
        # What is stored is F32, so the ends are rounded like every result.
        low, high = (part.astype(np.float32).astype(np.float64) for part in result[1:])
    inside = (got >= low) & (got <= high)
    assert (inside | (np.isnan(got) & np.isnan(result.mid))).all()
