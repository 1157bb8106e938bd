"""Accesses by their strides."""

from __future__ import annotations

from rulecheck.records import Access


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Access:
    """An access whose offsets are multiples of the strides."""
    tables = (
        tuple(i * stride for i in range(extent))
        for extent, stride in zip(shape, strides, strict=True)
    )
    return Access(shape, tuple(tables))
