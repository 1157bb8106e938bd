"""The same graph with roundings left out: what a member may be that skips them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from rulecheck.oracle.evaluate import evaluate, roundings
from rulecheck.oracle.intervals import Range
from rulecheck.oracle.products import Accumulator, narrows_operands
from rulecheck.records import CastStep, GemmStep, MatmulStep, Plan, PointwiseStep, ReduceStep

# With more roundings than this they are left out one by one and all together, not in every
# combination.
MAX_COMBINED = 6


def alternatives(
    plan: Plan, inputs: tuple[bytes, ...], accumulator: Accumulator
) -> Iterator[tuple[tuple[str, ...], Range]]:
    """What the graph may give with roundings left out: (their names, the result), fewest first."""
    steps = roundings(plan)
    sizes = range(1, len(steps) + 1) if len(steps) <= MAX_COMBINED else (1, len(steps))
    for size in sizes:
        for skipped in itertools.combinations(steps, size):
            values = evaluate(plan, inputs, accumulator, skip=frozenset(skipped))
            yield tuple(name_rounding(plan, step) for step in skipped), values[plan.result]


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


def name_narrowings(plan: Plan) -> tuple[str, ...]:
    """Every place where a graph loses bits on purpose: roundings, and narrow multipliers."""
    calls = [step.call for step in plan.steps if isinstance(step, GemmStep)]
    return (
        *(name_rounding(plan, step) for step in roundings(plan)),
        *(f"the {call.compute_type} multiplier" for call in calls if narrows_operands(call)),
    )
