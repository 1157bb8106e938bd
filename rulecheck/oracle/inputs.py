"""Input bytes, the same on every platform and numpy version.

numpy guarantees the raw words of Philox, not what its distributions make of them; so the words
are mapped to numbers here, with integer arithmetic and exact divisions only.
"""

from __future__ import annotations

import enum
import functools
import hashlib

import numpy as np

from rulecheck import dtypes
from rulecheck.oracle.intervals import Floats
from rulecheck.records import DType, Plan

# Integers small enough that sums over the extents in use stay exact in every accumulator, and
# large enough that they need more bits than the 16-bit types have (31 * 31 * 11 > 2048 > 256).
_INTEGER_LIMIT = {DType.E4M3: 8, DType.E5M2: 4}
_DEFAULT_LIMIT = 31


class InputKind(enum.Enum):
    """Small integers: exact in any order. Reals: full significands, of order 1."""

    INTEGERS = "integers"
    REALS = "reals"


def draw_inputs(plan: Plan, kind: InputKind, seed: int) -> tuple[bytes, ...]:
    """Bytes for each leaf, in the order of ``plan.inputs``; a leaf's bytes depend on its label.

    Labels are compared without the instance's own prefix, so that a case drawn again on its own
    has the same inputs.
    """
    drawn = []
    for leaf in plan.inputs:
        spec = plan.values[leaf.value]
        words = _words(leaf.label.rpartition(".")[2], kind, seed, spec.count)
        drawn.append(dtypes.encode(_MAP[kind](words, spec.dtype), spec.dtype))
    return tuple(drawn)


@functools.lru_cache(maxsize=4096)
def _words(
    label: str, kind: InputKind, seed: int, count: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    digest = hashlib.sha256(f"{seed}/{kind.value}/{label}".encode()).digest()
    generator = np.random.Philox(key=int.from_bytes(digest[:16], "little"))
    return np.asarray(generator.random_raw(count), dtype=np.uint64)


def _integers(words: np.ndarray[tuple[int, ...], np.dtype[np.uint64]], dtype: DType) -> Floats:
    limit = _INTEGER_LIMIT.get(dtype, _DEFAULT_LIMIT)
    span = np.uint64(2 * limit + 1)
    return (words % span).astype(np.float64) - limit


def _reals(words: np.ndarray[tuple[int, ...], np.dtype[np.uint64]], _dtype: DType) -> Floats:
    """The sum of four uniform 16-bit parts, centred: near normal, standard deviation 1.15.

    The low half of a second use of the word adds bits below, so that wide types are filled.
    """
    parts = sum(((words >> np.uint64(16 * i)) & np.uint64(0xFFFF)) for i in range(4))
    fine = ((words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(28)).astype(np.float64)
    coarse = np.asarray(parts).astype(np.float64) / 2**15 - 4.0
    return np.asarray(coarse + fine * 2.0**-52)


_MAP = {InputKind.INTEGERS: _integers, InputKind.REALS: _reals}
