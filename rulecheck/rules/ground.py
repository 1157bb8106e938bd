"""Which variables of a body the engine can find values for by itself.

A variable is grounded by a table (a constructor, function or relation) that it is an argument of,
or by an equality with something grounded. A primitive only computes from what is grounded already.
"""

from __future__ import annotations

from collections.abc import Container

from rulecheck.records import Call, Eq, Expr, Fact, Lit, Var
from rulecheck.rules.convert import WILDCARD
from rulecheck.rules.walk import expressions, walk


def ungrounded(body: tuple[Fact, ...], tables: Container[str]) -> Var | None:
    """Return the first variable of ``body`` that nothing grounds, or None."""
    grounded = {WILDCARD} | {
        arg.name
        for part in _parts(body)
        if isinstance(part, Call) and part.fn in tables
        for arg in part.args
        if isinstance(arg, Var)
    }
    equalities = [fact for fact in body if isinstance(fact, Eq)]
    size = -1
    while size != len(grounded):
        size = len(grounded)
        for fact in equalities:
            for side, other in ((fact.left, fact.right), (fact.right, fact.left)):
                if isinstance(side, Var) and _has_value(other, grounded, tables):
                    grounded.add(side.name)
    variables = (part for part in _parts(body) if isinstance(part, Var))
    return next((part for part in variables if part.name not in grounded), None)


def _has_value(expr: Expr, grounded: set[str], tables: Container[str]) -> bool:
    """Whether ``expr`` can be computed from what is grounded."""
    pending = [expr]
    while pending:
        part = pending.pop()
        if isinstance(part, Var) and part.name not in grounded:
            return False
        if isinstance(part, Call) and part.fn not in tables:
            pending += part.args
    return True


def _parts(body: tuple[Fact, ...]) -> list[Var | Lit | Call]:
    return [part for fact in body for expr in expressions(fact) for part in walk(expr)]
