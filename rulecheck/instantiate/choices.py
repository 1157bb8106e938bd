"""A case is its choices: every free field asks for one, by axis and label."""

from __future__ import annotations

import dataclasses
import enum
import math
import types
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A labelled value for an axis: what to bind, as (pattern node, ground term) pairs.

    A ``rare`` one is tried once, everything else at its default: an overlap, an empty axis.
    """

    label: str
    bindings: tuple[tuple[int, int], ...]
    rare: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """What was taken on an axis.

    ``natural`` if it was the first in the axis's own order. ``offered`` are all labels of the
    axis, ``rare`` those that are tried once, and ``given`` names the axis that alone decides which
    are offered. A ``flip`` is tried by itself; the labels of other axes are tried in pairs.
    """

    axis: str
    label: str
    natural: bool
    offered: tuple[str, ...]
    given: str | None
    flip: bool
    rare: tuple[str, ...] = ()


def spell(value: float) -> str:
    """A scalar as a label: exact for the fractions in use (``1/64``), else with six digits."""
    if not math.isfinite(value):
        return repr(value)
    ratio = Fraction(value).limit_denominator(64)
    if ratio.denominator > 1 and float(ratio) == value:
        return f"{ratio.numerator}/{ratio.denominator}"
    return f"{value:.6g}"


class Cause(enum.Enum):
    """Why a left side has no instance: what a report makes of it differs."""

    CONTRADICTION = "contradiction"  # the body cannot hold, or a guard excludes everything
    ILL_TYPED = "ill-typed"  # only a graph that the ops do not accept can match
    UNKNOWN_OP = "unknown-op"  # an op or constructor that the dialect gives no meaning
    GAP = "gap"  # there may be instances; this tool did not find one


class DeadEnd(Exception):  # noqa: N818 - control flow inside this package
    """No candidate fits on an axis, or the finished graph is not well-formed."""

    def __init__(self, message: str, cause: Cause = Cause.GAP) -> None:
        """Say what is wrong and what kind of thing it is."""
        super().__init__(message)
        self.cause = cause


class Missed(Exception):  # noqa: N818 - control flow inside this package
    """An axis got another label than the one that the instance was to have."""


class Chooser:
    """Takes the preferred label where it fits, else the first that does.

    ``required`` labels have to fit; where one does not, the instance is not wanted.

    ``script`` holds, per pick, how many fitting candidates to pass over: the search advances
    the last one that can be, so equal preferences and script give an equal graph.
    """

    def __init__(
        self,
        preferences: Mapping[str, str],
        script: Sequence[int] = (),
        required: Mapping[str, str] = types.MappingProxyType({}),
    ) -> None:
        """Start a run."""
        self.preferences = preferences
        self.required = required
        self.script = script
        self.taken: list[Choice] = []

    def pick(
        self,
        axis: str,
        candidates: Sequence[Candidate],
        fits: Callable[[Candidate], bool],
        release: Callable[[], None],
        *,
        given: str | None = None,
        flip: bool = False,
    ) -> None:
        """Bind one candidate of ``axis``.

        Args:
            axis: the field that is free.
            candidates: its values in natural order.
            fits: binds a candidate if it can be.
            release: unbinds the candidate that was bound last.
            given: the axis that alone decides which labels are offered.
            flip: the axis is tried by itself.

        Raises:
            DeadEnd: none fits.
            Missed: another label was required.
        """
        wanted = self.preferences.get(axis)
        ordered = sorted(candidates, key=lambda candidate: candidate.label != wanted)
        position = len(self.taken)
        skip = self.script[position] if position < len(self.script) else 0
        if not candidates:
            raise DeadEnd(f"nothing is known that fits {axis}")
        for candidate in ordered:
            if not fits(candidate):
                continue
            if skip:
                skip -= 1
                release()
                continue
            offered = tuple(item.label for item in candidates)
            natural = candidate is candidates[0]
            rare = tuple(item.label for item in candidates if item.rare)
            self.taken.append(Choice(axis, candidate.label, natural, offered, given, flip, rare))
            if self.required.get(axis, candidate.label) != candidate.label:
                raise Missed
            return
        labels = list(dict.fromkeys(candidate.label for candidate in candidates))
        tried = ", ".join(labels[:6]) + (", …" if len(labels) > 6 else "") or "nothing"
        raise DeadEnd(f"no value for {axis} fits the left side (tried {tried})")


def advance(script: Sequence[int], taken: int) -> list[int] | None:
    """The next script in depth-first order after a dead end at pick number ``taken``."""
    if taken == 0:
        return None
    following = [*script[:taken], *([0] * (taken - len(script)))][:taken]
    following[-1] += 1
    return following
