"""From one rule to judged members: instances, firings, claims, numbers."""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from rulecheck import contract, plan
from rulecheck.campaign.claims import (
    Claim,
    directions,
    examine,
    failed,
    find_stamps,
    with_calls,
)
from rulecheck.campaign.places import called
from rulecheck.campaign.workshop import Workshop, signatures, table_rows
from rulecheck.dialects.terms import TermReader
from rulecheck.egraph import rematch
from rulecheck.instantiate import Cause, DeadEnd, Instance, Instances, Setting, instantiate
from rulecheck.records import (
    Case,
    CaseResult,
    Comparable,
    Failure,
    FailureKind,
    Firing,
    InstanceBatch,
    Judged,
    MatchReply,
    Plan,
    Rule,
    RuleFile,
    Stage,
    TermTable,
)

BATCH = 30
# For the engine's part of one rule; a rule that joins everything with everything never ends.
ENGINE_BUDGET_S = 30.0


_OUT_OF_TIME = Failure(
    FailureKind.TIMEOUT, f"More than {ENGINE_BUDGET_S:g} s went into matching this rule."
)


@dataclasses.dataclass(slots=True)
class Trial:
    """Everything that happened to one rule.

    ``fired`` counts matches, ``silent`` instances without one, ``idle`` unions of a term with
    itself, ``astray`` matches that lie in no single instance and are not judged. ``failures`` are
    deaths of the engine, ``errors`` its own messages, ``flaws`` matches that do not hold.
    """

    instances: Instances
    claims: list[Claim] = dataclasses.field(default_factory=list)
    fired: int = 0
    silent: int = 0
    idle: int = 0
    astray: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)
    flaws: list[str] = dataclasses.field(default_factory=list)


