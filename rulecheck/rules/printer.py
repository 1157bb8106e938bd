"""Records back to text that the engine's parser reads as the same records."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    Rule,
    Set,
    Union,
    Var,
)

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})


def print_rule(rule: Rule) -> str:
    """Print a rule, spelled out: a rewrite prints as the body and head it stands for."""
    body = "\n       ".join(print_fact(fact) for fact in rule.body)
    head = "\n       ".join(print_action(action) for action in rule.head)
    ruleset = f" :ruleset {rule.ruleset}" if rule.ruleset else ""
    return f"(rule ({body})\n      ({head})\n     {ruleset} :name {_string(rule.name)})"


def print_declaration(declaration: Declaration) -> str:
    """Print a declaration as a command of its own, also if it was part of a datatype."""
    name, inputs = declaration.name, f"({print_schema(declaration)})"
    if declaration.kind == "ruleset" and declaration.members:
        return f"(unstable-combined-ruleset {name} {' '.join(declaration.members)})"
    if declaration.kind in ("sort", "ruleset"):
        return f"({declaration.kind} {name})"
    if declaration.kind == "relation":
        return f"(relation {name} {inputs})"
    if declaration.kind == "function":
        merge = declaration.merge
        rule = ":no-merge" if merge is None else f":merge {print_expr(merge)}"
        return f"(function {name} {inputs} {declaration.output} {rule})"
    cost = "" if declaration.cost is None else f" :cost {declaration.cost}"
    hidden = " :unextractable" if declaration.unextractable else ""
    return f"(constructor {name} {inputs} {declaration.output}{cost}{hidden})"


def print_schema(declaration: Declaration) -> str:
    """Print the sorts of the inputs, each behind the name of its field if it has one."""
    if not declaration.fields:
        return " ".join(declaration.inputs)
    pairs = zip(declaration.fields, declaration.inputs, strict=True)
    return " ".join(f":{field} {sort}" for field, sort in pairs)


def print_fact(fact: Fact) -> str:
    """Print a fact of a body."""
    if isinstance(fact, Eq):
        return f"(= {print_expr(fact.left)} {print_expr(fact.right)})"
    return print_expr(fact.expr)


def print_action(action: Action) -> str:
    """Print an action of a head."""
    match action:
        case Let():
            return f"(let {action.name} {print_expr(action.expr)})"
        case Union():
            return f"(union {print_expr(action.left)} {print_expr(action.right)})"
        case Set():
            return f"(set {_apply(action.fn, action.args)} {print_expr(action.value)})"
        case Change():
            return f"({action.kind} {_apply(action.fn, action.args)})"
        case Do():
            return print_expr(action.expr)


def print_expr(expr: Expr) -> str:
    """Print an expression."""
    match expr:
        case Var():
            return expr.name
        case Call():
            return _apply(expr.fn, expr.args)
        case Lit():
            return _literal(expr)


def _apply(fn: str, args: Sequence[Expr]) -> str:
    return f"({' '.join([fn, *(print_expr(arg) for arg in args)])})"


def _literal(literal: Lit) -> str:
    value = literal.value
    if value is None:
        return "()"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return repr(value)


def _string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
