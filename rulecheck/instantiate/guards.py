"""Numbers that a rule's own guards suggest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from rulecheck.instantiate.pattern import PatternGraph

# A rule compares a field with a few numbers; a hostile one with thousands.
MAX_BOUNDS = 16


def guard_values(graph: PatternGraph, node: int) -> Iterator[float]:
    """Numbers at, near and between the literals that the rule compares this class with."""
    bounds = sorted(set(_bounds(graph, graph.find(node))))[:MAX_BOUNDS]
    for bound in bounds:
        size = abs(bound)
        yield bound
        # Far and near: a guard may end just beside the number at which the rule turns wrong.
        for step in (size / 2 + 1, size / 16):
            yield from (bound + step, bound - step)
    for low, high in itertools.pairwise(bounds):
        # Near the ends too: a window is centred on the constant that it stands for.
        width = high - low
        yield from (low + width / 2, low + width / 16, high - width / 16)


def _bounds(graph: PatternGraph, root: int) -> Iterator[float]:
    for constraint in graph.constraints:
        if root not in (graph.find(arg) for arg in constraint.args):
            continue
        for arg in constraint.args:
            literal = graph.literals.get(graph.find(arg))
            if literal is None or not isinstance(literal[1], float):
                continue
            if math.isfinite(literal[1]):
                yield literal[1]
    for name, limit in graph.clamps:
        held = graph.variables.get(name)
        if held is not None and graph.find(held) == root and math.isfinite(limit):
            yield limit
