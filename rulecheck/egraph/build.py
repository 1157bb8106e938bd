"""Records as the engine's own objects: no text goes back to the engine's parser.

Every object carries a span that prints as a place in the author's file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rulecheck.egraph.bindings import OWN_SPAN, egg
from rulecheck.records import (
    Action,
    Call,
    Change,
    Declaration,
    Do,
    Eq,
    Expr,
    Fact,
    Let,
    Lit,
    Set,
    Span,
    Union,
    Var,
)

_LITERALS: dict[str, Callable[[Any], Any]] = {
    "i64": egg.Int,
    "f64": lambda value: egg.Float(float(value)),
    "String": egg.String,
    "bool": egg.Bool,
    "Unit": lambda _: egg.Unit(),
}
_CHANGES: dict[str, Callable[[], Any]] = {"delete": egg.Delete, "subsume": egg.Subsume}


def literal(sort: str, value: Any, span: Any = OWN_SPAN) -> Any:
    """Build a literal of a base sort."""
    return egg.Lit(span, _LITERALS[sort](value))


def variable(name: str, span: Any = OWN_SPAN) -> Any:
    """Build a variable."""
    return egg.Var(span, name)


def call(fn: str, args: list[Any], span: Any = OWN_SPAN) -> Any:
    """Build an application of ``fn``."""
    return egg.Call(span, fn, args)


def run_once(ruleset: str) -> Any:
    """Build the command that runs a ruleset for one iteration."""
    return egg.RunSchedule(egg.Run(OWN_SPAN, egg.RunConfig(ruleset, None)))


def build_declaration(declaration: Declaration) -> Any | None:
    """Build the command that declares a sort or a table; None for rulesets.

    The rulesets of a file are never run as such: each rule is run in one of its own.
    """
    span = _place(declaration.span)
    name, inputs = declaration.name, list(declaration.inputs)
    if declaration.kind == "sort":
        return egg.Sort(span, name, None)
    if declaration.kind == "relation":
        return egg.Relation(span, name, inputs)
    if declaration.kind == "constructor":
        schema = egg.Schema(inputs, declaration.output)
        return egg.Constructor(span, name, schema, declaration.cost, declaration.unextractable)
    if declaration.kind == "function":
        merge = None if declaration.merge is None else RuleBuilder().expr(declaration.merge)
        return egg.FunctionCommand(span, name, egg.Schema(inputs, declaration.output), merge)
    return None


class RuleBuilder:
    """Builds the parts of one rule; each ``_`` becomes a variable of its own."""

    def __init__(self) -> None:
        """Start counting wildcards."""
        self._wildcards = 0

    def expr(self, expr: Expr) -> Any:
        """Build an expression."""
        span = _place(expr.span)
        match expr:
            case Lit():
                return literal(expr.sort, expr.value, span)
            case Var():
                return variable(self._name(expr.name), span)
            case Call():
                return call(expr.fn, self._exprs(expr.args), span)

    def fact(self, fact: Fact) -> Any:
        """Build a fact of a body."""
        if isinstance(fact, Eq):
            return egg.Eq(_place(fact.span), self.expr(fact.left), self.expr(fact.right))
        return egg.Fact(self.expr(fact.expr))

    def action(self, action: Action) -> Any:
        """Build an action of a head."""
        span = _place(action.span)
        match action:
            case Let():
                return egg.Let(span, action.name, self.expr(action.expr))
            case Union():
                return egg.Union(span, self.expr(action.left), self.expr(action.right))
            case Set():
                value = self.expr(action.value)
                return egg.Set(span, action.fn, self._exprs(action.args), value)
            case Change():
                kind = _CHANGES[action.kind]()
                return egg.Change(span, kind, action.fn, self._exprs(action.args))
            case Do():
                return egg.Expr_(span, self.expr(action.expr))

    def _exprs(self, exprs: tuple[Expr, ...]) -> list[Any]:
        return [self.expr(expr) for expr in exprs]

    def _name(self, name: str) -> str:
        if name != "_":
            return name
        self._wildcards += 1
        return f"@rc_any_{self._wildcards}"


def _place(span: Span) -> Any:
    return egg.RustSpan(span.file, span.line, span.column)
