"""Values with the range that a legal implementation may give them.

``mid`` is the value as written; every legal run lies in [low, high]. Ranges grow by what the
hardware is free to do: the order and the internal width of a sum, fused or separate operations
in F32, the error of a transcendental function. Rounding to a storage type is monotone, so the
ends are rounded like the middle and the range stays valid. Ends are computed in float64 and
widened outwards by ``OUTWARD``, which covers float64's own rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

F32_ROUNDOFF = 2.0**-24
F64_ROUNDOFF = 2.0**-53
# float64 evaluations below have relative errors of a few 2^-53; 2^-48 leaves room for sums.
OUTWARD = 2.0**-48
# The tanh form of GELU falls up to here and rises from here on.
GELU_TURN = -0.7524614220710163
# Library functions (exp2f, log2f, sinf, division) are within 2 ulp; 4 ulp cover the fast
# hardware approximations in their main range. In units of the roundoff.
FUNCTION_ROUNDINGS = 8


class Range(NamedTuple):
    """A value, and the lowest and highest legal value: arrays of one shape."""

    mid: Floats
    low: Floats
    high: Floats

    @classmethod
    def exactly(cls, values: Floats) -> Range:
        """A value that is known."""
        return cls(values, values, values)

    def take(self, index: npt.NDArray[np.intp]) -> Range:
        """Gather by flat offsets."""
        if self.low is self.mid:
            return Range.exactly(self.mid[index])
        return Range(self.mid[index], self.low[index], self.high[index])

    def scatter(self, offsets: npt.NDArray[np.intp], count: int) -> Range:
        """Place flat values at offsets of a buffer of ``count`` elements, NaN elsewhere."""
        parts = (self.mid,) if self.is_exact else self
        placed = []
        for part in parts:
            buffer = np.full(count, np.nan)
            buffer[offsets] = part
            placed.append(buffer)
        return Range.exactly(placed[0]) if self.is_exact else Range(*placed)

    def flat(self) -> Range:
        """The same values as one row."""
        if self.is_exact:
            return Range.exactly(self.mid.reshape(-1))
        return Range(*(part.reshape(-1) for part in self))

    @property
    def is_exact(self) -> bool:
        """Whether there is only one legal value."""
        return self.low is self.mid

    @property
    def radius(self) -> Floats:
        """The larger distance from the middle to an end (NaN where the middle is NaN)."""
        if self.is_exact:
            return np.zeros_like(self.mid)
        return np.maximum(self.high - self.mid, self.mid - self.low)


def spread(mid: Floats, radius: Floats) -> Range:
    """A range around a middle; without radius it is exact."""
    return widen(Range.exactly(mid), radius)


def fits_f32(values: Floats) -> npt.NDArray[np.bool_]:
    """Where F32 holds a value exactly, so that evaluation in F32 does not round it."""
    with np.errstate(over="ignore"):
        return np.asarray(values.astype(np.float32) == values)


def slack(value: Range, unit: float, roundings: int = 1) -> Floats:
    """How far so many roundings of unit roundoff ``unit`` may move a result.

    Nothing where there is one legal value and F32 holds it.
    """
    moved = np.abs(value.mid) * (2 * unit * roundings)
    if unit < F32_ROUNDOFF:
        return moved
    settled = fits_f32(value.mid)
    if not value.is_exact:
        settled &= value.low == value.high
    return np.where(settled, 0.0, moved)


def monotone(function: Callable[[Floats], Floats], arg: Range, infimum: float = -np.inf) -> Range:
    """Apply a non-decreasing function.

    A range may begin below the function's domain though its value lies inside; the result then
    begins at the function's ``infimum``.
    """
    mid = function(arg.mid)
    if arg.is_exact:
        return Range.exactly(mid)
    low = function(arg.low)
    low = np.where(np.isnan(low) & ~np.isnan(mid), infimum, low)
    return Range(mid, low, function(arg.high))


def widen(value: Range, amount: Floats) -> Range:
    """Widen a range on both sides; an element whose amount is 0 keeps its ends."""
    if not np.any(amount > 0):
        return value
    outward = amount + np.abs(value.mid) * OUTWARD
    amount = np.where(np.isfinite(value.mid) & (amount > 0), outward, 0.0)
    return Range(value.mid, value.low - amount, value.high + amount)


def add(a: Range, b: Range) -> Range:
    """The sum."""
    mid = a.mid + b.mid
    if a.is_exact and b.is_exact:
        return Range.exactly(mid)
    return Range(mid, a.low + b.low, a.high + b.high)


def multiply(a: Range, b: Range) -> Range:
    """The product: the extremes are among the four products of ends."""
    mid = a.mid * b.mid
    if a.is_exact and b.is_exact:
        return Range.exactly(mid)
    ends = np.stack([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
    return Range(mid, ends.min(axis=0), ends.max(axis=0))


def less_than(a: Range, b: Range) -> Range:
    """1.0 where a < b; both answers are legal where the ranges overlap."""
    mid = (a.mid < b.mid).astype(np.float64)
    if a.is_exact and b.is_exact:
        return Range.exactly(mid)
    surely = (a.high < b.low).astype(np.float64)
    perhaps = (a.low < b.high).astype(np.float64)
    return Range(mid, np.minimum(surely, mid), np.maximum(perhaps, mid))


def remainder(a: Range, b: Range) -> Range:
    """C's fmod; where the operands are not exact, anything of a's sign below |b| is legal."""
    mid = np.fmod(a.mid, b.mid)
    if a.is_exact and b.is_exact:
        return Range.exactly(mid)
    limit = np.maximum(np.abs(b.low), np.abs(b.high))
    return Range(mid, np.where(a.low < 0, -limit, 0.0), np.where(a.high > 0, limit, 0.0))


def reciprocal(a: Range) -> Range:
    """1/a; unbounded where the range contains zero."""
    mid = 1.0 / a.mid
    if a.is_exact:
        return Range.exactly(mid)
    crosses = (a.low <= 0) & (a.high >= 0)
    low = np.where(crosses, -np.inf, 1.0 / a.high)
    return Range(mid, low, np.where(crosses, np.inf, 1.0 / a.low))


def sine(a: Range, unit: float) -> Range:
    """Sine: Lipschitz constant 1; the error of argument reduction is absolute."""
    mid = np.sin(a.mid)
    return spread(mid, a.radius + FUNCTION_ROUNDINGS * unit)


def maximum(values: Range, axis: int) -> Range:
    """The largest along an axis."""
    mid = values.mid.max(axis=axis)
    if values.is_exact:
        return Range.exactly(mid)
    return Range(mid, values.low.max(axis=axis), values.high.max(axis=axis))


def truth(a: Range) -> Range:
    """1.0 where a is not zero; both answers are legal where the range has zero and more."""
    mid = (a.mid != 0).astype(np.float64)
    if a.is_exact:
        return Range.exactly(mid)
    surely = (a.low > 0) | (a.high < 0)
    perhaps = (a.low != 0) | (a.high != 0)
    return Range(mid, surely.astype(np.float64), perhaps.astype(np.float64))


def relu(a: Range) -> Range:
    """max(x, 0); NaN becomes 0, as the library's epilogue is reported to do (assumed)."""
    return monotone(lambda x: np.where(x > 0, x, 0.0), a)


def gelu_tanh(a: Range, error: float) -> Range:
    """x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³))): the form of the library's epilogue.

    The value is x · σ(2√(2/π)(x + 0.044715 x³)), which is the same and does not cancel for
    negative x. Its extremes over a range are at the ends, or at ``GELU_TURN`` in between; thus a
    range in the negative tail, where the slope vanishes, stays narrow. ``error`` is that of an
    evaluation in the form with tanh, relative to |x|.
    """
    mid = _gelu(a.mid)
    if a.is_exact:
        return spread(mid, np.abs(mid) * OUTWARD + np.abs(a.mid) * error)
    ends = np.stack([_gelu(a.low), _gelu(a.high), _gelu(np.clip(GELU_TURN, a.low, a.high))])
    value = Range(mid, ends.min(axis=0), ends.max(axis=0))
    size = np.maximum(np.abs(a.low), np.abs(a.high))
    return widen(value, np.abs(ends).max(axis=0) * OUTWARD + size * error)


def _gelu(x: Floats) -> Floats:
    inner = 2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    with np.errstate(over="ignore"):  # the quotient is then the -0 that it should be
        return np.asarray(x / (1 + np.exp(-inner)))
