"""All cases of a rule become one finding: verdict, place, message, hint, counterexample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import msgspec

from rulecheck.campaign import token
from rulecheck.campaign.claims import Claim
from rulecheck.campaign.hints import Repair, advise, find_guard
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.places import point_at, unions
from rulecheck.campaign.trial import Trial
from rulecheck.instantiate import Cause, Instances
from rulecheck.ordering import badness
from rulecheck.records import (
    CaseResult,
    Counterexample,
    Evidence,
    Failure,
    FailureKind,
    Finding,
    Problem,
    Rule,
    RuleFile,
    Severity,
    Stage,
    Verdict,
)
from rulecheck.severity import severity

# In the place of one rule's name, where a finding is about all that a rule was applied after.
NEIGHBOURS = "its neighbours"


def judge_rule(run: RuleRun) -> Finding:
    """Instantiate, apply and judge one rule."""
    trial = run.explore()
    if not trial.instances.instances:
        return _no_instance(run, trial.instances)
    results = run.judge(trial)
    if not results:
        return _silent(run, trial)
    return summarize(run, trial, results)


def unjudged_after(run: RuleRun, trial: Trial, results: Sequence[CaseResult]) -> Finding | None:
    """What kept a rule from being judged after its neighbours; None if nothing did."""
    strict = run.shop.settings.strict_rounding
    found = [
        item.evidence
        for item in results
        if severity(item.evidence.verdict, strict_rounding=strict) is Severity.INCONCLUSIVE
    ]
    broken = _engine_evidence(trial)
    found += [] if broken is None else [broken]
    if not found:
        return None
    worst = min(found, key=lambda evidence: badness(evidence.verdict))
    finding = _finding(run, worst, None, results)
    message = f"after its neighbours: {finding.message}"
    return msgspec.structs.replace(finding, after=NEIGHBOURS, message=message)


def found_in_pair(run: RuleRun, producer: Rule, claim: Claim, result: CaseResult) -> Finding:
    """A wrong member that a rule adds only after another one, each right by itself."""
    finding = _finding(run, result.evidence, None, [result])
    first = f"{producer.name} ({producer.span.file}:{producer.name_span.line})"
    return msgspec.structs.replace(
        finding,
        after=producer.name,
        message=f"after {first}: {finding.message}",
        hint="each of the two rules is right by itself: see what the second takes for granted of "
        "what the first adds",
        field_span=claim.span
        or point_at(run.rule, result.case.union, result.evidence, run.shop.vocabulary),
        counterexample=_counterexample(run, claim, result),
        blame=(producer.name, run.rule.name),
    )


_NO_INSTANCE = {
    Cause.CONTRADICTION: (
        Verdict.VACUOUS,
        "RC401",
        "the rule can never fire: ",
        "remove or correct the guard",
    ),
    Cause.ILL_TYPED: (
        Verdict.VACUOUS,
        "RC403",
        "only an ill-formed graph can match: ",
        "give the op the types and sizes that it takes",
    ),
    Cause.UNKNOWN_OP: (
        Verdict.UNSUPPORTED,
        "RC411",
        "",
        "the rule is not judged: the op has to be in the dialect",
    ),
    Cause.GAP: (
        Verdict.UNSUPPORTED,
        "RC413",
        "no graph was found that the left side matches: ",
        "the rule may be right; it is not judged, since this tool could not build its left side",
    ),
}


def _no_instance(run: RuleRun, instances: Instances) -> Finding:
    """Why nothing could be tried."""
    verdict, code, prefix, hint = _NO_INSTANCE[instances.cause or Cause.GAP]
    message = f"{prefix}{instances.reason or 'the left side has no instance'}"
    trial = None
    if instances.cause is Cause.ILL_TYPED:
        trial = run.on_ill_formed()
        if trial.reached:
            message += f"; it fires on {trial.reached} such graphs, which nothing can judge"
    return _finding(run, Evidence(verdict, Stage.INSTANTIATE, code, message, hint), trial)


def _silent(run: RuleRun, trial: Trial) -> Finding:
    """Instances were built, but no member came out of the engine."""
    broken = _engine_evidence(trial)
    if broken is not None:
        return _finding(run, broken, trial)
    if trial.idle:
        message = f"the rule fires {trial.fired} times and only ever unites a term with itself"
        hint = "the new term is the old one: change what the rule builds, or remove the rule"
        evidence = Evidence(Verdict.VACUOUS, Stage.ENGINE, "RC305", message, hint)
        return _finding(run, evidence, trial)
    if trial.reached and not unions(run.rule):
        message = f"the rule fires {trial.fired} times, and what it adds or removes claims nothing"
        hint = (
            "the dialect gives its rows no meaning: check it together with the rules that use "
            "them; where all of those agree, it does"
        )
        evidence = Evidence(Verdict.UNSUPPORTED, Stage.ENGINE, "RC404", message, hint)
        return _finding(run, evidence, trial)
    count = len(trial.instances.instances)
    message = f"never fired on {count} well-formed left sides"
    missing = run.underived()
    if missing:
        message += f": nothing that was built makes {' or '.join(missing)} hold"
        hint = "the rule may be right; it is not judged without the rules that derive these facts"
        evidence = Evidence(Verdict.UNSUPPORTED, Stage.ENGINE, "RC413", message, hint)
        return _finding(run, evidence, trial)
    hint = "a guard does not hold for what was built, or compares with a term that never exists"
    return _finding(run, Evidence(Verdict.VACUOUS, Stage.ENGINE, "RC402", message, hint), trial)


def _engine_evidence(trial: Trial) -> Evidence | None:
    """The worst that the engine did: it died, stopped with an error, or matched wrongly."""
    found = [_engine_failure(failure) for failure in trial.failures]
    found += [_engine_error(error) for error in trial.errors]
    found += [_false_match(flaw) for flaw in trial.flaws]
    return min(found, key=lambda evidence: badness(evidence.verdict), default=None)


def _engine_error(error: str) -> Evidence:
    """The engine answered, but with an error or at a limit."""
    if error.startswith("limit: "):
        message = f"a limit was reached: {error.removeprefix('limit: ')}"
        hint = "look for a rule that feeds itself or joins everything with everything"
        return Evidence(Verdict.TIMEOUT, Stage.ENGINE, "RC431", message, hint)
    message = f"the engine stops with an error when the rule is applied: {error}"
    hint = "the message is the engine's own; a set that conflicts or a panic stops saturation"
    return Evidence(Verdict.CRASH, Stage.ENGINE, "RC441", message, hint)


def _false_match(flaw: str) -> Evidence:
    message = f"the engine reports a match that does not hold: {flaw}"
    hint = "run 'rulecheck doctor': the engine itself may be broken"
    return Evidence(Verdict.UNTRUSTED, Stage.ENGINE, "RC421", message, hint)


def _engine_failure(failure: Failure) -> Evidence:
    timeout = failure.kind is FailureKind.TIMEOUT
    return Evidence(
        Verdict.TIMEOUT if timeout else Verdict.CRASH,
        Stage.ENGINE,
        "RC431" if timeout else "RC441",
        f"the engine did not survive the rule: {failure.message}",
        "look for a rule that feeds itself or joins everything with everything",
    )


def summarize(run: RuleRun, trial: Trial, results: Sequence[CaseResult]) -> Finding:
    """All cases of a rule as one finding."""
    order = sorted(range(len(results)), key=lambda index: _rank(results[index], index))
    chosen = results[order[0]]
    evidence = chosen.evidence
    broken = _engine_evidence(trial)
    if broken is not None and badness(broken.verdict) < badness(evidence.verdict):
        return _finding(run, broken, trial, results)
    member = trial.claims[order[0]]
    finding = _finding(run, evidence, trial, results)
    if evidence.verdict is Verdict.AGREES:
        return finding
    is_error = finding.severity is Severity.ERROR
    guard = find_guard(run, trial, results) if is_error else Repair()
    return msgspec.structs.replace(
        finding,
        hint=advise(run, trial, finding, chosen, results, guarded=bool(guard.facts)),
        guard=guard.facts,
        guard_passes=guard.passes,
        guard_warnings=guard.warnings,
        field_span=member.span
        or point_at(run.rule, chosen.case.union, evidence, run.shop.vocabulary),
        counterexample=_counterexample(run, member, chosen),
        blame=(run.rule.name,) if finding.severity is Severity.ERROR else (),
    )


def _rank(result: CaseResult, index: int) -> tuple[int, bool, int, int]:
    """Worst verdict first; among equals the case nearest to the default.

    A write past a buffer comes first: it corrupts what the rule has nothing to do with.
    """
    evidence = result.evidence
    contained = evidence.code != "RC207"
    return (badness(evidence.verdict), contained, len(result.case.choices), index)


def _counterexample(run: RuleRun, member: Claim, chosen: CaseResult) -> Counterexample:
    evidence = chosen.evidence
    judged = run.numbers(member, elements=1)
    if judged is not None:
        evidence = msgspec.structs.replace(
            evidence,
            worst=judged.elements[0] if judged.elements else None,
            compared=judged.evidence.compared,
            differing=judged.evidence.differing,
        )
    original, new = member.show()
    return Counterexample(
        token=token.encode(chosen.case),
        case=chosen.case,
        evidence=evidence,
        tried=chosen.tried,
        original=original,
        member=new,
    )


def _finding(
    run: RuleRun,
    evidence: Evidence,
    trial: Trial | None = None,
    results: Sequence[CaseResult] = (),
) -> Finding:
    rule = run.rule
    detectable = [found for item in results if (found := item.evidence.detectable) is not None]
    ratios = [item.evidence.error_over_bound for item in results if item.evidence.compared]
    return Finding(
        rule=rule.name,
        file=rule.span.file,
        span=rule.name_span,
        verdict=evidence.verdict,
        severity=severity(evidence.verdict, strict_rounding=run.shop.settings.strict_rounding),
        code=evidence.code,
        message=evidence.message,
        hint=evidence.hint,
        notes=tuple(_notes(trial, evidence, results)),
        cases=len(results),
        fired=trial.fired if trial is not None else 0,
        compared=sum(item.evidence.compared for item in results),
        # The effect that every case would have shown: the weakest case decides.
        detectable=max(detectable, default=None),
        error_over_bound=max(ratios, default=None),
        tried=_tried(trial, results),
        verdicts=tuple(Counter(item.evidence.verdict.value for item in results).items()),
    )


def _tried(
    trial: Trial | None, results: Sequence[CaseResult]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The labels of judged cases by axis, in the axes' own order."""
    if trial is None:
        return ()
    judged = {label for item in results for label in item.tried}
    axes = (
        (axis, tuple(label for label in labels if (axis, label) in judged))
        for axis, labels in trial.instances.coverage.axes
    )
    return tuple((axis, labels) for axis, labels in axes if labels)


