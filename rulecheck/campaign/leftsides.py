"""Left sides to try for a rule: its own, and those in which other rules derive its facts."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

from rulecheck.dialects import Vocabulary
from rulecheck.instantiate import Instance, Instances, rows, with_fact, with_op
from rulecheck.records import Call, Change, Holds, Rule, RuleFile, Union

# The axis on which a case says which other rules made its graph.
MADE_BY = "made by"
MAX_DEPTH = 3
MAX_LEFT_SIDES = 24


class LeftSide(NamedTuple):
    """A rule with the body that is to be instantiated.

    ``by`` names the other rules whose left sides are part of it; ``before`` are those that have to
    be applied first, by position among the file's rules and its neighbours.
    """

    rule: Rule
    by: str = ""
    before: tuple[int, ...] = ()


def labelled(found: Instances, left: LeftSide) -> Instances:
    """Note in every instance which rules made it, so that a case can be built again."""
    if not left.by:
        return found
    label = ((MADE_BY, left.by),)
    instances = tuple(
        dataclasses.replace(
            item, choices=(*label, *item.choices), deviations=(*label, *item.deviations)
        )
        for item in found.instances
    )
    axes = ((MADE_BY, (left.by,)), *found.coverage.axes)
    coverage = dataclasses.replace(found.coverage, axes=axes)
    return dataclasses.replace(found, instances=instances, coverage=coverage)


def joined(first: Instances, second: Instances) -> Instances:
    """Both sets of instances as one."""
    if not first.instances:
        # Neither has any: what the rule's own left side lacks is the reason.
        return first if first.reason is not None and not second.instances else second
    axes: dict[str, dict[str, None]] = {}
    for axis, labels in (*first.coverage.axes, *second.coverage.axes):
        axes.setdefault(axis, {}).update(dict.fromkeys(labels))
    coverage = dataclasses.replace(
        first.coverage,
        pairs=first.coverage.pairs | second.coverage.pairs,
        axes=tuple((axis, tuple(labels)) for axis, labels in axes.items()),
    )
    instances: tuple[Instance, ...] = tuple(dict.fromkeys((*first.instances, *second.instances)))
    return dataclasses.replace(first, instances=instances, coverage=coverage)


def derivations(rule: Rule, file: RuleFile, tables: frozenset[str]) -> Iterator[LeftSide]:
    """Left sides in which other rules of the file derive facts that the rule asks for.

    Args:
        rule: the rule.
        file: its file, with its neighbours.
        tables: relations whose rows are all known, which need no derivation.
    """
    producers = _producers(rule, file)
    waiting: deque[tuple[LeftSide, int]] = deque([(LeftSide(rule), 0)])
    count = 0
    while waiting:
        left, depth = waiting.popleft()
        for fact in _facts(left.rule, tables, producers):
            assert isinstance(fact.expr, Call)
            for position, producer in producers[fact.expr.fn]:
                for made in with_fact(left.rule, fact, producer, f"{position}.{depth}"):
                    by = f"{left.by}, {producer.name}" if left.by else producer.name
                    found = LeftSide(made, by)
                    yield found
                    count += 1
                    if count >= MAX_LEFT_SIDES:
                        return
                    if depth + 1 < MAX_DEPTH:
                        waiting.append((found, depth + 1))


def surroundings(rule: Rule, file: RuleFile) -> Iterator[LeftSide]:
    """Left sides of the rules that use the rows a rule adds, with its own left side in them."""
    added = {row.fn for row in rows(rule)}
    count = 0
    for position, other in enumerate((*file.rules, *file.neighbours)):
        for fact in other.body if other is not rule else ():
            if isinstance(fact, Holds) and isinstance(fact.expr, Call) and fact.expr.fn in added:
                for made in with_fact(other, fact, rule, f"u{position}"):
                    yield LeftSide(made, f"used by {other.name}")
                    count += 1
                    if count >= MAX_LEFT_SIDES:
                        return


def left_sides(rule: Rule, file: RuleFile, tables: frozenset[str]) -> Iterator[LeftSide]:
    """Every left side beside the rule's own, each with a name of its own."""
    seen: Counter[str] = Counter()
    for left in itertools.chain(derivations(rule, file, tables), surroundings(rule, file)):
        seen[left.by] += 1
        again = seen[left.by] > 1
        yield left._replace(by=f"{left.by} #{seen[left.by]}") if again else left


def find_left_side(rule: Rule, by: str, file: RuleFile, tables: frozenset[str]) -> LeftSide | None:
    """The left side that is called ``by``."""
    if not by:
        return LeftSide(rule)
    return next((left for left in left_sides(rule, file, tables) if left.by == by), None)


def _facts(
    rule: Rule, tables: frozenset[str], producers: dict[str, list[tuple[int, Rule]]]
) -> list[Holds]:
    """Rows in a body that are not in a table and that another rule derives."""
    return [
        fact
        for fact in rule.body
        if isinstance(fact, Holds)
        and isinstance(fact.expr, Call)
        and fact.expr.fn in producers
        and fact.expr.fn not in tables
    ]


def _producers(rule: Rule, file: RuleFile) -> dict[str, list[tuple[int, Rule]]]:
    """Rules that only derive facts, by the relations that they add rows to."""
    found: dict[str, list[tuple[int, Rule]]] = {}
    for position, other in enumerate((*file.rules, *file.neighbours)):
        if other is rule or any(isinstance(action, Union | Change) for action in other.head):
            continue
        for name in dict.fromkeys(row.fn for row in rows(other)):
            found.setdefault(name, []).append((position, other))
    return found


def pair_sides(
    consumer: Rule, producer: Rule, position: int, vocabulary: Vocabulary
) -> Iterator[LeftSide]:
    """Left sides of a rule in which another one, applied before, makes an op or a row of it.

    Args:
        consumer: the rule that is applied last.
        producer: the rule that is applied first.
        position: that rule's position among the rules of the file and its neighbours.
        vocabulary: the dialect.
    """
    added = {row.fn for row in rows(producer)}
    facts = (
        fact
        for fact in consumer.body
        if isinstance(fact, Holds) and isinstance(fact.expr, Call) and fact.expr.fn in added
    )
    derived = (
        made for fact in facts for made in with_fact(consumer, fact, producer, f"p{position}")
    )
    made = with_op(consumer, producer, vocabulary, f"p{position}")
    for number, rule in enumerate(itertools.chain(made, derived)):
        yield LeftSide(rule, f"{producer.name}#{number}", (position,))
