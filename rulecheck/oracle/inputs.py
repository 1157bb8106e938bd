"""Input bytes, the same on every platform and numpy version.

numpy guarantees the raw words of Philox, not what its distributions make of them; so the words
are mapped to numbers here, with integer arithmetic and exact divisions only.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import math

import numpy as np
import numpy.typing as npt

from rulecheck import dtypes
from rulecheck.oracle.intervals import Floats
from rulecheck.records import DType, Plan, PointwiseStep

# Integers small enough that sums over the extents in use stay exact in every accumulator, and
# large enough that they need more bits than the 16-bit types have (31 * 31 * 11 > 2048 > 256).
_INTEGER_LIMIT = {DType.E4M3: 8, DType.E5M2: 4}
_DEFAULT_LIMIT = 31


Words = npt.NDArray[np.uint64]


class InputKind(enum.Enum):
    """What to draw.

    Small integers: exact in any order. Reals: full significands, of order 1, both signs.
    Positive: reals in [1/2, 2), where roots, logarithms and reciprocals are tame. Wide: every
    exponent that the type has, so that a narrower type in between overflows or flushes.
    """

    INTEGERS = "integers"
    REALS = "reals"
    POSITIVE = "positive"
    WIDE = "wide"


def draw_inputs(plan: Plan, kind: InputKind, seed: int, salt: str = "") -> tuple[bytes, ...]:
    """Bytes for each leaf, in the order of ``plan.inputs``; a leaf's bytes depend on its label.

    Labels are compared without the instance's own prefix, so that a case drawn again on its own
    has the same inputs. ``salt`` sets leaves of one plan apart from those of another.
    """
    drawn = []
    for leaf in plan.inputs:
        spec = plan.values[leaf.value]
        words = _words(salt + leaf.label.rpartition(".")[2], kind, seed, spec.count)
        if spec.dtype.is_float:
            values = _MAP[kind](words, spec.dtype)
        else:
            values = _whole(words, _whole_bits(plan, kind, spec.dtype))
        drawn.append(dtypes.encode(values, spec.dtype))
    return tuple(drawn)


def _whole_bits(plan: Plan, kind: InputKind, dtype: DType) -> int:
    """Bits of integer inputs: as many as fit without overflow through every product of the plan.

    More bits than F32 has show an integer that passes through a float, more than 32 one that
    passes through a narrower integer. 52 are exact in float64, in which plans are evaluated.
    """
    if kind is InputKind.INTEGERS:
        return 5
    factors = sum(isinstance(step, PointwiseStep) for step in plan.steps) + 1
    if kind is not InputKind.WIDE:
        return 12 // factors
    return (52 if dtype is DType.I64 else 30) // factors


def _whole(words: Words, bits: int) -> Floats:
    limit = (1 << bits) - 1
    span = np.uint64(2 * limit + 1)
    return (words % span).astype(np.float64) - limit


@functools.lru_cache(maxsize=4096)
def _words(label: str, kind: InputKind, seed: int, count: int) -> Words:
    digest = hashlib.sha256(f"{seed}/{kind.value}/{label}".encode()).digest()
    generator = np.random.Philox(key=int.from_bytes(digest[:16], "little"))
    return np.asarray(generator.random_raw(count), dtype=np.uint64)


def _integers(words: Words, dtype: DType) -> Floats:
    limit = _INTEGER_LIMIT.get(dtype, _DEFAULT_LIMIT)
    span = np.uint64(2 * limit + 1)
    return (words % span).astype(np.float64) - limit


def _reals(words: Words, _dtype: DType) -> Floats:
    """The sum of four uniform 16-bit parts, centred: near normal, standard deviation 1.15.

    The low half of a second use of the word adds bits below, so that wide types are filled.
    """
    parts = sum(((words >> np.uint64(16 * i)) & np.uint64(0xFFFF)) for i in range(4))
    fine = ((words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(28)).astype(np.float64)
    coarse = np.asarray(parts).astype(np.float64) / 2**15 - 4.0
    return np.asarray(coarse + fine * 2.0**-52)


def _positive(words: Words, _dtype: DType) -> Floats:
    return 0.5 + (words >> np.uint64(11)).astype(np.float64) * (1.5 * 2.0**-53)


def _wide(words: Words, dtype: DType) -> Floats:
    """Sign, exponent and significand from separate bits of the word."""
    low, high = (
        math.frexp(bound)[1] - 1  # exact, where a logarithm would round up to the next binade
        for bound in (dtypes.smallest_subnormal(dtype), dtypes.max_finite(dtype))
    )
    span = np.uint64(high - low + 1)
    exponent = ((words >> np.uint64(1)) % span).astype(np.int64) + low
    fraction = (words >> np.uint64(12)).astype(np.float64) * 2.0**-52
    sign = np.where(words & np.uint64(1), -1.0, 1.0)
    # Half of the top binade may lie above the largest number; stay below it.
    size = np.minimum(np.ldexp(1.0 + fraction, exponent), dtypes.max_finite(dtype))
    return np.asarray(sign * size)


_MAP = {
    InputKind.INTEGERS: _integers,
    InputKind.REALS: _reals,
    InputKind.POSITIVE: _positive,
    InputKind.WIDE: _wide,
}
