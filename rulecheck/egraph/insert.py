"""Ground graphs into the EGraph: rules with an empty body, built directly.

A top-level ``let`` per node costs ten times as much, and text would spell shared terms again and
again. Each inserted node leaves a row (term id, class), by which it is found later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rulecheck.egraph.bindings import OWN_SPAN, egg
from rulecheck.egraph.build import call, literal, variable
from rulecheck.egraph.load import at_name
from rulecheck.records import Declaration, InstanceBatch, Node

INSERT_RULESET = "@rc_insert"

# Adding a rule is quadratic in its head, and one rule per instance repeats what they share.
_NODES_PER_RULE = 400


def reached(batch: InstanceBatch) -> list[list[int]]:
    """Return the term ids of each instance, arguments first."""
    return [sorted(_reach(batch.nodes, roots)) for roots in batch.roots]


def insertion(
    batch: InstanceBatch, members: list[list[int]], tables: dict[str, Declaration]
) -> list[Any]:
    """Build the commands that insert a batch: one ruleset, a few instances to a rule."""
    rules = [
        egg.Rule(OWN_SPAN, _head(batch, ids, tables), [], f"@rc_insert_{j}", INSERT_RULESET)
        for j, ids in enumerate(_chunks(members))
    ]
    return [egg.AddRuleset(OWN_SPAN, INSERT_RULESET), *(egg.RuleCommand(rule) for rule in rules)]


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


def _head(batch: InstanceBatch, ids: list[int], tables: dict[str, Declaration]) -> list[Any]:
    actions: list[Any] = []
    built: dict[int, Any] = {}
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
        built[index] = variable(f"@rc_{index}")
        actions.append(egg.Let(OWN_SPAN, f"@rc_{index}", term))
        row = call(at_name(known.output or ""), [literal("i64", index), built[index]])
        actions.append(egg.Expr_(OWN_SPAN, row))
    for left, right in batch.unions:
        if left in built and right in built:
            actions.append(egg.Union(OWN_SPAN, built[left], built[right]))
    return actions
