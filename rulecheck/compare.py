"""Comparing a result with what it may legally be, element by element."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


# Where a legal result may be off by more than half of its own size, agreement tells nothing.
TELLING_ROOM = 0.5


class Allowed(NamedTuple):
    """The value as written and the lowest and highest legal value; structurally an oracle range."""

    mid: Floats
    low: Floats
    high: Floats


class Comparison(NamedTuple):
    """How a result sits in its allowed range.

    ``outside`` marks elements that leave it. ``told`` counts elements that could have left it for
    a wrong result of their own size: not NaN, not infinite, and with little room. ``differing``
    counts elements that are not the value as written. ``ratio`` is the largest deviation over
    allowed deviation: at most 1 inside, infinite where nothing may deviate. ``worst`` is the flat
    index of that element.
    """

    outside: Mask
    compared: int
    told: int
    differing: int
    ratio: float
    worst: int

    @property
    def within(self) -> bool:
        """Whether something was compared and every element is legal."""
        return self.compared > 0 and not bool(self.outside.any())


def compare(got: Floats, allowed: Allowed) -> Comparison:
    """Compare a result with its allowed range.

    NaN and infinities are compared by position: a NaN is legal exactly where the value as
    written is NaN, an infinity exactly where the range reaches it.

    Args:
        got: the result as float64: [count].
        allowed: the range: [count] each.

    Raises:
        ValueError: the shapes differ (a broken invariant of the caller).
    """
    if got.shape != allowed.mid.shape:
        raise ValueError(f"{got.shape} elements compared with {allowed.mid.shape}")
    with np.errstate(all="ignore"):  # NaN and infinities are the point here, not a fault
        return _compare(got, allowed)


def _compare(got: Floats, allowed: Allowed) -> Comparison:
    nan_got, nan_wanted = np.isnan(got), np.isnan(allowed.mid)
    inside = (got >= allowed.low) & (got <= allowed.high)
    outside = np.where(nan_got | nan_wanted, nan_got != nan_wanted, ~inside)
    same = (got == allowed.mid) | (nan_got & nan_wanted)
    room = np.where(got >= allowed.mid, allowed.high - allowed.mid, allowed.mid - allowed.low)
    ratios = np.abs(got - allowed.mid) / room
    ratios = np.where(same, 0.0, np.where(np.isfinite(ratios), ratios, np.inf))
    ratios = np.where(outside, np.maximum(ratios, np.nextafter(1.0, 2.0)), np.minimum(ratios, 1.0))
    # Among elements without room the largest deviation is the worst; NaN counts as infinite.
    size = np.where(np.isfinite(got), np.abs(got - np.nan_to_num(allowed.mid)), np.inf)
    worst = int(np.lexsort((size, ratios))[-1]) if got.size else 0
    ratio = float(ratios.max(initial=0.0))
    told = int(narrow(allowed, TELLING_ROOM).sum())
    return Comparison(outside, int(got.size), told, int((~same).sum()), ratio, worst)


def narrow(allowed: Allowed, share: float) -> Mask:
    """Where a range is finite and no wider than a share of its value or of the largest value."""
    size = np.abs(allowed.mid)
    with np.errstate(all="ignore"):
        room = np.maximum(allowed.high - allowed.mid, allowed.mid - allowed.low)
        finite = np.isfinite(size) & np.isfinite(room)
        scale = float(size[finite].max(initial=0.0))
        return np.asarray(finite & (room <= share * np.maximum(size, scale)))


def detectable(allowed: Allowed, ulp: Floats) -> float | None:
    """The smallest relative effect on one element that would leave the allowed range.

    An effect must exceed the room of the element and one step of its type. None if no element
    is finite, non-zero and bounded.
    """
    size = np.abs(allowed.mid)
    with np.errstate(invalid="ignore"):
        room = np.maximum(allowed.high - allowed.mid, allowed.mid - allowed.low)
    usable = np.isfinite(size) & (size > 0) & np.isfinite(room)
    if not usable.any():
        return None
    return float(((room + ulp)[usable] / size[usable]).min())


def overlap(first: Allowed, second: Allowed) -> Mask:
    """Where two ranges have a value in common; NaN meets NaN.

    An end that is NaN could not be computed (the square root of a range that dips below zero),
    so it excludes nothing.
    """
    nan, other = np.isnan(first.mid), np.isnan(second.mid)
    apart = (first.low > second.high) | (second.low > first.high)
    return np.asarray(np.where(nan | other, nan & other, ~apart))


def worst_elements(got: Floats, allowed: Allowed, count: int) -> list[int]:
    """Flat indices of the elements that depart most, worst first.

    A NaN says that poison was read; a number says what the model would silently use. Where there
    are both, half of the list is given to each.
    """
    with np.errstate(all="ignore"):
        away = np.abs(got - allowed.mid)
        # How far past the end that lies on its side: an element that is inside is never worse.
        past = np.where(got >= allowed.mid, got - allowed.high, allowed.low - got)
        score = np.nan_to_num(past, nan=np.inf, posinf=np.inf)
    agreed = (got == allowed.mid) | (np.isnan(got) & np.isnan(allowed.mid))
    score = np.where(agreed, -np.inf, score)
    order = np.lexsort((np.nan_to_num(away, nan=np.inf), score))[::-1]
    poison = ~(np.isfinite(got) | agreed)[order]
    chosen = [*order[poison][: count - count // 2], *order[~poison]]
    return [int(index) for index in chosen[:count]]
