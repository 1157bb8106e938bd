"""Storage types: decoding, encoding, rounding and the constants that error bounds are made of.

Needs numpy and ml_dtypes, so only the numerics child and the tests import it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from rulecheck.records import DType

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class Format(NamedTuple):
    """A floating-point format.

    ``bits`` counts the implicit one, ``min_exponent`` is the exponent of the smallest normal
    number (2**min_exponent), and ``saturates`` says that overflow gives the largest finite
    number instead of an infinity.
    """

    bits: int
    min_exponent: int
    max_finite: float
    saturates: bool = False


# E4M3 is the "fn" variant: no infinities, one NaN per sign. The device converts to both fp8
# types with .satfinite (PTX), so both saturate, infinities included (CUBLASLT.md section 4).
FORMATS = {
    DType.F64: Format(53, -1022, float(np.finfo(np.float64).max)),
    DType.F32: Format(24, -126, float(np.finfo(np.float32).max)),
    DType.F16: Format(11, -14, 65504.0),
    DType.BF16: Format(8, -126, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
    DType.E4M3: Format(4, -6, 448.0, saturates=True),
    DType.E5M2: Format(3, -14, 57344.0, saturates=True),
}
# What a multiplier keeps of an F32 operand, by compute type; None keeps all of it. Whether TF32
# rounds or truncates is not documented; rounding to nearest is assumed.
MULTIPLIERS = {
    "32F_FAST_TF32": Format(11, -126, FORMATS[DType.F32].max_finite),
    "32F_FAST_16BF": FORMATS[DType.BF16],
    "32F_FAST_16F": FORMATS[DType.F16],
}

_STORAGE: dict[DType, np.dtype[Any]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.TF32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.E4M3: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.I32: np.dtype(np.int32),
    DType.I64: np.dtype(np.int64),
    DType.BOOL: np.dtype(np.uint8),
}
_INT64_LIMIT = 2.0**63
_EXPONENT_BITS = np.int64(0x7FF << 52)  # of a float64


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the numpy type of one element in memory (uint8 for BOOL)."""
    return _STORAGE[dtype]


def widen(stored: Array, dtype: DType) -> Array:
    """Return stored elements as float64, or as int64 for the integer types and BOOL (0 or 1)."""
    if dtype.is_float:
        return stored.astype(np.float64)
    if dtype is DType.BOOL:
        return np.asarray(stored != 0, np.int64)
    return stored.astype(np.int64)


def decode(data: bytes, dtype: DType) -> Floats:
    """Return the elements of a buffer as float64 (exact but for integers beyond 2**53)."""
    with np.errstate(all="ignore"):
        return widen(np.frombuffer(data, _STORAGE[dtype]), dtype).astype(np.float64)


def to_storage(values: Array, dtype: DType) -> Array:
    """Convert float or integer values to elements of ``dtype``, as the device does.

    Floats narrower than F32 are reached through F32, each time to nearest, ties to even; F16 and
    BF16 overflow to infinity; fp8 saturates, infinities included, and keeps NaN. A float becomes
    an integer by truncation towards zero, saturating, NaN giving 0; an integer becomes a
    narrower integer by wrapping. BOOL is 1 for everything but zero.
    """
    if dtype in (DType.F32, DType.TF32, DType.F64):
        return values.astype(_STORAGE[dtype])
    if dtype in FORMATS:
        single = values.astype(np.float32)
        if FORMATS[dtype].saturates:
            limit = np.float32(FORMATS[dtype].max_finite)
            single = np.minimum(np.maximum(single, -limit), limit)
        return single.astype(_STORAGE[dtype])
    if dtype is DType.BOOL:
        return np.asarray(values != 0, np.uint8)
    if values.dtype.kind in "iub":
        return values.astype(_STORAGE[dtype])
    return _truncate(values, dtype)


