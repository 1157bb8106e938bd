"""From one rule to judged members: instances, firings, plans, contract, numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from rulecheck import contract, plan
from rulecheck.campaign.workshop import Workshop, signatures, table_rows
from rulecheck.dialects.terms import TermReader
from rulecheck.egraph import rematch
from rulecheck.instantiate import Instance, Instances, Setting, instantiate
from rulecheck.records import (
    Case,
    CaseResult,
    Comparable,
    Evidence,
    Failure,
    FailureKind,
    Firing,
    GemmCall,
    GemmStep,
    InstanceBatch,
    Judged,
    MatchReply,
    Member,
    Node,
    Plan,
    Rule,
    RuleFile,
    Stage,
    TermTable,
    Verdict,
    Violation,
)

BATCH = 30

_NOT_JUDGED = "the rule is not judged; see the how-to on adding an op"
_REFUSED = "give the new op the fields and the inputs that the compiler's launch accepts"
_LOST = "replay the case; if it fails again, a smaller one may pass"
_FAILURES = {
    FailureKind.UNSUPPORTED: (Verdict.UNSUPPORTED, "RC411", _NOT_JUDGED),
    FailureKind.ILLEGAL: (Verdict.ILLEGAL, "RC217", _REFUSED),
    FailureKind.TIMEOUT: (Verdict.TIMEOUT, "RC431", _LOST),
    FailureKind.CRASH: (Verdict.CRASH, "RC441", _LOST),
    FailureKind.MEMORY: (Verdict.CRASH, "RC441", _LOST),
}


@dataclasses.dataclass(slots=True)
class Pending:
    """A member on its way: what it replaces, and either its evidence or its plans."""

    instance: Instance
    union: int
    original_text: str
    member_text: str
    evidence: Evidence | None = None
    plans: Comparable | None = None
    self_contained: bool = False


@dataclasses.dataclass(slots=True)
class Trial:
    """Everything that happened to one rule.

    ``fired`` counts matches, ``silent`` instances without one, ``idle`` unions of a term with
    itself, ``astray`` matches that lie in no single instance and are not judged.
    """

    instances: Instances
    pending: list[Pending]
    fired: int = 0
    silent: int = 0
    idle: int = 0
    astray: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)
    flaws: list[str] = dataclasses.field(default_factory=list)


class RuleRun:
    """Applies and judges one rule."""

    def __init__(self, shop: Workshop, file: RuleFile, index: int) -> None:
        """Prepare the rule at position ``index`` of a loaded file."""
        self.shop = shop
        self.file = file
        self.index = index
        self.rule: Rule = file.rules[index]
        self.table = TermTable()
        self.setting = Setting(
            vocabulary=shop.vocabulary,
            table=self.table,
            rows=table_rows(file, self.table),
            types=shop.types,
        )
        self._counts: dict[Instance, dict[str, int]] = {}

    def instances(
        self, preferences: Mapping[str, str] | None = None, *, only: bool = False
    ) -> Instances:
        """Well-formed left sides."""
        return instantiate(
            self.rule,
            signatures(self.file),
            self.setting,
            self.flaw,
            preferences,
            only=only,
        )

    def flaw(self, roots: tuple[int, ...]) -> str | None:
        """Why the graphs among some terms are not well-formed, or None."""
        names = self.shop.vocabulary.encoding
        for root in roots:
            if self.table.nodes[root].fn not in (names.op, names.leaf):
                continue
            found = self._graph_flaw(root)
            if found is not None:
                return found
        return None

    def _graph_flaw(self, root: int) -> str | None:
        built = plan.build(self.table.nodes, root, self.shop.vocabulary)
        if isinstance(built, Failure):
            return built.message
        violations = contract.check_plan(built)
        return violations[0].message if violations else None

    def apply(self, instances: Instances) -> Trial:
        """Let the engine apply the rule to every instance; plan and check each member."""
        trial = Trial(instances, [])
        found = instances.instances
        for start in range(0, len(found), BATCH):
            chunk = found[start : start + BATCH]
            self._apply_chunk(chunk, trial)
        return trial

    def _apply_chunk(self, chunk: Sequence[Instance], trial: Trial) -> None:
        table, known = TermTable(), tuple(self.table.nodes)
        roots = tuple(
            tuple(table.copy_from(known, root) for root in instance.roots) for instance in chunk
        )
        reply = self.shop.match(self.index, InstanceBatch(tuple(table.nodes), roots))
        if isinstance(reply, MatchReply):
            self._take(chunk, reply, len(table.nodes), trial)
        elif len(chunk) > 1:  # find the one instance that the engine dies of
            middle = len(chunk) // 2
            self._apply_chunk(chunk[:middle], trial)
            self._apply_chunk(chunk[middle:], trial)
        else:
            trial.failures.append(reply)

    def _take(
        self, chunk: Sequence[Instance], reply: MatchReply, requested: int, trial: Trial
    ) -> None:
        """Turn a reply into pending members. ``requested`` is the number of terms sent."""
        if reply.error is not None:
            trial.errors.append(reply.error)
        elif not all(reply.united):
            trial.flaws.append("the engine matched, but did not unite the two sides")
        fired = {firing.instance for firing in reply.firings}
        trial.silent += sum(position not in fired for position in range(len(chunk)))
        trial.fired += len(reply.firings)
        for firing in reply.firings:
            if firing.instance is None:
                trial.astray += 1
                continue
            flaw = self._rematch(reply, firing)
            if flaw is not None:
                trial.flaws.append(flaw)
                continue
            for member in firing.members:
                if member.left == member.right:
                    trial.idle += 1
                else:
                    claim = _orient(member, requested)
                    trial.pending.append(self._plan(chunk[firing.instance], reply, claim))

    def _rematch(self, reply: MatchReply, firing: Firing) -> str | None:
        """The place of a fact that does not hold for what the engine bound, or None."""
        reader = TermReader(reply.nodes, self.shop.vocabulary.encoding)

        def equal(_sort: str, left: int, right: int) -> bool:
            return reader.equal(left, right)

        declared = self.file.declarations
        fact = rematch.rematch(self.rule, firing, reply.nodes, declared, equal)
        if fact is None:
            return None
        return f"the fact at line {fact.span.line}, column {fact.span.column}"

    def _plan(self, instance: Instance, reply: MatchReply, member: Member) -> Pending:
        nodes, vocabulary = reply.nodes, self.shop.vocabulary
        shown = TermTable(nodes)
        pending = Pending(instance, member.union, shown.show(member.left), shown.show(member.right))
        pending.self_contained = _contains(nodes, member.left, member.right)
        names = vocabulary.encoding
        if nodes[member.left].fn not in (names.op, names.leaf):
            message = "the rule makes two terms equal that are no graphs; only graphs are judged"
            pending.evidence = Evidence(
                Verdict.UNSUPPORTED,
                Stage.PLAN,
                "RC412",
                message,
                "state the claim on the ops that use the term",
            )
            return pending
        counts = self._leaf_counts(instance)
        original = plan.build(nodes, member.left, vocabulary, counts)
        built = plan.build(nodes, member.right, vocabulary, counts)
        for item in (original, built):
            if isinstance(item, Failure):
                pending.evidence = failed(item, Stage.PLAN)
                return pending
        assert isinstance(original, Plan)
        assert isinstance(built, Plan)
        violations = contract.check_plan(built) or _result_violations(original, built)
        claimed = self._claimed(nodes, member, built)
        if violations or claimed is not None:
            pending.evidence = broken(violations, claimed)
        pending.plans = Comparable(original, built, broken=pending.evidence is not None)
        if pending.evidence is not None:
            pending.evidence = with_calls(pending.evidence, pending.plans)
        return pending

    def _leaf_counts(self, instance: Instance) -> dict[str, int]:
        """How large each input is: what the whole instance reads of it, by label."""
        found = self._counts.get(instance)
        if found is None:
            found = self._counts[instance] = {}
            for root in instance.roots:
                built = plan.build(self.table.nodes, root, self.shop.vocabulary)
                if isinstance(built, Plan):
                    for leaf in built.inputs:
                        count = built.values[leaf.value].count
                        found[leaf.label] = max(found.get(leaf.label, 0), count)
        return found

    def _claimed(self, nodes: tuple[Node, ...], member: Member, built: Plan) -> str | None:
        """The type that the rule sets for the buffer, if the member writes another."""
        names = self.shop.vocabulary.encoding
        actual = built.values[built.result].dtype
        for function, term in member.claimed:
            said = self.shop.vocabulary.dtypes.get(nodes[term].fn)
            if function == names.dtype_function and said is not None and said is not actual:
                return f"the rule says that the buffer is {said.value}; it holds {actual.value}"
        return None

    def judge(self, trial: Trial) -> list[CaseResult]:
        """Judge what the contract lets through by its numbers; return every case's result."""
        waiting = [item for item in trial.pending if item.evidence is None]
        distinct: dict[Comparable, int] = {}
        for item in waiting:
            assert item.plans is not None
            distinct.setdefault(item.plans, len(distinct))
        answers = self.shop.judge(list(distinct))
        for item in waiting:
            assert item.plans is not None
            answer = answers[distinct[item.plans]]
            item.evidence = (
                failed(answer, Stage.BOUND)
                if isinstance(answer, Failure)
                else with_calls(answer.evidence, item.plans)
            )
        return [self.result(item) for item in trial.pending]

    def result(self, item: Pending) -> CaseResult:
        """One member as a case."""
        assert item.evidence is not None
        case = Case(
            dialect=self.shop.vocabulary.name,
            file=self.file.path,
            rule=self.rule.name,
            text_hash=self.rule.text_hash,
            choices=item.instance.deviations,
            input_seed=self.shop.settings.seed,
            backend=self.shop.settings.backend,
            union=item.union,
        )
        return CaseResult(case, item.instance.choices, item.evidence)

    def numbers(self, item: Pending, elements: int) -> Judged | None:
        """Run one member again and return its worst elements."""
        if item.plans is None:
            return None
        (answer,) = self.shop.judge([item.plans], elements)
        return None if isinstance(answer, Failure) else answer


