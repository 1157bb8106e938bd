"""The dialect's algebra: what it puts into one class has one value, and it comes to rest."""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rulecheck.dialects.terms import TermReader
from rulecheck.egraph.bindings import OWN_SPAN, EngineError, Parser, attempt, egg
from rulecheck.egraph.build import run_once
from rulecheck.egraph.decode import Entry, Key, Snapshot
from rulecheck.egraph.load import Program, build_egraph, read_header
from rulecheck.records import RuleFile, TermTable
from tests.luminal_rules import dialect
from tests.luminal_terms import VOCABULARY

ENCODING = VOCABULARY.encoding
MAX_NODES = 6_000
MAX_ROUNDS = 200
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


@functools.cache
def engine() -> Any:
    known = dialect()
    assert known.problems == ()
    file = RuleFile("none.egg", (), known.declarations, (), (), (), "")
    header = read_header(VOCABULARY.declarations())
    return build_egraph(Program(known.commands, header, file, len(known.declarations)))


@contextlib.contextmanager
def saturated(*texts: str) -> Iterator[Any]:
    """Add terms, as `$t0` and so on, and run the dialect's rulesets until nothing changes."""
    egraph = engine()
    program, error = Parser()("\n".join(f"(let $t{at} {text})" for at, text in enumerate(texts)))
    assert error is None
    attempt(lambda: egraph.run_program(egg.Push(1), *program))
    try:
        _run(egraph)
        yield egraph
    finally:
        attempt(lambda: egraph.run_program(egg.Pop(OWN_SPAN, 1)))


def meet(one: str, other: str) -> bool:
    """Whether two terms end in one class."""
    check, _ = Parser()("(check (= $t0 $t1))")
    with saturated(one, other) as egraph:
        try:
            attempt(lambda: egraph.run_program(*check))
        except EngineError:
            return False
    return True


def _run(egraph: Any) -> None:
    schedule = read_header(VOCABULARY.declarations()).schedule
    rounds = 0
    changed = True
    while changed:
        changed = False
        for ruleset in schedule:
            while egraph.run_program(run_once(ruleset))[0].report.updated:
                changed = True
                rounds += 1
                sizes = egraph.run_program(egg.PrintSize(OWN_SPAN, None))[0].sizes
                size = sum(count for _, count in sizes)
                assert size <= MAX_NODES, f"{size} rows"
                assert rounds <= MAX_ROUNDS, "it does not come to rest"


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
    snapshot = Snapshot(egraph)
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
def test_what_is_replaced_meets_what_is_written_out(term: Term, old: Term, new: Term) -> None:
    written = replaced(term, old, new)
    with saturated(f"(MReplace {term} {old} {new})", str(written)) as egraph:
        check, _ = Parser()("(check (= $t0 $t1))")
        attempt(lambda: egraph.run_program(*check))
        for values in points(egraph):
            values.check()


def spelled(*items: str) -> str:
    """A list of expressions."""
    return "".join(f"(ECons {item} " for item in items) + "(ENil)" + ")" * len(items)


def shorthand(text: str) -> str:
    """Write `z`, `a`, `b` and numbers for what they stand for."""
    text = re.sub(r"(?<=[ (\[])(-?\d+)(?=[ )\]])", r"(MNum \1)", f" {text} ")
    text = re.sub(r"\bz\b", "(MIter)", text)
    return re.sub(r"\b([ab])\b", r'(MVar "\1")', text).strip()


