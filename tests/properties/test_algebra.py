"""The dialect's algebra: what it puts into one class has one value, and it comes to rest."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rulecheck.dialects.terms import TermReader
from rulecheck.egraph.decode import Entry, Key, Snapshot
from rulecheck.records import TermTable
from tests.luminal_rules import dialect
from tests.luminal_terms import VOCABULARY
from tests.saturation import are_one, saturated

ENCODING = VOCABULARY.encoding
NAMES = ("a", "b")
# The iterator is an index; a variable may be anything here, as no rule may rely on more.
POINTS = [
    (0, (0, 0)),
    (1, (1, 3)),
    (2, (-3, 2)),
    (5, (4, -1)),
    (7, (12, 7)),
    (40, (3, 3)),
    (3, (-9, -17)),
]


class Term(NamedTuple):
    """An expression: an operator and its arguments; a leaf has none."""

    fn: str
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        words = [f'"{arg}"' if isinstance(arg, str) else str(arg) for arg in self.args]
        return f"({' '.join([self.fn, *words])})"


def number(value: int) -> Term:
    return Term(ENCODING.number, (value,))


ITERATOR = Term(ENCODING.iterator)
LEAVES = st.one_of(
    st.integers(-6, 12).map(number),
    st.sampled_from([number(0), number(1), number(2), number(4)]),
    st.just(ITERATOR),
    st.sampled_from(NAMES).map(lambda name: Term(ENCODING.symbol, (name,))),
)
# Those that chain and combine come more often than the others.
OPERATORS = [*ENCODING.arithmetic, *["MAdd", "MMul", "MSub", "MDiv", "MMod"] * 2]


def applied(parts: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.builds(
        lambda fn, left, right: Term(fn, (left, right)), st.sampled_from(OPERATORS), parts, parts
    )


EXPRESSIONS = st.recursive(LEAVES, applied, max_leaves=9)
# Long chains of constants and of multiples of one term.
CHAINS = st.builds(
    lambda start, links: functools.reduce(
        lambda left, link: Term(link[0], (left, link[1])), links, start
    ),
    LEAVES,
    st.lists(
        st.tuples(
            st.sampled_from(["MAdd", "MSub", "MMul", "MDiv", "MMod"]),
            st.one_of(st.integers(-5, 9).map(number), st.just(ITERATOR)),
        ),
        min_size=2,
        max_size=6,
    ),
)


class Values:
    """The value of each class at one point, through the dialect's own reader of terms."""

    def __init__(self, snapshot: Snapshot, iterator: int, variables: dict[str, int]) -> None:
        self.table = TermTable()
        self._snapshot = snapshot
        self._iterator = iterator
        self._variables = variables
        self._reader = TermReader(self.table.nodes, ENCODING)
        tables = [
            known
            for known in dialect().declarations
            if known.kind == "constructor" and known.output == ENCODING.expression_sort
        ]
        self.classes = snapshot.classes(tables)
        self.terms: dict[Key, int] = {}
        self._settle()

    def _settle(self) -> None:
        """Give each class the first of its members that has a value."""
        changed = True
        while changed:
            changed = False
            for key, entries in self.classes.items():
                for entry in entries if key not in self.terms else ():
                    term = self._term(entry)
                    if term is not None and self.value(term) is not None:
                        self.terms[key] = term
                        changed = True
                        break

    def value(self, term: int) -> int | None:
        return self._reader.number(term, self._iterator)

    def _term(self, entry: Entry) -> int | None:
        if entry.fn == ENCODING.number:
            return self._number(self._snapshot.plain(entry.args[0]))
        if entry.fn == ENCODING.symbol:
            return self._number(self._variables[str(self._snapshot.plain(entry.args[0]))])
        if entry.fn != ENCODING.iterator and entry.fn not in ENCODING.arithmetic:
            return None
        args = [self.terms.get(arg) for arg in entry.args]
        known = [arg for arg in args if arg is not None]
        return self.table.add(entry.fn, *known) if len(known) == len(args) else None

    def _number(self, value: float | str | bool) -> int:
        return self.table.add(ENCODING.number, self.table.literal("i64", value))

    def check(self) -> None:
        """Every member of every class has the value of the class, and the bounds hold."""
        for key, entries in self.classes.items():
            if key not in self.terms:
                continue
            value = self.value(self.terms[key])
            shown = self.table.show(self.terms[key])
            for entry in entries:
                term = self._term(entry)
                found = None if term is None else self.value(term)
                if term is not None and found is not None:
                    assert found == value, f"{self.table.show(term)} in the class of {shown}"
            assert value is not None
            assert self._bound("lower", key, -math.inf) <= value, f"lower bound of {shown}"
            assert value <= self._bound("upper", key, math.inf), f"upper bound of {shown}"

    def _bound(self, name: str, key: Key, default: float) -> float:
        rows = self._snapshot.rows(name)
        found = [row.output for row in rows if row.inputs[0] == key[1]]
        return float(self._snapshot.plain(("i64", found[0]))) if found else default

    def of(self, term: Term) -> int | None:
        """The value of an expression as written, without the engine."""
        if term.fn == ENCODING.number:
            return int(term.args[0])
        if term.fn == ENCODING.symbol:
            return self._variables[term.args[0]]
        if term.fn == ENCODING.iterator:
            return self._iterator
        parts = [self.of(arg) for arg in term.args]
        known = [self._number(part) for part in parts if part is not None]
        return self.value(self.table.add(term.fn, *known)) if len(known) == len(parts) else None


