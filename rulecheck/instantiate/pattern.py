"""A rule's left side as a graph of classes: what must be equal, what is fixed, what is free.

Union-find over the terms of the body. ``=`` merges; two calls of one constructor in one class
merge their arguments (sufficient for the rule to match, not necessary), and calls of a function
on merged arguments merge their results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from rulecheck.records import Call, Declaration, Eq, Expr, Holds, Lit, Rule, Span, Var, calls_in

WILDCARD = "_"
GUARDS = frozenset({"!=", "<", ">", "<=", ">="})


@dataclasses.dataclass(frozen=True, slots=True)
class PatternCall:
    """A call in a class; ``args`` are pattern nodes."""

    fn: str
    args: tuple[int, ...]
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionFact:
    """``result`` is the value of the function (or primitive) ``fn`` at ``args``."""

    fn: str
    args: tuple[int, ...]
    result: int
    span: Span


@dataclasses.dataclass(frozen=True, slots=True)
class Constraint:
    """A guard or a relation row that the match needs; ``text`` is how to quote it."""

    fn: str
    args: tuple[int, ...]
    span: Span
    text: str


class Contradiction(Exception):  # noqa: N818 - control flow inside this package
    """The left side cannot hold: two different values are required to be one."""


class PatternGraph:
    """Classes of pattern terms. Node numbers are stable; ``find`` gives a node's class."""

    def __init__(self, signatures: Mapping[str, Declaration], rigid_sorts: frozenset[str]) -> None:
        """Start empty.

        Args:
            signatures: every declared name.
            rigid_sorts: sorts in which two constructors never denote one value (types, lists);
                numbers have many spellings, and graphs are what rules make equal.
        """
        self.signatures = signatures
        self.rigid_sorts = rigid_sorts
        self.parent: list[int] = []
        self.sorts: list[str | None] = []
        self.calls: dict[int, tuple[PatternCall, ...]] = {}
        self.literals: dict[int, tuple[str, int | float | str | bool | None]] = {}
        self.variables: dict[str, int] = {}
        self.functions: list[FunctionFact] = []
        self.constraints: list[Constraint] = []
        self.clamps: list[tuple[str, float]] = []
        self.changes = 0  # calls added and classes merged so far
        self.made: frozenset[str] = frozenset()  # constructors of the head
        self.asked: set[int] = set()  # terms that a guard names; that alone does not make them

    def copy(self) -> PatternGraph:
        """A copy that can be extended without changing this graph."""
        twin = PatternGraph(self.signatures, self.rigid_sorts)
        twin.parent = self.parent.copy()
        twin.sorts = self.sorts.copy()
        twin.calls = self.calls.copy()
        twin.literals = self.literals.copy()
        twin.variables = self.variables
        twin.functions = self.functions.copy()
        twin.constraints = self.constraints
        twin.clamps = self.clamps
        twin.made = self.made
        twin.asked = self.asked
        twin.changes = self.changes
        return twin

    def find(self, node: int) -> int:
        """The representative of a node's class."""
        parent = self.parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def fresh(self, sort: str | None) -> int:
        """A new class with nothing in it."""
        self.parent.append(len(self.parent))
        self.sorts.append(sort)
        return len(self.parent) - 1

    def add_call(self, fn: str, args: tuple[int, ...], sort: str | None, span: Span) -> int:
        """A new class that holds one constructor call."""
        node = self.fresh(sort)
        self.calls[node] = (PatternCall(fn, args, span),)
        self.changes += 1
        return node

    def given(self) -> set[int]:
        """Classes that a fact says; a term that only guards compare with is looked up, not made."""
        return {self.find(node) for node in range(len(self.parent)) if node not in self.asked}

    def classes(self) -> list[int]:
        """All representatives, oldest first."""
        return [node for node, up in enumerate(self.parent) if node == up]

    def calls_of(self, node: int) -> tuple[PatternCall, ...]:
        """The constructor calls in a node's class."""
        return self.calls.get(self.find(node), ())

    def sort_of(self, node: int) -> str | None:
        """The sort of a node's class, if it is known."""
        return self.sorts[self.find(node)]

    def union(self, left: int, right: int) -> None:
        """Merge two classes and what follows from it.

        Raises:
            Contradiction: the classes cannot be equal.
        """
        pending = [(left, right)]
        while pending:
            first, second = (self.find(node) for node in pending.pop())
            if first == second:
                continue
            self.parent[second] = first
            self.changes += 1
            self.sorts[first] = self.sorts[first] or self.sorts[second]
            self._merge_literals(first, second)
            pending.extend(self._merge_calls(first, second))
            pending.extend(self._congruent_functions())

    def _merge_literals(self, first: int, second: int) -> None:
        theirs = self.literals.pop(second, None)
        if theirs is None:
            return
        ours = self.literals.setdefault(first, theirs)
        if ours != theirs:
            raise Contradiction(f"{show_literal(ours)} = {show_literal(theirs)}")

    def _merge_calls(self, first: int, second: int) -> list[tuple[int, int]]:
        merged = list(self.calls.get(first, ()))
        pending: list[tuple[int, int]] = []
        rigid = self.sorts[first] in self.rigid_sorts
        for call in self.calls.pop(second, ()):
            twin = next((known for known in merged if self._same_head(known, call, rigid)), None)
            if twin is not None:
                pending.extend(zip(twin.args, call.args, strict=True))
                continue
            if merged and rigid:
                raise Contradiction(f"({merged[0].fn} …) = ({call.fn} …)")
            merged.append(call)
        if merged:
            self.calls[first] = tuple(merged)
        return pending

    def _same_head(self, first: PatternCall, second: PatternCall, rigid: bool) -> bool:
        """Whether two calls in one class are merged.

        Where a value has one spelling they must be. Elsewhere a class may hold both, as a graph
        class holds ops of two kinds, so calls whose arguments surely differ stay apart.
        """
        if first.fn != second.fn or len(first.args) != len(second.args):
            return False
        if rigid:
            return True
        for one, other in zip(first.args, second.args, strict=True):
            heads = [{call.fn for call in self.calls_of(node)} for node in (one, other)]
            if heads[0] and heads[1] and heads[0].isdisjoint(heads[1]):
                return False
        return True

    def _congruent_functions(self) -> list[tuple[int, int]]:
        seen: dict[tuple[str, tuple[int, ...]], int] = {}
        pending = []
        for fact in self.functions:
            key = (fact.fn, tuple(self.find(arg) for arg in fact.args))
            other = seen.setdefault(key, fact.result)
            if self.find(other) != self.find(fact.result):
                pending.append((other, fact.result))
        return pending

    def add_function(self, fn: str, args: tuple[int, ...], sort: str | None, span: Span) -> int:
        """The class that holds ``fn(args)``, shared with an equal call."""
        key = tuple(self.find(arg) for arg in args)
        for fact in self.functions:
            if fact.fn == fn and tuple(self.find(arg) for arg in fact.args) == key:
                return fact.result
        result = self.fresh(sort)
        self.functions.append(FunctionFact(fn, args, result, span))
        return result

    def add_expr(self, expr: Expr, sort: str | None = None) -> int:
        """Add a body expression; return its node."""
        if isinstance(expr, Var):
            if expr.name == WILDCARD:
                return self.fresh(sort)
            if expr.name not in self.variables:
                self.variables[expr.name] = self.fresh(sort)
            node = self.find(self.variables[expr.name])
            self.sorts[node] = self.sorts[node] or sort
            return node
        if isinstance(expr, Lit):
            literal = (expr.sort, expr.value)
            known = next((node for node, held in self.literals.items() if held == literal), None)
            node = self.fresh(expr.sort) if known is None else known
            self.literals[node] = literal
            return node
        signature = self.signatures.get(expr.fn)
        wanted = signature.inputs if signature is not None else (None,) * len(expr.args)
        args = tuple(self.add_expr(arg, want) for arg, want in zip(expr.args, wanted, strict=True))
        if signature is None:  # a primitive: its value is known once its arguments are
            return self.add_function(expr.fn, args, sort, expr.span)
        if signature.kind == "constructor":
            return self.add_call(expr.fn, args, signature.output, expr.span)
        return self.add_function(expr.fn, args, signature.output, expr.span)

    def add_fact(self, fact: Eq | Holds) -> None:
        """Add one body fact.

        Raises:
            Contradiction: it cannot hold together with the facts before it.
        """
        if isinstance(fact, Eq):
            left = self.add_expr(fact.left)
            right = self.add_expr(fact.right, self.sort_of(left))
            self.union(left, right)
            return
        expr = fact.expr
        signature = self.signatures.get(expr.fn) if isinstance(expr, Call) else None
        is_row = signature is not None and signature.kind == "relation"
        if isinstance(expr, Call) and (is_row or expr.fn in GUARDS):
            wanted = signature.inputs if signature is not None else (None,) * len(expr.args)
            before = len(self.parent)
            args = tuple(
                self.add_expr(arg, want) for arg, want in zip(expr.args, wanted, strict=True)
            )
            if not is_row:
                made = set(range(before, len(self.parent)))
                self.asked |= made - set(self.variables.values())
            self.constraints.append(Constraint(expr.fn, args, expr.span, show(expr)))
            return
        self.add_expr(expr)


