"""Two rules as one left side: what a first rule matches, so that a second one then matches too.

A left side may ask for facts or ops that only another rule makes. Put in place of them, the other
rule's own left side (its variables renamed) describes graphs on which both fire, one after the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from rulecheck.dialects import Vocabulary
from rulecheck.records import (
    Action,
    Call,
    Do,
    Eq,
    Expr,
    Fact,
    Holds,
    Let,
    Lit,
    Rule,
    Set,
    Union,
    Var,
)

WILDCARD = "_"
# A head's lets can double a term at every step; what is larger than this is not composed.
MAX_NODES = 4000
MAX_DEPTH = 150


class Product(NamedTuple):
    """What a rule adds to a graph: a new op (``kind`` and ``inputs``) for the class ``of``."""

    of: Expr
    kind: Call
    inputs: Expr


def renamed(rule: Rule, tag: str) -> Rule:
    """The same rule with ``tag`` behind the name of each variable."""

    def rename(expr: Var) -> Expr:
        if expr.name == WILDCARD:
            return expr
        return msgspec.structs.replace(expr, name=f"{expr.name}~{tag}")

    return msgspec.structs.replace(
        rule,
        body=tuple(_map_fact(fact, rename) for fact in rule.body),
        head=tuple(_map_action(action, rename, tag) for action in rule.head),
        variables=tuple((f"{name}~{tag}", sort) for name, sort in rule.variables),
    )


def rows(rule: Rule) -> Iterator[Call]:
    """The rows that a rule adds to relations, with the head's lets written out."""
    lets = _lets(rule)
    for action in rule.head if lets is not None else ():
        if isinstance(action, Do) and isinstance(action.expr, Call):
            if not _is_small(action.expr, lets or {}):
                continue
            found = _expand(action.expr, lets or {})
            assert isinstance(found, Call)
            yield found


def products(rule: Rule, vocabulary: Vocabulary) -> Iterator[Product]:
    """The ops that a rule unites with something of its left side."""
    lets, bound = _lets(rule), {name for name, _ in rule.variables}
    op = vocabulary.encoding.op
    for action in rule.head:
        if lets is None or not isinstance(action, Union):
            continue
        if not all(_is_small(side, lets) for side in (action.left, action.right)):
            continue
        sides = [_expand(side, lets) for side in (action.left, action.right)]
        for of, made in (sides, sides[::-1]):
            matched = isinstance(of, Var) and of.name in bound
            if matched and isinstance(made, Call) and made.fn == op and len(made.args) == 2:
                kind = made.args[0]
                if isinstance(kind, Call):
                    yield Product(of, kind, made.args[1])


def with_fact(consumer: Rule, fact: Holds, producer: Rule, tag: str) -> Iterator[Rule]:
    """Left sides of ``consumer`` in which ``producer`` derives one of its facts.

    ``fact`` is a row of a relation in the consumer's body. One left side for each row that the
    producer adds.
    """
    assert isinstance(fact.expr, Call)
    other = renamed(producer, tag)
    for row in rows(other):
        if row.fn == fact.expr.fn and len(row.args) == len(fact.expr.args):
            ties = _ties(fact.expr.args, row.args)
            body = tuple(known for known in consumer.body if known is not fact)
            yield _composed(consumer, other, (*other.body, *ties, *body))


def with_op(consumer: Rule, producer: Rule, vocabulary: Vocabulary, tag: str) -> Iterator[Rule]:
    """Left sides of ``consumer`` in which ``producer`` makes one of the ops that it matches."""
    other = renamed(producer, tag)
    flat = _flattened(consumer, vocabulary)
    names = vocabulary.encoding
    for product in products(other, vocabulary):
        for fact in flat:
            if not (isinstance(fact, Eq) and isinstance(fact.right, Call)):
                continue
            if fact.right.fn != names.op or len(fact.right.args) != 2:
                continue
            kind, inputs = fact.right.args
            if not isinstance(kind, Call) or not _may_match(kind, product.kind):
                continue
            ties = (
                Eq(fact.left, product.of, fact.span),
                *_ties(kind.args, product.kind.args),
                *_ties((inputs,), (product.inputs,)),
            )
            body = tuple(known for known in flat if known is not fact)
            yield _composed(consumer, other, (*other.body, *ties, *body))


def _composed(consumer: Rule, other: Rule, body: tuple[Fact, ...]) -> Rule:
    return msgspec.structs.replace(
        consumer, body=body, variables=(*consumer.variables, *other.variables)
    )


