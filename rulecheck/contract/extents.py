"""Which bytes a call touches: exact, in integers, without arrays."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import msgspec

from rulecheck.records import Access, MatrixLayout

_ENUMERABLE = 1 << 20


class Span(msgspec.Struct, frozen=True):
    """Elements touched: offsets from ``low`` to ``high`` (inclusive), ``count`` in all."""

    low: int
    high: int
    count: int


def layout_span(layout: MatrixLayout) -> Span:
    """Return what a matrix layout touches; every extent must be positive."""
    inner, outer = _inner_outer(layout)
    batches = _batches(layout)
    steps = ((outer - 1) * layout.ld, (batches - 1) * layout.batch_stride)
    low = sum(min(0, step) for step in steps)
    high = inner - 1 + sum(max(0, step) for step in steps)
    lines = outer if layout.ld else 1
    return Span(low, high, inner * lines * batches)


def bytes_outside(layout: MatrixLayout, buffer_bytes: int) -> tuple[int, int, int]:
    """Return how many bytes (before, past the end, in all) the layout touches.

    Elements that a zero stride touches again count once.
    """
    inner, outer = _inner_outer(layout)
    size = layout.dtype.bytes
    lines = outer if layout.ld else 1
    before = past = 0
    for batch in range(_batches(layout)):
        for line in range(lines):
            start = (batch * layout.batch_stride + line * layout.ld) * size
            stop = start + inner * size
            before += max(0, min(0, stop) - start)
            past += max(0, stop - max(buffer_bytes, start))
    return before, past, lines * _batches(layout) * inner * size


def _inner_outer(layout: MatrixLayout) -> tuple[int, int]:
    columns_first = layout.order == "COL"
    return (layout.rows, layout.cols) if columns_first else (layout.cols, layout.rows)


def _batches(layout: MatrixLayout) -> int:
    return layout.batch_count if layout.batch_stride else 1


def writes_twice(layout: MatrixLayout) -> bool:
    """Return whether two elements of the layout share an address."""
    inner, outer = _inner_outer(layout)
    extents = (inner, outer, layout.batch_count)
    strides = (1, layout.ld, layout.batch_stride)
    tables = tuple(
        tuple(range(0, extent * stride, stride)) if stride else (0,) * extent
        for extent, stride in zip(extents, strides, strict=True)
        if extent > 1
    )
    return not is_injective(tables)


@functools.lru_cache(maxsize=4096)
def access_writes_twice(access: Access) -> bool:
    """Return whether two logical elements of an access share an address."""
    return access.size > 0 and not is_injective(access.offsets)


def is_injective(tables: Sequence[Sequence[int]]) -> bool:
    """Return whether the sums of one entry per table are all different.

    Nested strides are recognised at once; anything else is enumerated, and more than a million
    elements that do not nest count as overlapping.
    """
    reach = 0
    for gap, span in sorted(map(_gap_and_span, tables)):
        if gap <= reach:
            break
        reach += span
    else:
        return True
    total = math.prod(len(table) for table in tables)
    if total > _ENUMERABLE:
        return False
    sums = {0}
    expected = 1
    for table in tables:
        sums = {base + offset for base in sums for offset in table}
        expected *= len(table)
        if len(sums) != expected:
            return False
    return True


def _gap_and_span(table: Sequence[int]) -> tuple[int, int]:
    """Return the smallest gap between two entries (0: repeated) and the largest."""
    if len(table) < 2:
        return 1 << 62, 0
    ordered = sorted(table)
    gap = min(right - left for left, right in itertools.pairwise(ordered))
    return gap, ordered[-1] - ordered[0]


def share(part: int, whole: int) -> str:
    """Return a fraction in words: ``half of``, ``all of``, ``a third of`` or a percentage of."""
    words = {
        Fraction(1): "all of",
        Fraction(1, 2): "half of",
        Fraction(1, 3): "a third of",
        Fraction(2, 3): "two thirds of",
        Fraction(1, 4): "a quarter of",
        Fraction(3, 4): "three quarters of",
    }
    ratio = Fraction(part, whole)
    return words.get(ratio) or f"{max(1, round(100 * ratio))} % of"
