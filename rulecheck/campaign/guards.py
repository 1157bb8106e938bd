"""Which guard is missing: what the cases that pass have in common and the failing ones lack."""

from __future__ import annotations

from collections.abc import Sequence

Labels = dict[str, str]
Guard = tuple[str, tuple[str, ...]]

MAX_GUARDS = 3


def missing_guards(failing: Sequence[Labels], passing: Sequence[Labels]) -> tuple[Guard, ...]:
    """Restrictions of single axes that together exclude every failing case and keep some others.

    Greedy: on each axis, a label under which no case passes is excluded; the axis that excludes
    most failing cases comes first. Empty if no few restrictions separate the two.

    Args:
        failing: labels by axis of each case that must not match.
        passing: those of each case that should.
    """
    guards: list[Guard] = []
    bad, good = list(failing), list(passing)
    axes = list(dict.fromkeys(axis for case in (*good, *bad) for axis in case))
    while bad and good and len(guards) < MAX_GUARDS:
        best: tuple[int, str, tuple[str, ...]] | None = None
        for axis in axes:
            if any(axis == known for known, _ in guards):
                continue
            allowed = tuple(dict.fromkeys(case[axis] for case in good if axis in case))
            excluded = sum(axis in case and case[axis] not in allowed for case in bad)
            if excluded and (best is None or excluded > best[0]):
                best = (excluded, axis, allowed)
        if best is None:
            return ()
        _, axis, allowed = best
        guards.append((axis, allowed))
        bad = [case for case in bad if case.get(axis) in allowed]
    return () if bad else tuple(guards)


def describe(guards: Sequence[Guard]) -> str:
    """Print restrictions as a sentence part: ``beta is 0 and epilogue is DEFAULT or RELU``."""
    parts = []
    for axis, labels in guards:
        name = axis.partition(".")[2] or axis
        listed = labels[0] if len(labels) == 1 else ", ".join(labels[:-1]) + " or " + labels[-1]
        parts.append(f"{name} is {listed}")
    return " and ".join(parts)
