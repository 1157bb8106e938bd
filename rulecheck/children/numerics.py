"""The numerics child: runs members on a backend and judges them against the oracle.

A composition root like ``campaign``: it wires the backend, the oracle, the comparison and the
verdict, and holds no logic of its own. Run as ``python -m rulecheck.children.numerics``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from rulecheck import backends, dtypes, oracle, verdict, workers
from rulecheck.compare import Allowed, compare, detectable, worst_elements
from rulecheck.oracle import Accumulator, InputKind
from rulecheck.ordering import badness
from rulecheck.records import (
    Comparable,
    Evidence,
    Failure,
    FailureKind,
    GemmStep,
    Judged,
    JudgeReply,
    JudgeRequest,
    MatmulStep,
    Outcome,
    Plan,
    ReduceStep,
    Stage,
    Verdict,
    WorstElement,
)
from rulecheck.verdict import Alternative, Common, Facts

Floats = npt.NDArray[np.float64]

RUN_TIMEOUT_S = 20.0
_STAGES = {InputKind.INTEGERS: Stage.EXACT}
_ACCUMULATOR = Accumulator()
_SUMS = (GemmStep, MatmulStep, ReduceStep)


def answer(request: JudgeRequest) -> JudgeReply:
    """Judge every item of a request."""
    backend = backends.load(request.backend)
    return JudgeReply(
        tuple(_judge(item, backend, request.seed, request.elements) for item in request.items)
    )


class _Trial(msgspec.Struct):
    """One member on one set of inputs."""

    evidence: Evidence
    got: Floats
    expected: Allowed
    float64: Callable[[], Allowed]
    inputs: tuple[bytes, ...]


def _judge(
    item: Comparable, backend: backends.Backend, seed: int, elements: int
) -> Judged | Failure:
    refused = backend.supports(item.original) or backend.supports(item.member)
    if refused is not None:
        return refused
    trials: list[_Trial] = []
    for kind in _kinds(item, trials):
        trial = _try(item, kind, backend, seed)
        if isinstance(trial, Failure):
            return trial
        trials.append(trial)
    # Inputs that tell nothing count only if no other told anything. Worst verdict first; of equal
    # ones, the inputs that show it on more elements.
    telling = [trial for trial in trials if trial.evidence.verdict is not Verdict.VACUOUS]
    chosen = min(
        telling or trials,
        key=lambda trial: (badness(trial.evidence.verdict), -trial.evidence.differing),
    )
    seen = [trial.evidence.detectable for trial in trials]
    evidence = msgspec.structs.replace(
        chosen.evidence,
        compared=sum(trial.evidence.compared for trial in trials),
        differing=sum(trial.evidence.differing for trial in trials),
        detectable=min((effect for effect in seen if effect is not None), default=None),
        error_over_bound=max(trial.evidence.error_over_bound for trial in trials),
    )
    if not elements:
        return Judged(evidence)
    return Judged(evidence, _elements(chosen, elements), _operands(item.original, chosen.inputs))


def _kinds(item: Comparable, trials: Sequence[_Trial]) -> Iterator[InputKind]:
    """Inputs to draw; ``trials`` grows while they are asked for."""
    yield InputKind.INTEGERS
    yield InputKind.REALS
    told = sum(trial.evidence.compared for trial in trials)
    if told < sum(trial.expected.mid.size for trial in trials) / 2:
        yield InputKind.POSITIVE
    if not any(isinstance(step, _SUMS) for step in (*item.original.steps, *item.member.steps)):
        # Sums of such numbers are infinite; elsewhere they show a range that was lost.
        yield InputKind.WIDE


def _try(
    item: Comparable, kind: InputKind, backend: backends.Backend, seed: int
) -> _Trial | Failure:
    original, member = item.original, item.member
    inputs = oracle.draw_inputs(original, kind, seed)
    known = {
        (leaf.label, original.values[leaf.value]): data
        for leaf, data in zip(original.inputs, inputs, strict=True)
    }
    # A leaf that only the member reads, or reads as another buffer, has bytes of its own.
    own = oracle.draw_inputs(member, kind, seed, salt="member/")
    member_inputs = tuple(
        known.get((leaf.label, member.values[leaf.value]), data)
        for leaf, data in zip(member.inputs, own, strict=True)
    )
    written = backend.run(original, inputs, RUN_TIMEOUT_S)
    outcome = backend.run(member, member_inputs, RUN_TIMEOUT_S)
    if isinstance(written, Failure):
        return written
    if isinstance(outcome, Failure):
        return outcome
    expected = _expected(original, inputs)
    float64 = functools.cache(lambda: _expected(original, inputs, unrounded=True))
    got = _result(member, outcome)
    stage = _STAGES.get(kind, Stage.BOUND)
    if item.broken:
        return _Trial(_shown(got, expected, stage), got, expected, float64, inputs)
    if kind is InputKind.INTEGERS and not _repeats(backend, original, inputs, written):
        message = "a control failed: two runs of the graph on the same bytes differ"
        evidence = Evidence(Verdict.UNTRUSTED, Stage.CONTROL, "RC421", message)
        return _Trial(evidence, got, expected, float64, inputs)
    pair = _Pair(original, inputs, member, member_inputs)
    facts = Facts(
        stage=stage,
        control=compare(_result(original, written), expected),
        got=got,
        as_written=expected,
        member_as_written=lambda: _expected(member, member_inputs),
        float64=float64,
        member_float64=lambda: _expected(member, member_inputs, unrounded=True),
        common=lambda: pair.common,
        alternatives=pair.alternatives,
        lost=lambda: oracle.name_roundings(original, pair.lost()),
        member_roundings=pair.member_roundings,
    )
    result_type = original.values[original.result].dtype
    seen = detectable(expected, dtypes.ulp(expected.mid, result_type))
    evidence = msgspec.structs.replace(verdict.decide(facts), detectable=seen)
    return _Trial(evidence, got, expected, float64, inputs)


def _repeats(
    backend: backends.Backend, plan: Plan, inputs: tuple[bytes, ...], first: Outcome
) -> bool:
    """Whether a second run gives the same bytes."""
    second = backend.run(plan, inputs, RUN_TIMEOUT_S)
    if isinstance(second, Failure):
        return False
    return second.buffers[plan.result] == first.buffers[plan.result]


def _result(plan: Plan, outcome: Outcome) -> Floats:
    return dtypes.decode(outcome.buffers[plan.result], plan.values[plan.result].dtype)


def _expected(
    plan: Plan,
    inputs: tuple[bytes, ...],
    accumulator: Accumulator = _ACCUMULATOR,
    *,
    skip: frozenset[int] = frozenset(),
    unrounded: bool = False,
) -> Allowed:
    values = oracle.evaluate(plan, inputs, accumulator, skip=skip, unrounded=unrounded)
    return Allowed(*values[plan.result])


@dataclasses.dataclass(frozen=True)
class _Pair:
    """A graph and a member, each with its input bytes."""

    original: Plan
    inputs: tuple[bytes, ...]
    member: Plan
    member_inputs: tuple[bytes, ...]

    def _sides(self) -> tuple[oracle.Side, oracle.Side]:
        return (self.original, self.inputs), (self.member, self.member_inputs)

    @functools.cached_property
    def _accumulator(self) -> Accumulator:
        return oracle.common_accumulator(*self._sides(), _ACCUMULATOR)

    def lost(self) -> tuple[int, ...]:
        return oracle.lost_roundings(*self._sides())

    def member_roundings(self) -> tuple[str, ...]:
        """What the member rounds; a narrow product that is the graph's as well is not blamed."""
        alike = self._accumulator is not _ACCUMULATOR
        own = oracle.name_roundings(self.member) if alike else ()
        return own or oracle.name_narrowings(self.member)

    @functools.cached_property
    def common(self) -> Common:
        accumulator = self._accumulator
        in_f32, ours = (
            each._replace(activation=0.0) for each in (accumulator.as_f32(), accumulator)
        )
        every, own = (frozenset(oracle.roundings(plan)) for plan in (self.original, self.member))
        return Common(
            written=_expected(self.original, self.inputs, accumulator),
            member=_expected(self.member, self.member_inputs, accumulator),
            written_freedom=_expected(self.original, self.inputs, in_f32, skip=every),
            member_freedom=_expected(self.member, self.member_inputs, ours, skip=own),
        )

    def alternatives(self) -> Iterator[Alternative]:
        accumulators = (_ACCUMULATOR, self._accumulator)
        for found in oracle.alternatives(self.original, self.inputs, accumulators, self.lost):
            yield Alternative(found.names, Allowed(*found.result), Allowed(*found.common))