def _ties(left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Fact, ...]:
    return tuple(Eq(ours, theirs, ours.span) for ours, theirs in zip(left, right, strict=True))


def _may_match(pattern: Call, made: Call) -> bool:
    """Whether one constructor call can be the other, as far as literals and constructors tell."""
    if pattern.fn != made.fn or len(pattern.args) != len(made.args):
        return False
    return all(_may_equal(one, other) for one, other in zip(pattern.args, made.args, strict=True))


def _may_equal(pattern: Expr, made: Expr) -> bool:
    match pattern, made:
        case Lit(), Lit():
            return pattern.value == made.value
        case Call(), Call() if not pattern.args and not made.args:
            return pattern.fn == made.fn
        case _:
            return True


def _flattened(rule: Rule, vocabulary: Vocabulary) -> tuple[Fact, ...]:
    """The body with every op in a fact of its own: ``(= variable (op …))``."""
    op = vocabulary.encoding.op
    found: list[Fact] = []

    def lift(expr: Expr, *, keep: bool = False) -> Expr:
        if not isinstance(expr, Call):
            return expr
        whole = msgspec.structs.replace(expr, args=tuple(lift(arg) for arg in expr.args))
        if expr.fn != op or keep:
            return whole
        fresh = Var(f"op~{len(found)}", expr.span)
        found.append(Eq(fresh, whole, expr.span))
        return fresh

    for fact in rule.body:
        if isinstance(fact, Holds):
            found.append(msgspec.structs.replace(fact, expr=lift(fact.expr)))
            continue
        left, right = fact.left, fact.right
        if isinstance(left, Call) and left.fn == op:
            left, right = right, left
        right = lift(right, keep=isinstance(left, Var))
        found.append(Eq(lift(left), right, fact.span))
    return tuple(found)


def _lets(rule: Rule) -> dict[str, Expr] | None:
    """What the head's lets stand for, written out; None if that would be very large."""
    found: dict[str, Expr] = {}
    sizes: dict[str, tuple[int, int]] = {}
    for action in rule.head:
        if isinstance(action, Let):
            sizes[action.name] = size = _size(action.expr, sizes)
            if size[0] > MAX_NODES or size[1] > MAX_DEPTH:
                return None
            found[action.name] = _expand(action.expr, found)
    return found


def _is_small(expr: Expr, lets: Mapping[str, Expr]) -> bool:
    """Whether an expression stays within the limits with its lets written out."""
    nodes, depth = _size(expr, {name: _size(known, {}) for name, known in lets.items()})
    return nodes <= MAX_NODES and depth <= MAX_DEPTH


def _size(expr: Expr, sizes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """(nodes, depth) of an expression with its lets written out."""
    if isinstance(expr, Var):
        return sizes.get(expr.name, (1, 1))
    if not isinstance(expr, Call):
        return (1, 1)
    parts = [_size(arg, sizes) for arg in expr.args]
    return (1 + sum(nodes for nodes, _ in parts), 1 + max((deep for _, deep in parts), default=0))


def _expand(expr: Expr, lets: Mapping[str, Expr]) -> Expr:
    return _map_expr(expr, lambda var: lets.get(var.name, var))


def _map_expr(expr: Expr, change: Callable[[Var], Expr]) -> Expr:
    if isinstance(expr, Var):
        return change(expr)
    if isinstance(expr, Call):
        args = tuple(_map_expr(arg, change) for arg in expr.args)
        return msgspec.structs.replace(expr, args=args)
    return expr


def _map_fact(fact: Fact, change: Callable[[Var], Expr]) -> Fact:
    if isinstance(fact, Eq):
        left, right = (_map_expr(side, change) for side in (fact.left, fact.right))
        return Eq(left, right, fact.span)
    return Holds(_map_expr(fact.expr, change), fact.span)


def _map_action(action: Action, change: Callable[[Var], Expr], tag: str) -> Action:
    match action:
        case Let():
            expr = _map_expr(action.expr, change)
            return msgspec.structs.replace(action, name=f"{action.name}~{tag}", expr=expr)
        case Union():
            left, right = (_map_expr(side, change) for side in (action.left, action.right))
            return msgspec.structs.replace(action, left=left, right=right)
        case Do():
            return msgspec.structs.replace(action, expr=_map_expr(action.expr, change))
        case Set():
            args = tuple(_map_expr(arg, change) for arg in action.args)
            value = _map_expr(action.value, change)
            return msgspec.structs.replace(action, args=args, value=value)
        case _:
            args = tuple(_map_expr(arg, change) for arg in action.args)
            return msgspec.structs.replace(action, args=args)
