"""Rules with their neighbours: one makes what another matches, and both are applied in turn.

A rule that is right by itself may still be wrong after another one: it takes a fact for a proof
that the other states too generously, or matches an op that the other has put into a class where
what it assumes does not hold. For every such pair the first rule's left side replaces, in the
second one's, what the first makes; both are applied, and what the second adds is judged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from rulecheck.campaign.claims import Claim
from rulecheck.campaign.findings import found_in_pair, summarize, unjudged_after
from rulecheck.campaign.leftsides import LeftSide, labelled, pair_sides
from rulecheck.campaign.members import NO_INSTANCES, RuleRun
from rulecheck.campaign.trial import Trial
from rulecheck.dialects import Vocabulary
from rulecheck.instantiate import Instance, Instances, products, rows
from rulecheck.records import (
    Call,
    CaseResult,
    Expr,
    Finding,
    Lit,
    Rule,
    Severity,
    Var,
    Verdict,
    calls_in,
)
from rulecheck.severity import severity

# Instances of one pair: the default one, and the first others (types come first).
INSTANCES = 3
# A class may hold several ops that a consumer matches, and a producer may add several.
MAX_SIDES = 4


class Pair(NamedTuple):
    """A producer (by position among the rules and their neighbours) and one left side with it."""

    producer: int
    left: LeftSide


class PairResult(msgspec.Struct):
    """What came of all pairs of one consumer; ``tried`` counts those in which it fired.

    ``findings`` are those on pairs; ``whole`` is one on the rule itself, from all pairs in which it
    fired: what there is to say of a rule that never fires alone. None if one of them is wrong.
    """

    tried: int = 0
    cases: int = 0
    findings: list[Finding] = []
    whole: Finding | None = None


def judge_pairs(run: RuleRun, wrong: frozenset[tuple[str, str]]) -> PairResult:
    """Judge what one rule adds after each rule that makes something for it.

    Args:
        run: the rule that is applied last, in a file that was loaded with all rules of the program.
        wrong: (file, name) of rules that are wrong by themselves; they are no neighbours.
    """
    result = PairResult()
    owners = _neighbours(run, wrong)
    trial = Trial(NO_INSTANCES)
    before = tuple(dict.fromkeys(pair.producer for pair in owners.values()))
    run.application(LeftSide(run.rule, "", before)).run(list(owners), trial)
    judged = run.judge(trial)
    fired = dict.fromkeys(owners[claim.instance] for claim in trial.claims)
    result.tried, result.cases = len(fired), len(judged)
    trial.instances = Instances(tuple(owners), NO_INSTANCES.coverage)
    suspects = _wrong(zip(trial.claims, judged, strict=True), owners, run)
    told: set[int] = set()  # two rules that meet in several ways are one finding
    for pair, instances in suspects.items():
        if pair.producer in told:
            continue
        confirmed = (_confirm(run, pair, instance) for instance in instances)
        finding = next((item for item in confirmed if item is not None), None)
        if finding is not None:
            told.add(pair.producer)
            result.findings.append(finding)
    trouble = unjudged_after(run, trial, judged)
    if trouble is not None:
        result.findings.append(trouble)
    elif judged and not suspects:
        makers = dict.fromkeys(pair.left.by.rpartition("#")[0] for pair in fired)
        note = f"by itself it never fires; it was applied after {', '.join(makers)}"
        whole = _whole(run, trial, judged, owners)
        result.whole = msgspec.structs.replace(whole, notes=(note, *whole.notes))
    return result


def _whole(
    run: RuleRun, trial: Trial, judged: Sequence[CaseResult], owners: dict[Instance, Pair]
) -> Finding:
    """All pairs as one finding, with a case that can be run again."""
    whole = summarize(run, trial, judged)
    shown = whole.counterexample
    if shown is not None:  # it was found after all producers; a token names one
        instance = next(item for item in owners if item.deviations == shown.case.choices)
        pair = owners[instance]
        for claim, case in _after(run, pair, instance):
            if case.evidence.verdict is whole.verdict:
                shown = found_in_pair(run, _rules(run)[pair.producer], claim, case).counterexample
                break
        else:
            shown = None
    return msgspec.structs.replace(whole, counterexample=shown)


def _neighbours(run: RuleRun, wrong: frozenset[tuple[str, str]]) -> dict[Instance, Pair]:
    """Graphs of the pairs to try; of producers that look the same to the rule, the first with one.

    One that has none says nothing of the next: its own guards may be what contradicts the rule.
    """
    vocabulary = run.shop.vocabulary
    looks: set[tuple[object, ...]] = set()
    owners: dict[Instance, Pair] = {}
    for position, other in enumerate(_rules(run)):
        if (other.span.file, other.name) in wrong:
            continue
        fresh = [look for look in _looks(run.rule, other, vocabulary) if look not in looks]
        if not fresh:
            continue
        sides = pair_sides(run.rule, other, position, vocabulary)
        for left in itertools.islice(sides, MAX_SIDES):
            found = labelled(run.search(left).cover(0, INSTANCES), left)
            owners.update(dict.fromkeys(found.instances, Pair(position, left)))
            if found.instances:
                looks.update(fresh)
    return owners


def _looks(consumer: Rule, producer: Rule, vocabulary: Vocabulary) -> Iterator[tuple[object, ...]]:
    """What each product of a rule looks like to another: what it has in the fields that matter.

    A field matters if the consumer asks something of it: a literal, a term, or a variable that its
    body uses elsewhere. Layouts that are only copied do not.
    """
    uses: dict[str, int] = {}
    for expr in _variables(consumer):
        uses[expr] = uses.get(expr, 0) + 1
    asked = list(calls_in(*consumer.body))
    for product in products(producer, vocabulary):
        for call in asked:
            if call.fn != product.kind.fn or len(call.args) != len(product.kind.args):
                continue
            seen = tuple(
                _shape(made)
                for wanted, made in zip(call.args, product.kind.args, strict=True)
                if not (isinstance(wanted, Var) and uses.get(wanted.name, 0) <= 1)
            )
            length = _length(product.inputs)
            yield (call.span, product.kind.fn, seen, length)
    relations = {call.fn for call in asked}
    for row in rows(producer):
        if row.fn in relations and any(True for _ in products(producer, vocabulary)):
            yield (row.fn, tuple(_shape(arg) for arg in row.args))


def _variables(rule: Rule) -> Iterator[str]:
    for call in calls_in(*rule.body):
        yield from (arg.name for arg in call.args if isinstance(arg, Var))
    for fact in rule.body:
        for side in (getattr(fact, "left", None), getattr(fact, "right", None)):
            if isinstance(side, Var):
                yield side.name


def _shape(expr: Expr) -> object:
    """An expression without the names of its variables."""
    if isinstance(expr, Lit):
        return expr.value
    if isinstance(expr, Call):
        return (expr.fn, *(_shape(arg) for arg in expr.args))
    return None


def _length(inputs: Expr) -> int:
    count = 0
    while isinstance(inputs, Call) and len(inputs.args) == 2:
        inputs = inputs.args[1]
        count += 1
    return count


def _wrong(
    results: Iterator[tuple[Claim, CaseResult]], owners: dict[Instance, Pair], run: RuleRun
) -> dict[Pair, list[Instance]]:
    """The instances of each pair on which something is wrong."""
    found: dict[Pair, dict[Instance, None]] = {}
    for claim, case in results:
        pair = owners.get(claim.instance)
        if _is_error(run, case) and pair is not None:
            found.setdefault(pair, {})[claim.instance] = None
    return {pair: list(instances) for pair, instances in found.items()}


def _confirm(run: RuleRun, pair: Pair, instance: Instance) -> Finding | None:
    """The finding on a pair, if its two rules suffice to show it, and neither of them alone.

    What one of them does wrong on this graph without the other is told as its own fault. Only not
    where it adds a rounding: a graph that holds both sides of a rule that skips one shows that too.
    """
    wrong = next((item for item in _after(run, pair, instance) if _is_error(run, item[1])), None)
    if wrong is None:
        return None
    finding = found_in_pair(run, _rules(run)[pair.producer], *wrong)
    for one in (run, run.other(pair.producer)):
        faults = {
            item.evidence.verdict for _, item in _alone(one, instance) if _is_error(run, item)
        }
        if faults - {Verdict.ROUNDING_ADDED}:
            name = one.rule.name
            hint = f"{name} is wrong on this graph without the other rule too: look there"
            return msgspec.structs.replace(finding, hint=hint, blame=(name,))
        if faults:
            return None
    return finding


def _rules(run: RuleRun) -> tuple[Rule, ...]:
    return (*run.file.rules, *run.file.neighbours)


def _after(run: RuleRun, pair: Pair, instance: Instance) -> list[tuple[Claim, CaseResult]]:
    """What the consumer claims on one graph after the producer alone, as cases of the pair."""
    producer = _rules(run)[pair.producer]
    own = run.rule.span.file
    context = tuple(path for path in (run.file.path, *run.context) if path != own)
    return [
        (
            claim,
            msgspec.structs.replace(
                item,
                case=msgspec.structs.replace(
                    item.case, pair=(producer.span.file, producer.name), context=context
                ),
            ),
        )
        for claim, item in _alone(run, instance, (pair.producer,))
    ]


def _alone(
    run: RuleRun, instance: Instance, before: tuple[int, ...] = ()
) -> list[tuple[Claim, CaseResult]]:
    """What a rule claims on one graph, after the rules ``before``."""
    trial = Trial(NO_INSTANCES)
    run.application(LeftSide(run.rule, "", before)).run([instance], trial)
    return list(zip(trial.claims, run.judge(trial), strict=True))


def _is_error(run: RuleRun, result: CaseResult) -> bool:
    strict = run.shop.settings.strict_rounding
    return severity(result.evidence.verdict, strict_rounding=strict) is Severity.ERROR