def _shown(got: Floats, expected: Allowed, stage: Stage) -> Evidence:
    """What a call that breaks the contract gives; the verdict was reached without numbers."""
    if got.shape != expected.mid.shape:
        message = f"the member writes {got.size} elements, the graph {expected.mid.size}"
        return Evidence(Verdict.MISREAD, stage, "RC202", message)
    comparison = compare(got, expected)
    message = f"{int(comparison.outside.sum())} of {comparison.compared} elements are wrong"
    return Evidence(
        Verdict.AGREES if comparison.within else Verdict.MISREAD,
        stage,
        "RC201",
        message,
        compared=comparison.compared,
        differing=comparison.differing,
        error_over_bound=comparison.ratio,
    )


def _elements(trial: _Trial, count: int) -> tuple[WorstElement, ...]:
    """The elements that depart most, worst first."""
    if trial.got.shape != trial.expected.mid.shape:
        return ()
    exact = trial.float64().mid
    return tuple(
        WorstElement(
            offset=index,
            got=float(trial.got[index]),
            as_written=float(trial.expected.mid[index]),
            float64=float(exact[index]),
            low=float(trial.expected.low[index]),
            high=float(trial.expected.high[index]),
        )
        for index in worst_elements(trial.got, trial.expected, count)
    )


def _operands(plan: Plan, inputs: tuple[bytes, ...]) -> tuple[tuple[str, str], ...]:
    """Each leaf by name: type, count and its first elements."""
    shown = []
    for leaf, data in zip(plan.inputs, inputs, strict=True):
        spec = plan.values[leaf.value]
        values = dtypes.decode(data, spec.dtype)
        first = ", ".join(f"{value:.6g}" for value in values[:6])
        more = ", …" if len(values) > 6 else ""
        name = leaf.label.rpartition(".")[2].partition("#")[0]
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
