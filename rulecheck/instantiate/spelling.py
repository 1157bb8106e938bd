"""How the dialect spells sizes, strides and lists; each is built once and then looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rulecheck.dialects import Encoding
from rulecheck.records import TermTable


class Spelling:
    """Terms of one table. A search asks for the same few thousands of times."""

    def __init__(self, table: TermTable, encoding: Encoding) -> None:
        """Start with nothing built."""
        self._table = table
        self._encoding = encoding
        self._numbers: dict[int, int] = {}
        self._strides: dict[int, int] = {}
        self._lists: dict[tuple[int, ...], int] = {}

    def number(self, value: int) -> int:
        """The term of a number."""
        found = self._numbers.get(value)
        if found is None:
            literal = self._table.literal("i64", value)
            found = self._numbers[value] = self._table.add(self._encoding.number, literal)
        return found

    def stride(self, step: int) -> int:
        """The term of a stride of ``step`` elements, as the compiler spells it."""
        found = self._strides.get(step)
        if found is None:
            found = self._strides[step] = self._stride(step)
        return found

    def _stride(self, step: int) -> int:
        if step == 0:
            return self.number(0)
        iterator = self._table.add(self._encoding.iterator)
        if step == 1:
            return iterator
        return self._table.add(self._encoding.product, iterator, self.number(step))

    def listing(self, elements: Sequence[int]) -> int:
        """The term of a list of expressions."""
        key = tuple(elements)
        found = self._lists.get(key)
        if found is None:
            term = self._table.add(self._encoding.list_nil)
            for element in reversed(key):
                term = self._table.add(self._encoding.list_cons, element, term)
            found = self._lists[key] = term
        return found

    def shape(self, extents: Iterable[int]) -> int:
        """The term of a list of extents."""
        return self.listing([self.number(extent) for extent in extents])

    def strides(self, steps: Iterable[int]) -> int:
        """The term of a list of strides."""
        return self.listing([self.stride(step) for step in steps])
