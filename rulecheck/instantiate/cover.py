"""Which instances of a rule are tried: all labels of every axis, and all pairs that can occur."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

from rulecheck.instantiate.choices import Cause, Choice, Chooser, DeadEnd, advance
from rulecheck.instantiate.completion import Completion
from rulecheck.instantiate.loose import complete_loose
from rulecheck.instantiate.pattern import Contradiction, PatternGraph, build_pattern
from rulecheck.instantiate.roles import PREPARE, ROLES
from rulecheck.instantiate.setting import OpNode, Setting
from rulecheck.records import Declaration, Rule

Label = tuple[str, str]  # (axis, label)
Pair = frozenset[Label]
Unions = tuple[tuple[int, int], ...]
# Takes the terms to insert, and which of them are in one class; returns why they are not
# well-formed, or None.
Judge = Callable[[tuple[int, ...], Unions], DeadEnd | None]

BACKTRACKS = 60
LABEL_BACKTRACKS = 4
RARE_BACKTRACKS = 1
# Instances of a rule below which further values are tried.
ENOUGH = 24
# Far above what pairwise cover needs (a library matmul with everything free takes about 160
# instances); a rule that reaches them reports the pairs that were left.
MAX_INSTANCES = 500
MAX_ATTEMPTS = 3000


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


def rigid_sorts(setting: Setting) -> frozenset[str]:
    """Sorts in which two constructors never denote one value."""
    names = setting.vocabulary.encoding
    return frozenset({names.dtype_sort, names.list_sort, names.inputs_sort, names.kind_sort})


class Instantiation:
    """The search for instances of one left side: the default one, covering ones, more of them."""

    def __init__(
        self, rule: Rule, signatures: Mapping[str, Declaration], setting: Setting, judge: Judge
    ) -> None:
        """Prepare.

        Args:
            rule: the rule, whose body is what is instantiated.
            signatures: every declared name of the dialect and the rule's file.
            setting: vocabulary, term table, relation rows, supported types.
            judge: says why a graph is not well-formed under the ops' semantics, or None.
        """
        self._clash: Contradiction | None = None
        try:
            pattern = build_pattern(rule, signatures, rigid_sorts(setting))
        except Contradiction as clash:
            self._clash = clash
        else:
            self._search = _Search(pattern, setting, judge)

    def cover(
        self, enough: int = 0, limit: int = MAX_INSTANCES, like: Instance | None = None
    ) -> Instances:
        """Well-formed instances, the default one first: all labels, all pairs, at least so many.

        ``enough`` is met as far as there are values to be had, beyond the usual ones if need be;
        at ``limit`` the search ends, covered or not. Further ones are ``like`` but for one value.
        """
        if self._clash is not None:
            reason = f"the left side contradicts itself: {self._clash}"
            return Instances((), NOTHING, reason, Cause.CONTRADICTION)
        search = self._search
        search.limit = limit
        if not search.found and search.run({}, BACKTRACKS) is None:
            return Instances((), NOTHING, str(search.reason), search.reason.cause)
        if not search.wide:
            search.cover_labels()
            search.cover_pairs()
        search.fill(enough, dict(like.choices) if like is not None else {})
        return Instances(tuple(search.found), search.coverage())

    def one(self, preferences: Mapping[str, str]) -> Instances:
        """The one instance that ``preferences`` (labels by axis) lead to."""
        if self._clash is not None:
            return self.cover()
        self._search.wide = True
        found = self._search.run(preferences, BACKTRACKS)
        if found is None:
            return Instances((), NOTHING, str(self._search.reason), self._search.reason.cause)
        return Instances((found,), NOTHING)


class _Search:
    def __init__(self, pattern: PatternGraph, setting: Setting, judge: Judge) -> None:
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

    def run(self, preferences: Mapping[str, str], backtracks: int) -> Instance | None:
        """The instance that preferences lead to, searched depth-first over the latest choice."""
        script: list[int] | None = []
        reasons: list[DeadEnd] = []
        while script is not None and backtracks >= 0:
            self.attempts += 1
            backtracks -= 1
            chooser = Chooser(preferences, script)
            try:
                roots, unions = self._complete(chooser)
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
        tag = f"i{len(self.found)}."
        run = Completion(self.pattern.copy(), self.setting, chooser, tag, wide=self.wide)
        broken = run.binding.broken()
        if broken is not None:
            raise DeadEnd(f"the guard {broken.text} does not hold", Cause.CONTRADICTION)
        ops = run.all_ops()
        kinds = run.vocabulary.encoding.kind_sort
        if not ops and any(run.graph.sort_of(root) == kinds for root in run.graph.classes()):
            message = "the left side names no op, so it describes no graph"
            raise DeadEnd(message, Cause.UNKNOWN_OP)
        run.type_leaves()
        # Library matmuls decide sizes, so reductions are sized only after them.
        core = [op for op in ops if op.spec.family == "gemm"]
        rest = [op for op in ops if op.spec.family != "gemm"]
        for op in ops:
            if op.spec.family != "reduce":
                PREPARE.get(op.spec.family, _nothing)(run, op)
        for op in core:
            ROLES[op.spec.family](run, op)
        for op in rest:
            if op.spec.family == "reduce":
                PREPARE["reduce"](run, op)
        for op in rest:
            ROLES[op.spec.family](run, op)
        complete_loose(run)
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
                if len(self.found) >= self.limit:
                    return
                if any((axis, label) in instance.choices for instance in self.found):
                    continue
                rare = (axis, label) in self.rare
                wanted = {**self.context[axis, label], axis: label}
                instance = self.run(wanted, RARE_BACKTRACKS if rare else LABEL_BACKTRACKS)
                if instance is None or (axis, label) not in instance.choices:
                    self.dead.add((axis, label))
                elif axis in self.flips and not rare:
                    self.run(self._extend({axis: label}, self._alive()), 4)

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
                self.run({**self.context[axis, label], **base, axis: label}, 4)
                if not any((axis, label) in instance.choices for instance in self.found):
                    self.dead.add((axis, label))
        for one, other in _pairs(self._used()):  # then two of them at a time
            if len(self.found) >= enough or self.attempts >= MAX_ATTEMPTS:
                return
            self.run({**base, **dict((one, other))}, 0)

    def _used(self) -> list[Label]:
        """Labels that an instance has, those of the axes with the most of them first."""
        used = [
            [(axis, label) for label in labels if self._occurs((axis, label))]
            for axis, labels in self.offered.items()
        ]
        used.sort(key=len, reverse=True)
        return [label for labels in used for label in labels]

    def _occurs(self, label: Label) -> bool:
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
            self.run(preferences, backtracks)
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


def _nothing(_run: Completion, _op: OpNode) -> None:
    """Most ops need no preparation."""


def _pairs(labels: list[Label]) -> list[Pair]:
    return [
        frozenset((one, two)) for one, two in itertools.combinations(labels, 2) if one[0] != two[0]
    ]
