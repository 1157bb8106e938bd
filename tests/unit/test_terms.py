"""Expressions, strides and lists, against an evaluation written down differently."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rulecheck.dialects.terms import TermReader
from tests.luminal_terms import VOCABULARY, Graph

Tree = int | str | tuple[str, "Tree", "Tree"]
NAMES = tuple(VOCABULARY.encoding.arithmetic)
DIVIDING = ("MDiv", "MCeilDiv", "MMod", "MFloorTo")


def trees(*, depth: int = 4) -> st.SearchStrategy[Tree]:
    leaves: st.SearchStrategy[Tree] = st.one_of(st.integers(0, 12), st.just("z"))
    return st.recursive(
        leaves,
        lambda inner: st.tuples(st.sampled_from(NAMES), inner, inner),
        max_leaves=2**depth,
    )


def build(graph: Graph, tree: Tree) -> int:
    match tree:
        case int():
            return graph.number(tree)
        case str():
            return graph.add("MIter") if tree == "z" else symbol(graph, tree)
        case (name, left, right):
            return graph.add(name, build(graph, left), build(graph, right))


def symbol(graph: Graph, name: str) -> int:
    return graph.add("MVar", graph.literal("String", name))


MEANING: dict[str, Callable[[int, int], int]] = {
    "MAdd": lambda a, b: a + b,
    "MSub": lambda a, b: a - b,
    "MMul": lambda a, b: a * b,
    "MDiv": lambda a, b: math.trunc(Fraction(a, b)),
    "MCeilDiv": lambda a, b: math.ceil(Fraction(a, b)),
    "MMod": lambda a, b: a - b * math.trunc(Fraction(a, b)),
    "MFloorTo": lambda a, b: b * math.floor(Fraction(a, b)),
    "MMin": min,
    "MMax": max,
    "MAnd": lambda a, b: 1 if a != 0 and b != 0 else 0,
    "MOr": lambda a, b: 1 if a != 0 or b != 0 else 0,
    "MGte": lambda a, b: 1 if a >= b else 0,
    "MLt": lambda a, b: 1 if a < b else 0,
}


def value(tree: Tree, z: int) -> int | None:
    """What a tree is worth; None where nothing is."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return z
    name, left, right = tree
    a, b = value(left, z), value(right, z)
    if a is None or b is None or (b == 0 and name in DIVIDING):
        return None
    found = MEANING[name](a, b)
    assume(-(2**63) <= found < 2**63)  # see the test of what leaves 64 bits
    return found


def reader(graph: Graph) -> TermReader:
    return TermReader(graph.nodes, VOCABULARY.encoding)


def uses_partial(tree: Tree) -> bool:
    return isinstance(tree, tuple) and (
        tree[0] in DIVIDING or uses_partial(tree[1]) or uses_partial(tree[2])
    )


@given(trees(), st.integers(0, 9))
def test_numbers_are_what_the_tree_is_worth(tree: Tree, z: int) -> None:
    graph = Graph()
    term = build(graph, tree)
    assert reader(graph).number(term, z) == value(tree, z)


@given(trees(), st.integers(0, 6))
def test_offsets_are_the_numbers_of_all_indices(tree: Tree, extent: int) -> None:
    graph = Graph()
    term = build(graph, tree)
    expected = [value(tree, index) for index in range(extent)]
    found = reader(graph).offsets(term, extent)
    assert found == (None if None in expected else tuple(expected))


@given(trees())
def test_a_linear_form_holds_for_every_index(tree: Tree) -> None:
    graph = Graph()
    linear = reader(graph).linear(build(graph, tree))
    if linear is not None:
        start, step = linear
        assert [value(tree, z) for z in range(8)] == [start + step * z for z in range(8)]


@given(trees(), trees())
def test_equal_expressions_are_equal_everywhere_that_was_tried(first: Tree, second: Tree) -> None:
    graph = Graph()
    left, right = build(graph, first), build(graph, second)
    same = reader(graph).same_expression(left, right)
    if left == right:
        assert same
        return
    ours = [value(first, z) for z in (*range(8), 1021)]
    theirs = [value(second, z) for z in (*range(8), 1021)]
    assert same == (None not in ours and ours == theirs)


@pytest.mark.parametrize(
    ("tree", "linear"),
    [
        (7, (7, 0)),
        ("z", (0, 1)),
        (("MMul", "z", 5), (0, 5)),
        (("MMul", 5, "z"), (0, 5)),
        (("MAdd", 3, ("MMul", "z", 5)), (3, 5)),
        (("MSub", ("MMul", "z", 5), 3), (-3, 5)),
        (("MMul", ("MAdd", "z", 2), 3), (6, 3)),
        (("MCeilDiv", 7, 2), (4, 0)),
        (("MMul", "z", "z"), None),
        (("MMod", "z", 4), None),
        (("MDiv", "z", 4), None),
        (("MMin", "z", 4), None),
        (("MLt", "z", 4), None),
        (("MDiv", 4, 0), None),
        (("MAdd", ("MMod", "z", 4), 1), None),
    ],
)
def test_linear_forms(tree: Tree, linear: tuple[int, int] | None) -> None:
    graph = Graph()
    assert reader(graph).linear(build(graph, tree)) == linear


