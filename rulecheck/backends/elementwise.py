"""The arithmetic of ops that are not library calls: one row per op.

Floats are computed in F32 (F64 if an operand is F64): in float64 here and rounded to F32, which
is the correctly rounded F32 result for all but the transcendental ops. Integers are computed in
64 bits and wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rulecheck.dtypes import Array


def _reciprocal(x: Array) -> Array:
    return np.asarray(1.0 / x)


# Mod has the sign of its first operand, as C's fmod.
POINTWISE: dict[str, tuple[int, Callable[..., Any]]] = {
    "Add": (2, np.add),
    "Mul": (2, np.multiply),
    "Mod": (2, np.fmod),
    "LessThan": (2, np.less),
    "Exp2": (1, np.exp2),
    "Log2": (1, np.log2),
    "Sin": (1, np.sin),
    "Recip": (1, _reciprocal),
    "Sqrt": (1, np.sqrt),
}


def _sum(x: Array) -> Array:
    return np.asarray(x.sum(axis=-1))


def _max(x: Array) -> Array:
    """Return the maximum of each row; NaN wins, and nothing at all gives the lowest value."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(np.int64).min
    return np.asarray(x.max(axis=-1, initial=lowest))


REDUCE: dict[str, Callable[[Array], Array]] = {"Sum": _sum, "Max": _max}


def round_result(values: Array, *, double: bool) -> Array:
    """Round a float result to F32, the type of the computation; others are exact."""
    if double or values.dtype.kind != "f":
        return values
    return values.astype(np.float32)
