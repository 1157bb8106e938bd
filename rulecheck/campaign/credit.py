"""Rules that only make rows of which the dialect knows no meaning.

Such a row says what the rules that use it take it to say. Where each of them was judged on rows of
the very rule, and none is wrong, there is nothing wrong that the rule could be used for.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rulecheck.campaign.leftsides import MADE_BY
from rulecheck.campaign.places import called
from rulecheck.instantiate import rows
from rulecheck.records import Change, Finding, Rule, RuleFile, Set, Severity, Union, Verdict

# The code of a rule whose own rows claim nothing.
NO_CLAIM = "RC404"


def credit(findings: Sequence[Finding], files: Sequence[RuleFile]) -> list[Finding]:
    """Give a rule whose rows mean nothing by themselves the verdict of those that use them."""
    rules = {(rule.span.file, rule.name): rule for file in files for rule in file.rules}
    if any((item.file, item.rule) not in rules for item in findings):
        return list(findings)  # a rule that could not be read may use anything
    tables = {row.fn for file in files for row in file.facts}
    known = {(item.file, item.rule): item for item in findings if item.after is None}
    for item in findings:  # what is wrong only after another rule is still wrong
        alone = known.get((item.file, item.rule))
        if item.after is not None and alone is not None and alone.code != NO_CLAIM:
            known[item.file, item.rule] = item
    changed = True
    while changed:  # what uses a row may make but another row
        changed = False
        for key, finding in known.items():
            rule = rules.get((key[0], key[1] or ""))
            if rule is None or finding.code != NO_CLAIM or _does_more(rule):
                continue
            users = _users(rule, rules, tables, known)
            if users:
                known[key], changed = _credited(finding, users), True
    return [
        known[item.file, item.rule] if item.code == NO_CLAIM and item.after is None else item
        for item in findings
    ]


def _does_more(rule: Rule) -> bool:
    return any(isinstance(action, Union | Change | Set) for action in rule.head)


def _users(
    rule: Rule,
    rules: dict[tuple[str, str], Rule],
    tables: set[str],
    known: dict[tuple[str, str | None], Finding],
) -> list[Finding]:
    """The findings on all rules that use a rule's rows; none if one of them does not count."""
    added = {row.fn for row in rows(rule)}
    others = [other for other in rules.values() if other is not rule]
    alone = added - tables - {row.fn for other in others for row in rows(other)}
    found = []
    for key, other in rules.items():
        used = added.intersection(called(other))
        if other is rule or not used:
            continue
        finding = known.get(key)
        if finding is None or finding.severity not in (Severity.OK, Severity.WARNING):
            return []
        makers = dict(finding.tried).get(MADE_BY, ())
        named = {name.strip() for label in makers for name in label.split(" #")[0].split(", ")}
        if not (used & alone or rule.name in named):
            return []  # it may have fired on what others make
        found.append(finding)
    return found


def _credited(finding: Finding, users: Sequence[Finding]) -> Finding:
    names = ", ".join(dict.fromkeys(user.rule or user.file for user in users))
    effects = [user.detectable for user in users if user.detectable is not None]
    return msgspec.structs.replace(
        finding,
        verdict=Verdict.AGREES,
        severity=Severity.OK,
        code="RC000",
        message=f"as what uses its rows does: {names}",
        hint="",
        compared=sum(user.compared for user in users),
        detectable=max(effects, default=None),
    )
