"""The guard that a rule lacks, as a fact to paste, found by trying.

Candidates are facts over the rule's own variables: a field pinned to a value or kept from one, two
fields that are equal, a field that is a buffer's type or a stride over another field. Those that
hold in no failing case and in most passing ones are tried on new graphs before one is offered.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rulecheck.campaign.claims import Claim
from rulecheck.dialects import Vocabulary
from rulecheck.dialects.terms import TermReader
from rulecheck.instantiate import show
from rulecheck.records import Call, Eq, Expr, Fact, Holds, Lit, Rule, Span, Var

# Values of the iterator at which sizes and strides are told apart.
MAX_VARIABLES = 48
PROBES = (0, 1, 2, 7, 1021)

Key = Hashable


class Sample(NamedTuple):
    """One case: what its variables hold, the types of its inputs, and whether it may match."""

    values: Mapping[str, Key]
    types: Mapping[str, str]
    passes: bool


class Candidate(NamedTuple):
    """A fact, how it reads, and whether it holds in a case. Lower ranks read better."""

    fact: Fact
    rank: int
    holds: Callable[[Sample], bool]

    @property
    def text(self) -> str:
        """The fact as the author would write it."""
        if isinstance(self.fact, Eq):
            return f"(= {show(self.fact.left)} {show(self.fact.right)})"
        return show(self.fact.expr)


def sample(claim: Claim, vocabulary: Vocabulary, *, passes: bool) -> Sample:
    """What the variables of one firing hold."""
    reader = TermReader(claim.nodes, vocabulary.encoding)
    values: dict[str, Key] = {}
    types: dict[str, str] = {}
    for name, term in claim.bindings.items():
        node = claim.nodes[term]
        if node.fn == vocabulary.encoding.leaf:
            types[name] = claim.nodes[node.args[2]].fn
            continue
        key = _key(reader, term)
        if key is not None:
            values[name] = key
    return Sample(values, types, passes)


def _key(reader: TermReader, term: int) -> Key | None:
    """A value in a form that is equal for equal values; None for graphs and lists."""
    node = reader.nodes[term]
    if node.value is not None:
        return (node.fn, repr(node.value))
    numbers = tuple(reader.number(term, probe) for probe in PROBES)
    if None not in numbers:
        return ("number", *numbers)
    return (node.fn,) if not node.args else None


def repairs(
    rule: Rule, samples: Sequence[Sample], vocabulary: Vocabulary
) -> Iterator[list[Candidate]]:
    """Guards that exclude every failing case and keep some others, those that keep most first.

    One fact where one suffices, else two.
    """
    passing = [item for item in samples if item.passes]
    failing = [item for item in samples if not item.passes]
    if not passing or not failing:
        return
    candidates = list(_candidates(rule, samples, vocabulary))
    kept = {id(item): sum(map(item.holds, passing)) for item in candidates}
    useful = [item for item in candidates if kept[id(item)]]
    single = [item for item in useful if not any(map(item.holds, failing))]
    single.sort(key=lambda item: (-kept[id(item)], item.rank, len(item.text)))
    yield from ([item] for item in single)
    # Two: first one that costs nothing, then the best of what the rest needs.
    free = [item for item in useful if kept[id(item)] == len(passing)]
    free.sort(key=lambda item: (sum(map(item.holds, failing)), item.rank))
    for first in free[:3]:
        left = [case for case in failing if first.holds(case)]
        if not left or left == failing:  # one of the two suffices, and was offered
            continue
        second = [item for item in useful if not any(map(item.holds, left))]
        second.sort(key=lambda item: (-kept[id(item)], item.rank, len(item.text)))
        yield from ([first, item] for item in second[:3])


def _candidates(
    rule: Rule, samples: Sequence[Sample], vocabulary: Vocabulary
) -> Iterator[Candidate]:
    sorts = dict(rule.variables)
    names = vocabulary.encoding
    span = rule.span
    kinds = ("String", "f64", names.dtype_sort)
    plain = [name for name, sort in rule.variables if sort in kinds][:MAX_VARIABLES]
    sizes = [name for name, sort in rule.variables if sort == names.expression_sort]
    sizes = sizes[:MAX_VARIABLES]
    for group in (plain, sizes):
        for one, other in itertools.combinations(group, 2):
            if sorts[one] == sorts[other]:
                yield Candidate(Eq(Var(one, span), Var(other, span), span), 1, _same(one, other))
    for name, sort in rule.variables:
        if sort == "f64":
            yield from _signs(name, span)
    for name in plain:
        yield from _pins(name, sorts[name], samples, span)
    for one, other in itertools.permutations(sizes, 2):
        stride = Call(names.product, (Call(names.iterator, (), span), Var(other, span)), span)
        yield Candidate(Eq(Var(one, span), stride, span), 3, _stride(one, other))
    yield from _types(rule, samples, vocabulary)


def _signs(name: str, span: Span) -> Iterator[Candidate]:
    """A number that is positive, or not negative."""
    zero = Lit(0.0, "f64", span)
    for word, compare in ((">", operator.gt), (">=", operator.ge)):
        fact = Holds(Call(word, (Var(name, span), zero), span), span)
        yield Candidate(fact, 2, _compares(name, compare))


def _pins(name: str, sort: str, samples: Sequence[Sample], span: Span) -> Iterator[Candidate]:
    """A variable kept at a value, or from one."""
    for value in dict.fromkeys(item.values.get(name) for item in samples):
        if not isinstance(value, tuple):
            continue
        literal: Expr
        if len(value) == 1:
            literal = Call(str(value[0]), (), span)
        else:
            text = str(value[1])
            if "\\" in text or text in ("inf", "-inf", "nan"):
                continue  # spelled otherwise in a rule file
            literal = Lit(float(text) if sort == "f64" else text[1:-1], sort, span)
        apart = Holds(Call("!=", (Var(name, span), literal), span), span)
        yield Candidate(apart, 2, _is(name, value, wanted=False))
        yield Candidate(Eq(Var(name, span), literal, span), 4, _is(name, value, wanted=True))


def _types(rule: Rule, samples: Sequence[Sample], vocabulary: Vocabulary) -> Iterator[Candidate]:
    """A type field that says what a buffer holds, or a buffer of one type."""
    names, span = vocabulary.encoding, rule.span
    graphs = dict.fromkeys(name for item in samples for name in item.types)
    fields = [name for name, sort in rule.variables if sort == names.dtype_sort]
    for graph in graphs:
        held = Call(names.dtype_function, (Var(graph, span),), span)
        for field in fields:
            yield Candidate(Eq(Var(field, span), held, span), 0, _typed(field, graph))
        for dtype in dict.fromkeys(item.types.get(graph) for item in samples):
            if dtype is not None:
                literal = Call(dtype, (), span)
                yield Candidate(Eq(held, literal, span), 2, _holds(graph, dtype))


def _same(one: str, other: str) -> Callable[[Sample], bool]:
    def holds(item: Sample) -> bool:
        value = item.values.get(one)
        return value is not None and value == item.values.get(other)

    return holds


def _is(name: str, value: Key, *, wanted: bool) -> Callable[[Sample], bool]:
    return lambda item: (item.values.get(name) == value) is wanted


def _compares(name: str, compare: Callable[[float, float], bool]) -> Callable[[Sample], bool]:
    def holds(item: Sample) -> bool:
        value = item.values.get(name)
        return isinstance(value, tuple) and compare(float(str(value[1])), 0.0)

    return holds


def _stride(one: str, other: str) -> Callable[[Sample], bool]:
    def holds(item: Sample) -> bool:
        step, size = item.values.get(one), item.values.get(other)
        if not isinstance(step, tuple) or not isinstance(size, tuple):
            return False
        pairs = zip(step[1:], size[1:], PROBES, strict=False)
        return step[0] == size[0] == "number" and all(a == probe * b for a, b, probe in pairs)

    return holds


def _typed(field: str, graph: str) -> Callable[[Sample], bool]:
    def holds(item: Sample) -> bool:
        dtype = item.types.get(graph)
        return dtype is not None and item.values.get(field) == (dtype,)

    return holds


def _holds(graph: str, dtype: str) -> Callable[[Sample], bool]:
    return lambda item: item.types.get(graph) == dtype
