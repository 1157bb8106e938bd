"""Drawn inputs: the same bytes everywhere, and numbers of the promised kind."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from rulecheck.dtypes import decode, max_finite, round_to, smallest_subnormal
from rulecheck.oracle import InputKind, draw_inputs
from rulecheck.records import DType
from tests.luminal_terms import Graph

BF16, F32, F64 = DType.BF16, DType.F32, DType.F64
FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16, DType.E4M3, DType.E5M2)


def test_bytes_are_the_same_on_every_platform() -> None:
    """Recorded once: a change of these bytes makes every replay token lie."""
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("A", BF16), 64, F32))
    integers = decode(draw_inputs(plan, InputKind.INTEGERS, 0)[0], BF16)[:6]
    reals = decode(draw_inputs(plan, InputKind.REALS, 0)[0], BF16)[:4]
    assert integers.tolist() == [-15.0, -17.0, -12.0, 17.0, -26.0, -10.0]
    assert reals.tolist() == [1.2890625, 0.384765625, 0.2177734375, 0.76953125]


def test_bytes_depend_on_seed_label_and_kind_but_not_on_the_instance() -> None:
    def first(label: str, kind: InputKind = InputKind.REALS, seed: int = 0) -> bytes:
        graph = Graph()
        return draw_inputs(graph.plan(graph.cast(graph.leaf(label, F32), 64, F64)), kind, seed)[0]

    assert first("i0.A0") == first("i7.A0")
    different = {
        first("i0.A0"),
        first("i0.A1"),
        first("i0.A0", seed=1),
        first("i0.A0", InputKind.INTEGERS),
    }
    assert len(different) == 4


def test_a_longer_leaf_starts_with_the_same_numbers() -> None:
    graph = Graph()
    leaf = graph.leaf("A", F32)
    short, long = (
        draw_inputs(graph.plan(graph.cast(leaf, size, F64)), InputKind.REALS, 0)[0]
        for size in (8, 64)
    )
    assert long.startswith(short)


@pytest.mark.parametrize("dtype", FLOATS)
def test_drawn_numbers_are_what_their_kind_promises(dtype: DType) -> None:
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("A", dtype), 4096, F64))
    integers = decode(draw_inputs(plan, InputKind.INTEGERS, 0)[0], dtype)
    limit = {DType.E4M3: 8, DType.E5M2: 4}.get(dtype, 31)
    assert np.array_equal(integers, np.rint(integers))
    assert set(integers) == set(range(-limit, limit + 1))
    reals = decode(draw_inputs(plan, InputKind.REALS, 0)[0], dtype)
    assert abs(reals.mean()) < 0.1
    assert 1.0 < reals.std() < 1.3
    assert np.isfinite(reals).all()
    assert np.array_equal(round_to(reals, dtype), reals)


@pytest.mark.parametrize("dtype", FLOATS)
def test_positive_and_wide_numbers_are_what_their_kind_promises(dtype: DType) -> None:
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("A", dtype), 4096, F64))
    positive = decode(draw_inputs(plan, InputKind.POSITIVE, 0)[0], dtype)
    assert positive.min() >= 0.5
    assert positive.max() <= 2.0
    assert len(set(positive)) > 5
    wide = decode(draw_inputs(plan, InputKind.WIDE, 0)[0], dtype)
    assert np.isfinite(wide).all()
    assert {-1.0, 1.0} <= set(np.sign(wide))
    exponents = np.frexp(wide[wide != 0])[1]
    low, high = smallest_subnormal(dtype), max_finite(dtype)
    assert exponents.min() <= np.frexp(low)[1] + 40
    assert exponents.max() >= np.frexp(high)[1] - 40
    assert np.array_equal(round_to(wide, dtype), wide)


def test_wide_integers_do_not_fit_in_a_float_and_small_ones_do() -> None:
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("A", DType.I32), 64, F32))
    sizes = {
        kind: np.abs(decode(draw_inputs(plan, kind, 0)[0], DType.I32)).max()
        for kind in (InputKind.INTEGERS, InputKind.REALS, InputKind.WIDE)
    }
    assert sizes[InputKind.INTEGERS] <= 31
    assert sizes[InputKind.REALS] > 2**11  # more than F16 holds
    assert 2**24 < sizes[InputKind.WIDE] < 2**30  # more than F32 holds, and a sum of two fits


def test_wide_integers_never_overflow_in_a_product() -> None:
    graph = Graph()
    left, right = graph.leaf("A", DType.I32), graph.leaf("B", DType.I32)
    product = graph.pointwise("Mul", (64,), left, right)
    plan = graph.plan(product)
    drawn = [decode(data, DType.I32) for data in draw_inputs(plan, InputKind.WIDE, 0)]
    assert np.abs(drawn[0] * drawn[1]).max() < 2**31


def test_reals_fill_the_significand_of_their_type() -> None:
    graph = Graph()
    for dtype, narrower in ((F64, np.float32), (F32, np.float16), (BF16, ml_dtypes.float8_e4m3fn)):
        plan = graph.plan(graph.cast(graph.leaf("A", dtype), 512, F64))
        values = decode(draw_inputs(plan, InputKind.REALS, 0)[0], dtype)
        assert (values.astype(narrower).astype(np.float64) != values).mean() > 0.8


def test_integer_leaves_get_integers() -> None:
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("A", DType.I32), 64, F32))
    values = decode(draw_inputs(plan, InputKind.INTEGERS, 0)[0], DType.I32)
    assert values.min() < 0 < values.max()


def test_wide_integers_of_64_bits_do_not_fit_in_32_and_are_exact() -> None:
    graph = Graph()
    plan = graph.plan(graph.cast(graph.leaf("A", DType.I64), 64, F32))
    drawn = decode(draw_inputs(plan, InputKind.WIDE, 0)[0], DType.I64)
    assert 2**32 < np.abs(drawn).max() < 2**53
