"""Comparison with an allowed range: where, how many, how far, and what would have been seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rulecheck.compare import (
    Allowed,
    Comparison,
    compare,
    detectable,
    narrow,
    overlap,
    worst_elements,
)

INF, NAN = math.inf, math.nan


def allowed(*rows: tuple[float, float, float]) -> Allowed:
    """Rows of (low, as written, high)."""
    low, mid, high = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    return Allowed(mid, low, high)


def against(got: list[float], *rows: tuple[float, float, float]) -> Comparison:
    return compare(np.array(got, dtype=np.float64), allowed(*rows))


def test_equal_values_agree_and_nothing_differs() -> None:
    found = against([1.0, -2.0], (1, 1, 1), (-3, -2, -1))
    assert found.within
    assert (found.compared, found.differing, found.ratio) == (2, 0, 0.0)


def test_a_value_inside_differs_and_is_legal() -> None:
    found = against([1.5, 1.0], (0, 1, 2), (1, 1, 1))
    assert found.within
    assert (found.differing, found.ratio, found.worst) == (1, 0.5, 0)


def test_each_side_has_its_own_room() -> None:
    assert against([3.0], (0, 1, 5)).ratio == 0.5
    assert against([0.5], (0, 1, 5)).ratio == 0.5
    assert against([-1.0], (0, 1, 5)).ratio == 2.0


@pytest.mark.parametrize("end", [0.0, 2.0])
def test_the_ends_are_legal_and_one_step_beyond_is_not(end: float) -> None:
    found = against([end], (0, 1, 2))
    assert found.within
    assert found.ratio == 1.0
    beyond = float(np.nextafter(end, end + (end - 1)))
    outside = against([beyond], (0, 1, 2))
    assert not outside.within
    assert outside.ratio > 1.0


def test_where_nothing_may_deviate_the_ratio_is_infinite() -> None:
    found = against([1.0, 1.0 + 2**-52], (1, 1, 1), (1, 1, 1))
    assert not found.within
    assert list(found.outside) == [False, True]
    assert found.ratio == INF
    assert found.worst == 1


def test_the_worst_of_those_without_room_is_the_largest_deviation() -> None:
    found = against([3.0, -50.0, 2.0], (1, 1, 1), (1, 1, 1), (1, 1, 1))
    assert found.worst == 1
    assert against([-50.0, NAN], (1, 1, 1), (1, 1, 1)).worst == 1


def test_nan_is_legal_exactly_where_it_is_written() -> None:
    found = against(
        [NAN, NAN, 1.0, 1.0],
        (NAN, NAN, NAN),
        (0, 1, 2),
        (NAN, NAN, NAN),
        (0, 1, 2),
    )
    assert list(found.outside) == [False, True, True, False]
    assert found.differing == 2
    assert found.ratio == INF


def test_nan_is_not_excused_by_a_range_that_is_unbounded() -> None:
    assert not against([NAN], (-INF, 1, INF)).within
    assert not against([3.0], (-INF, NAN, INF)).within


@pytest.mark.parametrize(
    ("got", "row", "legal"),
    [
        (INF, (INF, INF, INF), True),
        (-INF, (INF, INF, INF), False),
        (5.0, (INF, INF, INF), False),
        (INF, (1, 2, INF), True),
        (INF, (1, 2, 3), False),
        (-INF, (-INF, 2, 3), True),
        (-INF, (1, 2, INF), False),
        (65504.0, (65504, INF, INF), True),
        (65503.0, (65504, INF, INF), False),
        (1e300, (1, 2, INF), True),
    ],
)
def test_infinities_are_legal_where_the_range_reaches_them(
    got: float, row: tuple[float, float, float], legal: bool
) -> None:
    found = against([got], row)
    assert found.within is legal
    assert (found.ratio <= 1.0) is legal


def test_zeros_of_either_sign_are_one_value() -> None:
    assert against([-0.0], (0, 0, 0)).differing == 0


def test_nothing_compared_is_not_success() -> None:
    found = compare(np.zeros(0), Allowed(np.zeros(0), np.zeros(0), np.zeros(0)))
    assert not found.within
    assert (found.compared, found.differing, found.ratio, found.worst) == (0, 0, 0.0, 0)


def test_another_number_of_elements_is_never_compared() -> None:
    with pytest.raises(ValueError, match=r"\(1,\) elements compared with \(2,\)"):
        against([1.0], (0, 1, 2), (0, 1, 2))
    with pytest.raises(ValueError, match="elements compared"):
        compare(np.zeros((2, 1)), allowed((0, 0, 0), (0, 0, 0)))


# ---- what an element can tell ------------------------------------------------------------------


def test_elements_tell_something_where_a_wrong_result_would_leave_the_range() -> None:
    rows = (
        (3.0, 4.0, 5.0),  # a quarter of its size
        (-9.0, 1.0, 9.0),  # anything of its size, and of the largest, is legal
        (NAN, NAN, NAN),
        (INF, INF, INF),
        (1.0, 2.0, INF),
        (0.0, 0.0, 0.0),  # zero, and nothing else
        (-1.0, 0.0, 1.0),  # far below the largest value
    )
    got = [mid for _, mid, _ in rows]
    found = against(got, *rows)
    assert (found.compared, found.told) == (7, 3)
    assert list(narrow(allowed(*rows), 0.5)) == [True, False, False, False, False, True, True]
    assert not narrow(allowed((-1, 0, 1)), 0.5).any()
    assert narrow(allowed(*rows), 0.1).sum() == 1


def test_nothing_at_all_tells_nothing() -> None:
    assert narrow(Allowed(np.zeros(0), np.zeros(0), np.zeros(0)), 0.5).sum() == 0


# ---- the elements to show ----------------------------------------------------------------------


def worst(got: list[float], count: int, *rows: tuple[float, float, float]) -> list[int]:
    return worst_elements(np.array(got), allowed(*rows), count)


def test_the_elements_that_leave_their_range_furthest_come_first() -> None:
    row = (0.0, 1.0, 2.0)
    assert worst([1.0, 9.0, -5.0, 2.5], 3, row, row, row, row) == [1, 2, 3]
    wide = (-90.0, 1.0, 90.0)
    assert worst([80.0, 3.0], 1, wide, row) == [1]  # far from what is written, but legal


def test_poison_and_numbers_share_the_list() -> None:
    row = (1.0, 1.0, 1.0)
    got = [NAN, 2.0, NAN, 5.0, NAN]
    found = worst(got, 4, *[row] * 5)
    assert [math.isnan(got[index]) for index in found] == [True, True, False, False]
    assert found[2:] == [3, 1]
    assert len(worst(got, 9, *[row] * 5)) <= 5


def test_what_is_not_finite_where_it_is_written_is_no_departure() -> None:
    rows = ((NAN, NAN, NAN), (1.0, 1.0, 1.0), (INF, INF, INF), (1.0, 1.0, 1.0))
    assert worst([NAN, 2.0, INF, NAN], 4, *rows)[:2] == [3, 1]


# ---- the smallest effect that would have been seen ---------------------------------------------


def test_the_detectable_effect_is_that_of_the_tightest_element() -> None:
    seen = detectable(allowed((0.5, 1, 2), (3.75, 4, 4.25)), np.array([2**-7, 2**-5]))
    assert seen == (0.25 + 2**-5) / 4


def test_an_exact_element_shows_one_step_of_its_type() -> None:
    assert detectable(allowed((-2, -2, -2)), np.array([2**-6])) == 2**-7


def test_zeros_infinities_and_nan_show_nothing() -> None:
    rows = ((0, 0, 0), (INF, INF, INF), (NAN, NAN, NAN), (-INF, -INF, -INF))
    assert detectable(allowed(*rows), np.ones(4)) is None
    assert detectable(allowed(*rows, (1, 1, 1)), np.full(5, 2**-3)) == 2**-3


def test_an_unbounded_range_shows_nothing() -> None:
    assert detectable(allowed((-INF, 1, INF)), np.ones(1)) is None
    assert detectable(allowed((0, 1, INF), (1, 1, 1)), np.full(2, 2**-3)) == 2**-3


# ---- ranges in common ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        ((0, 1, 2), (2, 3, 4), True),
        ((0, 1, 2), (1, 1, 1), True),
        ((0, 1, 2), (2.5, 3, 4), False),
        ((3, 3, 3), (3, 3, 3), True),
        ((NAN, NAN, NAN), (NAN, NAN, NAN), True),
        ((NAN, NAN, NAN), (0, 1, 2), False),
        ((-INF, 0, INF), (5, 6, 7), True),
        ((INF, INF, INF), (5, 6, 7), False),
        # An end that could not be computed says nothing.
        ((NAN, 1, 2), (-9, -8, -7), True),
        ((NAN, 1, 2), (3, 4, 5), False),
        ((0, 1, NAN), (3, 4, 5), True),
    ],
)
def test_ranges_meet_where_they_have_a_value_in_common(
    first: tuple[float, float, float], second: tuple[float, float, float], meet: bool
) -> None:
    assert list(overlap(allowed(first), allowed(second))) == [meet]
    assert list(overlap(allowed(second), allowed(first))) == [meet]


def test_an_element_outside_is_worse_than_one_that_is_far_off_and_inside() -> None:
    """Each is held against the end on its own side."""
    mid = np.array([-5e-24, 1.0, -4e-38])
    allowed = Allowed(mid, np.array([-6e-24, 0.5, -1e-35]), np.array([-4e-24, 9.0, 5e-44]))
    assert worst_elements(np.array([0.0, 8.0, 0.0]), allowed, 3)[0] == 0
