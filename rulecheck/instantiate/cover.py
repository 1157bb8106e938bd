"""Which instances of a rule are tried: all labels of every axis, and all pairs that can occur."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

from rulecheck.instantiate.choices import Cause, Choice, Chooser, DeadEnd, advance
from rulecheck.instantiate.completion import Completion
from rulecheck.instantiate.pattern import Contradiction, PatternGraph, build_pattern
from rulecheck.instantiate.roles import PREPARE, ROLES
from rulecheck.instantiate.setting import OpNode, Setting
from rulecheck.records import Declaration, Rule

Label = tuple[str, str]  # (axis, label)
Pair = frozenset[Label]
# Takes the terms to insert; returns why they are not well-formed, or None.
Judge = Callable[[tuple[int, ...]], DeadEnd | None]

BACKTRACKS = 60
# Far above what pairwise cover needs (a library matmul with everything free takes about 160
# instances); a rule that reaches them reports the pairs that were left.
MAX_INSTANCES = 500
MAX_ATTEMPTS = 3000


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """One well-formed left side: terms to insert, every choice, and those that are not default."""

    roots: tuple[int, ...]
    choices: tuple[Label, ...]
    deviations: tuple[Label, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Coverage:
    """What can be tried: pairs of labels of different axes, and the labels of each axis.

    ``pairs`` are those that an instance has, or that no search has excluded. Layouts of
    elementwise ops are not counted in pairs; ``axes`` lists every label that occurred.
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


def rigid_sorts(setting: Setting) -> frozenset[str]:
    """Sorts in which two constructors never denote one value."""
    names = setting.vocabulary.encoding
    return frozenset({names.dtype_sort, names.list_sort, names.inputs_sort, names.kind_sort})


def instantiate(
    rule: Rule,
    signatures: Mapping[str, Declaration],
    setting: Setting,
    judge: Judge,
    preferences: Mapping[str, str] | None = None,
    *,
    only: bool = False,
) -> Instances:
    """Return well-formed instances of a rule's left side, the default one first.

    Args:
        rule: the rule.
        signatures: every declared name of the dialect and the rule's file.
        setting: vocabulary, term table, relation rows, supported types.
        judge: says why a graph is not well-formed under the ops' semantics, or None.
        preferences: labels to prefer, by axis (replay).
        only: return just the one instance that ``preferences`` lead to.
    """
    nothing = Coverage(frozenset(), ())
    try:
        pattern = build_pattern(rule, signatures, rigid_sorts(setting))
    except Contradiction as clash:
        reason = f"the left side contradicts itself: {clash}"
        return Instances((), nothing, reason, Cause.CONTRADICTION)
    search = _Search(pattern, setting, judge)
    first = search.run(preferences or {}, BACKTRACKS)
    if first is None:
        return Instances((), nothing, str(search.reason), search.reason.cause)
    if only:
        return Instances((first,), nothing)
    search.cover_labels()
    search.cover_pairs()
    return Instances(tuple(search.found), search.coverage())


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
        self.context: dict[Label, dict[str, str]] = {}  # where a label was first offered
        self.reason = DeadEnd("the left side has no instance")
        self.attempts = 0

    def run(self, preferences: Mapping[str, str], backtracks: int) -> Instance | None:
        """The instance that preferences lead to, searched depth-first over the latest choice."""
        script: list[int] | None = []
        reasons: list[DeadEnd] = []
        while script is not None and backtracks >= 0:
            self.attempts += 1
            backtracks -= 1
            chooser = Chooser(preferences, script)
            try:
                roots = self._complete(chooser)
            except DeadEnd as end:
                reasons.append(end)
            except Contradiction as clash:
                message = f"the left side contradicts itself: {clash}"
                reasons.append(DeadEnd(message, Cause.CONTRADICTION))
            else:
                flaw = self.judge(roots)
                if flaw is None:
                    return self._keep(roots, chooser.taken)
                reasons.append(flaw)
            self._remember(chooser.taken)
            script = advance(script, len(chooser.taken))
        # The first reason belongs to the preferred values; later ones to the search around them.
        if not self.found and reasons:
            self.reason = reasons[0]
        return None

    def _complete(self, chooser: Chooser) -> tuple[int, ...]:
        tag = f"i{len(self.found)}."
        run = Completion(self.pattern.copy(), self.setting, chooser, tag)
        broken = run.binding.broken()
        if broken is not None:
            raise DeadEnd(f"the guard {broken.text} does not hold", Cause.CONTRADICTION)
        ops = run.all_ops()
        if not ops:
            message = "the left side names no op, so it describes no graph"
            raise DeadEnd(message, Cause.UNKNOWN_OP)
        run.type_leaves()
        for op in ops:
            PREPARE.get(op.spec.family, _nothing)(run, op)
        for op in ops:
            ROLES[op.spec.family](run, op)
        return tuple(run.finish())

    def _remember(self, taken: list[Choice]) -> None:
        """Note new labels, and what had been chosen when they came up."""
        before: dict[str, str] = {}
        for choice in taken:
            labels = self.offered.setdefault(choice.axis, {})
            if choice.flip:
                self.flips.add(choice.axis)
            for label in choice.offered:
                if label not in labels:
                    labels[label] = None
                    self.context[choice.axis, label] = dict(before)
            if not choice.natural:
                before[choice.axis] = choice.label

    def _keep(self, roots: tuple[int, ...], taken: list[Choice]) -> Instance | None:
        self._remember(taken)
        choices = tuple((choice.axis, choice.label) for choice in taken)
        deviations = tuple((choice.axis, choice.label) for choice in taken if not choice.natural)
        instance = Instance(roots, choices, deviations)
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
        while len(self.found) < MAX_INSTANCES:
            waiting = [label for label in self._labels() if label not in done]
            if not waiting:
                return
            for axis, label in waiting:
                done.add((axis, label))
                if any((axis, label) in instance.choices for instance in self.found):
                    continue
                instance = self.run({**self.context[axis, label], axis: label}, 4)
                if instance is None or (axis, label) not in instance.choices:
                    self.dead.add((axis, label))
                elif axis in self.flips:
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
                if len(self.found) >= MAX_INSTANCES or self.attempts >= MAX_ATTEMPTS:
                    return
                self._cover(pair, alive)
            self.cover_labels()  # a pair may bring up labels that were never offered before

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
            if axis not in self.flips and (axis, label) not in self.dead
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