def points(egraph: Any) -> list[Values]:
    snapshot = Snapshot(egraph, {})
    return [
        Values(snapshot, iterator, dict(zip(NAMES, values, strict=True)))
        for iterator, values in POINTS
    ]


def nothing_over(term: Term) -> Term:
    """Multiply and divide by what turns out to be nothing: it has no value."""
    nothing = Term("MSub", (ITERATOR, ITERATOR))
    return Term("MDiv", (Term("MMul", (term, nothing)), nothing))


Z, FOUR, ZERO = ITERATOR, number(4), number(0)
LIMITS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@LIMITS
@given(st.one_of(EXPRESSIONS, CHAINS))
@example(Term("MAdd", (Term("MMul", (Term("MDiv", (Z, FOUR)), FOUR)), Term("MMod", (Z, FOUR)))))
@example(Term("MAdd", (nothing_over(Z), nothing_over(number(7)))))
@example(Term("MAdd", (Term("MMul", (ZERO, FOUR)), ZERO)))
def test_a_class_has_one_value_and_the_rules_come_to_rest(term: Term) -> None:
    with saturated(str(term)) as egraph:
        for values in points(egraph):
            values.check()


def replaced(term: Term, old: Term, new: Term) -> Term:
    """Substitute without the engine."""
    if term == old:
        return new
    if term.fn in ENCODING.arithmetic:
        return Term(term.fn, tuple(replaced(arg, old, new) for arg in term.args))
    return term


@LIMITS
@given(
    EXPRESSIONS,
    st.sampled_from([ITERATOR, Term(ENCODING.symbol, ("a",))]),
    st.one_of(LEAVES, applied(LEAVES)),
)
@example(Term("MMul", (ZERO, Z)), Z, Term("MAdd", (Z, Z)))
@example(Term("MSub", (Z, Z)), Z, Term("MAdd", (Z, Z)))
@example(Term("MDiv", (FOUR, FOUR)), Z, Term("MAdd", (Z, Z)))
def test_what_is_replaced_meets_what_is_written_out(term: Term, old: Term, new: Term) -> None:
    written = replaced(term, old, new)
    with saturated(f"(MReplace {term} {old} {new})", str(written)) as egraph:
        assert are_one(egraph)
        for values in points(egraph):
            values.check()
