"""The arithmetic of one cuBLASLt matmul, stage by stage, in the library's order.

D = narrow(epilogue(alpha * sA * sB * op(A) op(B) + beta * C + bias)); a plan has no values for
the scales of C and D, which are 1. The product is made in float64 and rounded once to the
accumulator: the device's order and truncation are unspecified, and callers bound them. All later
stages round to the scale type after each operation; bias and activation come before the only
narrowing. Arrays are float64 whose values lie on the grid of the type named.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rulecheck.dtypes import MULTIPLIERS, Array, Floats, quantise, round_to, to_storage
from rulecheck.records import DType, GemmCall

# An NVIDIA forum report (329783) says that EPILOGUE_RELU turns NaN into 0, unlike a tensor
# library's relu. Assumed until a device has been asked.
RELU_KEEPS_NAN = False
_GELU_SCALE = math.sqrt(2.0 / math.pi)
_GELU_CUBIC = 0.044715


class Scales(NamedTuple):
    """Device scalars that multiply A and B; 1 where the call has none."""

    a: float = 1.0
    b: float = 1.0


def load_operand(stored: Floats, dtype: DType, compute_type: str) -> Floats:
    """Return what the multiplier sees of an operand: fast modes narrow F32 ones, no others."""
    fmt = MULTIPLIERS.get(compute_type)
    if fmt is None or dtype.storage is not DType.F32:
        return stored
    return quantise(stored, fmt)


def multiply(a: Floats, b: Floats) -> Floats:
    """Return op(A) op(B) in float64: [batch, m, k] x [batch, k, n]."""
    return np.asarray(np.matmul(a, b))


def accumulate(call: GemmCall, product: Floats, c: Floats | None, scales: Scales) -> Floats:
    """Return alpha * product + beta * C in the scale type, as one fused multiply-add.

    The product is rounded to the accumulator first. alpha = 0 is no special case, so NaN in A
    or B survives it; a C that is not read (beta = 0) is None and contributes +0.
    """
    kind = call.scale_type
    accumulator = _round(product, kind)
    alpha = _scalar(_scalar(scales.a * scales.b, kind) * _scalar(call.alpha, kind), kind)
    addend: Floats | float = 0.0
    if c is not None:
        addend = _round(c * _scalar(call.beta, kind), kind)
    return _round(accumulator * alpha + addend, kind)


def add_bias(call: GemmCall, total: Floats, bias: Floats | None) -> Floats:
    """Add the bias (a column over the rows of D) in the scale type."""
    return total if bias is None else _round(total + bias, call.scale_type)


def activate(call: GemmCall, total: Floats) -> Floats:
    """Apply the activation, rounded once to the scale type. GELU is the tanh form."""
    if call.epilogue.startswith("RELU"):
        if RELU_KEEPS_NAN:
            return np.maximum(total, 0.0)
        return np.where(total > 0.0, total, 0.0)
    if call.epilogue.startswith("GELU"):
        inner = _GELU_SCALE * (total + _GELU_CUBIC * total * total * total)
        return _round(0.5 * total * (1.0 + np.tanh(inner)), call.scale_type)
    return total


def narrow(call: GemmCall, total: Floats) -> Array:
    """Convert once to D's type; fp8 saturates."""
    return to_storage(total, call.d.dtype)


def _round(values: Floats, kind: DType) -> Floats:
    """Round to the scale type. F32 and F64 take numpy's conversion, which rounds to nearest."""
    if kind is DType.F32:
        return values.astype(np.float32).astype(np.float64)
    return round_to(values, kind)


def _scalar(value: float, kind: DType) -> float:
    return float(np.float32(value)) if kind is DType.F32 else float(round_to(np.array(value), kind))