def build_pattern(
    rule: Rule, signatures: Mapping[str, Declaration], rigid_sorts: frozenset[str]
) -> PatternGraph:
    """The pattern graph of a rule's body.

    Raises:
        Contradiction: the body cannot hold.
    """
    graph = PatternGraph(signatures, rigid_sorts)
    for fact in rule.body:
        graph.add_fact(fact)
    graph.clamps = list(_clamps(rule))
    graph.made = frozenset(call.fn for call in calls_in(*rule.head))
    # Constructor calls that were equal from the start (hash-consed by the engine) are one class.
    changed = True
    while changed:
        changed = False
        seen: dict[tuple[str, tuple[int, ...]], int] = {}
        for root in graph.classes():
            for call in graph.calls_of(root):
                key = (call.fn, tuple(graph.find(arg) for arg in call.args))
                other = seen.setdefault(key, root)
                if graph.find(other) != graph.find(root):
                    graph.union(other, root)
                    changed = True
    return graph


def _clamps(rule: Rule) -> Iterator[tuple[str, float]]:
    """Variables and the numbers that ``min`` and ``max`` hold them against, on either side."""
    for call in calls_in(*rule.body, *rule.head):
        if call.fn in ("min", "max"):
            names = [arg.name for arg in call.args if isinstance(arg, Var)]
            limits = [arg.value for arg in call.args if isinstance(arg, Lit)]
            yield from (
                (name, limit) for name in names for limit in limits if isinstance(limit, float)
            )


def show(expr: Expr) -> str:
    """Print a body expression as the author would."""
    if isinstance(expr, Var):
        return expr.name
    if isinstance(expr, Lit):
        return show_literal((expr.sort, expr.value))
    return "(" + " ".join([expr.fn, *(show(arg) for arg in expr.args)]) + ")"


def show_literal(literal: tuple[str, int | float | str | bool | None]) -> str:
    """Print a literal as egglog spells it."""
    value = literal[1]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return "()" if value is None else repr(value)
