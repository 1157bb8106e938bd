"""``rulecheck replay``: one case again, with everything shown."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rulecheck.campaign import token as tokens
from rulecheck.campaign.claims import Claim
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.trial import Trial
from rulecheck.campaign.workshop import Workshop
from rulecheck.errors import UserError
from rulecheck.records import Case, Failure, GemmCall, Replay, RuleFile, Settings

ELEMENTS = 8


def replay(subject: str, settings: Settings) -> Replay:
    """Run one case again.

    Args:
        subject: a token, or the path of a JSON file that holds a case.
        settings: only the strictness is used; everything else is in the case.

    Raises:
        UserError: the subject is no case, or its rule is gone or no longer fires.
    """
    case = _case(subject)
    settings = msgspec.structs.replace(
        settings, dialect=case.dialect, backend=case.backend, seed=case.input_seed
    )
    with Workshop(settings) as shop:
        try:
            file = shop.load(case.file, case.context, whole=bool(case.pair))
        except OSError as error:
            raise UserError(
                f"the case belongs to {case.file}, which cannot be read: {error.strerror}",
                "run replay from the folder in which the case was found",
            ) from error
        if isinstance(file, Failure):
            raise UserError(f"{case.file} cannot be loaded: {file.message}", "run check on it")
        return _rerun(shop, file, case)


def _case(subject: str) -> Case:
    path = Path(subject)
    try:
        is_file = path.is_file()
    except OSError:  # a token is longer than a file name may be
        is_file = False
    if not is_file:
        return tokens.decode(subject)
    try:
        return tokens.load(path.read_bytes())
    except OSError as error:
        raise UserError(
            f"{subject} cannot be read: {error.strerror}", "check the file's permissions"
        ) from error


def _rerun(shop: Workshop, file: RuleFile, case: Case) -> Replay:
    names = [rule.name for rule in file.rules]
    hashes = [rule.text_hash for rule in file.rules]
    if case.rule not in names and case.text_hash in hashes:
        # A rule without a name is called by its line, which moves when the file is edited.
        case = msgspec.structs.replace(case, rule=names[hashes.index(case.text_hash)])
    if case.rule not in names:
        raise UserError(
            f"{case.file} has no valid rule called {case.rule!r}",
            f"its rules are: {', '.join(names) or 'none'}",
        )
    run = RuleRun(shop, file, names.index(case.rule), case.context)
    if case.pair:
        run.producer = _producer(file, case)
    instances = run.instances(dict(case.choices), only=True)
    if not instances.instances:
        raise UserError(
            f"the rule {case.rule!r} no longer matches this case: {instances.reason}",
            "the rule has changed since; run check on the file",
        )
    trial = run.apply(instances, run.left_side(dict(case.choices)))
    member = _member(run, trial, case)
    (result,) = [item for item in run.judge(trial) if item.case.ordinal == case.ordinal]
    judged = run.numbers(member, ELEMENTS)
    evidence = result.evidence
    if judged is not None:
        evidence = msgspec.structs.replace(
            evidence, compared=judged.evidence.compared, differing=judged.evidence.differing
        )
    return Replay(
        case=result.case,
        rule_changed=run.rule.text_hash != case.text_hash,
        original=member.show()[0],
        member=member.show()[1],
        evidence=evidence,
        tried=result.tried,
        fields=_fields(evidence.original_call, evidence.member_call),
        operands=judged.operands if judged is not None else (),
        elements=judged.elements if judged is not None else (),
    )


def _producer(file: RuleFile, case: Case) -> int:
    """The position of the rule that the case applies first."""
    rules = (*file.rules, *file.neighbours)
    for position, rule in enumerate(rules):
        if (rule.span.file, rule.name) == case.pair:
            return position
    raise UserError(
        f"the case applies {case.pair[-1]!r} first, and {case.pair[0]} has no such rule",
        "the rule has changed since; run check on the files",
    )


def _member(run: RuleRun, trial: Trial, case: Case) -> Claim:
    for item in trial.claims:
        if item.ordinal == case.ordinal:
            return item
    what = trial.failures[0].message if trial.failures else "it did not fire"
    raise UserError(
        f"the rule {run.rule.name!r} adds no member on this case: {what}",
        "the rule has changed since; run check on the file",
    )


def _fields(before: GemmCall | None, after: GemmCall | None) -> tuple[tuple[str, str, str], ...]:
    """Both calls field by field, changed fields first; a graph without a call shows dashes."""
    sides = [_flat(call) for call in (before, after)]
    names = list(dict.fromkeys([*sides[1], *sides[0]]))
    rows = [(name, sides[0].get(name, "-"), sides[1].get(name, "-")) for name in names]
    return tuple(sorted(rows, key=lambda row: row[1] == row[2]))


def _flat(call: GemmCall | None) -> dict[str, str]:
    if call is None:
        return {}
    found: dict[str, str] = {}
    for name, value in msgspec.to_builtins(call).items():
        if isinstance(value, dict):
            found.update({f"{name}.{key}": str(part) for key, part in value.items()})
        else:
            found[name] = str(value)
    return found