def _truncate(values: Array, dtype: DType) -> Array:
    """Convert floats to integers: towards zero, saturating, NaN to 0."""
    info = np.iinfo(_STORAGE[dtype])
    wide = np.where(np.isnan(values), 0.0, values).astype(np.float64)
    inside = np.abs(wide) < _INT64_LIMIT
    whole = np.where(inside, wide, 0.0).astype(np.int64)
    whole = np.where(inside, np.clip(whole, info.min, info.max), 0)
    limit = np.where(wide > 0, info.max, info.min)
    result: Array = np.where(inside, whole, limit).astype(_STORAGE[dtype])
    return result


def encode(values: Array, dtype: DType) -> bytes:
    """Return the bytes of ``values`` stored as ``dtype`` (see ``to_storage``)."""
    with np.errstate(all="ignore"):
        return to_storage(np.asarray(values), dtype).tobytes()


def quantise(values: Array, fmt: Format) -> Floats:
    """Round float64 values once, to nearest with ties to even, onto a format's grid."""
    wide = np.asarray(values, np.float64)
    if fmt == FORMATS[DType.F64]:
        return wide
    with np.errstate(all="ignore"):
        if fmt == FORMATS[DType.F32]:
            return wide.astype(np.float32).astype(np.float64)
        step = _spacing(wide, fmt)
        rounded = np.rint(wide / step) * step  # exact: a power of two, and at most fmt.bits bits
        rounded = np.where(np.isfinite(wide), rounded, wide)
        limit = fmt.max_finite
        if fmt.saturates:
            return np.minimum(np.maximum(rounded, -limit), limit)
        return np.where(np.abs(rounded) > limit, np.copysign(np.inf, rounded), rounded)


def _spacing(values: Floats, fmt: Format) -> Floats:
    """Return the distance between neighbours of the grid in each value's binade."""
    # The exponent bits alone are the power of two at the binade's start; 0 for subnormals.
    starts = (np.asarray(values).view(np.int64) & _EXPONENT_BITS).view(np.float64)
    return np.asarray(np.maximum(starts, 2.0**fmt.min_exponent) * 2.0 ** (1 - fmt.bits))


def round_to(values: Array, dtype: DType, *, through_f32: bool = False) -> Floats:
    """Round float64 values to ``dtype``'s grid and return them as float64; monotone.

    By default rounds once, directly from float64: what a correctly rounded operation would
    store, which is what oracles want. ``through_f32`` rounds to F32 first, as the device and
    ``encode`` do; it differs where F32 rounding makes a tie. TF32 is F32 in memory.
    """
    fmt = FORMATS.get(dtype.storage)
    if fmt is None:
        with np.errstate(all="ignore"):
            return widen(to_storage(np.asarray(values), dtype), dtype).astype(np.float64)
    if through_f32 and dtype is not DType.F64:
        values = quantise(values, FORMATS[DType.F32])
    return quantise(values, fmt)


def ulp(values: Array, dtype: DType) -> Floats:
    """Return the spacing of ``dtype``'s grid at each value.

    Zero and subnormal values give the smallest subnormal, values beyond the range the spacing at
    the largest finite number, NaN gives NaN. Integer types give 1.
    """
    wide = np.asarray(values, np.float64)
    fmt = FORMATS.get(dtype.storage)
    if fmt is None:
        return np.ones_like(wide)
    bounded = np.minimum(np.abs(wide), fmt.max_finite)
    return np.where(np.isnan(wide), np.nan, _spacing(bounded, fmt))


def significand_bits(dtype: DType) -> int:
    """Return the bits of the significand, the implicit one included (integers: value bits)."""
    fmt = FORMATS.get(dtype.storage)
    if fmt is not None:
        return fmt.bits
    return 1 if dtype is DType.BOOL else 8 * dtype.bytes - 1


def max_finite(dtype: DType) -> float:
    """Return the largest finite number (rounded to float64 for Int64)."""
    fmt = FORMATS.get(dtype.storage)
    if fmt is not None:
        return fmt.max_finite
    return 1.0 if dtype is DType.BOOL else float(np.iinfo(_STORAGE[dtype]).max)


def smallest_subnormal(dtype: DType) -> float:
    """Return the smallest positive number (1 for integer types)."""
    fmt = FORMATS.get(dtype.storage)
    return 1.0 if fmt is None else float(np.ldexp(1.0, fmt.min_exponent - (fmt.bits - 1)))
