"""The engine parser's commands as records.

What the records cannot say (presorts, ``panic``, other commands) is refused here by its class, and
the engine later runs only what is rebuilt from the records: nothing of an untrusted file gets past
this module in any other form. Commands are told apart by class name, so that this module does not
import the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import Any, ClassVar

from rulecheck.records import (
    Action,
    Call,
    Change,
    Declaration,
    Do,
    Eq,
    Expr,
    Fact,
    Holds,
    Let,
    Lit,
    Problem,
    Rule,
    Set,
    Span,
    Union,
    Var,
)
from rulecheck.rules.places import FormPlaces

REWRITE_ROOT = "$rewrite"
WILDCARD = "_"

_LITERAL_SORTS = {"Int": "i64", "Float": "f64", "String": "String", "Bool": "bool"}
_CHANGES = {"Delete": "delete", "Subsume": "subsume"}
_INTEGER = re.compile(r"[+-]?[0-9]+")

Item = Declaration | Rule | Do


class Converter:
    """Turns one form's commands into records; what it must refuse goes to ``problems``."""

    def __init__(self, places: FormPlaces, fields: Mapping[str, tuple[str, ...]]) -> None:
        """Start with no problems. ``fields`` are the field names of what the file declares."""
        self.problems: list[Problem] = []
        self._places = places
        self._fields = fields
        self._hash = places.form.text_hash
        # Wildcards that a head refers to: what a rewrite subsumes is its left side again.
        self._kept: dict[str, str] | None = None

    def items(self, command: Any, classes: Container[str]) -> list[Item]:
        """Return the declarations, rules or ground rows that ``command`` stands for.

        ``classes`` are those that the form's first word may turn into: some words expand to other
        commands while they are parsed.
        """
        kind = type(command).__name__
        handler = self._COMMANDS.get(kind) if kind in classes else None
        if handler is None:
            self._refuse(
                f"`{self._places.form.keyword}` is not a command that a rule file may use.",
                "Keep declarations, rules and rows of relations; remove everything else.",
                self._places.keyword,
                self._places.form.keyword,
            )
            return []
        return handler(self, command)

    # Commands

    def _datatype(self, command: Any) -> list[Item]:
        return [
            Declaration("sort", command.name, (), None, self._places.keyword),
            *(self._variant(variant, command.name) for variant in command.variants),
        ]

    def _datatypes(self, command: Any) -> list[Item]:
        items: list[Item] = []
        for place, name, body in command.datatypes:
            span = self._span(place)
            if type(body).__name__ != "SubVariants":
                self._refuse_presort(name, span)
                continue
            items.append(Declaration("sort", name, (), None, span))
            items += (self._variant(variant, name) for variant in body.variants)
        return items

    def _sort(self, command: Any) -> list[Item]:
        span = self._span(command.span)
        if command.presort_and_args is not None:
            self._refuse_presort(command.name, span)
            return []
        return [Declaration("sort", command.name, (), None, span)]

    def _function(self, command: Any) -> list[Item]:
        schema = command.schema
        merge = None if command.merge is None else self._expr(command.merge)
        span = self._span(command.span)
        inputs, fields = tuple(schema.input), self._fields.get(command.name, ())
        name = command.name
        return [Declaration("function", name, inputs, schema.output, span, merge, fields=fields)]

    def _relation(self, command: Any) -> list[Item]:
        span = self._span(command.span)
        inputs, fields = tuple(command.inputs), self._fields.get(command.name, ())
        return [Declaration("relation", command.name, inputs, "Unit", span, fields=fields)]

    def _constructor(self, command: Any) -> list[Item]:
        return [
            Declaration(
                "constructor",
                command.name,
                tuple(command.schema.input),
                command.schema.output,
                self._span(command.span),
                cost=command.cost,
                unextractable=command.unextractable,
                fields=self._fields.get(command.name, ()),
            )
        ]

    def _ruleset(self, command: Any) -> list[Item]:
        return [Declaration("ruleset", command.name, (), None, self._span(command.span))]

    def _combined(self, command: Any) -> list[Item]:
        members = tuple(command.rulesets)
        span = self._span(command.span)
        return [Declaration("ruleset", command.name, (), None, span, members=members)]

    def _action(self, command: Any) -> list[Item]:
        action = self._convert_action(command.action)
        if isinstance(action, Do):
            return [action]
        if action is not None:
            self._refuse(
                f"`{self._places.form.keyword}` at top level changes the graph outside any rule.",
                "Remove it: rulecheck adds the terms that a rule needs.",
                self._places.keyword,
                self._places.form.keyword,
            )
        return []

    def _rule(self, command: Any) -> list[Item]:
        rule = command.rule
        body = tuple(self._fact(fact) for fact in rule.body)
        actions = (self._convert_action(action) for action in rule.head)
        head = tuple(action for action in actions if action is not None)
        return [self._make_rule("rule", "", rule.ruleset, body, head)]

    def _rewrite(self, command: Any) -> list[Item]:
        rewrite = command.rewrite
        self._kept = {} if command.subsume else None
        left = self._expr(rewrite.lhs)
        self._kept = None
        body, head = self._direct(left, self._expr(rewrite.rhs), rewrite.conditions)
        if command.subsume and isinstance(left, Call):
            head = (*head, Change("subsume", left.fn, left.args, left.span))
        return [self._make_rule("rewrite", "", command.name, body, head)]

    def _birewrite(self, command: Any) -> list[Item]:
        rewrite = command.rewrite
        left, right = self._expr(rewrite.lhs), self._expr(rewrite.rhs)
        there = self._direct(left, right, rewrite.conditions)
        back = self._direct(right, left, rewrite.conditions)
        return [
            self._make_rule("birewrite", " =>", command.name, *there),
            self._make_rule("birewrite", " <=", command.name, *back),
        ]

    # Parts of commands

    def _variant(self, variant: Any, sort: str) -> Declaration:
        return Declaration(
            "constructor",
            variant.name,
            tuple(variant.types),
            sort,
            self._span(variant.span),
            cost=variant.cost,
            unextractable=variant.unextractable,
            fields=self._fields.get(variant.name, ()),
        )

    def _direct(
        self, old: Expr, new: Expr, conditions: list[Any]
    ) -> tuple[tuple[Fact, ...], tuple[Action, ...]]:
        """Write one direction of a rewrite as body and head."""
        facts = tuple(self._fact(condition) for condition in conditions)
        pattern = Eq(Var(REWRITE_ROOT, old.span), old, old.span)
        return (pattern, *facts), (Union(Var(REWRITE_ROOT, new.span), new, new.span),)

    def _make_rule(
        self,
        kind: str,
        suffix: str,
        ruleset: str,
        body: tuple[Fact, ...],
        head: tuple[Action, ...],
    ) -> Rule:
        places = self._places
        return Rule(
            places.rule_name + suffix,
            ruleset,
            kind,
            body,
            head,
            places.whole,
            places.name_span,
            places.form.index,
            self._hash,
        )

    def _fact(self, fact: Any) -> Fact:
        if type(fact).__name__ == "Eq":
            return Eq(self._expr(fact.left), self._expr(fact.right), self._span(fact.span))
        expr = self._expr(fact.expr)
        return Holds(expr, expr.span)

    def _convert_action(self, action: Any) -> Action | None:
        handler = self._ACTIONS.get(type(action).__name__)
        if handler is None:
            self._refuse(
                f"A rule may not use `{type(action).__name__.lower()}`: it stops the engine.",
                "Remove the action; a rule that does not apply should not match.",
                self._span(action.span),
                type(action).__name__.lower(),
            )
            return None
        return handler(self, action)

    def _let(self, action: Any) -> Action:
        return Let(action.lhs, self._expr(action.rhs), self._span(action.span))

    def _union(self, action: Any) -> Action:
        return Union(self._expr(action.lhs), self._expr(action.rhs), self._span(action.span))

    def _set(self, action: Any) -> Action:
        args = tuple(self._expr(arg) for arg in action.args)
        return Set(action.lhs, args, self._expr(action.rhs), self._span(action.span))

    def _change(self, action: Any) -> Action:
        args = tuple(self._expr(arg) for arg in action.args)
        kind = _CHANGES[type(action.change).__name__]
        return Change(kind, action.sym, args, self._span(action.span))

    def _do(self, action: Any) -> Action:
        return Do(self._expr(action.expr), self._span(action.span))

    def _expr(self, node: Any) -> Expr:
        span = self._span(node.span)
        kind = type(node).__name__
        if kind == "Call":
            return Call(node.name, tuple(self._expr(arg) for arg in node.args), span)
        if kind == "Var":
            return Var(self._wildcard(node.name) if node.name[0] == "@" else node.name, span)
        return self._literal(node, span)

    def _wildcard(self, name: str) -> str:
        """Name what the author wrote as `_`: the parser gives each a fresh name of its own."""
        if self._kept is None:
            return WILDCARD
        return self._kept.setdefault(name, f"{REWRITE_ROOT}.{len(self._kept) + 1}")

    def _literal(self, node: Any, span: Span) -> Lit:
        sort = _LITERAL_SORTS.get(type(node.value).__name__)
        if sort is None:
            return Lit(None, "Unit", span)
        if sort == "f64" and _INTEGER.fullmatch(self._places.text(node.span)):
            # The engine silently takes it for a float.
            self._problem(
                "type",
                f"The integer {self._places.text(node.span)} does not fit 64 bits.",
                "Use a smaller integer, or write a float with a point.",
                span,
            )
        return Lit(node.value.value, sort, span)

    # Problems

    def _span(self, place: Any) -> Span:
        return self._places.span(place.i, place.j)

    def _refuse_presort(self, name: str, span: Span) -> None:
        self._refuse(
            f"The sort `{name}` is a container or a function sort, which rule files may not use.",
            "Use a datatype.",
            span,
            name,
        )

    def _refuse(self, message: str, hint: str, span: Span, subject: str) -> None:
        self._problem("refused", message, hint, span, subject)

    def _problem(
        self, kind: str, message: str, hint: str, span: Span, subject: str | None = None
    ) -> None:
        self.problems.append(Problem(kind, message, hint, span, None, subject))

    _COMMANDS: ClassVar[dict[str, Callable[[Converter, Any], list[Item]]]] = {
        "Datatype": _datatype,
        "Datatypes": _datatypes,
        "Sort": _sort,
        "FunctionCommand": _function,
        "Relation": _relation,
        "Constructor": _constructor,
        "AddRuleset": _ruleset,
        "UnstableCombinedRuleset": _combined,
        "ActionCommand": _action,
        "RuleCommand": _rule,
        "RewriteCommand": _rewrite,
        "BiRewriteCommand": _birewrite,
    }
    _ACTIONS: ClassVar[dict[str, Callable[[Converter, Any], Action]]] = {
        "Let": _let,
        "Union": _union,
        "Set": _set,
        "Change": _change,
        "Expr_": _do,
    }
