"""Which guard is missing: what the cases that pass have in common and the failing ones lack."""

from __future__ import annotations

from collections.abc import Sequence

Labels = dict[str, str]
Guard = tuple[str, tuple[str, ...]]

MAX_GUARDS = 3


def missing_guards(failing: Sequence[Labels], passing: Sequence[Labels]) -> tuple[Guard, ...]:
    """Restrictions of single axes that together exclude every failing case and keep some others.

    Greedy. First restrictions that cost nothing: labels under which no case passes are excluded,
    on the axis where that removes most failing cases. When none is left: the axis on which
    keeping only labels that never fail keeps most passing cases. Empty if nothing separates.

    Args:
        failing: labels by axis of each case that must not match.
        passing: those of each case that should.
    """
    guards: list[Guard] = []
    bad, good = list(failing), list(passing)
    while bad and good and len(guards) < MAX_GUARDS:
        chosen = _costless(bad, good) or _separating(bad, good)
        if chosen is None:
            return ()
        guards.append(chosen)
        bad = [case for case in bad if _admits(chosen, case)]
        good = [case for case in good if _admits(chosen, case)]
    if bad and good:  # more restrictions than anyone reads: one that costs cases, if there is one
        whole = _separating(failing, passing)
        return () if whole is None else (whole,)
    # A later restriction of an axis lies inside an earlier one, which then says nothing.
    return tuple(
        guard
        for position, guard in enumerate(guards)
        if guard[0] not in {later[0] for later in guards[position + 1 :]}
    )


def _admits(guard: Guard, case: Labels) -> bool:
    return case.get(guard[0]) in guard[1]


def _labels(axis: str, cases: Sequence[Labels]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(case[axis] for case in cases if axis in case))


def _axes(cases: Sequence[Labels]) -> list[str]:
    """Axes that every case has, in order."""
    return [axis for axis in cases[0] if all(axis in case for case in cases)]


def _costless(bad: Sequence[Labels], good: Sequence[Labels]) -> Guard | None:
    best: tuple[int, Guard] | None = None
    for axis in _axes([*good, *bad]):
        guard = (axis, _labels(axis, good))
        removed = sum(not _admits(guard, case) for case in bad)
        if removed and (best is None or removed > best[0]):
            best = (removed, guard)
    return None if best is None else best[1]


def _separating(bad: Sequence[Labels], good: Sequence[Labels]) -> Guard | None:
    """The axis whose failing labels fail most often; of equal ones, the one that keeps most."""
    best: tuple[float, int, Guard] | None = None
    for axis in _axes([*good, *bad]):
        fails = _labels(axis, bad)
        guard = (axis, tuple(label for label in _labels(axis, good) if label not in fails))
        kept = sum(_admits(guard, case) for case in good)
        lost = len(good) - kept
        rate = len(bad) / (len(bad) + lost)
        if kept and (best is None or (rate, kept) > best[:2]):
            best = (rate, kept, guard)
    return None if best is None else best[2]


def describe(guards: Sequence[Guard]) -> str:
    """Print restrictions as a sentence part: ``beta is 0 and epilogue is DEFAULT or RELU``."""
    parts = []
    for axis, labels in guards:
        name = axis.partition(".")[2] or axis
        listed = labels[0] if len(labels) == 1 else ", ".join(labels[:-1]) + " or " + labels[-1]
        parts.append(f"{name} is {listed}")
    return " and ".join(parts)