def _kind(evidence: Evidence) -> tuple[str, str]:
    """What is wrong and with which operand."""
    return (evidence.code, evidence.violations[0].operand if evidence.violations else "")


def _notes(trial: Trial | None, evidence: Evidence, results: Sequence[CaseResult]) -> list[str]:
    others: dict[tuple[str, str], list[str]] = {}
    for item in results:
        kind = _kind(item.evidence)
        if kind != _kind(evidence) and item.evidence.verdict is not Verdict.AGREES:
            others.setdefault(kind, []).append(item.evidence.message)
    notes = [
        f"also, in {len(messages)} of {len(results)} cases: {messages[0]}"
        for messages in sorted(others.values(), key=len, reverse=True)[:3]
    ]
    if trial is None:
        return notes
    possible = trial.instances.coverage.pairs
    if results and possible:
        judged = {frozenset(pair) for item in results for pair in combinations(item.tried, 2)}
        tried = len(possible & judged)
        notes.append(f"{tried} of {len(possible)} possible pairs of choices were judged")
    inside = sum(item.inside for item in trial.claims)
    if inside:
        notes.append(
            f"in {inside} cases the new member is a part of the graph it replaces (RC305): its "
            "class then contains itself, and saturation need not end"
        )
    if trial.silent:
        notes.append(f"the rule did not fire on {trial.silent} further left sides")
    if trial.astray:
        notes.append(f"{trial.astray} matches lie in no single left side and were not judged")
    if trial.failures:
        notes.append(f"the engine did not survive some left sides: {trial.failures[0].message}")
    if trial.errors:
        notes.append(f"the engine reported an error when it applied the rule: {trial.errors[0]}")
    return notes


