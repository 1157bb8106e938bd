"""A self-test of the parts that a run needs, for ``rulecheck doctor``."""

from __future__ import annotations

from rulecheck.campaign.workshop import Workshop
from rulecheck.records import (
    Access,
    Comparable,
    DType,
    Failure,
    InputSpec,
    Plan,
    PointwiseStep,
    Settings,
    ValueSpec,
    Verdict,
)


def probe() -> tuple[tuple[str, bool, str], ...]:
    """Try the engine and the numerics: (name, works, detail) each."""
    with Workshop(Settings(paths=())) as shop:
        return (_engine(shop), _numerics(shop))


def _engine(shop: Workshop) -> tuple[str, bool, str]:
    reply = shop.engine.canary()
    if isinstance(reply, Failure):
        return ("engine canary", False, reply.message)
    detail = f"egglog {reply.version} joins rightly"
    if not reply.ok:
        detail = f"egglog {reply.version} returns false matches {reply.answer}: install 13.1.0"
    return ("engine canary", reply.ok, detail)


def _numerics(shop: Workshop) -> tuple[str, bool, str]:
    """A sum must agree with itself, and a product must be told from a sum."""
    access = Access((4,), ((0, 1, 2, 3),))
    values = (ValueSpec(DType.F32, 4), ValueSpec(DType.F32, 4), ValueSpec(DType.F32, 4))
    inputs = (InputSpec(0, "a"), InputSpec(1, "b"))

    def graph(op: str) -> Plan:
        step = PointwiseStep(2, op, (0, 1), (access, access), access)
        return Plan(values, inputs, (step,), 2)

    answers = shop.judge([Comparable(graph("Add"), graph(op)) for op in ("Add", "Mul")])
    found = []
    for answer in answers:
        if isinstance(answer, Failure):
            return ("numerics canary", False, answer.message)
        found.append(answer.evidence.verdict)
    works = found == [Verdict.AGREES, Verdict.MISMATCH]
    detail = "a sum agrees with itself, a product in its place is found"
    if not works:
        detail = f"expected agrees and mismatch, got {' and '.join(word.value for word in found)}"
    return ("numerics canary", works, detail)
