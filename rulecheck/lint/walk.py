"""The expressions of facts and actions, without recursion."""

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


def walk(*exprs: Expr) -> Iterator[Expr]:
    """Yield expressions and all their parts, from the outside in, left to right."""
    pending = list(reversed(exprs))
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Call):
            pending += reversed(current.args)


def expressions(part: Fact | Action) -> tuple[Expr, ...]:
    """Return the outermost expressions of a fact or an action; to remove a term uses nothing."""
    match part:
        case Eq() | Union():
            return (part.left, part.right)
        case Holds() | Do() | Let():
            return (part.expr,)
        case Set():
            return (*part.args, part.value)
        case Change():
            return ()
