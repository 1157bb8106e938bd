"""A second opinion on a match: whether a rule's body really holds for what the engine bound.

The engine is not trusted (egglog 13.2.0 bound terms that do not match). Facts about terms and
numbers are judged here on the decoded terms. Not judged are facts about relations and functions, as
they hold by other rules, and terms that no variable names, as the reply need not contain them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from rulecheck.records import Call, Declaration, Eq, Expr, Fact, Firing, Lit, Node, Rule, Var

# (sort, a term id, another): whether both may be one value although they are spelled differently.
Equal = Callable[[str, int, int], bool]
# Adds a node to the table and returns its id.
Build = Callable[[Node], int]
Value = int | float | str | bool

_BASE_SORTS = frozenset({"i64", "f64", "String", "bool"})
_WILDCARD = "_"
_I64_END = 1 << 63


def rematch(
    rule: Rule,
    firing: Firing,
    nodes: Sequence[Node],
    declarations: Sequence[Declaration],
    equal: Equal | None = None,
    *,
    build: Build | None = None,
) -> Fact | None:
    """Return the first fact of the body that does not hold for a firing, or None.

    Args:
        rule: the rule that fired.
        firing: what the engine bound.
        nodes: the reply's node table; equal terms have one id.
        declarations: the loaded file's.
        equal: tells of terms that an algebra makes one value; by default terms are equal only as
            they are spelled.
        build: adds a node to the table, for ``equal`` to compare a pattern that is spelled in no
            term of the reply.
    """
    judge = _Judge(rule, firing, nodes, declarations, equal)
    judge.build = build
    return next((fact for fact in rule.body if not judge.holds(fact)), None)


class _Judge:
    """The bindings of one firing, and the terms they point into."""

    def __init__(
        self,
        rule: Rule,
        firing: Firing,
        nodes: Sequence[Node],
        declarations: Sequence[Declaration],
        equal: Equal | None,
    ) -> None:
        self._sorts = dict(rule.variables)
        self._bindings = dict(firing.bindings)
        self._nodes = nodes
        self._tables = {known.name: known for known in declarations if known.kind != "sort"}
        self._equal = equal
        self.build: Build | None = None

    def holds(self, fact: Fact) -> bool:
        if isinstance(fact, Eq):
            return self._are_equal(fact.left, fact.right)
        expr = fact.expr
        if not isinstance(expr, Call) or self._is_looked_up(expr):
            return True
        return self._is_term(expr) or self._guard(expr)

    def _are_equal(self, left: Expr, right: Expr) -> bool:
        for side, other in ((left, right), (right, left)):
            if isinstance(side, Var) and side.name != _WILDCARD:
                return self._fits(other, self._bindings[side.name])
        values = self._value(left), self._value(right)
        return None in values or _same(*values)

    def _fits(self, expr: Expr, index: int) -> bool:
        """Whether the pattern ``expr`` matches the term ``index``."""
        if isinstance(expr, Var):
            if expr.name == _WILDCARD:
                return True
            return self._one_value(self._sorts[expr.name], self._bindings[expr.name], index)
        if isinstance(expr, Call) and self._is_term(expr):
            return self._fits_term(expr, index)
        value = self._value(expr)
        return value is None or _same(value, self._nodes[index].value)

    def _fits_term(self, expr: Call, index: int) -> bool:
        known = self._tables[expr.fn]
        if self._has_parts(expr, index):
            return True
        if self._equal is None:
            return False
        sort = known.output or ""
        if any(
            self._equal(sort, index, other) and self._has_parts(expr, other)
            for other, node in enumerate(self._nodes)
            if node.fn == expr.fn and other != index
        ):
            return True
        spelled = self._spell(expr)
        return spelled is not None and self._equal(sort, index, spelled)

    def _spell(self, expr: Expr) -> int | None:
        """The pattern with its variables filled in, as a term; None if part of it is not known."""
        if self.build is None:
            return None
        if isinstance(expr, Var):
            return self._bindings.get(expr.name)
        if isinstance(expr, Lit):
            return None if expr.value is None else self.build(Node(expr.sort, (), expr.value))
        args = [self._spell(arg) for arg in expr.args]
        known = tuple(arg for arg in args if arg is not None)
        if len(known) != len(args) or not self._is_term(expr):
            return None
        return self.build(Node(expr.fn, known))

    def _has_parts(self, expr: Call, index: int) -> bool:
        node = self._nodes[index]
        return node.fn == expr.fn and all(
            self._fits(arg, part) for arg, part in zip(expr.args, node.args, strict=True)
        )

    def _one_value(self, sort: str, left: int, right: int) -> bool:
        if left == right:
            return True
        if sort in _BASE_SORTS:
            return _same(self._nodes[left].value, self._nodes[right].value)
        return self._equal is not None and self._equal(sort, left, right)

    def _guard(self, expr: Call) -> bool:
        """Judge a primitive in the place of a fact, such as ``(!= ?d (F32))`` or ``(< ?a 3)``."""
        if expr.fn == "!=":
            return not self._surely_equal(*expr.args)
        values = [self._value(arg) for arg in expr.args]
        guard = _GUARDS.get(expr.fn)
        if guard is None or any(value is None for value in values):
            return True
        return guard(*values)

    def _surely_equal(self, left: Expr, right: Expr) -> bool:
        for side, other in ((left, right), (right, left)):
            if isinstance(side, Var) and not self._is_unknown(other):
                return self._fits(other, self._bindings[side.name])
        values = self._value(left), self._value(right)
        return None not in values and _same(*values)

    def _is_unknown(self, expr: Expr) -> bool:
        """Whether a part of ``expr`` is a table's value, which is not known here."""
        if isinstance(expr, Call):
            return self._is_looked_up(expr) or any(self._is_unknown(arg) for arg in expr.args)
        return isinstance(expr, Var) and expr.name == _WILDCARD

    def _is_looked_up(self, expr: Call) -> bool:
        known = self._tables.get(expr.fn)
        return known is not None and known.kind in ("function", "relation")

    def _is_term(self, expr: Call) -> bool:
        known = self._tables.get(expr.fn)
        return known is not None and known.kind == "constructor"

    def _value(self, expr: Expr) -> Value | None:
        """Compute a plain value; None for a term, and for what is not known here."""
        if isinstance(expr, Lit):
            return expr.value
        if isinstance(expr, Var):
            bound = self._bindings.get(expr.name)
            return None if bound is None else self._nodes[bound].value
        return compute(expr.fn, [self._value(arg) for arg in expr.args])


