"""One union of one firing as a claim: this member is the buffer that was there before.

Planned and held against the contract here; numbers come later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from rulecheck import contract, plan
from rulecheck.dialects import Vocabulary
from rulecheck.dialects.terms import TermReader
from rulecheck.instantiate import Instance
from rulecheck.records import (
    CastStep,
    Comparable,
    DType,
    Evidence,
    Failure,
    FailureKind,
    GemmCall,
    GemmStep,
    Member,
    Node,
    Plan,
    Span,
    Stage,
    TermTable,
    Verdict,
    Violation,
)

_FAILURES = {
    FailureKind.UNSUPPORTED: (Verdict.UNSUPPORTED, "RC411", "the rule is not judged on this"),
    FailureKind.ILLEGAL: (Verdict.ILLEGAL, "RC217", "build the node as the launch expects it"),
    FailureKind.TIMEOUT: (Verdict.TIMEOUT, "RC431", "replay the case by itself"),
    FailureKind.CRASH: (Verdict.CRASH, "RC441", "replay the case by itself"),
    FailureKind.MEMORY: (Verdict.CRASH, "RC441", "replay the case by itself"),
}


STAMP_HINT = "set the type that the op writes"


@dataclasses.dataclass(slots=True)
class Claim:
    """A member and what it replaces: ids in ``nodes``, and either evidence or plans to run.

    ``ordinal`` numbers the claims of one instance; ``bindings`` are what the rule's
    variables hold; ``span`` is where it makes a claim that is
    no union; ``removal``: the original is taken out of its class, the member is what stays.
    """

    instance: Instance
    union: int
    ordinal: int
    nodes: tuple[Node, ...]
    original: int
    member: int
    evidence: Evidence | None = None
    plans: Comparable | None = None
    bindings: Mapping[str, int] = dataclasses.field(default_factory=dict)
    span: Span | None = None
    removal: bool = False

    @property
    def inside(self) -> bool:
        """Whether the member is a part of the graph that it replaces."""
        stack, seen = [self.original], set[int]()
        while stack:
            term = stack.pop()
            if term == self.member:
                return True
            if term not in seen:
                seen.add(term)
                stack.extend(self.nodes[term].args)
        return False

    def show(self) -> tuple[str, str]:
        """Both graphs as text."""
        table = TermTable(self.nodes)
        return table.show(self.original), table.show(self.member)


def directions(member: Member, requested: int) -> tuple[tuple[int, int], ...]:
    """(what was there, what is claimed to equal it), from a union whose sides are in any order.

    A term below ``requested`` was there before the rule acted. If both were, each may now be used
    for the other, so both directions are claims; if neither was, the first is the reference.
    """
    left, right = member.left, member.right
    if left < requested and right < requested:
        return ((left, right), (right, left))
    return ((right, left),) if right < requested else ((left, right),)


def examine(
    claim: Claim,
    vocabulary: Vocabulary,
    counts: Mapping[str, int],
    stamps: Sequence[tuple[int, int]],
) -> None:
    """Plan both sides of a claim and hold the member against the contract.

    Args:
        claim: gets its evidence, if something is wrong, and its plans, if it can be run.
        vocabulary: the dialect.
        counts: elements of each input, by label.
        stamps: (term, type term) for every type that the rule's head sets.
    """
    names = vocabulary.encoding
    if claim.nodes[claim.original].fn not in {names.op, names.leaf}:
        same = _same_expression(claim, vocabulary)
        if same is not None:
            claim.evidence = same
            return
        message = "the rule makes two terms equal that are no graphs; only graphs are judged"
        hint = "state the claim on the ops that use the term"
        claim.evidence = Evidence(Verdict.UNSUPPORTED, Stage.PLAN, "RC412", message, hint)
        return
    original = plan.build(claim.nodes, claim.original, vocabulary, counts)
    member = plan.build(claim.nodes, claim.member, vocabulary, counts)
    if isinstance(original, Failure):
        claim.evidence = failed(original, Stage.PLAN)
        return
    if isinstance(member, Failure):
        claim.evidence = failed(member, Stage.PLAN)
        return
    flaws = contract.check_plan(original)
    if flaws:
        message = (
            f"the rule unites two new terms, and the first is no legal graph: {flaws[0].message}"
        )
        hint = "unite the new term with the one that the rule matched"
        claim.evidence = Evidence(Verdict.UNSUPPORTED, Stage.PLAN, "RC412", message, hint)
        return
    violations = contract.check_plan(member) or _result_violations(original, member)
    lie = _false_stamp(claim, vocabulary, stamps)
    if violations:
        claim.evidence = _broken(violations)
    elif lie is not None:
        claim.evidence = Evidence(Verdict.MISREAD, Stage.CONTRACT, "RC304", lie, STAMP_HINT)
    claim.plans = Comparable(original, member, broken=claim.evidence is not None)
    if claim.evidence is not None:
        claim.evidence = with_calls(claim.evidence, claim.plans)


def _same_expression(claim: Claim, vocabulary: Vocabulary) -> Evidence | None:
    """Compare two sizes or strides over values of the iterator; None for what is neither."""
    reader = TermReader(claim.nodes, vocabulary.encoding)
    for step in (0, 1, 2, 3, 7, 1021):
        before, after = (reader.number(term, step) for term in (claim.original, claim.member))
        if before is None or after is None:
            return None
        if before != after:
            message = f"the expressions differ: {before} and {after} where the iterator is {step}"
            hint = "the two must be equal for every value of the iterator"
            code = (Verdict.MISMATCH, Stage.EXACT, "RC301")
            return Evidence(*code, message, hint, compared=1, differing=1)
    return Evidence(Verdict.AGREES, Stage.EXACT, "RC000", "agrees", compared=6)


def failed(failure: Failure, stage: Stage) -> Evidence:
    """Evidence for something that could not be done."""
    verdict, code, hint = _FAILURES[failure.kind]
    return Evidence(verdict, stage, code, failure.message, hint)


def with_calls(evidence: Evidence, plans: Comparable) -> Evidence:
    """Add the two calls to evidence."""
    return msgspec.structs.replace(
        evidence,
        original_call=_last_call(plans.original),
        member_call=_last_call(plans.member),
    )


def _broken(violations: Sequence[Violation]) -> Evidence:
    """Evidence for a member that breaks the contract. A call that is refused reads nothing."""
    illegal = [item for item in violations if item.verdict is Verdict.ILLEGAL]
    chosen = (illegal or violations)[0]
    return Evidence(
        verdict=chosen.verdict,
        stage=Stage.CONTRACT,
        code=chosen.code,
        message=chosen.message,
        hint=chosen.hint,
        violations=tuple(violations),
    )


def _result_violations(original: Plan, member: Plan) -> tuple[Violation, ...]:
    """Both members of a class are one buffer: of one type and one size."""
    ours, theirs = (item.values[item.result] for item in (original, member))
    step = len(member.steps) - 1
    if ours.dtype.storage is not theirs.dtype.storage:
        code, field = "RC201", "d_dtype"
        expected, actual = ours.dtype.value, theirs.dtype.value
        message = (
            f"the member writes {actual} into a class whose buffer is {expected}: every reader "
            "would take it for something else"
        )
        hint = f"write {expected}, or put a Cast behind the call"
    elif ours.count != theirs.count:
        cast = bool(member.steps) and isinstance(member.steps[-1], CastStep)
        code, field = "RC202", "size" if cast else "m"
        expected, actual = str(ours.count), str(theirs.count)
        message = f"the member writes {actual} elements, the graph {expected}"
        hint = "check the extents and the batch count of the new op"
    else:
        return ()
    return (Violation(Verdict.MISREAD, code, step, "D", field, expected, actual, message, hint),)


def _last_call(built: Plan) -> GemmCall | None:
    """The library call nearest to the result."""
    for step in reversed(built.steps):
        if isinstance(step, GemmStep):
            return step.call
    return None


def left_over(evidence: Evidence) -> Evidence:
    """What a comparison says of a removal.

    Both terms were one class before, by rules that answer for it: a rounding in what stays is
    theirs, and is told; only wrong numbers would make the removal wrong.
    """
    if evidence.verdict is not Verdict.ROUNDING_ADDED:
        return evidence
    return msgspec.structs.replace(
        evidence,
        verdict=Verdict.ROUNDING_ELIDED,
        code="RC303",
        message=f"what is removed skips a rounding of what stays: {'; '.join(evidence.roundings)}",
        hint="the removal is harmless; look at the rule that united the two",
    )


def stamped(claim: Claim, vocabulary: Vocabulary, stamps: Sequence[tuple[int, int]]) -> Evidence:
    """Hold types that a rule sets, and nothing else, against what the terms hold."""
    lie = _false_stamp(claim, vocabulary, stamps)
    if lie is None:
        read = sum(_held(claim, vocabulary, stamp) is not None for stamp in stamps)
        if read:
            return Evidence(Verdict.AGREES, Stage.CONTRACT, "RC000", "agrees", compared=read)
        message = "the rule sets a type of something that cannot be planned"
        hint = "set it on a term that the left side or the head spells out"
        return Evidence(Verdict.UNSUPPORTED, Stage.PLAN, "RC412", message, hint)
    return Evidence(Verdict.MISREAD, Stage.CONTRACT, "RC304", lie, STAMP_HINT, compared=1)


def _false_stamp(
    claim: Claim, vocabulary: Vocabulary, stamps: Sequence[tuple[int, int]]
) -> str | None:
    """A type that the rule sets for a term which is of another."""
    for stamp in stamps:
        held = _held(claim, vocabulary, stamp)
        if held is None:
            continue
        said, actual = held
        if said.storage is not actual.storage:
            return f"the rule says that the buffer is {said.value}; it holds {actual.value}"
    return None


def _held(
    claim: Claim, vocabulary: Vocabulary, stamp: tuple[int, int]
) -> tuple[DType, DType] | None:
    """(the type that is said, the type that the buffer holds), as far as both are known."""
    term, type_term = stamp
    said = vocabulary.dtypes.get(claim.nodes[type_term].fn)
    built = plan.build(claim.nodes, term, vocabulary)
    if said is None or isinstance(built, Failure):
        return None
    return said, built.values[built.result].dtype
