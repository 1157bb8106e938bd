"""Reading a dialect's terms: lists, sizes and stride expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rulecheck.dialects.encoding import Encoding
from rulecheck.records import Node


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    # The compiler and the engine divide as C does: towards zero, with a remainder of a's sign.
    "div": _quotient,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": lambda a, b: a - b * _quotient(a, b),
    "min": min,
    "max": max,
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
    "ge": lambda a, b: int(a >= b),
    "lt": lambda a, b: int(a < b),
    "floorto": lambda a, b: a // b * b,
}
_DIVIDING = ("div", "ceildiv", "mod", "floorto")
_LIMIT = 2**63  # the compiler and the engine hold sizes in 64 bits


class Layout(NamedTuple):
    """The strides of an operand: expressions, then the dense steps of what is only named so."""

    heads: list[int]
    steps: list[int]


class TermReader:
    """Reads terms of one table. ``nodes`` may grow while the reader lives; ids never change."""

    def __init__(self, nodes: Sequence[Node], encoding: Encoding) -> None:
        """Bind a node table to the dialect's spelling."""
        self.nodes = nodes
        self.encoding = encoding
        self._linear: dict[int, tuple[int, int] | None] = {}
        self._numbers: dict[tuple[int, int], int | None] = {}
        self._equal: dict[tuple[int, int], bool] = {}

    def number(self, term: int, iterator: int = 1) -> int | None:
        """The value of an expression with the iterator set; None if it has none.

        An expression has no value if it names a symbolic dimension, divides by zero, leaves 64
        bits on the way, or is no expression at all.
        """
        if (term, iterator) not in self._numbers:
            for part in self._parts(term, lambda part: (part, iterator) in self._numbers):
                self._numbers[part, iterator] = self._find_number(part, iterator)
        return self._numbers[term, iterator]

    def _find_number(self, term: int, iterator: int) -> int | None:
        linear = self.linear(term)
        if linear is not None:
            return _in_64_bits(linear[0] + linear[1] * iterator)
        node = self.nodes[term]
        operator = self.encoding.arithmetic.get(node.fn)
        if operator is None:
            return None
        left, right = (self._numbers[arg, iterator] for arg in node.args)
        if left is None or right is None:
            return None
        if right == 0 and operator in _DIVIDING:
            return None
        return _in_64_bits(_OPERATORS[operator](left, right))

    def _parts(self, term: int, known: Callable[[int], bool]) -> Iterator[int]:
        """An arithmetic term and what it is made of, arguments first, without what is known.

        A loop, not recursion, over shared parts once: a rule file can nest as deep as it likes.
        """
        stack = [term]
        while stack:
            part = stack[-1]
            node = self.nodes[part]
            args = node.args if node.fn in self.encoding.arithmetic else ()
            missing = [arg for arg in args if not known(arg)]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if not known(part):
                yield part

    def linear(self, term: int) -> tuple[int, int] | None:
        """(c, s) if the expression is c + s·iterator, else None."""
        if term not in self._linear:
            for part in self._parts(term, self._linear.__contains__):
                self._linear[part] = self._find_linear(part)
        return self._linear[term]

    def _find_linear(self, term: int) -> tuple[int, int] | None:
        node, names = self.nodes[term], self.encoding
        if node.fn == names.number:
            value = self.nodes[node.args[0]].value
            return (value, 0) if isinstance(value, int) else None
        if node.fn == names.iterator:
            return (0, 1)
        operator = names.arithmetic.get(node.fn)
        if operator is None:
            return None
        left, right = (self._linear[arg] for arg in node.args)
        found = _combine(operator, left, right)
        fits = found is not None and all(_in_64_bits(part) is not None for part in found)
        return found if fits else None

    def offsets(self, term: int, extent: int) -> tuple[int, ...] | None:
        """Element offsets of a stride expression for indices 0 … extent − 1."""
        linear = self.linear(term)
        if linear is not None:
            start, step = linear
            return tuple(start + step * index for index in range(extent))
        values = [self.number(term, index) for index in range(extent)]
        known = [value for value in values if value is not None]
        return tuple(known) if len(known) == extent else None

    def same_expression(self, left: int, right: int) -> bool:
        """Whether two expressions agree for iterator values 0 … 7 and 1021."""
        if left == right:
            return True
        for value in (0, 1, 2, 3, 4, 5, 6, 7, 1021):
            first = self.number(left, value)
            if first is None or first != self.number(right, value):
                return False
        return True

    def equal(self, left: int, right: int) -> bool:
        """Whether two terms are one value in the dialect's algebra: part by part, or as numbers."""
        pairs = [(left, right)]  # lists are walked along their tails, not into them
        while pairs:
            left, right = pairs.pop()
            if left == right:
                continue
            known = self._equal.get((left, right))
            if known is None:
                first, second = self.nodes[left], self.nodes[right]
                lists = first.fn == second.fn == self.encoding.list_cons
                if lists and len(first.args) == len(second.args):
                    pairs += zip(first.args, second.args, strict=True)
                    continue
                same = self._same(left, right) or self._same_layout(left, right)
                known = self._equal[left, right] = same
            if not known:
                return False
        return True

    def _same(self, left: int, right: int) -> bool:
        first, second = self.nodes[left], self.nodes[right]
        if first.value is not None or second.value is not None:
            return first.fn == second.fn and first.value == second.value
        if first.fn == second.fn and len(first.args) == len(second.args) and first.args:
            pairs = zip(first.args, second.args, strict=True)
            if all(self.equal(one, other) for one, other in pairs):
                return True
        return self.same_expression(left, right)

    def _same_layout(self, left: int, right: int) -> bool:
        """Whether two lists hold the same steps, if one of them is only named as dense."""
        first, second = self.layout(left), self.layout(right)
        if first is None or second is None or not (first.steps or second.steps):
            return False
        forms = [
            [self.linear(head) for head in found.heads] + [(0, step) for step in found.steps]
            for found in (first, second)
        ]
        return None not in forms[0] and forms[0] == forms[1]

    def layout(self, term: int) -> Layout | None:
        """The strides of a list; None if it is not spelled out, or a size of it has no number."""
        names, heads = self.encoding, list[int]()
        while self.nodes[term].fn == names.list_cons:
            head, term = self.nodes[term].args
            heads.append(head)
        node = self.nodes[term]
        if node.fn == names.list_nil:
            return Layout(heads, [])
        if not names.row_major or node.fn != names.row_major:
            return None
        shape = self.expressions(node.args[0])
        extents = [self.number(extent) for extent in shape or ()]
        known = [extent for extent in extents if extent is not None]
        if shape is None or len(known) != len(extents):
            return None
        return Layout(heads, [math.prod(known[axis + 1 :]) for axis in range(len(known))])

    def expressions(self, term: int) -> list[int] | None:
        """The elements of an expression list; None if it is not spelled out."""
        return self._chain(term, self.encoding.list_cons, self.encoding.list_nil)

    def inputs(self, term: int) -> list[int] | None:
        """The elements of an input list; None if it is not spelled out."""
        return self._chain(term, self.encoding.input_cons, self.encoding.input_nil)

    def _chain(self, term: int, cons: str, nil: str) -> list[int] | None:
        found: list[int] = []
        while self.nodes[term].fn == cons:
            head, term = self.nodes[term].args
            found.append(head)
        return found if self.nodes[term].fn == nil else None


def _in_64_bits(value: int) -> int | None:
    return value if -_LIMIT <= value < _LIMIT else None


def _combine(
    operator: str, left: tuple[int, int] | None, right: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Combine two linear forms; None where the result is not linear."""
    if left is None or right is None:
        return None
    (a, s), (b, t) = left, right
    if operator == "add":
        return (a + b, s + t)
    if operator == "sub":
        return (a - b, s - t)
    if operator == "mul" and s * t == 0:
        return (a * b, a * t + b * s)
    if s == t == 0 and not (b == 0 and operator in _DIVIDING):
        return (_OPERATORS[operator](a, b), 0)
    return None
