"""Suspicions read off a rule's text, each with a code; no verdict and no exit code follows them."""

from __future__ import annotations

from rulecheck.dialects import Vocabulary
from rulecheck.lint.claims import lint_claims
from rulecheck.lint.freedom import lint_freedom
from rulecheck.lint.guards import lint_guards
from rulecheck.lint.operands import lint_operands
from rulecheck.lint.sides import Sides
from rulecheck.records import Lint, Rule, RuleFile

__all__ = ["lint"]


def lint(rule: Rule, file: RuleFile, vocabulary: Vocabulary) -> tuple[Lint, ...]:
    """Return what a reviewer would ask about a rule, in the order of its text.

    Args:
        rule: the rule, as it came out of the checks of its file.
        file: its file, for what is declared and for the rows of relations.
        vocabulary: what the dialect's names mean.
    """
    sides = Sides(rule, vocabulary)
    united = Sides(rule, vocabulary, united=True)
    declared = {item.name: item for item in file.declarations}
    found = [
        *lint_operands(sides),
        *lint_freedom(sides, declared),
        *lint_guards(sides, file, declared),
        *lint_claims(sides, united, declared),
    ]
    return tuple(sorted(found, key=lambda item: (item.span, item.code)))
