"""What a firing states beside its unions: rows, values of functions, terms that it removes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rulecheck.dialects import Truth, Vocabulary
from rulecheck.dialects.terms import TermReader
from rulecheck.egraph import rematch
from rulecheck.records import (
    Call,
    Change,
    Declaration,
    Do,
    Evidence,
    Expr,
    Let,
    Lit,
    Rule,
    Set,
    Span,
    Stage,
    TermTable,
    Var,
    Verdict,
)

_SORTS = {bool: "bool", int: "i64", float: "f64", str: "String"}


class Fact(NamedTuple):
    """A row with a declared meaning: its evidence, or the two graphs that it says are one buffer.

    ``term`` is the row as a term, for a report.
    """

    span: Span
    term: int
    evidence: Evidence | None
    graphs: tuple[int, int] | None = None


def facts(
    rule: Rule,
    bindings: Mapping[str, int],
    table: TermTable,
    vocabulary: Vocabulary,
    declared: Mapping[str, Declaration],
) -> Iterator[Fact]:
    """The rows and values that a head adds, as far as the dialect says what they state."""
    values = dict(bindings)
    for action in rule.head:
        if isinstance(action, Let):
            term = ground(action.expr, values, table, declared)
            if term is not None:
                values[action.name] = term
            continue
        if isinstance(action, Do) and isinstance(action.expr, Call):
            fn, parts, span = action.expr.fn, action.expr.args, action.expr.span
        elif isinstance(action, Set):
            fn, parts, span = action.fn, (*action.args, action.value), action.span
        else:
            continue
        meaning = vocabulary.meanings.get(fn)
        terms = [ground(part, values, table, declared) for part in parts]
        args = tuple(term for term in terms if term is not None)
        if meaning is None or len(args) != len(terms):
            continue
        row = table.add(fn, *args)
        if meaning.graphs is not None:
            yield Fact(span, row, None, meaning.graphs(table, args))
        elif meaning.check is not None:
            reader = TermReader(table.nodes, vocabulary.encoding)
            truth = meaning.check(reader, args)
            if truth.holds is not None:
                yield Fact(span, row, _evidence(fn, truth))


def _evidence(fn: str, truth: Truth) -> Evidence:
    if truth.holds:
        return Evidence(Verdict.AGREES, Stage.CONTRACT, "RC000", "agrees", compared=1)
    return Evidence(
        Verdict.MISMATCH,
        Stage.CONTRACT,
        "RC306",
        f"the rule states a false row of {fn}: {truth.why}",
        "state the row only where it holds: rules that rely on it fuse what they must not",
        compared=1,
        differing=1,
    )


def find_stamps(
    rule: Rule,
    bindings: Mapping[str, int],
    table: TermTable,
    function: str,
    declared: Mapping[str, Declaration],
) -> list[tuple[int, int]]:
    """(term, type) for every ``set`` of the type function in a rule's head.

    Terms are built in ``table`` from what the firing bound; a ``set`` on something that the
    engine computes is left out.
    """
    values = dict(bindings)
    found = []
    for action in rule.head:
        if isinstance(action, Let):
            term = ground(action.expr, values, table, declared)
            if term is not None:
                values[action.name] = term
        elif isinstance(action, Set) and action.fn == function:
            target = ground(action.args[0], values, table, declared)
            kind = ground(action.value, values, table, declared)
            if target is not None and kind is not None:
                found.append((target, kind))
    return found


def removed(
    rule: Rule, bindings: Mapping[str, int], table: TermTable, declared: Mapping[str, Declaration]
) -> Iterator[tuple[Span, int]]:
    """The terms that a head deletes or subsumes."""
    values = dict(bindings)
    for action in rule.head:
        if isinstance(action, Let):
            term = ground(action.expr, values, table, declared)
            if term is not None:
                values[action.name] = term
        elif isinstance(action, Change):
            term = ground(Call(action.fn, action.args, action.span), values, table, declared)
            if term is not None:
                yield action.span, term


def ground(
    expr: Expr,
    values: Mapping[str, int],
    table: TermTable,
    declared: Mapping[str, Declaration],
) -> int | None:
    """The term that an expression of a head builds; None for what only the engine knows."""
    if isinstance(expr, Var):
        return values.get(expr.name)
    if isinstance(expr, Lit):
        return None if expr.value is None else table.literal(expr.sort, expr.value)
    args = [ground(arg, values, table, declared) for arg in expr.args]
    known = [arg for arg in args if arg is not None]
    if len(known) != len(args):
        return None
    if expr.fn in declared:
        return table.add(expr.fn, *known)
    result = rematch.compute(expr.fn, [table.nodes[arg].value for arg in known])
    return None if result is None else table.literal(_SORTS[type(result)], result)
