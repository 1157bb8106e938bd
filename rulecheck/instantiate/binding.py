"""Values for the classes of a pattern: matching ground terms, solving products, checking guards."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping

from rulecheck.dialects import Encoding
from rulecheck.dialects.terms import TermReader
from rulecheck.instantiate.pattern import (
    GUARDS,
    Constraint,
    FunctionFact,
    PatternCall,
    PatternGraph,
)
from rulecheck.instantiate.spelling import Spelling
from rulecheck.records import TermTable

Rows = Mapping[str, frozenset[tuple[int, ...]]]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "min": min,
    "max": max,
}


class Binding:
    """Ground terms for pattern classes, with undo."""

    def __init__(
        self, graph: PatternGraph, table: TermTable, encoding: Encoding, rows: Rows
    ) -> None:
        """Bind over ``table``; ``rows`` are the rows of every relation that is a fixed table."""
        self.graph = graph
        self.table = table
        self.encoding = encoding
        self.rows = rows
        self.reader = TermReader(table.nodes, encoding)
        self.spelling = Spelling(table, encoding)
        self.values: dict[int, int] = {}
        self.trail: list[int] = []
        self.bound = 0  # how often a class was bound
        # Classes that nothing determines, as of (bindings, changes of the graph).
        self.unknown: dict[int, tuple[int, int]] = {}
        self.opened: set[int] = set()  # the classes that `ground` is looking into
        self.cyclic: set[int] = set()  # those of them that it met again inside themselves
        # A relation that rules fill is for the engine to decide.
        decided = [item for item in graph.constraints if item.fn in rows or item.fn in GUARDS]
        self._decided = [(item, self._reachable(item)) for item in decided]
        # The classes of these nodes, as of so many changes of the graph.
        self._roots: list[frozenset[int]] = []
        self._roots_as_of = -1

    def branch(self, graph: PatternGraph) -> Binding:
        """What is bound so far, over a copy of the graph; neither changes the other from here on.

        What was read and spelled of the shared term table is shared too.
        """
        twin = copy.copy(self)
        twin.graph = graph
        twin.values = self.values.copy()
        twin.trail = self.trail.copy()
        twin.unknown = self.unknown.copy()
        twin.opened, twin.cyclic = set(), set()
        return twin

    def _reachable(self, constraint: Constraint) -> frozenset[int]:
        """Every pattern node that a constraint's arguments are made of."""
        seen: set[int] = set()
        stack = list(constraint.args)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                for call in self.graph.calls_of(node):
                    stack.extend(call.args)
        return frozenset(seen)

    def undo(self, mark: int) -> None:
        """Forget every value bound since ``len(trail)`` was ``mark``."""
        while len(self.trail) > mark:
            del self.values[self.trail.pop()]

    def unify(self, node: int, term: int) -> bool:
        """Make the class equal to a ground term; False (and nothing bound) if it cannot be."""
        mark = len(self.trail)
        if self._unify(node, term):
            return True
        self.undo(mark)
        return False

    def _unify(self, node: int, term: int) -> bool:
        root = self.graph.find(node)
        if root in self.values:
            return self.reader.equal(self.values[root], term)
        literal = self.graph.literals.get(root)
        if literal is not None and not self._same_literal(literal[1], term):
            return False
        bound = term
        for call in self.graph.calls_of(root):
            spelled = self._match_call(call, term)
            if spelled is None:
                return False
            bound = spelled
        self.values[root] = bound
        self.trail.append(root)
        self.bound += 1
        return self._follow(root)

    def _same_literal(self, wanted: float | str | bool | None, term: int) -> bool:
        value = self.table.nodes[term].value
        return value is not None and wanted == value and isinstance(value, type(wanted))

    def _match_call(self, call: PatternCall, term: int) -> int | None:
        """Match a constructor call; return the term as the pattern spells it."""
        node = self.table.nodes[term]
        mark = len(self.trail)
        orders = [node.args] if node.fn == call.fn else []
        names = self.encoding
        if node.fn == call.fn == names.product:
            orders.append(node.args[::-1])  # the dialect's algebra commutes products
        for args in orders:
            if all(self._unify(arg, value) for arg, value in zip(call.args, args, strict=True)):
                return self._spell(call)
            self.undo(mark)
        if call.fn in names.arithmetic and self._solve(call, term):
            return self._spell(call)
        self.undo(mark)
        return None

    def _spell(self, call: PatternCall) -> int:
        return self.table.add(call.fn, *(self.values[self.graph.find(arg)] for arg in call.args))

    def _solve(self, call: PatternCall, term: int) -> bool:
        """Solve an arithmetic call for one unknown argument, or check it if both are known."""
        known = [self.ground(arg) for arg in call.args]
        if None not in known:
            for arg, value in zip(call.args, known, strict=True):
                assert value is not None
                if not self._unify(arg, value):
                    return False
            return self.reader.same_expression(self._spell(call), term)
        if call.fn != self.encoding.product:
            return False
        if known == [None, None]:  # nothing else says how a product splits: all in one factor
            return any(
                self._unify(call.args[one], self.number(1))
                and self._unify(call.args[1 - one], term)
                for one in (0, 1)
            )
        position = known.index(None)
        factor = known[1 - position]
        assert factor is not None
        quotient = self._divide(term, factor)
        if quotient is None or not self._unify(call.args[1 - position], factor):
            return False
        return self._unify(call.args[position], quotient) and self.reader.same_expression(
            self._spell(call), term
        )

    def _divide(self, term: int, factor: int) -> int | None:
        """``term`` / ``factor`` as a number or a multiple of the iterator."""
        product, divisor = self.reader.linear(term), self.reader.linear(factor)
        if product is None or divisor is None:
            return None
        for whole, part, make in (
            (product[1], divisor[1], self.number),
            (product[0], divisor[0], self.number),
            (product[1], divisor[0], self.stride),
        ):
            if part and whole % part == 0 and whole // part:
                return make(whole // part)
        return None

    def _follow(self, root: int) -> bool:
        """Bind what follows from a new value: positions in lists, results of arithmetic."""
        for fact in self.graph.functions:
            if any(self.graph.find(arg) == root for arg in fact.args):
                if self._beyond(fact):
                    return False
                value = self.evaluate(fact)
                if value is not None and not self._unify(fact.result, value):
                    return False
        return True

    def _beyond(self, fact: FunctionFact) -> bool:
        """Whether a fact asks for an element that a known list does not have."""
        if fact.fn != self.encoding.nth_function:
            return False
        listing, position = (self.ground(arg) for arg in fact.args)
        if listing is None or position is None:
            return False
        elements = self.reader.expressions(listing)
        index = self.table.nodes[position].value
        return elements is not None and isinstance(index, int) and not 0 <= index < len(elements)

    def evaluate(self, fact: FunctionFact) -> int | None:
        """The value of a function or primitive, if it follows from what is bound."""
        args = [self.ground(arg) for arg in fact.args]
        if any(arg is None for arg in args):
            return None
        terms = [arg for arg in args if arg is not None]
        if fact.fn == self.encoding.length_function:
            elements = self.reader.expressions(terms[0])
            return None if elements is None else self.table.literal("i64", len(elements))
        if fact.fn == self.encoding.nth_function:
            elements = self.reader.expressions(terms[0])
            index = self.table.nodes[terms[1]].value
            if elements is None or not isinstance(index, int) or not 0 <= index < len(elements):
                return None
            return elements[-1 - index]
        return self._arithmetic(fact.fn, terms)

    def _arithmetic(self, fn: str, terms: list[int]) -> int | None:
        function = _ARITHMETIC.get(fn)
        nodes = [self.table.nodes[term] for term in terms]
        if function is None or len(nodes) != 2 or nodes[0].fn != nodes[1].fn:
            return None
        left, right = (node.value for node in nodes)
        if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
            return None
        result = function(left, right)
        return self.table.literal(nodes[0].fn, result) if math.isfinite(result) else None

    def ground(self, node: int) -> int | None:
        """The value of a class, or the term that its literal or calls already determine.

        What is determined is kept like a binding, so that shared parts are looked at once.
        """
        root = self.graph.find(node)
        known = self.values.get(root)
        if known is not None:
            return known
        state = (self.bound, self.graph.changes)
        if self.unknown.get(root) == state:
            return None
        if root in self.opened:  # a class that lies inside itself: this call does not determine it
            self.cyclic.add(root)
            return None
        self.opened.add(root)
        term = self._determined(root)
        self.opened.remove(root)
        if term is None:
            self.unknown[root] = state
        else:
            self.values[root] = term
            self.trail.append(root)
            if root in self.cyclic:  # what lies inside it was given up too early
                self.unknown.clear()
        self.cyclic.discard(root)
        return term

    def _determined(self, root: int) -> int | None:
        literal = self.graph.literals.get(root)
        if literal is not None and literal[1] is not None:
            return self.table.literal(literal[0], literal[1])
        for call in self.graph.calls_of(root):
            args: list[int] = []
            for arg in call.args:
                term = self.ground(arg)
                if term is None:
                    break
                args.append(term)
            else:
                return self.table.add(call.fn, *args)
        return None

    def broken(self, since: int | None = None) -> Constraint | None:
        """The first guard or table row that is certainly violated by what is bound.

        Args:
            since: look only at constraints that a binding after this mark can have changed.
        """
        changed = None if since is None else frozenset(self.trail[since:])
        if changed is not None and self._roots_as_of != self.graph.changes:
            self._roots_as_of = self.graph.changes
            find = self.graph.find
            self._roots = [frozenset(map(find, parts)) for _, parts in self._decided]
        for number, (constraint, _) in enumerate(self._decided):
            if changed is not None and changed.isdisjoint(self._roots[number]):
                continue
            terms = [self.ground(arg) for arg in constraint.args]
            rows = self.rows.get(constraint.fn)
            if rows is not None:
                if not any(self._fits_row(terms, row) for row in rows):
                    return constraint
                continue
            known = [term for term in terms if term is not None]
            if len(known) == len(terms) and not self._holds(constraint.fn, known):
                return constraint
        return None

    def _fits_row(self, terms: list[int | None], row: tuple[int, ...]) -> bool:
        """Whether what is known of a row's arguments is in it."""
        return all(term is None or term == value for term, value in zip(terms, row, strict=True))

    def _holds(self, fn: str, terms: list[int]) -> bool:
        if fn == "!=":
            return not self.reader.equal(terms[0], terms[1])
        if fn in _COMPARE:
            left, right = (self.table.nodes[term].value for term in terms)
            if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
                return True  # not ours to decide: the engine does
            return _COMPARE[fn](left, right)
        return True

    def number(self, value: int) -> int:
        """The term of a number."""
        return self.spelling.number(value)

    def stride(self, step: int) -> int:
        """The term of a stride of ``step`` elements, as the compiler spells it."""
        return self.spelling.stride(step)
