"""The numerics child: runs members on a backend and judges them against the oracle.

A composition root like ``campaign``: it wires the backend, the oracle, the comparison and the
verdict, and holds no logic of its own. Run as ``python -m rulecheck.children.numerics``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from rulecheck import backends, dtypes, oracle, verdict, workers
from rulecheck.compare import Allowed, Comparison, compare, detectable
from rulecheck.oracle import Accumulator, InputKind
from rulecheck.ordering import badness
from rulecheck.records import (
    CastStep,
    Comparable,
    Evidence,
    Failure,
    FailureKind,
    GemmStep,
    Judged,
    JudgeReply,
    JudgeRequest,
    MatmulStep,
    Plan,
    PointwiseStep,
    ReduceStep,
    Stage,
    Verdict,
    WorstElement,
)
from rulecheck.verdict import Facts

RUN_TIMEOUT_S = 20.0
# More roundings than this in one graph are left out one by one and all together, not in every
# combination.
MAX_COMBINED = 6
_STAGES = {InputKind.INTEGERS: Stage.EXACT, InputKind.REALS: Stage.BOUND}


def answer(request: JudgeRequest) -> JudgeReply:
    """Judge every item of a request."""
    backend = backends.load(request.backend)
    judge = functools.partial(_judge, backend=backend, seed=request.seed, elements=request.elements)
    return JudgeReply(tuple(judge(item) for item in request.items))


class _Trial(msgspec.Struct):
    """One member on one set of inputs."""

    evidence: Evidence
    got: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    expected: Allowed
    float64: Callable[[], Allowed]
    inputs: tuple[bytes, ...]


def _judge(
    item: Comparable, *, backend: backends.Backend, seed: int, elements: int
) -> Judged | Failure:
    refused = backend.supports(item.original) or backend.supports(item.member)
    if refused is not None:
        return refused
    trials: list[_Trial] = []
    for kind in InputKind:
        trial = _try(item, kind, backend, seed)
        if isinstance(trial, Failure):
            return trial
        trials.append(trial)
    # Worst verdict first; of equal ones, the inputs that show it on more elements.
    chosen = min(
        trials, key=lambda trial: (badness(trial.evidence.verdict), -trial.evidence.differing)
    )
    evidence = msgspec.structs.replace(
        chosen.evidence,
        compared=sum(trial.evidence.compared for trial in trials),
        differing=sum(trial.evidence.differing for trial in trials),
        detectable=min(
            (seen for trial in trials if (seen := trial.evidence.detectable) is not None),
            default=None,
        ),
        error_over_bound=max(trial.evidence.error_over_bound for trial in trials),
    )
    listed = _worst_elements(chosen, elements) if elements else ()
    operands = _operands(item.original, chosen.inputs) if elements else ()
    return Judged(evidence, listed, operands)


def _try(
    item: Comparable, kind: InputKind, backend: backends.Backend, seed: int
) -> _Trial | Failure:
    inputs = oracle.draw_inputs(item.original, kind, seed)
    runs = []
    for plan in (item.original, item.member):
        given = inputs if plan is item.original else _inputs_by_label(item, inputs, kind, seed)
        outcome = backend.run(plan, given, RUN_TIMEOUT_S)
        if isinstance(outcome, Failure):
            return outcome
        runs.append((plan, given, outcome))
    (original, _, written), (member, member_inputs, outcome) = runs
    result_type = original.values[original.result].dtype
    expected = _expected(original, inputs)
    float64 = functools.cache(lambda: _expected(original, inputs, unrounded=True))
    got = dtypes.decode(outcome.buffers[member.result], member.values[member.result].dtype)
    if item.broken:
        return _Trial(_shown(got, expected, _STAGES[kind]), got, expected, float64, inputs)
    facts = Facts(
        stage=_STAGES[kind],
        control=compare(dtypes.decode(written.buffers[original.result], result_type), expected),
        got=got,
        as_written=expected,
        member_as_written=lambda: _expected(member, member_inputs),
        float64=float64,
        member_float64=lambda: _expected(member, member_inputs, unrounded=True),
        alternatives=functools.partial(_alternatives, original, inputs),
        member_roundings=tuple(_name(member, step) for step in oracle.roundings(member)),
    )
    seen = detectable(expected, dtypes.ulp(expected.mid, result_type))
    evidence = msgspec.structs.replace(verdict.decide(facts), detectable=seen)
    return _Trial(evidence, got, expected, float64, inputs)


def _expected(plan: Plan, inputs: tuple[bytes, ...], *, unrounded: bool = False) -> Allowed:
    values = oracle.evaluate(plan, inputs, Accumulator(), unrounded=unrounded)
    return Allowed(*values[plan.result])


def _inputs_by_label(
    item: Comparable, inputs: tuple[bytes, ...], kind: InputKind, seed: int
) -> tuple[bytes, ...]:
    """The same bytes for the member; a leaf that only it reads gets bytes of its own."""
    known = {leaf.label: data for leaf, data in zip(item.original.inputs, inputs, strict=True)}
    own = oracle.draw_inputs(item.member, kind, seed)
    return tuple(
        known.get(leaf.label, data) for leaf, data in zip(item.member.inputs, own, strict=True)
    )


def _alternatives(
    plan: Plan, inputs: tuple[bytes, ...]
) -> Iterator[tuple[tuple[str, ...], Allowed]]:
    """The graph with roundings left out: each alone, then together, fewest first."""
    steps = oracle.roundings(plan)
    sizes = range(1, len(steps) + 1) if len(steps) <= MAX_COMBINED else (1, len(steps))
    for size in sizes:
        for skipped in itertools.combinations(steps, size):
            values = oracle.evaluate(plan, inputs, Accumulator(), skip=frozenset(skipped))
            yield tuple(_name(plan, step) for step in skipped), Allowed(*values[plan.result])


def _name(plan: Plan, index: int) -> str:
    """A rounding by its type and the op behind which it stands."""
    step = plan.steps[index]
    dtype = plan.values[step.out].dtype.value
    if isinstance(step, GemmStep | MatmulStep):
        return f"the rounding to {dtype} after the matmul"
    if isinstance(step, CastStep):
        return f"the Cast to {dtype}"
    if isinstance(step, PointwiseStep | ReduceStep):
        return f"the rounding to {dtype} after {step.op}"
    return f"the rounding to {dtype} of a constant"


def _shown(
    got: np.ndarray[tuple[int, ...], np.dtype[np.float64]], expected: Allowed, stage: Stage
) -> Evidence:
    """What a call that breaks the contract gives; the verdict was reached without numbers."""
    if got.shape != expected.mid.shape:
        message = f"the member writes {got.size} elements, the graph {expected.mid.size}"
        return Evidence(Verdict.MISREAD, stage, "RC202", message, compared=0)
    comparison: Comparison = compare(got, expected)
    return Evidence(
        Verdict.MISREAD if not comparison.within else Verdict.AGREES,
        stage,
        "RC201",
        f"{int(comparison.outside.sum())} of {comparison.compared} elements are wrong",
        compared=comparison.compared,
        differing=comparison.differing,
        error_over_bound=comparison.ratio,
    )


def _worst_elements(trial: _Trial, count: int) -> tuple[WorstElement, ...]:
    """The elements that depart most, worst first."""
    if trial.got.shape != trial.expected.mid.shape:
        return ()
    with np.errstate(all="ignore"):
        room = np.maximum(
            trial.expected.high - trial.expected.mid, trial.expected.mid - trial.expected.low
        )
        away = np.abs(trial.got - trial.expected.mid)
        score = np.nan_to_num(away - room, nan=np.inf, posinf=np.inf)
    float64 = trial.float64().mid
    order = np.lexsort((np.nan_to_num(away, nan=np.inf), score))[::-1]
    # A NaN says that poison was read; a number says what the model would silently use. Show both.
    finite = np.isfinite(trial.got[order])
    order = np.concatenate([order[~finite][: count - count // 2], order[finite]])[:count]
    return tuple(
        WorstElement(
            offset=int(index),
            got=float(trial.got[index]),
            as_written=float(trial.expected.mid[index]),
            float64=float(float64[index]),
            low=float(trial.expected.low[index]),
            high=float(trial.expected.high[index]),
        )
        for index in order
    )


def _operands(plan: Plan, inputs: tuple[bytes, ...]) -> tuple[tuple[str, str], ...]:
    """Each leaf by name: type, count and its first elements."""
    shown = []
    for leaf, data in zip(plan.inputs, inputs, strict=True):
        spec = plan.values[leaf.value]
        values = dtypes.decode(data, spec.dtype)
        first = ", ".join(f"{value:.6g}" for value in values[:6])
        more = ", …" if len(values) > 6 else ""
        name = leaf.label.rpartition(".")[2]
        shown.append((name, f"{spec.dtype.value}[{spec.count}] = {first}{more}"))
    return tuple(shown)


def handle(request: JudgeRequest) -> JudgeReply | Failure:
    """Answer a request; a fault in numerics costs this batch, not the campaign."""
    try:
        return answer(request)
    except MemoryError as error:
        return Failure(FailureKind.MEMORY, f"out of memory in numerics: {error}")


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    workers.serve(handle, JudgeRequest)


if __name__ == "__main__":
    main()
