"""From evidence to one word: how one member is judged on one set of inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rulecheck.compare import Allowed, Comparison, compare, overlap
from rulecheck.records import Evidence, Stage, Verdict

Floats = npt.NDArray[np.float64]


class Facts(NamedTuple):
    """All that is known of one member on one set of inputs.

    ``control``: the graph as written, run on the same backend, against its own oracle.
    ``got``: the member's result. ``as_written``: what the graph may legally give. The others are
    asked for only when the member leaves that: ``member_as_written``, what the member may give;
    ``float64`` and ``member_float64``, the two without any rounding; ``alternatives``, (names of
    roundings left out of the graph, what it then may give), fewest first. ``member_roundings``
    name the member's own roundings.
    """

    stage: Stage
    control: Comparison
    got: Floats
    as_written: Allowed
    member_as_written: Callable[[], Allowed]
    float64: Callable[[], Allowed]
    member_float64: Callable[[], Allowed]
    alternatives: Callable[[], Iterable[tuple[tuple[str, ...], Allowed]]]
    member_roundings: tuple[str, ...]


def decide(facts: Facts) -> Evidence:
    """Judge one member on one set of inputs (VERDICT.md stages 1 to 3).

    A member that leaves the range of the graph as written is a mismatch unless both graphs are
    equal over the reals; then only the placement of roundings differs. If leaving out roundings
    that the graph has explains every element, they were elided; else the member has a rounding
    that the graph does not have.
    """
    if not facts.control.within:
        return _untrusted(facts, facts.control, "the graph itself")
    comparison = compare(facts.got, facts.as_written)
    if comparison.within:
        return _evidence(facts, comparison, Verdict.AGREES, "RC000", ("agrees", ""))
    apart = ~overlap(facts.float64(), facts.member_float64())
    if apart.any():
        return _mismatch(facts, comparison, apart)
    own = compare(facts.got, facts.member_as_written())
    if not own.within:
        return _untrusted(facts, own, "the member")
    for names, allowed in facts.alternatives():
        if compare(facts.got, allowed).within:
            return _elided(facts, comparison, names)
    return _added(facts, comparison)


def _untrusted(facts: Facts, comparison: Comparison, what: str) -> Evidence:
    message = (
        f"a control failed: {what} leaves its own bound on this backend (error/bound "
        f"{comparison.ratio:.3g}); the bound or the model is wrong, so nothing is said of the rule"
    )
    return _evidence(facts, comparison, Verdict.UNTRUSTED, "RC421", (message, ""))


def _mismatch(facts: Facts, comparison: Comparison, apart: npt.NDArray[np.bool_]) -> Evidence:
    count = int(apart.sum())
    message = (
        f"legal call, wrong numbers: {count} of {apart.size} elements differ even without any "
        "rounding, so no placement of roundings explains them"
    )
    hint = "compare the two formulas: scale, beta, order of the epilogue, operands, axes"
    return _evidence(facts, comparison, Verdict.MISMATCH, "RC301", (message, hint))


def _elided(facts: Facts, comparison: Comparison, names: tuple[str, ...]) -> Evidence:
    nearer, further = _distances(facts)
    message = (
        f"a rounding that the graph writes down is skipped: {' and '.join(names)}; "
        f"{comparison.differing} of {comparison.compared} elements differ, "
        f"{nearer} nearer to float64, {further} further"
    )
    hint = "accepted by default; --rounding strict makes it an error"
    evidence = _evidence(facts, comparison, Verdict.ROUNDING_ELIDED, "RC303", (message, hint))
    return msgspec.structs.replace(evidence, roundings=names)


def _added(facts: Facts, comparison: Comparison) -> Evidence:
    nearer, further = _distances(facts)
    names = facts.member_roundings
    listed = " and ".join(names) or "none narrower than F32"
    message = (
        "the member rounds where the graph does not: "
        f"{comparison.differing} of {comparison.compared} elements differ, {nearer} nearer to "
        f"float64, {further} further; the member's roundings: {listed}"
    )
    hint = "keep the wider type up to the point where the graph itself rounds"
    evidence = _evidence(facts, comparison, Verdict.ROUNDING_ADDED, "RC302", (message, hint))
    return msgspec.structs.replace(evidence, roundings=names)


def _distances(facts: Facts) -> tuple[int, int]:
    """Elements of the member that are nearer to, and further from, float64 than as written."""
    exact = facts.float64().mid
    with np.errstate(invalid="ignore"):
        ours = np.abs(facts.got - exact)
        written = np.abs(facts.as_written.mid - exact)
    return int((ours < written).sum()), int((ours > written).sum())


def _evidence(
    facts: Facts, comparison: Comparison, verdict: Verdict, code: str, text: tuple[str, str]
) -> Evidence:
    message, hint = text
    return Evidence(
        verdict=verdict,
        stage=Stage.CONTROL if verdict is Verdict.UNTRUSTED else facts.stage,
        code=code,
        message=message,
        hint=hint,
        compared=comparison.compared,
        differing=comparison.differing,
        error_over_bound=comparison.ratio,
    )
