"""The contract, exact and without arithmetic: is each step legal, and does it read what is there?

Pure Python: the parent process uses it while it generates instances.
"""

from __future__ import annotations

from collections.abc import Iterator

from rulecheck.contract.buffers import check_buffers
from rulecheck.contract.calls import check_call, check_range
from rulecheck.contract.clauses import Place
from rulecheck.contract.codes import CODES
from rulecheck.contract.elementwise import (
    check_cast,
    check_fill,
    check_matmul,
    check_pointwise,
    check_reduce,
)
from rulecheck.contract.narrow import check_narrow, known_gap
from rulecheck.contract.support import Row, support_row
from rulecheck.records import (
    CastStep,
    FillStep,
    GemmStep,
    MatmulStep,
    Plan,
    PointwiseStep,
    ReduceStep,
    Violation,
)

__all__ = ["CODES", "Row", "check_plan", "notes", "support_row"]

_USUAL_BATCH_LIMIT = 65535


def check_plan(plan: Plan, device: str = "sm_90") -> tuple[Violation, ...]:
    """Check every step of a plan against cuBLASLt's rules and against the buffers.

    Args:
        plan: what would run.
        device: the architecture to judge fp8 rules for, such as ``sm_90``.

    Returns:
        The violations in step order; empty if the plan keeps the contract. At most one of each
        kind per operand. A call with an empty extent is reported for that alone.

    Raises:
        UserError: the device name is not known.
    """
    return tuple(
        found for index in range(len(plan.steps)) for found in _check(Place(plan, index), device)
    )


def _check(place: Place, device: str) -> Iterator[Violation]:
    step = place.plan.steps[place.step]
    match step:
        case GemmStep():
            refused = tuple(check_range(place, step))
            yield from refused
            if not refused:
                yield from check_call(place, step)
                yield from check_narrow(place, step, device)
                yield from check_buffers(place, step)
        case MatmulStep():
            yield from check_matmul(place, step)
        case PointwiseStep():
            yield from check_pointwise(place, step)
        case ReduceStep():
            yield from check_reduce(place, step)
        case CastStep():
            yield from check_cast(place, step)
        case FillStep():
            yield from check_fill(place, step)


def notes(plan: Plan) -> tuple[str, ...]:
    """Return what a plan takes on trust: undocumented rows, doubtful kernels; each text once."""
    found: dict[str, None] = {}
    for step in plan.steps:
        if not isinstance(step, GemmStep):
            continue
        call = step.call
        row = support_row(call)
        if row is not None and row.group == "assumed":
            found[
                f"{call.compute_type} with {call.a.dtype.value} operands is not documented; "
                "it is assumed to act as 32F"
            ] = None
        gap = known_gap(call)
        if gap is not None:
            found[gap] = None
        if call.d.order == "ROW" and call.epilogue in ("RELU", "GELU"):
            found[f"{call.epilogue} on a ROW-ordered D is assumed to be supported"] = None
        if call.d.batch_count > _USUAL_BATCH_LIMIT:
            found[f"a batch count above {_USUAL_BATCH_LIMIT} is refused by many kernels"] = None
    return tuple(found)
