"""The same graph with roundings left out: what a member may be that skips them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from rulecheck.oracle.evaluate import evaluate, roundings
from rulecheck.oracle.intervals import Range
from rulecheck.oracle.products import Accumulator, narrows_operands
from rulecheck.records import CastStep, GemmStep, MatmulStep, Plan, PointwiseStep, ReduceStep

# With more roundings than this they are not left out in every combination.
MAX_COMBINED = 6


class Alternative(NamedTuple):
    """A graph with roundings left out.

    ``names``: of those roundings. ``result``: what it then may give. ``common``: the same with
    another accumulator (``common_accumulator``).
    """

    names: tuple[str, ...]
    result: Range
    common: Range


def alternatives(
    plan: Plan,
    inputs: tuple[bytes, ...],
    accumulators: tuple[Accumulator, Accumulator],
    lost: Callable[[], tuple[int, ...]] = tuple,
) -> Iterator[Alternative]:
    """What the graph may give with roundings left out.

    Few roundings are left out in every combination, fewest first. Of many, those first that a
    member is known to have ``lost``; then each one by itself, and all before and all after each
    one, as a call does that fuses a part of the graph.

    Args:
        plan: the graph as written.
        inputs: the bytes of its leaves.
        accumulators: for ``result`` and for ``common``.
        lost: steps whose rounding the member does not have.
    """
    steps = roundings(plan)
    for skipped in _choices(steps, lost if len(steps) > MAX_COMBINED else tuple):
        results = [
            evaluate(plan, inputs, accumulator, skip=frozenset(skipped))[plan.result]
            for accumulator in dict.fromkeys(accumulators)
        ]
        names = name_roundings(plan, skipped)
        yield Alternative(names, results[0], results[-1])


def _choices(
    steps: tuple[int, ...], lost: Callable[[], tuple[int, ...]]
) -> Iterator[tuple[int, ...]]:
    """Sets of roundings to leave out, each once and none empty."""
    if len(steps) <= MAX_COMBINED:
        for size in range(1, len(steps) + 1):
            yield from itertools.combinations(steps, size)
        return
    first = lost()
    ends = range(2, len(steps) + 1)
    runs = [part for end in ends for part in (steps[:end], steps[-end:])]
    rest = dict.fromkeys([*((step,) for step in steps), *sorted(runs, key=len)])
    rest.pop(first, None)
    yield from ([first] if first else [])
    yield from rest


def name_rounding(plan: Plan, index: int) -> str:
    """A rounding by its type and the op behind which it stands."""
    step = plan.steps[index]
    dtype = plan.values[step.out].dtype.value
    if isinstance(step, CastStep):
        return f"the Cast to {dtype}"
    if isinstance(step, GemmStep | MatmulStep):
        return f"the rounding to {dtype} after the matmul"
    if isinstance(step, PointwiseStep | ReduceStep):
        return f"the rounding to {dtype} after {step.op}"
    return f"the rounding to {dtype} of a constant"


def name_roundings(plan: Plan, steps: Iterable[int] | None = None) -> tuple[str, ...]:
    """Names of roundings, of all by default."""
    chosen = roundings(plan) if steps is None else steps
    return tuple(name_rounding(plan, step) for step in chosen)


def name_narrowings(plan: Plan) -> tuple[str, ...]:
    """Every place where a graph loses bits on purpose: roundings, and narrow products."""
    calls = [step.call for step in plan.steps if isinstance(step, GemmStep)]
    return (
        *name_roundings(plan),
        *(f"the {call.compute_type} multiplier" for call in calls if narrows_operands(call)),
        *("the fp8 accumulator" for call in calls if call.a.dtype.is_fp8),
    )