def test_offsets_that_are_not_linear_are_tabulated() -> None:
    graph = Graph()
    wrapped = build(graph, ("MAdd", ("MMul", ("MDiv", "z", 3), 100), ("MMod", "z", 3)))
    assert reader(graph).offsets(wrapped, 7) == (0, 1, 2, 100, 101, 102, 200)


@pytest.mark.parametrize("name", NAMES)
def test_a_symbol_has_no_number_nor_has_what_it_is_in(name: str) -> None:
    graph = Graph()
    term = build(graph, (name, "n", 2))
    assert reader(graph).number(term) is None
    assert reader(graph).linear(term) is None
    assert reader(graph).offsets(term, 3) is None


@pytest.mark.parametrize("name", DIVIDING)
def test_a_division_by_zero_has_no_number(name: str) -> None:
    graph = Graph()
    assert reader(graph).number(build(graph, (name, "z", 0))) is None
    by_iterator = build(graph, (name, 6, "z"))
    assert reader(graph).number(by_iterator, 0) is None
    assert reader(graph).number(by_iterator, 4) == MEANING[name](6, 4)


def test_what_leaves_64_bits_has_no_number_and_ends_at_once() -> None:
    graph = Graph()
    term = graph.number(5)
    for _ in range(200):
        term = graph.add("MMul", term, term)
    assert reader(graph).number(term) is None
    assert reader(graph).offsets(term, 3) is None
    step = graph.add("MMul", graph.add("MIter"), graph.number(2**62))
    assert reader(graph).number(step, 1) == 2**62
    assert reader(graph).number(step, 2) is None


def test_dense_strides_that_are_only_named_are_those_that_are_spelled_out() -> None:
    graph = Graph()
    shape = graph.listing([graph.number(2), graph.number(3), graph.number(5)])
    named = graph.add("RowMajor", shape)
    spelled = graph.listing([graph.stride(15), graph.stride(5), graph.add("MIter")])
    tail = graph.listing([graph.number(3), graph.number(5)])
    half = graph.add("ECons", graph.stride(15), graph.add("RowMajor", tail))
    for one, other in itertools.combinations([named, spelled, half], 2):
        assert reader(graph).equal(one, other)
        assert reader(graph).equal(other, one)
    wrong = graph.listing([graph.stride(15), graph.stride(3), graph.add("MIter")])
    assert not reader(graph).equal(named, wrong)
    assert not reader(graph).equal(half, wrong)
    assert not reader(graph).equal(named, graph.listing([graph.stride(5), graph.add("MIter")]))
    unknown = graph.add("RowMajor", graph.listing([symbol(graph, "m"), graph.number(3)]))
    assert not reader(graph).equal(unknown, spelled)


def test_no_number_for_what_is_no_expression() -> None:
    graph = Graph()
    assert reader(graph).number(graph.shape(3)) is None
    assert reader(graph).number(graph.add("MFloat", graph.literal("f64", 2.0))) is None
    assert reader(graph).number(graph.add("MNum", graph.literal("f64", 2.0))) is None


def test_spellings_of_one_expression_are_the_same_and_of_others_are_not() -> None:
    graph = Graph()
    once = build(graph, ("MMul", "z", 12))
    assert reader(graph).same_expression(once, build(graph, ("MMul", ("MMul", "z", 3), 4)))
    assert reader(graph).same_expression(once, build(graph, ("MMul", 12, "z")))
    assert not reader(graph).same_expression(once, build(graph, ("MMul", "z", 11)))
    # Equal up to 7 only: the far index tells them apart.
    assert not reader(graph).same_expression(build(graph, "z"), build(graph, ("MMin", "z", 7)))
    n = symbol(graph, "n")
    assert reader(graph).same_expression(n, n)
    assert not reader(graph).same_expression(n, symbol(graph, "m"))


def test_lists_are_read_to_their_end_or_not_at_all() -> None:
    graph = Graph()
    items = [graph.number(3), graph.stride(2)]
    assert reader(graph).expressions(graph.listing(items)) == items
    assert reader(graph).expressions(graph.add("ENil")) == []
    open_end = graph.add("ECons", items[0], graph.add("RowMajor", graph.number(1)))
    assert reader(graph).expressions(open_end) is None
    leaf = graph.leaf("x")
    assert reader(graph).inputs(graph.add("ICons", leaf, graph.add("INil"))) == [leaf]
    assert reader(graph).inputs(graph.add("INil")) == []
    assert reader(graph).inputs(graph.add("ENil")) is None


def test_terms_may_be_added_while_the_reader_lives() -> None:
    graph = Graph()
    living = reader(graph)
    first = graph.number(3)
    assert living.number(first) == 3
    assert living.number(graph.add("MAdd", first, graph.number(4))) == 7


@given(trees().filter(lambda tree: not uses_partial(tree)), st.integers(0, 5))
def test_total_expressions_always_have_a_number(tree: Tree, z: int) -> None:
    graph = Graph()
    assert reader(graph).number(build(graph, tree), z) is not None