class RuleRun:
    """Applies and judges one rule."""

    def __init__(
        self, shop: Workshop, file: RuleFile, index: int, context: tuple[str, ...] = ()
    ) -> None:
        """Prepare the rule at position ``index`` of a file loaded with ``context``."""
        self.context = context
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
        self._deadline_s = math.inf

    def instances(
        self, preferences: Mapping[str, str] | None = None, *, only: bool = False
    ) -> Instances:
        """Well-formed left sides."""
        declared = signatures(self.file)
        return instantiate(self.rule, declared, self.setting, self.flaw, preferences, only=only)

    def underived(self) -> list[str]:
        """Relations and functions in the body that only other rules could fill."""
        names = self.shop.vocabulary.encoding
        known = {names.dtype_function, names.nth_function, names.length_function}
        declared = signatures(self.file)
        found: dict[str, None] = {}
        for name in called(self.rule):
            kind = declared[name].kind if name in declared else ""
            if kind in {"relation", "function"} and name not in known | set(self.setting.rows):
                found[name] = None
        return list(found)

    def flaw(self, roots: tuple[int, ...]) -> DeadEnd | None:
        """Why the graphs among some terms are not well-formed, or None."""
        for root in self._graphs(roots):
            built = plan.build(self.table.nodes, root, self.shop.vocabulary)
            if isinstance(built, Failure):
                unknown = built.kind is FailureKind.UNSUPPORTED
                return DeadEnd(built.message, Cause.GAP if unknown else Cause.ILL_TYPED)
            violations = contract.check_plan(built)
            if violations:
                return DeadEnd(violations[0].message, Cause.ILL_TYPED)
        return None

    def _graphs(self, roots: Sequence[int]) -> list[int]:
        names = self.shop.vocabulary.encoding
        return [root for root in roots if self.table.nodes[root].fn in {names.op, names.leaf}]

    def apply(self, instances: Instances) -> Trial:
        """Let the engine apply the rule to every instance; plan and check each member."""
        trial = Trial(instances)
        self._deadline_s = time.monotonic() + ENGINE_BUDGET_S
        found = instances.instances
        for start in range(0, len(found), BATCH):
            self._apply_chunk(found[start : start + BATCH], trial)
        return trial

    def _apply_chunk(self, chunk: Sequence[Instance], trial: Trial) -> None:
        """Apply the rule to a batch; if the engine fails on it, find the instance that it is."""
        if time.monotonic() > self._deadline_s:
            if not trial.failures or trial.failures[-1] != _OUT_OF_TIME:
                trial.failures.append(_OUT_OF_TIME)
            return
        table, known = TermTable(), tuple(self.table.nodes)
        roots = tuple(
            tuple(table.copy_from(known, root) for root in instance.roots) for instance in chunk
        )
        reply = self.shop.match(self.index, InstanceBatch(tuple(table.nodes), roots))
        failed = isinstance(reply, Failure) or reply.error is not None
        if failed and len(chunk) > 1:
            middle = len(chunk) // 2
            self._apply_chunk(chunk[:middle], trial)
            self._apply_chunk(chunk[middle:], trial)
        elif isinstance(reply, Failure):
            trial.failures.append(reply)
        else:
            self._take(chunk, reply, len(table.nodes), trial)

    def _take(
        self, chunk: Sequence[Instance], reply: MatchReply, requested: int, trial: Trial
    ) -> None:
        """Turn a reply into claims. ``requested`` is the number of terms sent."""
        if reply.error is not None:
            trial.errors.append(reply.error)
        elif not all(reply.united):
            trial.flaws.append("the engine matched, but did not unite the two sides")
        fired = {firing.instance for firing in reply.firings}
        trial.silent += sum(position not in fired for position in range(len(chunk)))
        trial.fired += len(reply.firings)
        reader = TermReader(reply.nodes, self.shop.vocabulary.encoding)
        ordinals: Counter[int] = Counter()
        for firing in reply.firings:
            if firing.instance is None:
                trial.astray += 1
                continue
            flaw = self._rematch(reply, firing, reader)
            if flaw is not None:
                trial.flaws.append(flaw)
                continue
            instance = chunk[firing.instance]
            claims = self._claims(instance, reply, firing, requested)
            trial.idle += len(firing.members) if not claims else 0
            for claim in claims:
                claim.ordinal = ordinals[firing.instance]
                ordinals[firing.instance] += 1
            trial.claims.extend(claims)

    def _rematch(self, reply: MatchReply, firing: Firing, reader: TermReader) -> str | None:
        """The place of a fact that does not hold for what the engine bound, or None."""

        def equal(_sort: str, left: int, right: int) -> bool:
            return reader.equal(left, right)

        declared = self.file.declarations
        fact = rematch.rematch(self.rule, firing, reply.nodes, declared, equal)
        if fact is None:
            return None
        return f"the fact at line {fact.span.line}, column {fact.span.column}"

    def _claims(
        self, instance: Instance, reply: MatchReply, firing: Firing, requested: int
    ) -> list[Claim]:
        """The claims of one firing, held against the contract."""
        table = TermTable(reply.nodes)
        function = self.shop.vocabulary.encoding.dtype_function
        stamps = find_stamps(self.rule, dict(firing.bindings), table, function)
        nodes, claims = tuple(table.nodes), list[Claim]()
        for member in firing.members:
            # What the engine itself holds of the two sides, also where terms are computed.
            stamps += [(member.left, value) for name, value in member.claimed if name == function]
        for member in firing.members:
            if member.left == member.right:
                continue
            for original, new in directions(member, requested):
                claim = Claim(instance, member.union, 0, nodes, original, new)
                examine(claim, self.shop.vocabulary, self._leaf_counts(instance), stamps)
                claims.append(claim)
        return claims

    def _leaf_counts(self, instance: Instance) -> dict[str, int]:
        """How large each input is: what the whole instance reads of it, by label."""
        found = self._counts.get(instance)
        if found is None:
            found = self._counts[instance] = {}
            for root in self._graphs(instance.roots):
                built = plan.build(self.table.nodes, root, self.shop.vocabulary)
                if isinstance(built, Plan):
                    for leaf in built.inputs:
                        count = built.values[leaf.value].count
                        found[leaf.label] = max(found.get(leaf.label, 0), count)
        return found

    def judge(self, trial: Trial) -> list[CaseResult]:
        """Judge what the contract lets through by its numbers; return every case's result."""
        waiting = [(item, item.plans) for item in trial.claims if item.evidence is None]
        distinct: dict[Comparable, int] = {}
        for _, plans in waiting:
            assert plans is not None
            distinct.setdefault(plans, len(distinct))
        answers = self.shop.judge(list(distinct))
        for item, plans in waiting:
            assert plans is not None
            answer = answers[distinct[plans]]
            if isinstance(answer, Failure):
                item.evidence = failed(answer, Stage.BOUND)
            else:
                item.evidence = with_calls(answer.evidence, plans)
        return [self.result(item) for item in trial.claims]

    def result(self, item: Claim) -> CaseResult:
        """One claim as a case."""
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
            ordinal=item.ordinal,
            context=self.context,
        )
        return CaseResult(case, item.instance.choices, item.evidence)

    def numbers(self, item: Claim, elements: int) -> Judged | None:
        """Run one claim again and return its worst elements."""
        if item.plans is None:
            return None
        (answer,) = self.shop.judge([item.plans], elements)
        return None if isinstance(answer, Failure) else answer
