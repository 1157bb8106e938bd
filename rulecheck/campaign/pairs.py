"""Rules with their neighbours: one makes what another matches, and both are applied in turn.

A rule that is right by itself may still be wrong after another one: it takes a fact for a proof
that the other states too generously, or matches an op that the other has put into a class where
what it assumes does not hold. For every such pair the first rule's left side replaces, in the
second one's, what the first makes; both are applied, and what the second adds is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from rulecheck.campaign.claims import Claim
from rulecheck.campaign.findings import found_in_pair, summarize
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
    """What came of all pairs of one consumer.

    ``findings`` are those on pairs; ``whole`` is one on the rule itself, from all pairs in which it
    fired: what there is to say of a rule that never fires alone.
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
    pairs = _neighbours(run, wrong)
    result = PairResult(tried=len(pairs))
    owners: dict[Instance, Pair] = {}
    trial = Trial(NO_INSTANCES)
    for pair in pairs:
        found = labelled(run.search(pair.left).cover(0, INSTANCES), pair.left)
        owners.update(dict.fromkeys(found.instances, pair))
    before = tuple(dict.fromkeys(pair.producer for pair in pairs))
    run.application(LeftSide(run.rule, "", before)).run(list(owners), trial)
    judged = run.judge(trial)
    result.cases = len(judged)
    trial.instances = Instances(tuple(owners), NO_INSTANCES.coverage)
    suspects = _worst(zip(trial.claims, judged, strict=True), owners, run)
    for pair, (claim, case) in suspects.items():
        finding = _confirm(run, pair, claim, case)
        if finding is not None:
            result.findings.append(finding)
    if judged:
        makers = dict.fromkeys(pair.left.by.rpartition("#")[0] for pair in owners.values())
        whole = summarize(run, trial, judged)
        note = f"by itself it never fires; it was applied after {', '.join(makers)}"
        result.whole = msgspec.structs.replace(whole, notes=(note, *whole.notes))
    return result


def _neighbours(run: RuleRun, wrong: frozenset[tuple[str, str]]) -> list[Pair]:
    """Pairs to try; of producers whose products look the same to the rule, the first."""
    vocabulary = run.shop.vocabulary
    looks: set[tuple[object, ...]] = set()
    found: list[Pair] = []
    for position, other in enumerate((*run.file.rules, *run.file.neighbours)):
        if (other.span.file, other.name) in wrong:
            continue
        fresh = [look for look in _looks(run.rule, other, vocabulary) if look not in looks]
        if not fresh:
            continue
        looks.update(fresh)
        sides = pair_sides(run.rule, other, position, vocabulary)
        for _, left in zip(range(MAX_SIDES), sides, strict=False):
            found.append(Pair(position, left))
    return found


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


def _worst(
    results: Iterator[tuple[Claim, CaseResult]], owners: dict[Instance, Pair], run: RuleRun
) -> dict[Pair, tuple[Claim, CaseResult]]:
    """The first wrong claim of each pair."""
    strict = run.shop.settings.strict_rounding
    found: dict[Pair, tuple[Claim, CaseResult]] = {}
    for claim, case in results:
        level = severity(case.evidence.verdict, strict_rounding=strict)
        pair = owners.get(claim.instance)
        if level is Severity.ERROR and pair is not None:
            found.setdefault(pair, (claim, case))
    return found


def _confirm(run: RuleRun, pair: Pair, claim: Claim, case: CaseResult) -> Finding | None:
    """The finding on a pair, unless one of the two is wrong by itself on the same graph."""
    one = [claim.instance]
    alone = _claims(run, one, ())
    if any(_is_error(run, item) for item in alone):
        return None
    rules = (*run.file.rules, *run.file.neighbours)
    producer = rules[pair.producer]
    if any(_is_error(run, item) for item in _made(run, pair, one)):
        return None
    again = [item for item in _claims(run, one, (pair.producer,)) if _is_error(run, item)]
    if not again:
        return None
    whole = dict.fromkeys(rule.span.file for rule in rules if rule.span.file != case.case.file)
    named = msgspec.structs.replace(
        again[0].case, pair=(producer.span.file, producer.name), context=tuple(whole)
    )
    result = msgspec.structs.replace(case, case=named)
    return found_in_pair(run, producer, claim, result)


def _claims(
    run: RuleRun, instances: Sequence[Instance], before: tuple[int, ...]
) -> list[CaseResult]:
    trial = Trial(NO_INSTANCES)
    run.application(LeftSide(run.rule, "", before)).run(instances, trial)
    return run.judge(trial)


def _made(run: RuleRun, pair: Pair, instances: Sequence[Instance]) -> list[CaseResult]:
    """What the producer itself claims on the same graph."""
    other = run.other(pair.producer)
    trial = Trial(NO_INSTANCES)
    other.application(LeftSide(other.rule)).run(instances, trial)
    return other.judge(trial)


def _is_error(run: RuleRun, result: CaseResult) -> bool:
    strict = run.shop.settings.strict_rounding
    return severity(result.evidence.verdict, strict_rounding=strict) is Severity.ERROR