def failed(failure: Failure, stage: Stage) -> Evidence:
    """Evidence for something that could not be done."""
    verdict, code, hint = _FAILURES[failure.kind]
    return Evidence(verdict, stage, code, failure.message, hint)


def broken(violations: Sequence[Violation], claimed: str | None) -> Evidence:
    """Evidence for a member that breaks the contract. A call that is refused reads nothing."""
    illegal = [item for item in violations if item.verdict is Verdict.ILLEGAL]
    if not violations:
        assert claimed is not None
        hint = "set the type that the op writes"
        return Evidence(Verdict.MISREAD, Stage.CONTRACT, "RC304", claimed, hint)
    chosen = (illegal or violations)[0]
    return Evidence(
        verdict=chosen.verdict,
        stage=Stage.CONTRACT,
        code=chosen.code,
        message=chosen.message,
        hint=chosen.hint,
        violations=tuple(violations),
    )


def with_calls(evidence: Evidence, plans: Comparable) -> Evidence:
    """Add the two calls to evidence."""
    return msgspec.structs.replace(
        evidence,
        original_call=_last_call(plans.original),
        member_call=_last_call(plans.member),
    )


def _result_violations(original: Plan, member: Plan) -> tuple[Violation, ...]:
    """Both members of a class are one buffer: of one type and one size."""
    ours, theirs = (item.values[item.result] for item in (original, member))
    step = len(member.steps) - 1
    if ours.dtype is not theirs.dtype:
        message = (
            f"the member writes {theirs.dtype.value} into a class whose buffer is "
            f"{ours.dtype.value}: every reader would take it for something else"
        )
        hint = f"write {ours.dtype.value}, or put a Cast behind the call"
        return (
            Violation(
                Verdict.MISREAD,
                "RC201",
                step,
                "D",
                "d_dtype",
                ours.dtype.value,
                theirs.dtype.value,
                message,
                hint,
            ),
        )
    if ours.count != theirs.count:
        message = f"the member writes {theirs.count} elements, the graph {ours.count}"
        hint = "check the extents and the batch count of the new call"
        return (
            Violation(
                Verdict.MISREAD,
                "RC202",
                step,
                "D",
                "m",
                str(ours.count),
                str(theirs.count),
                message,
                hint,
            ),
        )
    return ()


def _last_call(built: Plan) -> GemmCall | None:
    """The library call nearest to the result."""
    for step in reversed(built.steps):
        if isinstance(step, GemmStep):
            return step.call
    return None


def _orient(member: Member, known_terms: int) -> Member:
    """Put the term that was there before on the left: ``union`` takes its sides in any order."""
    if member.left >= known_terms > member.right:
        return msgspec.structs.replace(member, left=member.right, right=member.left)
    return member


def _contains(nodes: Sequence[Node], outer: int, inner: int) -> bool:
    """Whether one term is another or a part of it."""
    stack, seen = [outer], set[int]()
    while stack:
        term = stack.pop()
        if term == inner:
            return True
        if term not in seen:
            seen.add(term)
            stack.extend(nodes[term].args)
    return False
