from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from rulecheck import dtypes
from rulecheck.records import DType

FLOATS = (DType.F64, DType.F32, DType.TF32, DType.F16, DType.BF16, DType.E4M3, DType.E5M2)
NARROW = (DType.F16, DType.BF16, DType.E4M3, DType.E5M2)
TORCH = {
    DType.F16: torch.float16,
    DType.BF16: torch.bfloat16,
    DType.F32: torch.float32,
}


def every_value(dtype: DType) -> bytes:
    return np.arange(1 << (8 * dtype.bytes), dtype=f"<u{dtype.bytes}").tobytes()


def assorted(count: int = 4000) -> dtypes.Floats:
    """Float64 values over many binades, ties and specials."""
    rng = np.random.default_rng(0)
    spread = rng.standard_normal(count) * 2.0 ** rng.integers(-160, 140, count)
    ties = 1 + np.arange(0, 64) / 32
    return np.concatenate(
        [spread, rng.standard_normal(count) * 100, ties, 1 + 2.0**-8 + ties * 2.0**-40, [0, -0.0]]
    )


@pytest.mark.parametrize("dtype", DType)
def test_storage_has_the_size_of_the_type(dtype: DType) -> None:
    assert dtypes.storage_dtype(dtype).itemsize == dtype.bytes


@pytest.mark.parametrize("dtype", NARROW)
def test_every_value_survives(dtype: DType) -> None:
    data = every_value(dtype)
    values = dtypes.decode(data, dtype)
    finite = np.isfinite(values)
    back = dtypes.decode(dtypes.encode(values, dtype), dtype)
    assert np.array_equal(back[finite], values[finite])
    assert np.array_equal(np.signbit(back[finite]), np.signbit(values[finite]))
    assert np.array_equal(dtypes.round_to(values, dtype)[finite], values[finite])
    assert np.isnan(back[np.isnan(values)]).all()
    assert np.abs(values[finite]).max() == dtypes.max_finite(dtype)
    assert np.abs(values[finite & (values != 0)]).min() == dtypes.smallest_subnormal(dtype)


@pytest.mark.parametrize("dtype", NARROW)
def test_ulp_is_the_distance_to_the_next_value(dtype: DType) -> None:
    values = dtypes.decode(every_value(dtype), dtype)
    grid = np.unique(np.abs(values[np.isfinite(values)]))
    assert np.array_equal(dtypes.ulp(grid[:-1], dtype), np.diff(grid))
    assert np.array_equal(dtypes.ulp(-grid[:-1], dtype), np.diff(grid))


def test_ulp_outside_the_range() -> None:
    edge = dtypes.ulp(np.array([65504.0]), DType.F16)[0]
    assert np.array_equal(
        dtypes.ulp(np.array([1e9, np.inf, -np.inf, 0.0]), DType.F16), [edge, edge, edge, 2.0**-24]
    )
    assert np.isnan(dtypes.ulp(np.array([np.nan]), DType.F16)[0])
    assert np.array_equal(dtypes.ulp(np.array([3.0, 0.0]), DType.I32), [1, 1])


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.BF16])
def test_encode_rounds_through_f32_as_torch_does(dtype: DType) -> None:
    values = assorted()
    single = torch.from_numpy(values).to(torch.float32)
    expected = single.to(TORCH[dtype]).to(torch.float64).numpy()
    got = dtypes.decode(dtypes.encode(values, dtype), dtype)
    assert np.array_equal(got, expected)
    assert np.array_equal(dtypes.round_to(values, dtype, through_f32=True), expected)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16])
def test_round_to_is_numpys_direct_conversion(dtype: DType) -> None:
    values = assorted()
    with np.errstate(all="ignore"):
        expected = values.astype(dtypes.storage_dtype(dtype)).astype(np.float64)
    assert np.array_equal(dtypes.round_to(values, dtype), expected)


def test_one_rounding_differs_from_two() -> None:
    value = np.array([1 + 2.0**-8 + 2.0**-40])  # just above the middle; F32 makes it the middle
    assert dtypes.round_to(value, DType.BF16)[0] == 1 + 2.0**-7
    assert dtypes.round_to(value, DType.BF16, through_f32=True)[0] == 1


