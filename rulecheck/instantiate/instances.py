"""What a left side becomes: ground graphs by the choices that made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from rulecheck.instantiate.choices import Cause, DeadEnd

Label = tuple[str, str]  # (axis, label)
Pair = frozenset[Label]
Unions = tuple[tuple[int, int], ...]
# Takes the terms to insert, and which of them are in one class; returns why they are not
# well-formed, or None.
Judge = Callable[[tuple[int, ...], Unions], DeadEnd | None]

# Instances of a rule below which further values are tried.
ENOUGH = 24
# Far above what pairwise cover needs (a library matmul with everything free takes about 160
# instances); a rule that reaches them reports the pairs that were left.
MAX_INSTANCES = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """One well-formed left side: terms to insert, every choice, and those that are not default.

    ``unions`` are pairs of terms that the left side wants in one class, as earlier rules would have
    put them there.
    """

    roots: tuple[int, ...]
    choices: tuple[Label, ...]
    deviations: tuple[Label, ...]
    unions: Unions = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Coverage:
    """What can be tried: pairs of labels of different axes, and the labels of each axis.

    ``pairs`` are those that an instance has, or that no search has excluded. Layouts of
    elementwise ops and rare values are not counted; ``axes`` lists every label that occurred.
    """

    pairs: frozenset[Pair]
    axes: tuple[tuple[str, tuple[str, ...]], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Instances:
    """All instances of a rule; ``reason`` and ``cause`` say why there is none."""

    instances: tuple[Instance, ...]
    coverage: Coverage
    reason: str | None = None
    cause: Cause | None = None


NOTHING = Coverage(frozenset(), ())
