"""A rule twice over: one copy that only tells what it matched, one that acts as written.

The first copy merges nothing and deletes nothing, so what it reports holds *before* the rule acted:
each match becomes a row with every variable and both sides of every union. All names begin with
``@``, which the engine's parser refuses: no file can get at them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rulecheck.egraph.bindings import OWN_SPAN, egg
from rulecheck.egraph.build import RuleBuilder, call, variable
from rulecheck.records import Change, Rule, Union

CONTEXT_RULESET = "@rc_context"


class Names(NamedTuple):
    """What the copies of rule number ``index`` are called."""

    fired: str
    match: str
    apply: str


def names(index: int) -> Names:
    """Return the names that belong to a rule by its position in the file."""
    return Names(f"@rc_fired_{index}", f"@rc_match_{index}", f"@rc_apply_{index}")


def unions(rule: Rule) -> tuple[Union, ...]:
    """Return the unions of a head, in order."""
    return tuple(action for action in rule.head if isinstance(action, Union))


def columns(rule: Rule) -> tuple[str, ...]:
    """Return the sorts of the row that one match leaves: variables, then both sides of unions."""
    sides = (sort for union in unions(rule) for sort in (union.sort, union.sort))
    return (*(sort for _, sort in rule.variables), *sides)


def only_adds_facts(rule: Rule) -> bool:
    """Whether a rule merges and removes nothing: then it is context for the others."""
    return not any(isinstance(action, Union | Change) for action in rule.head)


def instrument(rule: Rule, index: int) -> list[Any]:
    """Build the commands that add both copies of a rule, and a third one if it is context."""
    own = names(index)
    commands = [
        egg.Relation(OWN_SPAN, own.fired, list(columns(rule))),
        egg.AddRuleset(OWN_SPAN, own.match),
        egg.AddRuleset(OWN_SPAN, own.apply),
        _copy(rule, own.match, [*_telling_head(rule, own.fired)]),
        _copy(rule, own.apply, [RuleBuilder().action(action) for action in rule.head]),
    ]
    if only_adds_facts(rule):
        head = [RuleBuilder().action(action) for action in rule.head]
        commands.append(_copy(rule, CONTEXT_RULESET, head, f"{CONTEXT_RULESET}_{index}"))
    return commands


def _telling_head(rule: Rule, fired: str) -> list[Any]:
    """Build a head that keeps what a union needs, and reports instead of merging."""
    build = RuleBuilder()
    kept = [build.action(action) for action in rule.head if not isinstance(action, Union | Change)]
    row = [variable(name) for name, _ in rule.variables]
    for union in unions(rule):
        row += [build.expr(union.left), build.expr(union.right)]
    return [*kept, egg.Expr_(OWN_SPAN, call(fired, row))]


def _copy(rule: Rule, ruleset: str, head: list[Any], name: str | None = None) -> Any:
    build = RuleBuilder()
    body = [build.fact(fact) for fact in rule.body]
    span = egg.RustSpan(rule.span.file, rule.span.line, rule.span.column)
    return egg.RuleCommand(egg.Rule(span, head, body, name or ruleset, ruleset))
