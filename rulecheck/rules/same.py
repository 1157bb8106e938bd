"""Which rules are one: the same body and head, whatever their variables and they are called.

A file may repeat a rule that the dialect, or a file that it relies on, has already. Whether it does
is decided on the records, so that spelling does not count: named fields, a rewrite written out as a
rule, ``_`` for a variable that is used once. The order of facts and actions does count.
"""

from __future__ import annotations

import itertools
from pathlib import PurePath
from typing import Any, NamedTuple

from rulecheck.records import (
    Action,
    Call,
    Change,
    Eq,
    Expr,
    Fact,
    Holds,
    Let,
    Lit,
    Problem,
    Rule,
    Set,
    Union,
    Var,
)
from rulecheck.rules.convert import REWRITE_ROOT, WILDCARD
from rulecheck.rules.declare import show_place
from rulecheck.rules.printer import print_action, print_expr, print_fact
from rulecheck.rules.scanner import shorten
from rulecheck.rules.walk import expressions

# A part of a rule that is shown is short enough to be compared by eye.
_MAX_SHOWN = 120

Written = tuple[Any, ...]
Part = Fact | Action | Expr
_Pair = tuple[Part | None, Written]


class KnownRule(NamedTuple):
    """A rule that is there already. ``command`` is its position among the dialect's commands.

    It is None for a rule of another file.
    """

    rule: Rule
    command: int | None = None


def is_named(rule: Rule) -> bool:
    """Whether the author gave the rule a name: others are called after their place."""
    place = f"{PurePath(rule.span.file).name}:{rule.span.line}"
    rest = rule.name.removeprefix(place)
    return rest == rule.name or rest[:1] not in ("", ":", " ")


def canonical(rule: Rule) -> Written:
    """Return what two rules have in common if they are one."""
    return tuple(tuple(form for _, form in side) for side in _sides(rule))


def clash(rule: Rule, known: Rule) -> Problem:
    """Report a rule that has the name of another one: both places, and where they differ."""
    here, there = _difference(rule, known)
    what = (
        f"The name `{shorten(rule.name, 60)}` is taken by the rule at "
        f"{show_place(known.name_span)}, which is another: {shorten(here, _MAX_SHOWN)} here, "
        f"{shorten(there, _MAX_SHOWN)} there."
    )
    hint = "Make both rules the same, or give this one a name of its own; it is not judged."
    return Problem("duplicate", what, hint, rule.name_span, rule.name, rule.name)


def _sides(rule: Rule) -> tuple[list[_Pair], list[_Pair]]:
    """Return the facts and the actions of a rule, each with what it is without places."""
    namer = _Namer()
    body: list[_Pair] = [(fact, namer.write(fact)) for fact in rule.body]
    return body, [(action, namer.write(action)) for action in rule.head]


class _Namer:
    """Writes the parts of one rule without places, its variables numbered as they appear."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._count = 0

    def write(self, part: Part) -> Written:
        """Write a fact, an action or an expression; the parts of it come last."""
        match part:
            case Var():
                return ("variable", self._number(part.name))
            case Lit():
                return ("literal", part.sort, repr(part.value))
            case Let():
                value = self.write(part.expr)
                return ("let", self._number(part.name), value)
            case Call() | Set() | Change():
                kind = part.kind if isinstance(part, Change) else type(part).__name__
                return (kind, part.fn, *(self.write(inner) for inner in _inner(part)))
            case _:
                return (type(part).__name__, *(self.write(inner) for inner in _inner(part)))

    def _number(self, name: str) -> int:
        """Return a variable's number; each wildcard is a variable of its own."""
        known = self._numbers.get(name)
        if known is None or name == WILDCARD:
            known = self._numbers[name] = self._count
            self._count += 1
        return known


def _difference(rule: Rule, known: Rule) -> tuple[str, str]:
    """Show the first parts that differ: a whole fact or action, or the part of it that counts."""
    pairs = (
        pair
        for one, other in zip(_sides(rule), _sides(known), strict=True)
        for pair in itertools.zip_longest(one, other, fillvalue=(None, ()))
    )
    here, there = next(pair for pair in pairs if pair[0][1] != pair[1][1])
    while max(len(_show(here[0])), len(_show(there[0]))) > _MAX_SHOWN:
        deeper = _first_difference(here, there)
        if deeper is None:
            break
        here, there = deeper
    return _show(here[0]), _show(there[0])


def _first_difference(one: _Pair, other: _Pair) -> tuple[_Pair, _Pair] | None:
    """Return the first differing parts of two applications of one function."""
    (first, own), (second, its) = one, other
    parts, others = _inner(first), _inner(second)
    count = len(parts)
    if not count or len(own) != len(its) or own[:-count] != its[:-count]:
        return None
    for index in range(-count, 0):
        if own[index] != its[index]:
            return (parts[index], own[index]), (others[index], its[index])
    return None


def _inner(part: Part | None) -> tuple[Expr, ...]:
    match part:
        case None | Var() | Lit():
            return ()
        case Call():
            return part.args
        case _:
            return expressions(part)


def _show(part: Part | None) -> str:
    """Print a part as the author wrote it: the root of a rewrite has no name there."""
    match part:
        case None:
            return "nothing"
        case Eq(Var(name), side, _) | Union(Var(name), side, _) if name == REWRITE_ROOT:
            return f"`{print_expr(side)}`"
        case Var() | Lit() | Call():
            return f"`{print_expr(part)}`"
        case Eq() | Holds():
            return f"`{print_fact(part)}`"
        case _:
            return f"`{print_action(part)}`"
