"""The parts of expressions, facts and actions, without recursion."""

from __future__ import annotations

from collections.abc import Iterator

from rulecheck.records import (
    Action,
    Call,
    Change,
    Do,
    Eq,
    Expr,
    Fact,
    Holds,
    Let,
    Set,
    Union,
)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all its parts, from the outside in, left to right."""
    pending = [expr]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Call):
            pending += reversed(current.args)


def expressions(part: Fact | Action) -> tuple[Expr, ...]:
    """Return the outermost expressions of a fact or an action."""
    match part:
        case Eq() | Union():
            return (part.left, part.right)
        case Holds() | Do() | Let():
            return (part.expr,)
        case Set():
            return (*part.args, part.value)
        case Change():
            return part.args


def calls(*exprs: Expr) -> Iterator[Call]:
    """Yield every application in ``exprs``."""
    for expr in exprs:
        yield from (part for part in walk(expr) if isinstance(part, Call))
