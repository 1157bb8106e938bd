"""Which instances of a rule are tried: all labels of every axis, and all pairs that can occur."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from rulecheck.instantiate.choices import Cause, Choice, Chooser, DeadEnd, Missed, advance
from rulecheck.instantiate.course import Course
from rulecheck.instantiate.instances import (
    MAX_INSTANCES,
    Coverage,
    Instance,
    Judge,
    Label,
    Pair,
    Unions,
)
from rulecheck.instantiate.pattern import Contradiction, PatternGraph
from rulecheck.instantiate.setting import Setting

BACKTRACKS = 60
LABEL_BACKTRACKS = 1
MAX_ATTEMPTS = 3000


class Search:
    """The instances of one pattern, and what is known of its labels."""

    def __init__(self, pattern: PatternGraph, setting: Setting, judge: Judge) -> None:
        """Start with nothing found."""
        self.pattern = pattern
        self.setting = setting
        self.judge = judge
        self.found: list[Instance] = []
        self.seen: set[tuple[Label, ...]] = set()
        self.offered: dict[str, dict[str, None]] = {}  # axis -> labels, in order
        self.covered: set[Pair] = set()
        self.impossible: set[Pair] = set()
        self.dead: set[Label] = set()
        self.flips: set[str] = set()  # axes whose labels are tried by themselves
        self.rare: set[Label] = set()  # labels that are tried once
        self.context: dict[Label, dict[str, str]] = {}  # where a label was first offered
        self.reason = DeadEnd("the left side has no instance")
        self.attempts = 0
        self.limit = MAX_INSTANCES
        self.wide = False  # offer more values than cover needs
        self.base: dict[str, str] = {}  # what is chosen where nothing else is wanted
        self._course: Course | None = None
        self.since = 0  # instances before this one were found around another base

    def run(
        self, preferences: Mapping[str, str], backtracks: int, required: Sequence[Label] = ()
    ) -> Instance | None:
        """The instance that preferences lead to, searched depth-first over the latest choice.

        None if there is none, or one that has another label on the axis of a required one.
        """
        script: list[int] | None = []
        reasons: list[DeadEnd] = []
        while script is not None and backtracks >= 0:
            self.attempts += 1
            backtracks -= 1
            chooser = Chooser(preferences, script, dict(required))
            try:
                roots, unions = self._complete(chooser)
            except Missed:
                self._remember(chooser.taken)
                return None
            except DeadEnd as end:
                reasons.append(end)
            except Contradiction as clash:
                message = f"the left side contradicts itself: {clash}"
                reasons.append(DeadEnd(message, Cause.CONTRADICTION))
            else:
                flaw = self.judge(roots, unions)
                if flaw is None:
                    return self._keep(roots, unions, chooser.taken)
                reasons.append(flaw)
            self._remember(chooser.taken)
            script = advance(script, len(chooser.taken))
        # The first reason belongs to the preferred values; later ones to the search around them.
        if not self.found and reasons:
            self.reason = reasons[0]
        return None

    def _complete(self, chooser: Chooser) -> tuple[tuple[int, ...], Unions]:
        if self._course is None:
            self._course = Course(self.pattern, self.setting)
        self._course.around(self.base, wide=self.wide)
        run = self._course.complete(chooser, f"i{len(self.found)}.")
        roots, unions = run.finish()
        return tuple(roots), tuple(unions)

    def _remember(self, taken: list[Choice]) -> None:
        """Note new labels, and what had been chosen when they came up."""
        before: dict[str, str] = {}
        for choice in taken:
            labels = self.offered.setdefault(choice.axis, {})
            if choice.flip:
                self.flips.add(choice.axis)
            if choice.rare:
                self.rare.update((choice.axis, label) for label in choice.rare)
            for label in choice.offered:
                if label not in labels:
                    labels[label] = None
                    self.context[choice.axis, label] = dict(before)
            if not choice.natural:
                before[choice.axis] = choice.label

    def _keep(self, roots: tuple[int, ...], unions: Unions, taken: list[Choice]) -> Instance | None:
        self._remember(taken)
        choices = tuple((choice.axis, choice.label) for choice in taken)
        deviations = tuple((choice.axis, choice.label) for choice in taken if not choice.natural)
        instance = Instance(roots, choices, deviations, unions)
        if choices in self.seen:
            return instance
        self.seen.add(choices)
        self.found.append(instance)
        self.covered.update(frozenset(pair) for pair in itertools.combinations(choices, 2))
        self._learn(taken)
        return instance

    def _learn(self, taken: list[Choice]) -> None:
        """Labels that another axis alone rules out need no attempt of their own."""
        labels = {choice.axis: choice.label for choice in taken}
        for choice in taken:
            if choice.given is None or choice.given not in labels:
                continue
            cause = (choice.given, labels[choice.given])
            for label in self.offered.get(choice.axis, {}):
                if label not in choice.offered:
                    self.impossible.add(frozenset({cause, (choice.axis, label)}))

    def rebase(self, base: Instance) -> None:
        """Take another instance for the default, and cover labels and pairs around it."""
        self.base = dict(base.choices)
        self.since = len(self.found)
        self.covered = {frozenset(pair) for pair in itertools.combinations(base.choices, 2)}
        self.dead.clear()

    def exclude(self, silent: Sequence[Instance]) -> None:
        """Drop labels of instances that differ from the base in one axis only."""
        base = self.base or dict(self.found[0].choices)
        for instance in silent:
            aside = {label for label in instance.choices if base.get(label[0]) != label[1]}
            if len(aside) == 1:
                self.dead |= aside

    def _occurs(self, label: Label) -> bool:
        """Whether an instance around the base has a label."""
        found = self.found[self.since :]
        return self.base.get(label[0]) == label[1] or any(label in own.choices for own in found)

    def cover_labels(self) -> None:
        """Every label of every axis once, everything else at its default.

        A flip is tried once more among other labels, since it is not tried in pairs.
        """
        done: set[Label] = set()
        while len(self.found) < self.limit:
            waiting = [label for label in self._labels() if label not in done]
            if not waiting:
                return
            for axis, label in waiting:
                done.add((axis, label))
                if len(self.found) >= self.limit or self.attempts >= MAX_ATTEMPTS:
                    return
                if self._occurs((axis, label)):
                    continue
                rare = (axis, label) in self.rare
                wanted = {**self._near((axis, label)), **self.base, axis: label}
                instance = self.run(wanted, LABEL_BACKTRACKS, [(axis, label)])
                if instance is None or (axis, label) not in instance.choices:
                    self.dead.add((axis, label))
                elif axis in self.flips and not rare:
                    self.run(self._extend({axis: label}, self._alive()), 4, [(axis, label)])

    def _near(self, label: Label) -> dict[str, str]:
        """What to prefer around a label: what it came up with, else what the first instance has."""
        return {**dict(self.found[0].deviations), **self.context[label]}

    def _labels(self) -> list[Label]:
        return [(axis, label) for axis, labels in self.offered.items() for label in labels]

    def cover_pairs(self) -> None:
        """Greedy pairwise cover over the labels that occur at all."""
        while True:
            alive = self._alive()
            missing = [pair for pair in _pairs(alive) if not self._settled(pair)]
            if not missing:
                return
            for pair in missing:
                if self._settled(pair):
                    continue
                if len(self.found) >= self.limit or self.attempts >= MAX_ATTEMPTS:
                    return
                self._cover(pair, alive)
            self.cover_labels()  # a pair may bring up labels that were never offered before

    def fill(self, enough: int, base: Mapping[str, str]) -> None:
        """Find instances with further values until there are enough of them.

        Cover by pairs needs few where little is free; these show that it is no accident. ``base``
        are the labels to keep otherwise.
        """
        if len(self.found) >= enough:
            return
        self.wide = True
        self.run(base, 0)  # brings up the further labels
        while len(self.found) < enough and self.attempts < MAX_ATTEMPTS:
            waiting = [
                label
                for label in self._labels()
                if not any(label in instance.choices for instance in self.found)
                and label not in self.dead
            ]
            if not waiting:
                break
            for axis, label in waiting[: enough - len(self.found)]:
                wanted = {**self._near((axis, label)), **base, axis: label}
                self.run(wanted, 4, [(axis, label)])
                if not any((axis, label) in instance.choices for instance in self.found):
                    self.dead.add((axis, label))
        for one, other in _pairs(self._used()):  # then two of them at a time
            if len(self.found) >= enough or self.attempts >= MAX_ATTEMPTS:
                return
            if not self._made(base, (one, other)):
                self.run({**base, **dict((one, other))}, 0, (one, other))

    def _made(self, base: Mapping[str, str], labels: tuple[Label, Label]) -> bool:
        """Whether an instance has some labels and is otherwise as the base."""
        return any(
            all(label in own.choices for label in labels)
            and all(
                base[axis] == label if axis in base else (axis, label) not in own.deviations
                for axis, label in own.choices
                if (axis, label) not in labels
            )
            for own in self.found
        )

    def _used(self) -> list[Label]:
        """Labels that an instance has, those of the axes with the most of them first."""
        used = [
            [(axis, label) for label in labels if self._anywhere((axis, label))]
            for axis, labels in self.offered.items()
        ]
        used.sort(key=len, reverse=True)
        return [label for labels in used for label in labels]

    def _anywhere(self, label: Label) -> bool:
        return any(label in instance.choices for instance in self.found)

    def _settled(self, pair: Pair) -> bool:
        return pair in self.covered or pair in self.impossible

    def _cover(self, pair: Pair, alive: list[Label]) -> None:
        """Try a pair with much else that is new, then alone, then where it first came up."""
        wanted = dict(sorted(pair))
        for preferences, backtracks in (
            (self._extend(dict(wanted), alive), 0),
            (wanted, 2),
            ({**self._origin(pair), **wanted}, 2),
        ):
            self.run(preferences, backtracks, sorted(pair))
            if pair in self.covered:
                return
        self.impossible.add(pair)

    def _origin(self, pair: Pair) -> dict[str, str]:
        merged: dict[str, str] = {}
        for label in sorted(pair):
            merged.update(self.context[label])
        return merged

    def _alive(self) -> list[Label]:
        """Labels that are tried in pairs."""
        return [
            (axis, label)
            for axis, label in self._labels()
            if axis not in self.flips and (axis, label) not in self.dead | self.rare
        ]

    def _extend(self, preferences: dict[str, str], alive: list[Label]) -> dict[str, str]:
        """Prefer, on every other axis, the label that covers most pairs with what is chosen."""
        by_axis: dict[str, list[str]] = {}
        for axis, label in alive:
            by_axis.setdefault(axis, []).append(label)
        for axis, labels in by_axis.items():
            if axis in preferences:
                continue
            gains = []
            for label in labels:
                pairs = [frozenset(((axis, label), other)) for other in preferences.items()]
                if any(pair in self.impossible for pair in pairs):
                    continue
                gains.append((sum(pair not in self.covered for pair in pairs), label))
            if gains:
                best = max(gain for gain, _ in gains)
                preferences[axis] = next(label for gain, label in gains if gain == best)
        return preferences

    def coverage(self) -> Coverage:
        """What was covered, and the labels that occurred on each axis in order."""
        possible = frozenset(_pairs(self._alive())) - self.impossible
        used: dict[str, dict[str, None]] = {}
        for axis, labels in self.offered.items():
            for label in labels:
                if any((axis, label) in instance.choices for instance in self.found):
                    used.setdefault(axis, {})[label] = None
        axes = tuple((axis, tuple(labels)) for axis, labels in used.items())
        return Coverage(possible, axes)


def _pairs(labels: list[Label]) -> list[Pair]:
    return [
        frozenset((one, two)) for one, two in itertools.combinations(labels, 2) if one[0] != two[0]
    ]