@pytest.mark.parametrize("dtype", [DType.E4M3, DType.E5M2])
def test_fp8_saturates_and_keeps_nan(dtype: DType) -> None:
    limit = dtypes.max_finite(dtype)
    values = np.array([limit, limit * 1.04, 1e9, np.inf, -np.inf, -1e9, np.nan])
    expected = [limit, limit, limit, limit, -limit, -limit, np.nan]
    got = dtypes.decode(dtypes.encode(values, dtype), dtype)
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(dtypes.round_to(values, dtype), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [DType.E4M3, DType.E5M2])
def test_fp8_rounds_as_ml_dtypes_inside_the_range(dtype: DType) -> None:
    limit = dtypes.max_finite(dtype)
    values = np.linspace(-limit, limit, 20001).astype(np.float32).astype(np.float64)
    target = ml_dtypes.float8_e4m3fn if dtype is DType.E4M3 else ml_dtypes.float8_e5m2
    expected = values.astype(np.float32).astype(target).astype(np.float64)
    assert np.array_equal(dtypes.decode(dtypes.encode(values, dtype), dtype), expected)
    assert np.array_equal(dtypes.round_to(values, dtype), expected)


def test_f16_overflow() -> None:
    values = np.array([65504.0, 65519.0, 65520.0, -65520.0])
    assert np.array_equal(dtypes.round_to(values, DType.F16), [65504, 65504, np.inf, -np.inf])
    back = dtypes.decode(dtypes.encode(values, DType.F16), DType.F16)
    assert np.array_equal(back, [65504, 65504, np.inf, -np.inf])


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_is_monotone_and_within_half_an_ulp(dtype: DType) -> None:
    values = np.sort(assorted())
    rounded = dtypes.round_to(values, dtype)
    assert (rounded[1:] >= rounded[:-1]).all()
    inside = np.abs(values) <= dtypes.max_finite(dtype)
    error = np.abs(rounded - values)[inside]
    assert (error <= dtypes.ulp(values[inside], dtype) / 2).all()
    normal = inside & (np.abs(values) > 2 * dtypes.smallest_subnormal(dtype) * 2**24)
    relative = np.abs(rounded - values)[normal] / np.abs(values[normal])
    assert (relative <= 2.0 ** -dtypes.significand_bits(dtype)).all()


def test_tf32_is_f32_in_memory() -> None:
    values = assorted()
    assert dtypes.encode(values, DType.TF32) == dtypes.encode(values, DType.F32)
    assert dtypes.significand_bits(DType.TF32) == dtypes.significand_bits(DType.F32) == 24
    kept = dtypes.quantise(
        np.array([1 + 2.0**-10, 1 + 2.0**-12]), dtypes.MULTIPLIERS["32F_FAST_TF32"]
    )
    assert np.array_equal(kept, [1 + 2.0**-10, 1])


def test_floats_become_integers_by_truncation_and_saturation() -> None:
    values = np.array([1.9, -1.9, np.nan, 1e30, -1e30, np.inf])
    limits = np.iinfo(np.int32)
    expected = [1, -1, 0, limits.max, limits.min, limits.max]
    assert np.array_equal(dtypes.to_storage(values, DType.I32), expected)
    wide = np.iinfo(np.int64)
    expected = [1, -1, 0, wide.max, wide.min, wide.max]
    assert np.array_equal(dtypes.to_storage(values, DType.I64), expected)
    assert np.array_equal(dtypes.round_to(values[:3], DType.I32), [1, -1, 0])


def test_integers_wrap_and_bool_is_not_zero() -> None:
    values = np.array([2**31, -1, 0])
    assert np.array_equal(dtypes.to_storage(values, DType.I32), [-(2**31), -1, 0])
    assert np.array_equal(dtypes.to_storage(values, DType.BOOL), [1, 1, 0])
    assert np.array_equal(dtypes.decode(b"\x00\x01\x07", DType.BOOL), [0, 1, 1])
    assert np.array_equal(dtypes.to_storage(np.array([0.0, np.nan, 0.1]), DType.BOOL), [0, 1, 1])


def test_constants_of_integer_types() -> None:
    assert dtypes.max_finite(DType.I32) == 2**31 - 1
    assert dtypes.max_finite(DType.BOOL) == 1
    assert dtypes.smallest_subnormal(DType.I64) == 1
    assert [dtypes.significand_bits(d) for d in (DType.I32, DType.I64, DType.BOOL)] == [31, 63, 1]
