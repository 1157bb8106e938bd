"""Ground graphs into the EGraph: rules with an empty body, built directly.

A top-level ``let`` per node costs ten times as much, and text would spell shared terms again and
again. Rows of a relation for each sort keep the classes of the inserted terms, by which those are
found later: (number of the row, class, class, …), as many to a row as the relation has columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rulecheck.egraph.bindings import OWN_SPAN, egg
from rulecheck.egraph.build import call, literal, variable
from rulecheck.egraph.load import AT_COLUMNS, at_name
from rulecheck.records import Declaration, InstanceBatch, Node

# For each sort: the term ids in each row of its relation.
Places = dict[str, list[tuple[int, ...]]]

INSERT_RULESET = "@rc_insert"

# Adding a rule is quadratic in its head, and one rule per instance repeats what they share.
_NODES_PER_RULE = 400


def reached(batch: InstanceBatch) -> list[list[int]]:
    """Return the term ids of each instance, arguments first."""
    return [sorted(_reach(batch.nodes, roots)) for roots in batch.roots]


def insertion(
    batch: InstanceBatch, members: list[list[int]], tables: dict[str, Declaration]
) -> tuple[list[Any], Places]:
    """Build the commands that insert a batch, and say where its terms are found afterwards.

    One ruleset, a few instances to a rule.
    """
    places: Places = {}
    rules = [
        egg.Rule(OWN_SPAN, _head(batch, ids, tables, places), [], f"@rc_{j}", INSERT_RULESET)
        for j, ids in enumerate(_chunks(members))
    ]
    commands = [egg.AddRuleset(OWN_SPAN, INSERT_RULESET), *map(egg.RuleCommand, rules)]
    return commands, places


def _chunks(members: list[list[int]]) -> Iterator[list[int]]:
    """Join instances, each whole, until they have enough nodes for one rule."""
    ids: set[int] = set()
    for own in members:
        ids.update(own)
        if len(ids) >= _NODES_PER_RULE:
            yield sorted(ids)
            ids.clear()
    if ids:
        yield sorted(ids)


def _reach(nodes: tuple[Node, ...], roots: tuple[int, ...]) -> set[int]:
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        index = pending.pop()
        if index not in seen:
            seen.add(index)
            pending += nodes[index].args
    return seen


def _head(
    batch: InstanceBatch, ids: list[int], tables: dict[str, Declaration], places: Places
) -> list[Any]:
    actions: list[Any] = []
    built: dict[int, Any] = {}
    by_sort: dict[str, list[int]] = {}
    for index in ids:
        node = batch.nodes[index]
        if node.value is not None:
            built[index] = literal(node.fn, node.value)
            continue
        term = call(node.fn, [built[arg] for arg in node.args])
        known = tables.get(node.fn)
        if known is None or known.kind != "constructor":
            actions.append(egg.Expr_(OWN_SPAN, term))  # a row of a relation
            continue
        name = f"@rc_{index}"
        built[index] = variable(name)
        actions.append(egg.Let(OWN_SPAN, name, term))
        by_sort.setdefault(known.output or "", []).append(index)
    for sort, found in by_sort.items():
        rows = places.setdefault(sort, [])
        for start in range(0, len(found), AT_COLUMNS):
            held = found[start : start + AT_COLUMNS]
            filled = [built[index] for index in (*held, *[held[0]] * (AT_COLUMNS - len(held)))]
            row = call(at_name(sort), [literal("i64", len(rows)), *filled])
            actions.append(egg.Expr_(OWN_SPAN, row))
            rows.append(tuple(held))
    for left, right in batch.unions:
        if left in built and right in built:
            actions.append(egg.Union(OWN_SPAN, built[left], built[right]))
    return actions
