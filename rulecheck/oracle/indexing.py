"""Element offsets of accesses and matrix layouts.

Written apart from the backends' own, on purpose: a shared error would agree with itself.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from rulecheck.records import Access, MatrixLayout

Ints = npt.NDArray[np.intp]


@functools.lru_cache(maxsize=4096)
def access_offsets(access: Access) -> Ints:
    """Flat offsets of an access in row-major order of its shape: [size]."""
    total = np.zeros((), dtype=np.intp)
    for table in access.offsets:
        total = np.add.outer(total, np.asarray(table, dtype=np.intp))
    return total.reshape(-1)


@functools.lru_cache(maxsize=4096)
def reduction_offsets(base: Access, iters: tuple[int, ...]) -> Ints:
    """Offsets of every term of every output: [size, iterations]."""
    return np.add.outer(access_offsets(base), np.asarray(iters, dtype=np.intp))


@functools.lru_cache(maxsize=4096)
def product_offsets(base: Access, iters: tuple[int, ...], operand: Access) -> Ints:
    """Operand offsets of every term: positions in the product space, mapped by the operand."""
    return access_offsets(operand)[reduction_offsets(base, iters)]


@functools.lru_cache(maxsize=4096)
def matrix_offsets(layout: MatrixLayout) -> Ints:
    """Offsets of a matrix: [batch, rows, cols]."""
    batch, row, col = np.ix_(
        np.arange(layout.batch_count), np.arange(layout.rows), np.arange(layout.cols)
    )
    major, minor = (col, row) if layout.order == "COL" else (row, col)
    return np.asarray(batch * layout.batch_stride + major * layout.ld + minor, dtype=np.intp)
