"""What a matmul may legally give: sums in any order, in parts, by blocks, fused or not.

Written without the package's arithmetic: numpy and ml_dtypes round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from rulecheck.records import DType, GemmCall

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
NARROW: dict[DType, Any] = {
    DType.F32: np.float32,
    DType.TF32: np.float32,
    DType.F64: np.float64,
    DType.F16: np.float16,
    DType.BF16: ml_dtypes.bfloat16,
    DType.E4M3: ml_dtypes.float8_e4m3fn,
    DType.E5M2: ml_dtypes.float8_e5m2,
}
LIMIT = {DType.E4M3: 448.0, DType.E5M2: 57344.0}


def store(values: npt.NDArray[Any], dtype: DType) -> Floats:
    """Convert to a storage type as the device does: F64 and F32 first, fp8 saturating."""
    if dtype is DType.F64:
        return values.astype(np.float64)
    single = values.astype(np.float32)
    if dtype in LIMIT:
        single = np.clip(single, -LIMIT[dtype], LIMIT[dtype])
    return np.asarray(single.astype(NARROW[dtype]), dtype=np.float64)


def block_sum(terms: Floats, size: int, bits: int) -> Floats:
    """Sum [..., k] as a tensor core does: blocks aligned to their largest exponent, truncated."""
    total = np.zeros(terms.shape[:-1])
    for start in range(0, terms.shape[-1], size):
        block = np.concatenate([total[..., None], terms[..., start : start + size]], axis=-1)
        exponent = np.frexp(np.abs(block).max(axis=-1, keepdims=True))[1] - 1
        unit = np.ldexp(1.0, exponent - bits)
        total = (np.trunc(block / unit) * unit).sum(axis=-1).astype(np.float32).astype(np.float64)
    return total


def f32_sum(terms: Floats) -> Floats:
    """Sum [..., k] one after the other in F32."""
    total = np.zeros(terms.shape[:-1], dtype=np.float32)
    for index in range(terms.shape[-1]):
        total = total + terms[..., index].astype(np.float32)
    return total.astype(np.float64)


def split_sum(terms: Floats, parts: int) -> Floats:
    """Sum [..., k] in parts, each in F32, and the parts in F32."""
    pieces = [f32_sum(piece) for piece in np.array_split(terms, parts, axis=-1)]
    return f32_sum(np.stack(pieces, axis=-1))


def sums(terms: Floats, rng: np.random.Generator, *, fp8: bool, wide: bool) -> Iterator[Floats]:
    """Legal sums over the last axis."""
    shuffled = terms[..., rng.permutation(terms.shape[-1])]
    if wide:
        yield from (
            terms.sum(axis=-1),
            shuffled.sum(axis=-1),
            np.cumsum(shuffled, axis=-1)[..., -1],
        )
        return
    yield from (f32_sum(terms), f32_sum(shuffled), split_sum(shuffled, 4))
    yield terms.sum(axis=-1).astype(np.float32).astype(np.float64)
    yield block_sum(shuffled, 8, 23)
    if fp8:
        yield block_sum(terms, 32, 13)
        yield block_sum(shuffled, 32, 13)


def multiplier(values: Floats, call: GemmCall, *, truncate: bool) -> Floats:
    """What a fast mode keeps of an F32 operand."""
    bits = {"32F_FAST_TF32": 11, "32F_FAST_16BF": 8, "32F_FAST_16F": 11}.get(call.compute_type)
    if bits is None or call.a.dtype.storage is not DType.F32:
        return values
    mantissa, exponent = np.frexp(values)
    scaled = np.ldexp(mantissa, bits)
    kept = (
        np.trunc(scaled) if truncate and call.compute_type == "32F_FAST_TF32" else np.rint(scaled)
    )
    return np.asarray(np.ldexp(kept, exponent - bits))


def epilogue(call: GemmCall, total: Floats, bias: Floats | None, *, wide: bool) -> Floats:
    """Bias and activation in the type of the evaluation."""
    kind: Any = np.float64 if wide else np.float32
    value = total.astype(kind)
    if bias is not None:
        value = value + bias[:, None].astype(kind)
    if call.epilogue.startswith("RELU"):
        value = np.maximum(value, kind(0))
    if call.epilogue.startswith("GELU"):
        inner = kind(np.sqrt(2 / np.pi)) * (value + kind(0.044715) * value * value * value)
        value = kind(0.5) * value * (kind(1) + np.tanh(inner))
    return value.astype(np.float64)


class Matrices(NamedTuple):
    """op(A) [m, k], op(B) [k, n], C [m, n] and the bias [m]."""

    a: Floats
    b: Floats
    c: Floats
    bias: Floats | None


def runs(call: GemmCall, given: Matrices, seed: int) -> Iterator[Floats]:
    """Legal results [m, n] on D's grid."""
    rng = np.random.default_rng(seed)
    wide = call.a.dtype is DType.F64
    for truncate in (False, True):
        left = multiplier(given.a, call, truncate=truncate)
        right = multiplier(given.b, call, truncate=truncate)
        terms = left[:, None, :] * right.T[None, :, :]
        for total in sums(terms, rng, fp8=call.a.dtype.is_fp8, wide=wide):
            for fused in (True, False):
                value = combine(call, total, given.c, fused=fused, wide=wide)
                yield store(epilogue(call, value, given.bias, wide=wide), call.d.dtype)


def combine(call: GemmCall, total: Floats, c: Floats, *, fused: bool, wide: bool) -> Floats:
    """alpha * total + beta * C, as one operation or as three in the scale type."""
    if wide:
        return call.alpha * total + (call.beta * c if call.beta else 0.0)
    alpha, beta = np.float32(call.alpha), np.float32(call.beta)
    if fused:
        exact = float(alpha) * total + (float(beta) * c if call.beta else 0.0)
        return exact.astype(np.float32).astype(np.float64)
    value = alpha * total.astype(np.float32)
    if call.beta:
        value = value + beta * c.astype(np.float32)
    return value.astype(np.float64)