_PROBLEMS = {
    "syntax": "RC101",
    "encoding": "RC102",
    "too-large": "RC103",
    "too-deep": "RC103",
    "refused": "RC104",
    "unknown-sort": "RC105",
    "arity": "RC106",
    "type": "RC107",
    "duplicate": "RC108",
    "engine": "RC109",
    "field": "RC111",
}


def problem_findings(file: RuleFile, *, strict: bool) -> list[Finding]:
    """What is wrong in a file: one finding a rule, and one for each fault of the file itself."""
    by_rule: dict[object, list[Problem]] = {}
    for number, problem in enumerate(file.problems):
        by_rule.setdefault(problem.rule or number, []).append(problem)
    return [problem_finding(file.path, group, strict=strict) for group in by_rule.values()]


def problem_finding(path: str, problems: Sequence[Problem], *, strict: bool) -> Finding:
    """Problems of one rule as a finding.

    ``unsupported`` if all that is wrong is that the rule names what nothing declares (an op that
    the dialect lacks), else ``invalid``.
    """
    unknown = [problem for problem in problems if problem.kind == "unknown-name" and problem.rule]
    lacking = len(unknown) == len(problems)
    first = problems[0] if lacking else next(item for item in problems if item not in unknown)
    verdict = Verdict.UNSUPPORTED if lacking else Verdict.INVALID
    others = [item for item in problems if item is not first and item.message != first.message]
    return Finding(
        rule=first.rule,
        file=path,
        span=first.span,
        verdict=verdict,
        severity=severity(verdict, strict_rounding=strict),
        code="RC411" if lacking else _PROBLEMS.get(first.kind, "RC110"),
        message=first.message,
        hint=first.hint,
        notes=tuple(
            f"also at {item.span.line}:{item.span.column}: {item.message}"
            for item in {item.message: item for item in others}.values()
        ),
    )