MEET = """
(MAdd (MAdd z 3) 4) = (MAdd z 7)
(MAdd 3 (MAdd z 4)) = (MAdd z 7)
(MSub (MAdd z 3) 4) = (MAdd z -1)
(MAdd (MSub z 3) 3) = z
(MMul (MMul 2 z) 3) = (MMul z 6)
(MMul 2 (MMul (MMul a b) 8)) = (MMul (MMul b a) 16)
(MAdd z 0) = z
(MSub z 0) = z
(MMul 1 z) = z
(MMul z 0) = 0
(MDiv z 1) = z
(MCeilDiv z 1) = z
(MMod z 1) = 0
(MSub z z) = 0
(MMin a a) = a
(MAdd z z) = (MMul z 2)
(MAdd (MMul z 3) z) = (MMul 4 z)
(MAdd z (MMul 3 z)) = (MMul 4 z)
(MAdd (MMul a 3) (MMul a -3)) = 0
(MSub (MMul a 3) a) = (MMul a 2)
(MSub (MMul a 3) (MMul a 5)) = (MMul a -2)
(MDiv (MDiv z 4) 8) = (MDiv z 32)
(MDiv (MMul z 12) 4) = (MMul z 3)
(MMod (MMul z 12) 4) = 0
(MAdd (MMul (MDiv z 4) 4) (MMod z 4)) = z
(MAdd (MMod a 8) (MMul 8 (MDiv a 8))) = a
(MDiv 7 -2) = -3
(MMod -7 2) = -1
(MCeilDiv 7 2) = 4
(MFloorTo 7 4) = 4
(MMin 3 5) = 3
(MMax 3 5) = 5
(MAnd 3 5) = 1
(MAnd z 0) = 0
(MOr 0 0) = 0
(MOr z 7) = 1
(MGte 5 5) = 1
(MGte 4 5) = 0
(MLt 4 5) = 1
(MLt 5 5) = 0
(MMin (MMax z 9) 3) = 3
(MMax (MMin z 3) 9) = 9
(MMin 3 (MMax z 9)) = 3
(MMod (MMax 0 (MMin z 3)) 4) = (MMax 0 (MMin z 3))
(MDiv (MMax 0 (MMin z 3)) 4) = 0
(MLt (MMax 0 (MMin z 3)) 4) = 1
(MGte (MMin z 3) 4) = 0
(MLt (MMod (MMax z 0) 4) 4) = 1
(MDiv (MMul a (MMax b 1)) (MMax b 1)) = a
(MMod (MMax b 1) (MMax b 1)) = 0
(MMod (MMul a (MMax b 1)) (MMax b 1)) = 0
(MLt (MAdd (MMax z 3) (MMax a 4)) 7) = 0
(MLt (MMul (MMax 1 (MMin z 3)) (MMin 4 (MMax a 2))) 13) = 1
(MReplace (MAdd (MMul z 4) a) z b) = (MAdd a (MMul b 4))
(MReplace (MReplace (MMul z a) a 3) z 5) = 15
(RowMajor (ENil)) = (ENil)
(RowMajor [a]) = [z]
(RowMajor [2 3 4]) = [(MMul z 12) (MMul z 4) z]
(RowMajor [a b 4]) = [(MMul z (MMul b 4)) (MMul z 4) z]
(RowMajor [7 a b]) = [(MMul z (MMul b a)) (MMul z b) z]
(MReplaceList (ENil) z 3) = (ENil)
(MReplaceList [(MMul z 4) a] z 3) = [12 a]
(MReplaceList (RowMajor [2 3]) z 1) = [3 1]
(ReplaceNthFromEnd [2 3 4] 0 #0) = [2 3 0]
(ReplaceNthFromEnd [2 3 4] 0 #2) = [0 3 4]
(ReplaceNthFromEnd (RowMajor [2 3]) 0 #1) = [0 z]
(RemoveNthFromEnd [2 3 4] #0) = [2 3]
(RemoveNthFromEnd [2 3 4] #2) = [3 4]
(RowMajor (RemoveNthFromEnd [2 3 4] #1)) = [(MMul z 4) z]
"""
APART = """
(MDiv (MMul z 4) 3) = z
(MDiv (MDiv z -4) 8) = (MDiv z 32)
(MDiv (MMul z a) a) = z
(MDiv a a) = 1
(MMod a 4) = a
(MDiv (MMin a 3) 4) = 0
(MMod (MMin a 3) 4) = (MMin a 3)
(MMod (MMax a 0) 4) = (MMax a 0)
(MDiv (MMul z 0) 0) = (MDiv (MMul a 0) 0)
(MDiv (MMul z (MMax 0 b)) (MMax 0 b)) = z
(MAdd (MMul (MDiv a b) b) (MMod a b)) = a
(MReplace a z b) = b
(MReplace (MMul z 2) (MMul z 2) a) = (MMul a 2)
(ReplaceNthFromEnd [2 3] 0 #2) = [2 3]
(RemoveNthFromEnd [2 3] #2) = [2 3]
(RowMajor [2 3]) = [(MMul z 2) z]
9223372036854775807 = (MAdd 9223372036854775807 1)
"""


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


def sides(line: str) -> tuple[str, str]:
    """The two terms of a line; `[a b]` is a list, `#1` a plain number."""
    one, other = (
        re.sub(r"#(\d+)", r"\1", re.sub(r"\[(.*)\]", _spell, shorthand(side)))
        for side in line.split(" = ")
    )
    return one, other


def _spell(match: re.Match[str]) -> str:
    items: list[str] = []
    depth = 0
    for word in re.findall(r"[()]|[^()]+", match[1]):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "(" and depth == 1:
            items.append("")
        if items and (depth or word == ")"):
            items[-1] += word
    return spelled(*items)


@pytest.mark.parametrize("line", lines(MEET))
def test_spellings_of_one_value_meet(line: str) -> None:
    assert meet(*sides(line))


@pytest.mark.parametrize("line", lines(APART))
def test_what_differs_stays_apart(line: str) -> None:
    assert not meet(*sides(line))
