"""RC503: a guard on a term that may not exist; such a guard never holds."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping

from rulecheck.lint.classes import brief, show
from rulecheck.lint.sides import GUARDS, Sides
from rulecheck.lint.walk import expressions, walk
from rulecheck.records import Call, Declaration, Expr, Holds, Lint, RuleFile, Var

_SEED = re.compile(r"^\(let \S+ (?P<term>\(.*\))\)\s*$", re.MULTILINE)


def lint_guards(
    sides: Sides, file: RuleFile, declared: Mapping[str, Declaration]
) -> Iterator[Lint]:
    """Yield the guards whose term nothing has to make."""
    guards = [
        fact.expr
        for fact in sides.rule.body
        if isinstance(fact, Holds) and isinstance(fact.expr, Call) and fact.expr.fn in GUARDS
    ]
    if not guards:
        return
    matched = _matched(sides, declared)
    made = seeds(sides.vocabulary.declarations()) | {
        show(part) for row in file.facts for part in walk(row) if isinstance(part, Call)
    }
    for guard in guards:
        for arg in guard.args:
            term = _term(sides, arg, declared)
            if term is None or sides.at(term) in matched or show(term) in made:
                continue
            message = (
                f"the guard {brief(guard)} never holds unless {brief(term)} exists as a term, and "
                "nothing in the rule or the dialect makes it"
            )
            yield Lint("RC503", message, _advise(sides, guard, term), arg.span)


def _advise(sides: Sides, guard: Call, term: Call) -> str:
    """What to write instead."""
    names = sides.vocabulary.encoding
    if term.fn == names.number:
        return f"compare numbers: (= … ({names.number} ?n)) ({guard.fn} ?n {brief(term.args[0])})"
    if not term.args:
        return "require a relation of those that are meant"
    return "compare the parts of the terms, or make the term before any rule runs"


@functools.cache
def seeds(declarations: str) -> frozenset[str]:
    """Terms that a dialect makes before any rule runs, as they are spelled."""
    return frozenset(match["term"] for match in _SEED.finditer(declarations))


def _term(sides: Sides, arg: Expr, declared: Mapping[str, Declaration]) -> Call | None:
    """The term that a guard compares with; None for a number, a graph, or what is matched."""
    calls = [arg] if isinstance(arg, Call) else []
    if isinstance(arg, Var):
        calls = sides.classes.calls(sides.at(arg))
    return next((call for call in calls if _is_value(sides, call, declared)), None)


def _is_value(sides: Sides, call: Call, declared: Mapping[str, Declaration]) -> bool:
    names = sides.vocabulary.encoding
    values = {names.expression_sort, names.list_sort, names.dtype_sort}
    known = declared.get(call.fn)
    return known is not None and known.kind == "constructor" and known.output in values


def _matched(sides: Sides, declared: Mapping[str, Declaration]) -> set[int]:
    """Classes that exist whenever the rest of the body matches."""
    pending = [sides.at(side) for union in sides.unions() for side in (union.left, union.right)]
    for fact in sides.rule.body:
        for part in walk(*expressions(fact)):
            if not isinstance(part, Call) or part.fn in GUARDS:
                continue
            if not _is_value(sides, part, declared):
                pending += [sides.at(part), *(sides.at(arg) for arg in part.args)]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += [sides.at(arg) for call in sides.classes.calls(node) for arg in call.args]
    return seen
