"""Decoding an op's fields: every positional argument by name, every value checked."""

from __future__ import annotations

import math

from rulecheck.dialects import LaunchFields, OpBinding, Vocabulary
from rulecheck.dialects.terms import TermReader
from rulecheck.records import Access, DType, Failure, FailureKind, Node

# Larger graphs are refused before a table is made of them: a rule file can write any number.
MAX_ELEMENTS = 1 << 25


class Unplannable(Exception):  # noqa: N818 - control flow inside this package, never seen outside
    """Carries the Failure that explains why a term has no plan."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        """Wrap a failure."""
        super().__init__(message)
        self.failure = Failure(kind, message)


class FieldReader:
    """Reads the fields of one op node."""

    def __init__(
        self, kind: Node, binding: OpBinding, reader: TermReader, vocabulary: Vocabulary
    ) -> None:
        """Bind names to positions.

        Raises:
            Unplannable: the node has another number of fields than the dialect says.
        """
        if len(kind.args) != len(binding.fields):
            message = f"{kind.fn} has {len(kind.args)} fields, not {len(binding.fields)}"
            raise Unplannable(FailureKind.UNSUPPORTED, message)
        self._op = kind.fn
        self._terms = dict(zip(binding.fields, kind.args, strict=True))
        self._reader = reader
        self._vocabulary = vocabulary

    def number(self, name: str) -> int:
        """A size, ld or element stride: the expression with the iterator set to 1."""
        value = self._reader.number(self._terms[name])
        if value is None:
            raise self._symbolic(name)
        return value

    def shape(self, name: str) -> tuple[int, ...]:
        """A list of extents."""
        extents = []
        for element in self._elements(name):
            value = self._reader.number(element)
            if value is None:
                raise self._symbolic(name)
            extents.append(value)
        if any(extent < 0 for extent in extents):
            message = f"{self._op}: {name} has a negative extent in {tuple(extents)}"
            raise Unplannable(FailureKind.ILLEGAL, message)
        self.limit(name, math.prod(extents))
        return tuple(extents)

    def limit(self, name: str, count: int) -> None:
        """Refuse a number of elements that is too large to try.

        Raises:
            Unplannable: it is.
        """
        if count > MAX_ELEMENTS:
            message = f"{self._op}: {name} spans {count} elements; {MAX_ELEMENTS} is the limit"
            raise Unplannable(FailureKind.UNSUPPORTED, message)

    def access(self, name: str, shape: tuple[int, ...]) -> Access:
        """A list of stride expressions, read over ``shape``."""
        layout = self._reader.layout(self._terms[name])
        if layout is None:
            message = f"{self._op}: {name} is not spelled out, or its shape has no numbers"
            raise Unplannable(FailureKind.UNSUPPORTED, message)
        rank = len(layout.heads) + len(layout.steps)
        if rank != len(shape):
            message = f"{self._op}: {name} has {rank} strides for rank {len(shape)}"
            raise Unplannable(FailureKind.ILLEGAL, message)
        tables = []
        for element, extent in zip(layout.heads, shape, strict=False):
            table = self._reader.offsets(element, extent)
            if table is None:
                raise self._symbolic(name)
            tables.append(table)
        dense = zip(layout.steps, shape[len(layout.heads) :], strict=True)
        tables += [tuple(step * at for at in range(extent)) for step, extent in dense]
        return Access(shape, tuple(tables))

    def offsets(self, name: str, extent: int) -> tuple[int, ...]:
        """One stride expression over ``extent`` iterations."""
        if extent < 0:
            raise Unplannable(FailureKind.ILLEGAL, f"{self._op}: {extent} iterations")
        self.limit(name, extent)
        table = self._reader.offsets(self._terms[name], extent)
        if table is None:
            raise self._symbolic(name)
        return table

    def dtype(self, name: str) -> DType:
        """A type field."""
        constructor = self._reader.nodes[self._terms[name]].fn
        found = self._vocabulary.dtypes.get(constructor)
        if found is None:
            message = f"{self._op}: the type {constructor} of {name} is not modelled"
            raise Unplannable(FailureKind.UNSUPPORTED, message)
        return found

    def string(self, name: str) -> str:
        """A text literal."""
        value = self._reader.nodes[self._terms[name]].value
        if not isinstance(value, str):
            raise Unplannable(FailureKind.UNSUPPORTED, f"{self._op}: {name} is no text")
        return value

    def scalar(self, name: str) -> float:
        """A float literal."""
        value = self._reader.nodes[self._terms[name]].value
        if isinstance(value, bool) or not isinstance(value, int | float):
            message = f"{self._op}: {name} is no number"
            raise Unplannable(FailureKind.UNSUPPORTED, message)
        return float(value)

    def launch_fields(self, op: str) -> LaunchFields:
        """All fields of a matmul op by kind, as the dialect's launch wants them."""
        numbers: dict[str, int] = {}
        strings: dict[str, str] = {}
        scalars: dict[str, float] = {}
        dtypes: dict[str, DType] = {}
        for name, term in self._terms.items():
            node = self._reader.nodes[term]
            if isinstance(node.value, str):
                strings[name] = node.value
            elif node.value is not None:
                scalars[name] = float(node.value)
            elif node.fn in self._vocabulary.dtypes:
                dtypes[name] = self.dtype(name)
            elif name.endswith("_dtype"):
                dtypes[name] = self.dtype(name)  # raises: a type that is not modelled
            else:
                numbers[name] = self.number(name)
        return LaunchFields(op, numbers, strings, scalars, dtypes)

    def _elements(self, name: str) -> list[int]:
        elements = self._reader.expressions(self._terms[name])
        if elements is None:
            message = f"{self._op}: {name} is not a list that is spelled out"
            raise Unplannable(FailureKind.UNSUPPORTED, message)
        return elements

    def _symbolic(self, name: str) -> Unplannable:
        reasons = "a symbolic dimension, a division by zero, or beyond 64 bits"
        message = f"{self._op}: {name} has no number ({reasons})"
        return Unplannable(FailureKind.UNSUPPORTED, message)