def compute(primitive: str, values: Sequence[Value | None]) -> Value | None:
    """The value of a primitive; None if it is not known here, or has none."""
    function = _PRIMITIVES.get(primitive)
    if function is None or any(value is None for value in values):
        return None
    return _compute(function, values)


def _compute(function: Callable[..., Value], values: Sequence[Value | None]) -> Value | None:
    try:
        result = function(*values)
    except (ZeroDivisionError, OverflowError):
        return None
    in_range = not isinstance(result, int) or -_I64_END <= result < _I64_END
    return result if in_range else None


def _same(left: Value | None, right: Value | None) -> bool:
    """Compare as the engine does: NaN equals itself, 0.0 equals -0.0, and sorts never mix."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and left == right


def _divide(left: float, right: float) -> float:
    """Divide towards zero for integers, as the engine does."""
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def _remainder(left: float, right: float) -> float:
    if isinstance(left, int) and isinstance(right, int):
        return left - right * int(_divide(left, right))
    return math.fmod(left, right)


_GUARDS: dict[str, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PRIMITIVES: dict[str, Callable[..., Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
    "min": min,
    "max": max,
    "abs": abs,
    "neg": operator.neg,
    "to-f64": float,
    "bool-=": operator.eq,
    "bool-<": operator.lt,
    "bool-<=": operator.le,
    "bool->": operator.gt,
    "bool->=": operator.ge,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "=>": operator.le,
    "not": operator.not_,
}
