"""What to do about a finding, in one line: the evidence's hint and the guard that was learned."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from rulecheck.campaign.guards import Guard, describe, missing_guards
from rulecheck.campaign.leftsides import LeftSide
from rulecheck.campaign.members import NO_INSTANCES, RuleRun
from rulecheck.campaign.places import changed_of
from rulecheck.campaign.repairs import Candidate, repairs, sample
from rulecheck.campaign.trial import Trial
from rulecheck.instantiate import ENOUGH
from rulecheck.records import CaseResult, Comparable, Evidence, Failure, Finding, Severity
from rulecheck.severity import severity

# New cases on which a learned guard is tried before it is printed, and further inputs for them.
CONFIRMATIONS = 16
# A guard is offered if it passes on so many; it is tried on at most so many; so many are tried.
MIN_PASSES = 8
GUARD_CASES = 48
MAX_TRIES = 5
OTHER_INPUTS = 4


def advise(
    run: RuleRun,
    trial: Trial,
    finding: Finding,
    chosen: CaseResult,
    results: Sequence[CaseResult],
    *,
    guarded: bool,
) -> str:
    """What to do about the chosen case, then what the passing cases share, if no guard is known.

    Cases that are neither wrong nor right say nothing about that.
    """
    if finding.severity is not Severity.ERROR:
        return finding.hint
    if finding.code == "RC211":
        return _types_hint(results) or finding.hint
    hint = _undo(chosen.evidence) + finding.hint
    if guarded:
        return hint
    strict = run.shop.settings.strict_rounding
    by_severity: dict[Severity, list[dict[str, str]]] = {}
    for result in results:
        level = severity(result.evidence.verdict, strict_rounding=strict)
        by_severity.setdefault(level, []).append(dict(result.tried))
    passing = by_severity.get(Severity.OK, []) + by_severity.get(Severity.WARNING, [])
    guards = missing_guards(by_severity.get(Severity.ERROR, []), passing)
    if not guards or not _confirmed(run, trial, guards):
        return hint
    learned = f"no case fails where {describe(guards)}"
    return f"{hint}; {learned}" if hint else learned


class Repair(NamedTuple):
    """Facts to add, on how many new cases the rule then passes, and with how many warnings."""

    facts: tuple[str, ...] = ()
    passes: int = 0
    warnings: int = 0


def find_guard(run: RuleRun, trial: Trial, results: Sequence[CaseResult]) -> Repair:
    """The facts that the left side lacks.

    None, if no guard of one or two facts keeps the rule alive and excludes what fails.
    """
    vocabulary = run.shop.vocabulary
    samples = []
    for claim, result in zip(trial.claims, results, strict=True):
        level = _level(run, result)
        if claim.bindings and level is not Severity.INCONCLUSIVE:
            samples.append(sample(claim, vocabulary, passes=level is not Severity.ERROR))
    for facts in itertools.islice(repairs(run.rule, samples, vocabulary), MAX_TRIES):
        found = _guarded(run, facts)
        if found.passes >= MIN_PASSES:
            return found
    return Repair()


def _guarded(run: RuleRun, facts: Sequence[Candidate]) -> Repair:
    """Try the guarded rule on new cases; nothing if it fails on one, or on other inputs."""
    body = (*run.rule.body, *(fact.fact for fact in facts))
    left = LeftSide(msgspec.structs.replace(run.rule, body=body))
    search, application = run.search(left), run.application(left)
    trial, tried = Trial(NO_INSTANCES), 0
    levels: list[Severity] = []
    plans: dict[Comparable, None] = {}
    for limit in (GUARD_CASES // 4, GUARD_CASES):  # most that are no guard fail at once
        found = search.cover(min(ENOUGH, limit), limit).instances
        application.run(found[tried:], trial)
        tried = len(found)
        for claim, result in zip(trial.claims, run.judge(trial), strict=True):
            if all(fact.holds(sample(claim, run.shop.vocabulary, passes=True)) for fact in facts):
                levels.append(_level(run, result))
                if claim.plans is not None:
                    plans[claim.plans] = None
        trial.claims.clear()
        if Severity.ERROR in levels:
            return Repair()
    strict = run.shop.settings.strict_rounding
    some = list(plans)[:: len(plans) // CONFIRMATIONS + 1]
    for salt in range(1, 1 + OTHER_INPUTS):
        for answer in run.shop.judge(some, salt=salt):
            if isinstance(answer, Failure):
                return Repair()
            if severity(answer.evidence.verdict, strict_rounding=strict) is Severity.ERROR:
                return Repair()
    return Repair(
        tuple(fact.text for fact in facts),
        passes=sum(level is not Severity.INCONCLUSIVE for level in levels),
        warnings=levels.count(Severity.WARNING),
    )


def _level(run: RuleRun, result: CaseResult) -> Severity:
    strict = run.shop.settings.strict_rounding
    return severity(result.evidence.verdict, strict_rounding=strict)


def _undo(evidence: Evidence) -> str:
    """If an operand is at fault in a field that the rule left alone: what it changed of it."""
    for item in evidence.violations[:1]:
        changed = changed_of(evidence, item.operand)
        if changed and item.field not in changed:
            return f"the rule changes {' and '.join(changed)}: undo it, or "
    return ""


def _types_hint(results: Sequence[CaseResult]) -> str | None:
    """For types that go not together: name the one that the rule changed, not any that would do."""
    for result in results:
        before, after = result.evidence.original_call, result.evidence.member_call
        if result.evidence.code != "RC211" or before is None or after is None:
            continue
        changed = [
            f"{operand}_dtype ({getattr(before, operand).dtype.value} → "
            f"{getattr(after, operand).dtype.value})"
            for operand in "abcd"
            if getattr(before, operand).dtype is not getattr(after, operand).dtype
        ]
        if before.compute_type != after.compute_type:
            changed.append(f"compute_type ({before.compute_type} → {after.compute_type})")
        if changed:
            return f"the rule changes {' and '.join(changed)}: undo it, or change the rest with it"
    return None


def _confirmed(run: RuleRun, trial: Trial, guards: Sequence[Guard]) -> bool:
    """Whether a learned guard holds on new cases and other inputs too.

    Pairs of labels may agree by chance, and a small result may have no element that shows it.
    """
    pinned = dict(guards)
    found = []
    for number in range(CONFIRMATIONS):
        wanted = {
            axis: pinned.get(axis, labels)[number * (place + 1) % len(pinned.get(axis, labels))]
            for place, (axis, labels) in enumerate(trial.instances.coverage.axes)
        }
        for instance in run.instances(wanted, only=True).instances:
            chosen = dict(instance.choices)
            if all(chosen.get(axis) in labels for axis, labels in guards):
                found.append(instance)
    again = run.apply(dataclasses.replace(trial.instances, instances=tuple(dict.fromkeys(found))))
    strict = run.shop.settings.strict_rounding
    levels = [
        severity(result.evidence.verdict, strict_rounding=strict) for result in run.judge(again)
    ]
    if len(levels) < 2 or Severity.ERROR in levels:
        return False
    plans = list(dict.fromkeys(item.plans for item in again.claims if item.plans is not None))
    return not any(
        isinstance(answer, Failure)
        or severity(answer.evidence.verdict, strict_rounding=strict) is Severity.ERROR
        for salt in range(1, 1 + OTHER_INPUTS)
        for answer in run.shop.judge(plans, salt=salt)
    )
