"""From one rule to judged members: instances, firings, claims, numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rulecheck import contract, plan
from rulecheck.campaign.claims import Claim, failed, left_over, with_calls
from rulecheck.campaign.leftsides import (
    MADE_BY,
    LeftSide,
    find_left_side,
    joined,
    labelled,
    left_sides,
    pair_sides,
)
from rulecheck.campaign.places import called
from rulecheck.campaign.trial import Application, Trial
from rulecheck.campaign.workshop import Workshop, signatures, table_rows
from rulecheck.instantiate import (
    ENOUGH,
    MAX_INSTANCES,
    Cause,
    Coverage,
    DeadEnd,
    Instance,
    Instances,
    Instantiation,
    Setting,
)
from rulecheck.records import (
    Case,
    CaseResult,
    Change,
    Comparable,
    Failure,
    FailureKind,
    Judged,
    Plan,
    Rule,
    RuleFile,
    Stage,
    TermTable,
    Union,
    Verdict,
)

NO_INSTANCES = Instances((), Coverage(frozenset(), ()))
# How often a left side is searched for further instances.
MAX_ROUNDS = 5


@dataclasses.dataclass(slots=True)
class _Hunt:
    """A search for instances on which a rule fires, and what it has found so far."""

    search: Instantiation
    application: Application
    left: LeftSide
    trial: Trial
    known: tuple[Instance, ...] = ()

    def take(self, found: Instances) -> None:
        """Apply the rule to the instances that are new."""
        named = labelled(found, self.left)
        self.trial.instances = joined(self.trial.instances, named)
        fresh = named.instances[len(self.known) :]
        self.known = named.instances
        self.application.run(fresh, self.trial)


class RuleRun:
    """Applies and judges one rule."""

    def __init__(
        self, shop: Workshop, file: RuleFile, index: int, context: tuple[str, ...] = ()
    ) -> None:
        """Prepare the rule at position ``index`` of a file loaded with ``context``."""
        self.context = context
        self.producer: int | None = None  # of a pair: the rule that is applied before
        self.shop = shop
        self.file = file
        self.index = index
        self.rule: Rule = (*file.rules, *file.neighbours)[index]
        self.table = TermTable()
        self.setting = Setting(
            vocabulary=shop.vocabulary,
            table=self.table,
            rows=table_rows(file, self.table),
            types=shop.types,
        )
        self._counts: dict[Instance, dict[str, int]] = {}
        self._plans: dict[int, Plan | Failure] = {}

    def instances(
        self,
        preferences: Mapping[str, str] | None = None,
        *,
        only: bool = False,
    ) -> Instances:
        """Well-formed left sides.

        Args:
            preferences: labels to prefer, by axis.
            only: return just the one that they lead to.
        """
        left = self.left_side(preferences or {})
        if left is None:
            reason = "no rule makes what the case was built with"
            return dataclasses.replace(NO_INSTANCES, reason=reason, cause=Cause.GAP)
        search = self.search(left)
        return labelled(search.one(preferences or {}) if only else search.cover(ENOUGH), left)

    def left_side(self, choices: Mapping[str, str]) -> LeftSide | None:
        """The left side that a case was built from."""
        by = choices.get(MADE_BY, "")
        if self.producer is None:
            return find_left_side(self.rule, by, self.file, frozenset(self.setting.rows))
        rules = (*self.file.rules, *self.file.neighbours)
        sides = pair_sides(self.rule, rules[self.producer], self.producer, self.shop.vocabulary)
        return next((left for left in sides if left.by == by), None)

    def other(self, position: int) -> RuleRun:
        """Another rule of the same program, over the same terms."""
        twin = RuleRun(self.shop, self.file, position, self.context)
        twin.table, twin.setting = self.table, self.setting
        return twin

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

    def flaw(
        self, roots: tuple[int, ...], unions: tuple[tuple[int, int], ...] = ()
    ) -> DeadEnd | None:
        """Why the graphs among some terms are not well-formed, or None.

        Two ops that the left side wants in one class have to be the same buffer.
        """
        for root in self._graphs(roots):
            built = self._plan(root)
            if isinstance(built, Failure):
                unknown = built.kind is FailureKind.UNSUPPORTED
                return DeadEnd(built.message, Cause.GAP if unknown else Cause.ILL_TYPED)
            violations = contract.check_plan(built)
            if violations:
                return DeadEnd(violations[0].message, Cause.ILL_TYPED)
        for left, right in unions:
            if not self._agree(left, right):
                what = "two ops that the left side wants in one class are not the same buffer"
                return DeadEnd(what, Cause.ILL_TYPED)
        return None

    def _plan(self, root: int) -> Plan | Failure:
        """The plan of a graph of the table."""
        if root not in self._plans:
            self._plans[root] = plan.build(self.table.nodes, root, self.shop.vocabulary)
        return self._plans[root]

    def _agree(self, left: int, right: int) -> bool:
        """Whether two graphs compute one buffer, up to a rounding that one of them skips."""
        plans = [self._plan(term) for term in (left, right)]
        if not all(isinstance(built, Plan) for built in plans):
            return False
        first, second = (built for built in plans if isinstance(built, Plan))
        (answer,) = self.shop.judge([Comparable(first, second)])
        if isinstance(answer, Failure):
            return False
        return answer.evidence.verdict in {Verdict.AGREES, Verdict.ROUNDING_ELIDED}

    def _graphs(self, roots: Sequence[int]) -> list[int]:
        names = self.shop.vocabulary.encoding
        return [root for root in roots if self.table.nodes[root].fn in {names.op, names.leaf}]

    def explore(self) -> Trial:
        """Apply the rule to its own left sides; where they are few, to those of other rules too."""
        trial = Trial(NO_INSTANCES)
        tables = frozenset(self.setting.rows)
        for left in (LeftSide(self.rule), *left_sides(self.rule, self.file, tables)):
            self._try(left, trial)
            if trial.reached >= ENOUGH or trial.failures:
                break
        return trial

    def _try(self, left: LeftSide, trial: Trial) -> None:
        """Apply the rule to one left side, until enough instances have fired or none are left."""
        search = self.search(left)
        hunt = _Hunt(search, self.application(left), left, trial)
        if left.rule is self.rule and self._holds_graph():
            hunt.take(search.labels())
            fired = hunt.application.fired
            if fired and fired[0] is not hunt.known[0]:
                search.around(fired[0])
                hunt.take(search.labels())
            if fired:
                search.without(hunt.application.silent)
            if self._claims_numbers():
                hunt.take(search.pairs())
        for _ in range(MAX_ROUNDS):
            missing = ENOUGH - trial.reached
            if missing <= 0 or trial.failures:
                return
            before, wanted = len(hunt.known), len(hunt.known) + missing
            limit = MAX_INSTANCES if left.rule is self.rule and self._holds_graph() else wanted
            like = hunt.application.fired[0] if hunt.application.fired else None
            hunt.take(search.cover(wanted, limit, like))
            stuck = len(hunt.known) == before
            if stuck or not (trial.reached or (left.rule is self.rule and self._holds_graph())):
                return

    def _claims_numbers(self) -> bool:
        """Whether the rule unites or removes: what it only states is as true in pairs of labels."""
        return any(isinstance(action, Union | Change) for action in self.rule.head)

    def on_ill_formed(self) -> Trial:
        """Apply the rule to graphs whose types do not go together; nothing of it is judged."""
        setting = dataclasses.replace(self.setting, lenient=True)
        search = Instantiation(self.rule, signatures(self.file), setting, lambda *_: None)
        found = search.cover(ENOUGH, 2 * ENOUGH)
        trial = self.apply(found)
        trial.claims.clear()
        return trial

    def search(self, left: LeftSide) -> Instantiation:
        """The instances of one left side."""
        return Instantiation(left.rule, signatures(self.file), self.setting, self.flaw)

    def apply(self, instances: Instances, left: LeftSide | None = None) -> Trial:
        """Let the engine apply the rule to every instance; plan and check each member."""
        trial = Trial(instances)
        self.application(left).run(instances.instances, trial)
        return trial

    def application(self, left: LeftSide | None) -> Application:
        """The rule, ready to be applied to instances of a left side."""
        before = left.before if left is not None else ()
        return Application(
            self.shop,
            self.file,
            self.index,
            table=self.table,
            counts=self._leaf_counts,
            before=before,
        )

    def _holds_graph(self) -> bool:
        """Whether a match names a graph; sizes and strides are shared by many instances."""
        graphs = self.shop.vocabulary.encoding.graph_sort
        return any(sort == graphs for _, sort in self.rule.variables)

    def _leaf_counts(self, instance: Instance) -> dict[str, int]:
        """How large each input is: what the whole instance reads of it, by label."""
        found = self._counts.get(instance)
        if found is None:
            found = self._counts[instance] = {}
            for root in self._graphs(instance.roots):
                built = self._plan(root)
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
                evidence = left_over(answer.evidence) if item.removal else answer.evidence
                item.evidence = with_calls(evidence, plans)
        return [self.result(item) for item in trial.claims]

    def result(self, item: Claim) -> CaseResult:
        """One claim as a case."""
        assert item.evidence is not None
        case = Case(
            dialect=self.shop.vocabulary.name,
            file=self.rule.span.file,
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
