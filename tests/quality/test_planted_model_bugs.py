"""Each bug is planted in the model, and the comparison with torch must notice it.

Without a plant the same comparison passes, so a plant that stops working fails here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from rulecheck.backends import arithmetic, cpu
from rulecheck.backends.arena import Arena
from rulecheck.backends.cpu import CpuModel
from rulecheck.backends.offsets import Offsets, of_layout
from rulecheck.dtypes import Array, Floats, round_to
from rulecheck.records import DType, GemmCall, MatrixLayout, Outcome
from tests.gemms import samples

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def departures() -> int:
    """Wrong elements over all samples."""
    model, total = CpuModel(), 0
    for sample in samples():
        outcome = model.run(sample.plan(), sample.inputs(), 30.0)
        assert isinstance(outcome, Outcome)
        total += sample.departures(outcome)
    return total


def around_accumulate(
    change: Callable[[GemmCall, Floats, Floats | None], tuple[GemmCall, Floats, Floats | None]],
) -> Plant:
    """Change what the fused multiply-add is given."""
    original = arithmetic.accumulate

    def planted(call: GemmCall, product: Floats, c: Floats | None, scales: Any) -> Floats:
        return original(*change(call, product, c), scales)

    return lambda patch: patch.setattr(arithmetic, "accumulate", planted)


def around_read(operand: str, change: Callable[[DType, Offsets], tuple[DType, Offsets]]) -> Plant:
    """Change how one operand is read."""
    original = Arena.read

    def planted(self: Arena, value: int, dtype: DType, offsets: Offsets, name: str) -> Array:
        if name == operand:
            dtype, offsets = change(dtype, offsets)
        return original(self, value, dtype, offsets, name)

    return lambda patch: patch.setattr(Arena, "read", planted)


def swap_a_and_b(patch: Patch) -> None:
    def planted(a: Floats, b: Floats) -> Floats:
        square = a.shape == b.shape
        return np.asarray(b @ a if square else a @ b)

    patch.setattr(arithmetic, "multiply", planted)


def shift_ld(by: int) -> Plant:
    def planted(layout: MatrixLayout) -> Offsets:
        return of_layout(replace(layout, ld=layout.ld + by))

    return lambda patch: patch.setattr(cpu, "of_layout", planted)


def transposed(c: Floats | None) -> Floats | None:
    square = c is not None and c.shape[1] == c.shape[2]
    return c.transpose(0, 2, 1) if c is not None and square else c


def doubled(c: Floats | None) -> Floats | None:
    return None if c is None else 2 * c


def past_the_end(dtype: DType, offsets: Offsets) -> tuple[DType, Offsets]:
    return dtype, Offsets(offsets.array + 1, offsets.low + 1, offsets.high + 1, dense=False)


def wrong_cast(dtype: DType, offsets: Offsets) -> tuple[DType, Offsets]:
    return DType.F16 if dtype is DType.BF16 else DType.BF16, offsets


def round_twice(call: GemmCall, product: Floats, c: Floats | None) -> Any:
    return call, round_to(product, call.d.dtype), c


def truncate(patch: Patch) -> None:
    original = arithmetic.narrow

    def planted(call: GemmCall, total: Floats) -> Array:
        keep = {DType.BF16: 0xFFFF0000, DType.F16: 0xFFFFE000}.get(call.d.dtype, 0xFFFFFFFF)
        bits = total.astype(np.float32).view(np.uint32) & np.uint32(keep)
        cut = bits.view(np.float32).astype(np.float64)
        return original(call, cut if call.scale_type is DType.F32 else total)

    patch.setattr(arithmetic, "narrow", planted)


def activate_before_bias(patch: Patch) -> None:
    original = arithmetic.add_bias

    def planted(call: GemmCall, total: Floats, bias: Floats | None) -> Floats:
        return original(call, arithmetic.activate(call, total), bias)

    patch.setattr(arithmetic, "add_bias", planted)


def erf_gelu(patch: Patch) -> None:
    original = arithmetic.activate

    def planted(call: GemmCall, total: Floats) -> Floats:
        if not call.epilogue.startswith("GELU"):
            return original(call, total)
        return np.asarray(np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))(total))

    patch.setattr(arithmetic, "activate", planted)


def bias_along_columns(patch: Patch) -> None:
    def planted(call: GemmCall, total: Floats, bias: Floats | None) -> Floats:
        if bias is None or total.shape[1] != total.shape[2]:
            return arithmetic._round(total + (0 if bias is None else bias), call.scale_type)
        return arithmetic._round(total + bias.transpose(0, 2, 1), call.scale_type)

    patch.setattr(arithmetic, "add_bias", planted)


def one_batch(patch: Patch) -> None:
    original = arithmetic.multiply

    def planted(a: Floats, b: Floats) -> Floats:
        return np.repeat(original(a[:1], b[:1]), len(a), axis=0)

    patch.setattr(arithmetic, "multiply", planted)


def last_k_missing(patch: Patch) -> None:
    original = arithmetic.multiply
    patch.setattr(arithmetic, "multiply", lambda a, b: original(a[..., :-1], b[:, :-1]))


PLANTS: dict[str, Plant] = {
    "swap A and B": swap_a_and_b,
    "drop alpha": around_accumulate(lambda call, p, c: (replace(call, alpha=1.0), p, c)),
    "alpha off by 2 %": around_accumulate(
        lambda call, p, c: (replace(call, alpha=call.alpha * 1.02), p, c)
    ),
    "drop beta": around_accumulate(lambda call, p, _: (call, p, None)),
    "double C": around_accumulate(lambda call, p, c: (call, p, doubled(c))),
    "transpose C": around_accumulate(lambda call, p, c: (call, p, transposed(c))),
    "shift ld by one": shift_ld(1),
    "shift ld back by one": shift_ld(-1),
    "read C past its end": around_read("C", past_the_end),
    "cast the bias wrongly": around_read("bias", wrong_cast),
    "round twice": around_accumulate(round_twice),
    "truncate": truncate,
    "activate before the bias": activate_before_bias,
    "erf instead of tanh": erf_gelu,
    "bias along the columns": bias_along_columns,
    "first batch only": one_batch,
    "last term of k missing": last_k_missing,
}


def test_nothing_departs_without_a_plant() -> None:
    assert departures() == 0


@pytest.mark.parametrize("name", PLANTS)
def test_plant_is_noticed(name: str, monkeypatch: Patch) -> None:
    PLANTS[name](monkeypatch)
    assert departures() > 0
