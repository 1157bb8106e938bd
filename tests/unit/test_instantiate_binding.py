"""Binding classes to ground terms: matching, solving, following, guards, and forgetting it all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulecheck.campaign.workshop import signatures
from rulecheck.instantiate.binding import Binding, Rows
from rulecheck.instantiate.pattern import build_pattern
from tests.luminal_rules import read
from tests.luminal_terms import VOCABULARY, Graph

RIGID = frozenset({"DType", "EList", "IList", "OpKind"})


class Bench:
    """A left side, a table to bind it over, and names for both."""

    def __init__(self, body: str, rows: Rows | None = None) -> None:
        file = read(f'(rule ({body}) ((MNum 7)) :ruleset expr :name "r")')
        self.graph = build_pattern(file.rules[0], signatures(file), RIGID)
        self.terms = Graph()
        self.binding = Binding(self.graph, self.terms, VOCABULARY.encoding, rows or {})

    def bind(self, name: str, term: int) -> bool:
        return self.binding.unify(self.graph.variables[name], term)

    def value(self, name: str) -> str | None:
        term = self.binding.ground(self.graph.variables[name])
        return None if term is None else self.terms.show(term)

    def float(self, value: float) -> int:
        return self.terms.literal("f64", value)


def test_a_free_variable_takes_any_term_once() -> None:
    bench = Bench("(= ?e (MAdd ?a ?b))")
    assert bench.value("?a") is None
    assert bench.bind("?a", bench.terms.number(3))
    assert bench.value("?a") == "(MNum 3)"
    assert bench.bind("?a", bench.terms.number(3))
    assert not bench.bind("?a", bench.terms.number(4))
    assert bench.value("?e") is None
    assert bench.bind("?b", bench.terms.number(4))
    assert bench.value("?e") == "(MAdd (MNum 3) (MNum 4))"


def test_a_term_is_matched_part_by_part() -> None:
    bench = Bench("(= ?s (ECons ?m (ECons ?n (ENil))))")
    assert bench.bind("?s", bench.terms.shape(5, 7))
    assert (bench.value("?m"), bench.value("?n")) == ("(MNum 5)", "(MNum 7)")


@pytest.mark.parametrize("extents", [(5,), (5, 7, 9), ()])
def test_a_list_of_another_length_does_not_match_and_leaves_nothing(
    extents: tuple[int, ...],
) -> None:
    bench = Bench("(= ?s (ECons ?m (ECons ?n (ENil))))")
    assert not bench.bind("?s", bench.terms.shape(*extents))
    assert bench.binding.values == {}
    assert bench.binding.trail == []


def test_a_repeated_variable_must_agree() -> None:
    bench = Bench("(= ?s (ECons ?m (ECons ?m (ENil))))")
    assert not bench.bind("?s", bench.terms.shape(5, 7))
    assert bench.bind("?s", bench.terms.shape(8, 8))


def test_literals_match_themselves_and_nothing_else() -> None:
    bench = Bench("(= ?k (Constant 0.5)) (= ?n (MNum 1))")
    assert bench.value("?k") == "(Constant 0.5)"
    assert not bench.bind("?n", bench.terms.number(2))
    assert not bench.bind("?k", bench.terms.add("Constant", bench.float(0.25)))
    assert bench.bind("?k", bench.terms.add("Constant", bench.float(0.5)))


def test_a_match_is_kept_in_the_spelling_of_the_pattern() -> None:
    """The engine finds 12 where the pattern says 3 * 4 only if that term is there."""
    bench = Bench("(= ?s (MMul (MIter) (MMul ?m ?n)))")
    assert bench.bind("?n", bench.terms.number(4))
    assert bench.bind("?s", bench.terms.stride(12))
    assert bench.value("?m") == "(MNum 3)"
    assert bench.value("?s") == "(MMul (MIter) (MMul (MNum 3) (MNum 4)))"


@given(st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_products_are_solved_for_one_unknown(known: int, unknown: int, first: bool) -> None:
    bench = Bench("(= ?p (MMul ?a ?b))")
    name, other = ("?a", "?b") if first else ("?b", "?a")
    assert bench.bind(name, bench.terms.number(known))
    assert bench.bind("?p", bench.terms.number(known * unknown))
    assert bench.value(other) == f"(MNum {unknown})"


def test_strides_are_divided_by_numbers_and_by_strides() -> None:
    bench = Bench("(= ?p (MMul ?a ?b))")
    assert bench.bind("?b", bench.terms.number(4))
    assert bench.bind("?p", bench.terms.stride(12))
    assert bench.value("?a") == "(MMul (MIter) (MNum 3))"
    bench = Bench("(= ?p (MMul ?a ?b))")
    assert bench.bind("?a", bench.terms.stride(4))
    assert bench.bind("?p", bench.terms.stride(12))
    assert bench.value("?b") == "(MNum 3)"


@pytest.mark.parametrize(("product", "factor"), [(7, 4), (0, 4), (4, 8)])
def test_a_product_without_a_whole_quotient_is_not_solved(product: int, factor: int) -> None:
    bench = Bench("(= ?p (MMul ?a ?b))")
    assert bench.bind("?a", bench.terms.number(factor))
    before = dict(bench.binding.values)
    assert not bench.bind("?p", bench.terms.number(product))
    assert bench.binding.values == before


def test_a_product_of_two_unknowns_is_split_as_it_is_spelled_or_not_at_all() -> None:
    bench = Bench("(= ?p (MMul ?a ?b))")
    assert bench.bind("?p", bench.terms.number(12))
    assert (bench.value("?a"), bench.value("?b")) == ("(MNum 1)", "(MNum 12)")
    bench = Bench("(= ?p (MMul ?a ?b))")
    assert bench.bind("?p", bench.terms.add("MMul", bench.terms.number(3), bench.terms.number(4)))
    assert bench.value("?a") == "(MNum 3)"


def test_products_match_in_either_order() -> None:
    bench = Bench("(= ?p (MMul (MIter) ?b))")
    swapped = bench.terms.add("MMul", bench.terms.number(5), bench.terms.add("MIter"))
    assert bench.bind("?p", swapped)
    assert bench.value("?b") == "(MNum 5)"
    assert bench.value("?p") == "(MMul (MIter) (MNum 5))"


def test_a_sum_is_checked_once_both_parts_are_known() -> None:
    bench = Bench("(= ?p (MAdd ?a ?b))")
    assert bench.bind("?a", bench.terms.number(3))
    assert not bench.bind("?p", bench.terms.number(7))  # sums are not solved
    assert bench.bind("?b", bench.terms.number(4))
    assert not bench.bind("?p", bench.terms.number(8))
    assert bench.bind("?p", bench.terms.number(7))
    assert bench.value("?p") == "(MAdd (MNum 3) (MNum 4))"


def test_one_number_in_two_spellings_is_one_value() -> None:
    bench = Bench("(= ?e (MAdd ?a ?b))")
    assert bench.bind("?a", bench.terms.number(12))
    product = bench.terms.add("MMul", bench.terms.number(3), bench.terms.number(4))
    assert bench.bind("?a", product)
    assert bench.value("?a") == "(MNum 12)"
    one, other = bench.terms.shape(12, 5), bench.terms.listing([product, bench.terms.number(5)])
    assert bench.binding.reader.equal(one, other)
    assert not bench.binding.reader.equal(one, bench.terms.shape(12, 6))
    assert not bench.binding.reader.equal(bench.float(1.0), bench.terms.literal("i64", 1))


def test_positions_and_lengths_follow_from_a_list() -> None:
    bench = Bench("(= ?n (nth_from_end ?s 0)) (= ?m (nth_from_end ?s 1)) (= ?r (len ?s))")
    assert bench.bind("?s", bench.terms.shape(3, 5, 7))
    assert bench.value("?n") == "(MNum 7)"
    assert bench.value("?m") == "(MNum 5)"
    assert bench.value("?r") == "3"


def test_a_position_that_contradicts_refuses_the_list() -> None:
    bench = Bench("(= ?n (nth_from_end ?s 0)) (= ?r (len ?s)) (= ?r 2)")
    assert bench.bind("?n", bench.terms.number(7))
    assert not bench.bind("?s", bench.terms.shape(5, 8))
    assert not bench.bind("?s", bench.terms.shape(3, 5, 7))
    assert bench.binding.values.keys() == {bench.graph.find(bench.graph.variables["?n"])}
    assert bench.bind("?s", bench.terms.shape(5, 7))


@pytest.mark.parametrize("position", [2, 5, -1])
def test_a_position_beyond_a_list_refuses_it(position: int) -> None:
    bench = Bench(f"(= ?n (nth_from_end ?s {position}))")
    assert not bench.bind("?s", bench.terms.shape(3, 5))
    assert bench.bind("?s", bench.terms.shape(3, 5, 7, 9, 11, 13)) is (position >= 0)


def test_a_wildcard_is_another_value_each_time() -> None:
    bench = Bench("(= ?s (ECons _ (ECons _ (ENil))))")
    assert bench.bind("?s", bench.terms.shape(5, 7))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("(* ?v 2.0)", 3.0), ("(+ ?v 1.0)", 2.5), ("(- ?v 1.0)", 0.5), ("(min ?v 1.0)", 1.0)],
)
def test_primitives_follow_from_their_arguments(expression: str, expected: float) -> None:
    bench = Bench(f"(= ?k (Constant ?v)) (= ?w {expression})")
    assert bench.bind("?v", bench.float(1.5))
    assert bench.value("?w") == repr(expected)


def test_primitives_that_are_not_known_here_are_left_to_the_engine() -> None:
    bench = Bench("(= ?k (Constant ?v)) (= ?w (/ ?v 0.0)) (= ?x (* ?v 1e308))")
    assert bench.bind("?v", bench.float(1e10))
    assert bench.value("?w") is None
    assert bench.value("?x") is None  # it overflows


# ---- guards ----------------------------------------------------------------------------------


def broken(bench: Bench) -> str | None:
    constraint = bench.binding.broken()
    return None if constraint is None else constraint.text


@pytest.mark.parametrize(
    ("guard", "good", "bad"),
    [
        ("(!= ?v 0.0)", 1.0, 0.0),
        ("(< ?v 2.0)", 1.9, 2.0),
        ("(<= ?v 2.0)", 2.0, 2.1),
        ("(> ?v 2.0)", 2.1, 2.0),
        ("(>= ?v 2.0)", 2.0, 1.9),
    ],
)
def test_guards_hold_or_are_named(guard: str, good: float, bad: float) -> None:
    for value, expected in ((good, None), (bad, guard)):
        bench = Bench(f"(= ?k (Constant ?v)) {guard}")
        assert broken(bench) is None  # nothing is known yet
        assert bench.bind("?v", bench.float(value))
        assert broken(bench) == expected


def test_a_guard_on_terms_compares_values_not_spellings() -> None:
    bench = Bench("(= ?e (MAdd ?a ?b)) (!= ?a ?b)")
    assert bench.bind("?a", bench.terms.number(12))
    product = bench.terms.add("MMul", bench.terms.number(3), bench.terms.number(4))
    assert bench.bind("?b", product)
    assert broken(bench) == "(!= ?a ?b)"


def test_what_has_no_order_is_left_to_the_engine() -> None:
    bench = Bench("(= ?e (MAdd ?a ?b))")
    texts = [bench.terms.literal("String", text) for text in "ba"]
    assert bench.binding._holds("<", texts)
    assert bench.binding._holds("<", [bench.terms.number(2), bench.terms.number(1)])


def test_rows_of_tables_are_looked_up_and_derived_relations_are_not() -> None:
    body = "(= ?t (dtype ?x)) (cublaslt_base_dtype ?t)"
    table: Rows = {"cublaslt_base_dtype": frozenset({(Graph().add("F16"),)})}
    for rows, dtype, expected in (
        (table, "F16", None),
        (table, "F64", "(cublaslt_base_dtype ?t)"),
        ({}, "F64", None),
    ):
        bench = Bench(body, rows)
        half = bench.terms.add("F16")  # under the number that the table has for it
        assert bench.bind("?t", half if dtype == "F16" else bench.terms.add(dtype))
        assert broken(bench) == expected


def test_only_constraints_that_changed_are_looked_at_again() -> None:
    bench = Bench("(= ?k (Constant ?v)) (= ?j (Constant ?w)) (!= ?v 0.0) (!= ?w 0.0)")
    assert bench.bind("?v", bench.float(0.0))
    mark = len(bench.binding.trail)
    assert bench.bind("?w", bench.float(1.0))
    assert bench.binding.broken(mark) is None
    assert broken(bench) == "(!= ?v 0.0)"
    bench.binding.undo(mark)
    assert bench.bind("?w", bench.float(0.0))
    found = bench.binding.broken(mark)
    assert found is not None
    assert found.text == "(!= ?w 0.0)"


def test_a_guard_on_a_composed_value_sees_its_parts_change() -> None:
    bench = Bench("(= ?e (MAdd ?a ?b)) (!= (MMul ?a ?b) (MNum 6))")
    assert bench.bind("?a", bench.terms.number(2))
    mark = len(bench.binding.trail)
    assert bench.bind("?b", bench.terms.number(3))
    found = bench.binding.broken(mark)
    assert found is not None
    assert found.text == "(!= (MMul ?a ?b) (MNum 6))"


# ---- undo ------------------------------------------------------------------------------------


def test_undo_forgets_exactly_what_came_later() -> None:
    bench = Bench("(= ?s (ECons ?m (ECons ?n (ENil)))) (= ?x (nth_from_end ?s 0))")
    assert bench.bind("?m", bench.terms.number(5))
    mark = len(bench.binding.trail)
    assert bench.bind("?s", bench.terms.shape(5, 7))
    bench.binding.undo(mark)
    assert [bench.value(name) for name in ("?s", "?m", "?n", "?x")] == [
        None,
        "(MNum 5)",
        None,
        None,
    ]
    assert bench.bind("?s", bench.terms.shape(5, 9))
    assert bench.value("?x") == "(MNum 9)"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("?a", "?b", "?p", "?q")),
            st.integers(1, 24),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_a_refused_binding_changes_nothing(attempts: list[tuple[str, int, bool]]) -> None:
    bench = Bench("(= ?p (MMul ?a ?b)) (= ?q (MMul ?p ?a)) (= ?l (ECons ?q (ENil)))")
    for name, value, as_stride in attempts:
        before, trail = dict(bench.binding.values), list(bench.binding.trail)
        term = bench.terms.stride(value) if as_stride else bench.terms.number(value)
        if bench.bind(name, term):
            assert bench.binding.reader.equal(
                bench.binding.ground(bench.graph.variables[name]) or 0, term
            )
            assert len(bench.binding.trail) == len(bench.binding.values)
        else:
            assert (bench.binding.values, bench.binding.trail) == (before, trail)


def test_terms_are_spelled_as_the_compiler_does() -> None:
    bench = Bench("(= ?e (MAdd ?a ?b))")
    shown = [bench.terms.show(bench.binding.stride(step)) for step in (0, 1, 5)]
    assert shown == ["(MNum 0)", "(MIter)", "(MMul (MIter) (MNum 5))"]
    listed = bench.binding.spelling.listing([bench.binding.number(3), bench.binding.stride(1)])
    assert bench.terms.show(listed) == "(ECons (MNum 3) (ECons (MIter) (ENil)))"
