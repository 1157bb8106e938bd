"""From evidence to one word: how one member is judged on one set of inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rulecheck.compare import Allowed, Comparison, compare, narrow, overlap
from rulecheck.records import Evidence, Stage, Verdict

Floats = npt.NDArray[np.float64]


class Common(NamedTuple):
    """The two sides where products that they share are taken alike on both.

    ``written`` and ``member``: what each may give. ``written_freedom`` and ``member_freedom``: the
    same with every rounding to a narrow type and the evaluation error of an activation left out.
    The graph's is that of F32 arithmetic alone; the member's includes any narrow product that the
    graph does not have.
    """

    written: Allowed
    member: Allowed
    written_freedom: Allowed
    member_freedom: Allowed


class Alternative(NamedTuple):
    """The graph without some roundings: their names, and what it then may give.

    ``common``: the same where shared products are taken alike (``Common``).
    """

    names: tuple[str, ...]
    allowed: Allowed
    common: Allowed


class Facts(NamedTuple):
    """All that is known of one member on one set of inputs.

    ``control``: the graph as written, run on the same backend, against its own oracle.
    ``got``: the member's result. ``as_written``: what the graph may legally give. The others are
    asked for only when the member leaves that: ``member_as_written``, what the member may give;
    ``float64`` and ``member_float64``, the two without any rounding; ``common``, see there;
    ``alternatives``, likeliest first; ``lost``, names of roundings of the graph that the member
    does not have; ``member_roundings``, names of the member's.
    """

    stage: Stage
    control: Comparison
    got: Floats
    as_written: Allowed
    member_as_written: Callable[[], Allowed]
    float64: Callable[[], Allowed]
    member_float64: Callable[[], Allowed]
    common: Callable[[], Common]
    alternatives: Callable[[], Iterable[Alternative]]
    lost: Callable[[], tuple[str, ...]]
    member_roundings: Callable[[], tuple[str, ...]]


# float64 evaluation is good to about 2^-45 of the largest term; a range wider than this says that
# a discrete pick or a pole is near, and then two ranges that meet say nothing.
SETTLED_ROOM = 2.0**-20


# A range that F32 arithmetic explains for sums of up to about 500 terms; the narrow multipliers and
# accumulators (TF32, fast Bf16, fp8) that the graph does not have as well are wider and are judged
# on their own.
REASSOCIATED_ROOM = 2.0**-14


def decide(facts: Facts) -> Evidence:
    """Judge one member on one set of inputs (VERDICT.md stages 1 to 3).

    A member that leaves the range of the graph as written is a mismatch unless both graphs are
    equal over the reals; then only the placement of roundings differs. If leaving out roundings
    that the graph has explains every element, and float64 is nearer, they were elided. What none
    explains is a mismatch where the member leaves the finite numbers, elided where float64 is
    nearer throughout, and else a rounding that the graph does not have.
    """
    comparison = compare(facts.got, facts.as_written)
    return _without_doubt(facts, comparison) or _departed(facts, comparison)


def _without_doubt(facts: Facts, comparison: Comparison) -> Evidence | None:
    """The verdict where the bound alone decides; None if the member leaves it."""
    if comparison.compared == 0:
        return _vacuous(facts, comparison, "the graph has no element")
    if not facts.control.within:
        return _untrusted(facts, facts.control, "the graph itself")
    if not comparison.within:
        return None
    if comparison.told == 0:
        return _vacuous(facts, comparison, "any result would be legal for every element")
    return _evidence(facts, comparison, Verdict.AGREES, "RC000", ("agrees", ""))


def _departed(facts: Facts, comparison: Comparison) -> Evidence:
    """The verdict on a member that leaves the bound: other formula, or roundings that moved."""
    apart = _apart(facts, comparison)
    if apart.any():
        return _mismatch(facts, comparison, int(apart.sum()), "differ even without any rounding")
    own = compare(facts.got, facts.member_as_written())
    if not own.within:
        return _untrusted(facts, own, "the member")
    if _meets(facts, facts.common().written):
        # Equal over the reals, and some legal run of the one gives what some of the other gives:
        # the terms are only summed or scaled in another order.
        return _evidence(facts, comparison, Verdict.AGREES, "RC000", ("agrees", ""))
    for alternative in facts.alternatives():
        if _explains(facts, comparison, alternative):
            return _elided(facts, comparison, alternative.names)
    return _unexplained(facts, comparison)


def _unexplained(facts: Facts, comparison: Comparison) -> Evidence:
    """The verdict on a member that is equal over the reals and not the graph less roundings."""
    if _lost_range(facts).any():
        return _overflow(facts, comparison)
    nearer, further = _distances(facts)
    if nearer and not further and facts.lost():
        return _elided(facts, comparison, facts.lost())
    if facts.member_roundings():
        return _added(facts, comparison)
    count = int(comparison.outside.sum())
    what = "leave the bound, though the member never narrows"
    return _mismatch(facts, comparison, count, what)


def _lost_range(facts: Facts) -> npt.NDArray[np.bool_]:
    """Elements that are finite as written, and an illegal infinity or NaN in the member."""
    written = np.isfinite(facts.as_written.mid)
    outside = compare(facts.got, facts.as_written).outside
    return np.asarray(outside & written & ~np.isfinite(facts.got))


def _meets(facts: Facts, written: Allowed) -> bool:
    """Whether some legal run of the member gives what some legal run of a graph gives.

    That must hold of every element, and the member must be free as F32 is free: meeting a range
    that a narrow product, a pole or a cancellation made wide shows nothing.
    """
    return bool((overlap(written, facts.common().member) & _is_free_as_f32(facts)).all())


def _is_free_as_f32(facts: Facts) -> npt.NDArray[np.bool_]:
    """Where the member's freedom is F32's, or no more than the graph's is in F32.

    Roundings to narrow types are no freedom: F32's decides between two neighbours of the type,
    or none.
    """
    common = facts.common()
    ours, theirs = common.written_freedom, common.member_freedom
    with np.errstate(invalid="ignore"):
        room = theirs.high - theirs.low
        no_wider = np.isfinite(room) & (room <= ours.high - ours.low)
    return np.asarray(narrow(theirs, REASSOCIATED_ROOM) | no_wider | ~np.isfinite(theirs.mid))


def _apart(facts: Facts, comparison: Comparison) -> npt.NDArray[np.bool_]:
    """Elements on which the two graphs are not shown to be equal over the reals."""
    ours, theirs = facts.float64(), facts.member_float64()
    settled = narrow(ours, SETTLED_ROOM) & narrow(theirs, SETTLED_ROOM)
    nan = np.isnan(ours.mid) & np.isnan(theirs.mid)
    infinite = np.isinf(ours.mid) & (ours.mid == theirs.mid)
    return np.asarray(~overlap(ours, theirs) | (comparison.outside & ~(settled | nan | infinite)))


def _explains(facts: Facts, comparison: Comparison, alternative: Alternative) -> bool:
    """Whether an alternative accounts for every element, and is not further from float64.

    What F32 is free to do counts for the member: in the tail of gelu the epilogue's 1 + tanh
    cancels, which is a distance of its own size and no sign of a rounding.
    """
    within = compare(facts.got, alternative.allowed).within
    if not (within or _meets(facts, alternative.common)):
        return False
    exact, moved = facts.float64().mid, comparison.outside
    member = facts.common().member
    with np.errstate(invalid="ignore", over="ignore"):
        room = np.maximum(member.high - member.mid, member.mid - member.low)
        room = np.where(_is_free_as_f32(facts) & np.isfinite(room), room, 0.0)
        ours = np.maximum(np.abs(facts.got - exact) - room, 0.0)[moved]
        written = np.abs(facts.as_written.mid - exact)[moved]
        known = np.isfinite(ours) & np.isfinite(written)
    return float((ours[known] ** 2).sum()) <= float((written[known] ** 2).sum())


def _vacuous(facts: Facts, comparison: Comparison, what: str) -> Evidence:
    text = (
        f"the inputs cannot tell right from wrong: {what}",
        "the ops amplify every legal rounding; a narrower left side would tell more",
    )
    return _evidence(facts, comparison, Verdict.VACUOUS, "RC405", text)


def _untrusted(facts: Facts, comparison: Comparison, what: str) -> Evidence:
    message = (
        f"a control failed: {what} leaves its own bound on this backend (error/bound "
        f"{comparison.ratio:.3g}); the bound or the model is wrong, so nothing is said of the rule"
    )
    return _evidence(facts, comparison, Verdict.UNTRUSTED, "RC421", (message, ""))


def _mismatch(facts: Facts, comparison: Comparison, count: int, what: str) -> Evidence:
    message = (
        f"wrong numbers: {count} of {comparison.compared} elements {what}, so no "
        "placement of roundings explains them"
    )
    hint = "compare the two formulas: scale, beta, order of the epilogue, operands, axes"
    if _lost_range(facts).any():
        message += f"; {_say_lost_range(facts)}"
    return _evidence(facts, comparison, Verdict.MISMATCH, "RC301", (message, hint))


def _overflow(facts: Facts, comparison: Comparison) -> Evidence:
    message = f"wrong numbers: of {comparison.compared} elements, {_say_lost_range(facts)}"
    hint = (
        "the member's types do not hold what the graph's do: guard the range, keep the wider "
        "type, or scale an operand by a power of two that alpha takes back"
    )
    return _evidence(facts, comparison, Verdict.MISMATCH, "RC301", (message, hint))


def _say_lost_range(facts: Facts) -> str:
    """How many elements are finite as written and what they are in the member, and the first."""
    lost = np.flatnonzero(_lost_range(facts))
    nan = np.isnan(facts.got[lost])
    kinds = " or ".join(name for name, some in (("inf", ~nan), ("nan", nan)) if some.any())
    first = int(lost[0])
    return (
        f"{lost.size} are finite as written, {kinds} in the member (first element {first}: "
        f"{facts.as_written.mid[first]:.9g} as written)"
    )


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
    names = facts.member_roundings()
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
    """Elements of the member that are nearer to, and further from, float64 than as written.

    Where float64 is finite, what is not is further than any number.
    """
    exact = facts.float64().mid
    with np.errstate(invalid="ignore"):
        ours, written = (np.abs(values - exact) for values in (facts.got, facts.as_written.mid))
    ours, written = (
        np.where(np.isfinite(exact) & np.isnan(away), np.inf, away) for away in (ours, written)
    )
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
        compared=comparison.told,
        differing=comparison.differing,
        error_over_bound=comparison.ratio,
    )
