"""The steps that complete a pattern, from where an earlier run with the same choices had come to.

Most instances differ from the default in one choice. What is chosen before that need not be built
again: the steps of the base are kept one by one, and a run begins at the last that it agrees with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rulecheck.instantiate.choices import Cause, Choice, Chooser, DeadEnd
from rulecheck.instantiate.completion import Completion
from rulecheck.instantiate.loose import complete_loose
from rulecheck.instantiate.pattern import Contradiction, PatternGraph
from rulecheck.instantiate.roles import PREPARE, ROLES
from rulecheck.instantiate.setting import OpNode, Setting

Step = Callable[[Completion], None]


class _Station(NamedTuple):
    """What is known before a step, and what was taken to get there."""

    known: Completion
    taken: tuple[Choice, ...]


class Course:
    """All completions of one pattern."""

    def __init__(self, pattern: PatternGraph, setting: Setting) -> None:
        """Find what holds in every instance.

        Raises:
            DeadEnd: the pattern describes no graph, or a guard never holds.
            Contradiction: types that have to be equal are not.
        """
        start = Completion(pattern.copy(), setting)
        self._steps = list(_steps(start))
        self._base: dict[str, str] = {}
        self._wide = False
        self._stations = [_Station(start, ())]
        self._is_laid = False

    def around(self, base: Mapping[str, str], *, wide: bool) -> None:
        """Expect runs that prefer what ``base`` says, but for a few choices."""
        if (self._base, self._wide) != (base, wide):
            self._base, self._wide = dict(base), wide
            self._is_laid = False

    def complete(self, chooser: Chooser, tag: str) -> Completion:
        """Run all steps; ``tag`` makes the labels of leaves unique among instances.

        Raises:
            DeadEnd: no candidate fits.
            Contradiction: classes that have to be equal cannot be.
            Missed: a label that is required does not fit.
        """
        if not self._is_laid:
            self._lay()
        number, station = 0, self._stations[0]
        for later, other in enumerate(self._stations[1:], 1):
            fresh = enumerate(other.taken[len(station.taken) :], len(station.taken))
            if not all(self._agrees(chooser, choice, place) for place, choice in fresh):
                break
            number, station = later, other
        chooser.taken.extend(station.taken)
        run = station.known.branch(chooser, tag, wide=self._wide)
        for step in self._steps[number:]:
            step(run)
        return run

    def _lay(self) -> None:
        """Run the steps with what the base prefers, and keep what is known before each of them."""
        self._is_laid = True
        del self._stations[1:]
        chooser = Chooser(self._base)
        run = self._stations[0].known.branch(chooser, "", wide=self._wide)
        for step in self._steps:
            try:
                step(run)
            except (DeadEnd, Contradiction):
                return
            self._stations.append(_Station(run, tuple(chooser.taken)))
            run = run.branch(chooser, "", wide=self._wide)

    def _agrees(self, chooser: Chooser, choice: Choice, place: int) -> bool:
        """Whether a chooser would take what was taken on the base's way."""
        if place < len(chooser.script) and chooser.script[place]:
            return False
        if chooser.required.get(choice.axis, choice.label) != choice.label:
            return False
        wanted, other = (
            own.get(choice.axis) if own.get(choice.axis) in choice.offered else None
            for own in (chooser.preferences, self._base)
        )
        if wanted is None:  # then the first that fits
            return choice.natural or other is None
        return wanted in (choice.label, other)


def _steps(run: Completion) -> list[Step]:
    """What has to be chosen, in order; does what needs no choice."""
    broken = run.binding.broken()
    if broken is not None:
        raise DeadEnd(f"the guard {broken.text} does not hold", Cause.CONTRADICTION)
    ops = run.all_ops()
    kinds = run.vocabulary.encoding.kind_sort
    if not ops and any(run.graph.sort_of(root) == kinds for root in run.graph.classes()):
        message = "the left side names no op, so it describes no graph"
        raise DeadEnd(message, Cause.UNKNOWN_OP)
    run.type_leaves()
    for op in ops:
        if op.spec.family in PREPARE and op.spec.family != "reduce":
            PREPARE[op.spec.family](run, op)
    # Library matmuls decide sizes, so reductions are sized only after them.
    core = [op for op in ops if op.spec.family == "gemm"]
    rest = [op for op in ops if op.spec.family != "gemm"]
    steps = [_step(role, op) for op in core for role in ROLES[op.spec.family]]
    steps += [_step(PREPARE["reduce"], op) for op in rest if op.spec.family == "reduce"]
    steps += [_step(role, op) for op in rest for role in ROLES[op.spec.family]]
    return [*steps, complete_loose]


def _step(role: Callable[[Completion, OpNode], None], op: OpNode) -> Step:
    return lambda run: role(run, op)
