"""Elementwise ops on ranges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rulecheck.oracle.intervals import (
    FUNCTION_ROUNDINGS,
    Range,
    add,
    less_than,
    monotone,
    multiply,
    reciprocal,
    remainder,
    sine,
    slack,
    widen,
)

# Takes the unit roundoff of the evaluation, then the operands.
PointwiseOp = Callable[..., Range]


def _rounded(function: Callable[..., Range], roundings: int = 1) -> PointwiseOp:
    """An operation whose result carries so many roundings of the evaluation type."""

    def apply(unit: float, *args: Range) -> Range:
        value = function(*args)
        return widen(value, slack(value, unit, roundings))

    return apply


def _exact(function: Callable[..., Range]) -> PointwiseOp:
    """An operation that never rounds."""
    return lambda _unit, *args: function(*args)


POINTWISE: dict[str, PointwiseOp] = {
    "Add": _rounded(add),
    "Mul": _rounded(multiply),
    "Mod": _exact(remainder),
    "LessThan": _exact(less_than),
    "Exp2": _rounded(lambda a: monotone(np.exp2, a), FUNCTION_ROUNDINGS),
    "Log2": _rounded(lambda a: monotone(np.log2, a), FUNCTION_ROUNDINGS),
    "Sin": lambda unit, a: sine(a, unit),
    "Recip": _rounded(reciprocal, FUNCTION_ROUNDINGS),
    "Sqrt": _rounded(lambda a: monotone(np.sqrt, a, infimum=0.0), FUNCTION_ROUNDINGS),
}
