"""Element offsets of layouts and accesses, as cached index arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, ParamSpec, cast

import numpy as np
import numpy.typing as npt

from rulecheck.records import Access, MatrixLayout

Ints = npt.NDArray[np.int64]
_P = ParamSpec("_P")

# Small arrays are kept: many plans share few layouts. Large ones would fill the memory.
_CACHED = 1024
_CACHED_ELEMENTS = 1 << 13
# Stands for "no such element": far before any buffer, so that reading it is an event.
NOWHERE = -(1 << 40)


class Offsets(NamedTuple):
    """Offsets in elements, of any shape, with their extremes (0 and -1 if there are none).

    ``dense``: exactly 0, 1, 2, … in memory order, so that a slice replaces a gather.
    """

    array: Ints
    low: int
    high: int
    dense: bool


def _freeze(array: Ints) -> Offsets:
    array.setflags(write=False)
    if not array.size:
        return Offsets(array, 0, -1, dense=False)
    flat = array.reshape(-1)
    dense = bool(flat[0] == 0 and np.all(np.diff(flat) == 1))
    return Offsets(array, int(array.min()), int(array.max()), dense)


def _keep_small(
    size: Callable[_P, int],
) -> Callable[[Callable[_P, Offsets]], Callable[_P, Offsets]]:
    """Cache a function's results where ``size`` of its arguments is small."""

    def decorate(build: Callable[_P, Offsets]) -> Callable[_P, Offsets]:
        # the stubs of lru_cache forget the parameters
        cached = cast("Callable[_P, Offsets]", functools.lru_cache(_CACHED)(build))

        @functools.wraps(build)
        def choose(*args: _P.args, **kwargs: _P.kwargs) -> Offsets:
            if size(*args, **kwargs) > _CACHED_ELEMENTS:
                return build(*args, **kwargs)
            return cached(*args, **kwargs)

        return choose

    return decorate


def of_layout(layout: MatrixLayout) -> Offsets:
    """Return offsets [batch, rows, cols] of a matrix."""
    column_order = layout.order == "COL"
    steps = (1, layout.ld) if column_order else (layout.ld, 1)
    shape = (layout.batch_count, layout.rows, layout.cols)
    return _matrix(shape, (layout.batch_stride, *steps))


@_keep_small(lambda shape, steps: math.prod(shape))  # noqa: ARG005 - the signature is shared
def _matrix(shape: tuple[int, int, int], steps: tuple[int, int, int]) -> Offsets:
    batch, row, column = (
        np.arange(extent, dtype=np.int64) * step for extent, step in zip(shape, steps, strict=True)
    )
    return _freeze(batch[:, None, None] + row[:, None] + column)


@_keep_small(lambda rows, batches, stride: rows * batches)  # noqa: ARG005 - the same
def of_bias(rows: int, batches: int, stride: int) -> Offsets:
    """Return offsets [batch, rows, 1] of a bias vector; one batch if the stride is 0."""
    count = batches if stride else 1
    steps = np.arange(count, dtype=np.int64)[:, None, None] * stride
    return _freeze(steps + np.arange(rows, dtype=np.int64)[:, None])


@_keep_small(lambda access: access.size)
def of_access(access: Access) -> Offsets:
    """Return the offsets of an access in row-major order: [size]."""
    return _freeze(_flat(access))


@_keep_small(lambda count: count)
def of_run(count: int) -> Offsets:
    """Return 0, 1, … count-1."""
    return _freeze(np.arange(count, dtype=np.int64))


@_keep_small(lambda base, iters: base.size * len(iters))
def of_reduction(base: Access, iters: tuple[int, ...]) -> Offsets:
    """Return offsets [outputs, iterations] of what each output sums over."""
    return _freeze(_sums(base, iters))


@_keep_small(lambda base, iters, side: max(base.size * len(iters), side.size))
def of_product(base: Access, iters: tuple[int, ...], side: Access) -> Offsets:
    """Return offsets [outputs, iterations] of one factor of a broadcast multiply and sum.

    ``base`` and ``iters`` point into the flat product; an index that the product does not have
    becomes ``NOWHERE``.
    """
    flat = _sums(base, iters)
    table = _flat(side)
    if not table.size:
        return _freeze(np.full(flat.shape, NOWHERE, np.int64))
    inside = (flat >= 0) & (flat < table.size)
    return _freeze(np.where(inside, table[np.where(inside, flat, 0)], NOWHERE))


def _sums(base: Access, iters: Sequence[int]) -> Ints:
    return _flat(base)[:, None] + np.array(iters, np.int64)


def _flat(access: Access) -> Ints:
    """Sum one table per dimension, row-major."""
    total = np.zeros((), np.int64)
    for table in access.offsets:
        total = total[..., None] + np.array(table, np.int64)
    return total.reshape(-1)
