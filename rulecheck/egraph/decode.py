"""Classes back to terms: a frozen EGraph read into the reply's node table.

A class that holds a term of the request decodes to that very term, as it was spelled. Any other
class decodes to its smallest term; a literal number is smaller than everything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rulecheck.egraph.insert import Places
from rulecheck.egraph.load import at_name
from rulecheck.records import Declaration, Node, TermTable

_PRIMITIVES = {
    "i64": "value_to_i64",
    "f64": "value_to_f64",
    "String": "value_to_string",
    "bool": "value_to_bool",
}
_NUMBERS = frozenset({"i64", "f64"})

# (sort, the engine's value): the values of different sorts may coincide.
Key = tuple[str, Any]


class UndecodableError(Exception):
    """A class holds no finite term, as every one of its members was deleted."""


class Entry(NamedTuple):
    """One member of a class: a constructor and its arguments."""

    fn: str
    args: tuple[Key, ...]


class Snapshot:
    """The tables of a frozen EGraph, each read once, when it is first needed."""

    def __init__(self, egraph: Any, places: Places) -> None:
        """Freeze the EGraph; ``places`` says which terms of the request it keeps where."""
        self.egraph = egraph
        self._places = places
        self._functions = egraph.freeze().functions

    def rows(self, table: str) -> list[Any]:
        """Return the rows of a table."""
        return list(self._functions[table].rows)

    def plain(self, key: Key) -> float | str | bool:
        """Return the plain value of a base sort."""
        sort, value = key
        number: float | str | bool = getattr(self.egraph, _PRIMITIVES[sort])(value)
        return number

    def entries(self, tables: Iterable[Declaration]) -> Iterator[tuple[Key, Entry, bool]]:
        """Yield (class, member, whether it is none to extract) for every row of constructors.

        None to extract are subsumed members, and those that only name what is to be computed.
        """
        for table in tables:
            for row in self.rows(table.name):
                args = tuple(zip(table.inputs, row.inputs, strict=True))
                hidden = row.subsumed or table.unextractable
                yield (table.output or "", row.output), Entry(table.name, args), hidden

    def classes(self, tables: Iterable[Declaration]) -> dict[Key, list[Entry]]:
        """Return the members of every class; subsumed ones only where there are no others."""
        found: dict[Key, list[Entry]] = {}
        subsumed: dict[Key, list[Entry]] = {}
        for key, entry, is_subsumed in self.entries(tables):
            (subsumed if is_subsumed else found).setdefault(key, []).append(entry)
        return subsumed | found

    def request_terms(self) -> dict[Key, list[int]]:
        """Return, for each class, the term ids of the request that lie in it."""
        found: dict[Key, set[int]] = {}  # a term that several instances share is kept several times
        for sort, ids in self._places.items():
            for row in self.rows(at_name(sort)):
                number, *values = row.inputs
                held = ids[self.egraph.value_to_i64(number)]
                for index, value in zip(held, values, strict=False):
                    found.setdefault((sort, value), set()).add(index)
        return {key: sorted(own) for key, own in found.items()}


def find_classes(
    snapshot: Snapshot, nodes: tuple[Node, ...], tables: dict[str, Declaration]
) -> dict[int, Key]:
    """Return the class of each term of ``nodes`` that is in the snapshot, found by its spelling."""
    requested = snapshot.request_terms()
    found = {index: key for key, ids in requested.items() for index in ids}
    added = {node.fn for index, node in enumerate(nodes) if index not in found} & tables.keys()
    spelled = {
        (entry.fn, tuple(_cell(arg, snapshot) for arg in entry.args)): key
        for key, entry, _ in snapshot.entries(tables[name] for name in sorted(added))
    }
    for index, node in enumerate(nodes):  # arguments come first
        if node.value is not None:
            found[index] = (node.fn, repr(node.value))
        elif index not in found and all(arg in found for arg in node.args):
            key = spelled.get((node.fn, tuple(found[arg] for arg in node.args)))
            if key is not None:
                found[index] = key
    return found


def _cell(key: Key, snapshot: Snapshot) -> Key:
    """Make plain values comparable across snapshots; classes are compared within one."""
    return (key[0], repr(snapshot.plain(key))) if key[0] in _PRIMITIVES else key


class Decoder:
    """Decodes the values of one snapshot into term ids.

    Args:
        snapshot: the frozen EGraph.
        nodes: the request's nodes, whose ids stay.
        tables: all declarations, by name.
        members: the term ids of each instance.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        nodes: tuple[Node, ...],
        tables: dict[str, Declaration],
        members: list[list[int]],
    ) -> None:
        """Read where the request's terms are; the rest is read when it is needed."""
        self.table = TermTable(nodes)
        self._snapshot = snapshot
        self._requested = snapshot.request_terms()
        self._constructors = [known for known in tables.values() if known.kind == "constructor"]
        self._members = [frozenset(ids) for ids in members]
        self._owners: dict[int, set[int]] = {}  # term id -> the instances that hold it
        for instance, ids in enumerate(members):
            for index in ids:
                self._owners.setdefault(index, set()).add(instance)
        self._shared: dict[Key, frozenset[int]] = {}
        self._classes: dict[Key, list[Entry]] | None = None
        self._costs: dict[Key, float] = {}
        self._best: dict[Key, Entry] = {}
        self._ids: dict[tuple[Key, int | None], int] = {}

    def own_ids(self, key: Key) -> list[int]:
        """Return the request's term ids in a class."""
        return self._requested.get(key, [])

    def instances(self, keys: Iterable[Key]) -> list[int]:
        """Return the instances that a match with these values lies in.

        That is the one in which all values lie that lie in only one; terms that several instances
        share, such as constants, do not count. Where all are shared: every instance with all of
        them. None, if the values lie in different instances.
        """
        alone: set[int] = set()
        shared: frozenset[int] | None = None
        for key in keys:
            owners = self._owners_of(key)
            if len(owners) == 1:
                alone |= owners
            elif owners:
                shared = owners if shared is None else shared & owners
        if alone:
            return sorted(alone) if len(alone) == 1 else []
        return sorted(shared or ())

    def _owners_of(self, key: Key) -> frozenset[int]:
        """Return the instances that hold a value."""
        found = self._shared.get(key)
        if found is None:
            ids = self.own_ids(key)
            found = frozenset().union(*(self._owners.get(index, ()) for index in ids))
            self._shared[key] = found
        return found

    def decode(self, key: Key, instance: int | None) -> int:
        """Return the term id of a value; of several spellings, prefer that of ``instance``."""
        pending = [key]
        while pending:
            current = pending[-1]
            if (current, instance) in self._ids:
                pending.pop()
                continue
            entry = self._entry(current, instance)
            if isinstance(entry, int):
                self._ids[current, instance] = entry
                continue
            missing = [arg for arg in entry.args if (arg, instance) not in self._ids]
            if missing:
                pending += missing
                continue
            args = tuple(self._ids[arg, instance] for arg in entry.args)
            self._ids[current, instance] = self.table.intern(Node(entry.fn, args))
        return self._ids[key, instance]

    def _entry(self, key: Key, instance: int | None) -> int | Entry:
        """Return the id of a value that needs no more decoding, or its best member."""
        sort, _ = key
        if sort in _PRIMITIVES:
            return self.table.literal(sort, self._snapshot.plain(key))
        ids = self.own_ids(key)
        if ids:
            own = self._members[instance] if instance is not None else frozenset()
            return next((index for index in ids if index in own), ids[0])
        if key not in self._best:
            self._settle(key)
        if key not in self._best:
            raise UndecodableError(f"a class of sort {sort} holds no term")
        return self._best[key]

    def _settle(self, key: Key) -> None:
        """Find the smallest member of each class that ``key`` leads to.

        Costs only ever fall, and a member costs more than its arguments: no cycle is chosen.
        """
        if self._classes is None:
            self._classes = self._snapshot.classes(self._constructors)
        classes = self._classes
        open_keys = self._reach(key, classes)
        changed = True
        while changed:
            changed = False
            for current in open_keys:
                for entry in classes.get(current, []):
                    cost = self._cost(entry)
                    if cost < self._costs.get(current, math.inf):
                        self._costs[current], self._best[current] = cost, entry
                        changed = True

    def _reach(self, key: Key, classes: dict[Key, list[Entry]]) -> list[Key]:
        """Return the classes below ``key`` that need a choice, deepest first."""
        seen: dict[Key, None] = {}
        pending = [key]
        while pending:
            current = pending.pop()
            if current in seen or self._is_leaf(current):
                continue
            seen[current] = None
            pending += (arg for entry in classes.get(current, []) for arg in entry.args)
        return list(reversed(seen))

    def _is_leaf(self, key: Key) -> bool:
        return key[0] in _PRIMITIVES or bool(self.own_ids(key))

    def _cost(self, entry: Entry) -> float:
        if entry.args and all(sort in _NUMBERS for sort, _ in entry.args):
            return 1.0
        return 2.0 + sum(
            1.0 if self._is_leaf(arg) else self._costs.get(arg, math.inf) for arg in entry.args
        )
