"""Numbers that a rule's own guards suggest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from rulecheck.instantiate.pattern import PatternGraph


def guard_values(graph: PatternGraph, node: int) -> Iterator[float]:
    """Numbers between and beside the literals that guards compare this class with."""
    root, bounds = graph.find(node), []
    for constraint in graph.constraints:
        if root not in (graph.find(arg) for arg in constraint.args):
            continue
        for arg in constraint.args:
            literal = graph.literals.get(graph.find(arg))
            if literal is None or not isinstance(literal[1], float):
                continue
            if math.isfinite(literal[1]):
                bounds.append(literal[1])
    for bound in bounds:
        yield from (bound, bound + abs(bound) / 2 + 1, bound - abs(bound) / 2 - 1)
    for low, high in itertools.pairwise(sorted(bounds)):
        # Near the ends too: a window is centred on the constant that it stands for.
        width = high - low
        yield from (low + width / 2, low + width / 16, high - width / 16)
