"""RC504: a function that keeps the newest value is given values that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rulecheck.lint.classes import brief, show
from rulecheck.lint.sides import Sides
from rulecheck.records import Declaration, Expr, Lint, Set, Var

_HINT = "the value that is written last wins, and the order of rules decides: write one value"
_UNION_HINT = (
    "one class is one buffer: convert one side with a Cast, or give the new op the other type"
)


def lint_claims(sides: Sides, united: Sides, declared: Mapping[str, Declaration]) -> Iterator[Lint]:
    """Yield conflicting values: of sets, of a set and an op, of two terms that are united.

    Args:
        sides: the rule before its unions.
        united: the rule after them.
        declared: every declared name.
    """
    sets = [action for action in sides.rule.head if isinstance(action, Set)]
    kept = [action for action in sets if _keeps_newest(declared.get(action.fn))]
    found = [*_two_sets(united, kept), *_types(sides, kept)]
    yield from found
    if not found:
        yield from _unions(sides)


def _keeps_newest(known: Declaration | None) -> bool:
    return known is not None and isinstance(known.merge, Var) and known.merge.name == "new"


def _two_sets(united: Sides, sets: list[Set]) -> Iterator[Lint]:
    first: dict[tuple[str, tuple[int, ...]], Set] = {}
    for action in sets:
        key = (action.fn, tuple(united.at(arg) for arg in action.args))
        other = first.setdefault(key, action)
        if other is not action and _differ(united, other.value, action.value):
            message = (
                f"{action.fn} is set to {brief(other.value)} and to {brief(action.value)} for one "
                "term"
            )
            yield Lint("RC504", message, _HINT, action.value.span)


def _types(sides: Sides, sets: list[Set]) -> Iterator[Lint]:
    """Sets of a graph's type that are not what its op writes."""
    typed = sides.vocabulary.encoding.dtype_function
    for action in sets:
        if action.fn != typed or len(action.args) != 1:
            continue
        (graph,) = action.args
        held, said = sides.type_of(sides.at(graph)), sides.at(action.value)
        known = sides.classes.spell(held)
        if known is None or sides.classes.find(held) == sides.classes.find(said):
            continue
        value = sides.classes.spell(said) or brief(action.value)
        message = f"{typed} of {brief(graph)} is set to {value}, and its op writes {known}"
        yield Lint("RC504", message, f"set it to {known}, or change the op", action.value.span)


def _unions(sides: Sides) -> Iterator[Lint]:
    for union in sides.unions():
        held = [sides.type_of(sides.at(side)) for side in (union.left, union.right)]
        left, right = (sides.dtype(node) for node in held)
        if left is not None and right is not None and left is not right:
            message = f"a buffer of {left.value} is united with one of {right.value}"
            yield Lint("RC504", message, _UNION_HINT, union.span)


def _differ(sides: Sides, left: Expr, right: Expr) -> bool:
    """Whether two values are different constants."""
    first, second = (sides.classes.constant(sides.at(expr)) for expr in (left, right))
    return first is not None and second is not None and show(first) != show(second)
