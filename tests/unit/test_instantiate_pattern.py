"""A left side as classes: what is equal, what is fixed, and what contradicts itself."""

from __future__ import annotations

import pytest

from rulecheck.campaign.workshop import signatures
from rulecheck.instantiate.pattern import (
    Contradiction,
    PatternGraph,
    build_pattern,
    show,
    show_literal,
)
from rulecheck.records import Eq, Holds
from tests.luminal_rules import read

RIGID = frozenset({"DType", "EList", "IList", "OpKind"})


def pattern(body: str) -> PatternGraph:
    file = read(f'(rule ({body}) ((MNum 7)) :ruleset expr :name "r")')
    return build_pattern(file.rules[0], signatures(file), RIGID)


def node(graph: PatternGraph, name: str) -> int:
    return graph.find(graph.variables[name])


def same(graph: PatternGraph, first: str, second: str) -> bool:
    return node(graph, first) == node(graph, second)


def test_a_variable_is_one_class_wherever_it_stands() -> None:
    graph = pattern("(= ?e (MAdd ?a ?b)) (= ?f (MMul ?a ?c))")
    (total,) = graph.calls_of(node(graph, "?e"))
    (product,) = graph.calls_of(node(graph, "?f"))
    assert graph.find(total.args[0]) == graph.find(product.args[0]) == node(graph, "?a")
    assert graph.sort_of(node(graph, "?a")) == "Expression"


def test_equal_terms_are_one_class_although_written_twice() -> None:
    graph = pattern("(= ?e (MAdd ?a (MNum 1))) (= ?f (MAdd ?a (MNum 1)))")
    assert same(graph, "?e", "?f")


def test_equality_is_carried_through_arguments_and_functions() -> None:
    graph = pattern("(= ?x (ECons ?a ?s)) (= ?x (ECons ?b ?t)) (= ?n (len ?s)) (= ?m (len ?t))")
    assert same(graph, "?a", "?b")
    assert same(graph, "?s", "?t")
    assert same(graph, "?n", "?m")


def test_equality_is_carried_upwards() -> None:
    graph = pattern("(= ?e (MAdd ?a ?b)) (= ?f (MAdd ?c ?b)) (= ?a ?c)")
    assert same(graph, "?e", "?f")


def test_a_function_has_one_value() -> None:
    graph = pattern("(= ?t (dtype ?x)) (= ?u (dtype ?y)) (= ?x ?y)")
    assert same(graph, "?t", "?u")
    assert len({graph.find(fact.result) for fact in graph.functions}) == 1


def test_unequal_classes_stay_apart() -> None:
    graph = pattern("(= ?e (MAdd ?a ?b)) (= ?f (MAdd ?b ?a))")
    assert not same(graph, "?e", "?f")
    assert not same(graph, "?a", "?b")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("(= ?t (dtype ?x)) (= ?t (F32)) (= ?t (Bf16))", "(F32 …) = (Bf16 …)"),
        ("(= ?l (ENil)) (= ?l (ECons ?a ?s))", "(ENil …) = (ECons …)"),
        ("(= ?e (MNum 1)) (= ?e (MNum 2)) (= ?l (ECons ?e (ENil)))", "1 = 2"),
        (
            "(= ?k (Constant 0.5)) (= ?x (Op ?k ?i)) (= ?k (Constant 0.25))",
            "0.5 = 0.25",
        ),
        ('(= ?i (Input ?n "a" ?t)) (= ?i (Input ?n "b" ?t))', '"a" = "b"'),
    ],
)
def test_what_cannot_be_equal_is_a_contradiction(body: str, words: str) -> None:
    with pytest.raises(Contradiction) as raised:
        pattern(body)
    assert words in str(raised.value)


def test_numbers_have_many_spellings() -> None:
    graph = pattern("(= ?e (MAdd ?a ?b)) (= ?e (MMul ?c ?d))")
    assert {call.fn for call in graph.calls_of(node(graph, "?e"))} == {"MAdd", "MMul"}


def test_ops_of_two_kinds_in_one_class_are_not_merged() -> None:
    graph = pattern("(= ?x (Op (Cast ?n ?t) ?i)) (= ?x (Op (Constant ?v) ?j))")
    assert len(graph.calls_of(node(graph, "?x"))) == 2
    assert not same(graph, "?i", "?j")


def test_list_elements_may_be_spelled_in_two_ways() -> None:
    graph = pattern("(= ?s (ECons (MNum 7) (ENil))) (= ?s (ECons (MMul ?a ?b) ?t))")
    (cons,) = graph.calls_of(node(graph, "?s"))
    assert {call.fn for call in graph.calls_of(cons.args[0])} == {"MNum", "MMul"}
    (end,) = graph.calls_of(node(graph, "?t"))
    assert end.fn == "ENil"


def test_ops_of_one_kind_in_one_class_are_one() -> None:
    graph = pattern("(= ?x (Op (Cast ?n ?t) ?i)) (= ?x (Op (Cast ?m ?u) ?j))")
    assert len(graph.calls_of(node(graph, "?x"))) == 1
    assert same(graph, "?n", "?m")
    assert same(graph, "?i", "?j")


def test_guards_and_rows_are_constraints_and_primitives_are_functions() -> None:
    graph = pattern(
        "(= ?k (Constant ?v)) (= ?x (Op ?k ?i)) (!= ?v 0.0) (< ?v 2.0)"
        " (= ?t (dtype ?x)) (cublaslt_base_dtype ?t) (= ?w (* ?v 2.0))"
    )
    texts = [constraint.text for constraint in graph.constraints]
    assert texts == ["(!= ?v 0.0)", "(< ?v 2.0)", "(cublaslt_base_dtype ?t)"]
    assert [graph.find(arg) for arg in graph.constraints[2].args] == [node(graph, "?t")]
    assert {fact.fn for fact in graph.functions} == {"dtype", "*"}


def test_a_bare_term_has_to_exist() -> None:
    graph = pattern("(MAdd ?a (MNum 3))")
    calls = [call.fn for root in graph.classes() for call in graph.calls_of(root)]
    assert sorted(calls) == ["MAdd", "MNum"]


def test_a_copy_can_be_changed_by_itself() -> None:
    graph = pattern("(= ?e (MAdd ?a ?b))")
    twin = graph.copy()
    twin.union(twin.variables["?a"], twin.variables["?b"])
    twin.add_function(
        "dtype", (twin.fresh("IR"),), "DType", graph.calls_of(node(graph, "?e"))[0].span
    )
    assert same(twin, "?a", "?b")
    assert not same(graph, "?a", "?b")
    assert graph.functions == []
    assert len(graph.parent) < len(twin.parent)


def test_sorts_are_known_from_declarations() -> None:
    graph = pattern("(= ?x (Op ?k ?i)) (= ?n (nth_from_end ?s ?p))")
    sorts = {name: graph.sort_of(index) for name, index in graph.variables.items()}
    assert sorts == {
        "?x": "IR",
        "?k": "OpKind",
        "?i": "IList",
        "?n": "Expression",
        "?s": "EList",
        "?p": "i64",
    }


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (("bool", True), "true"),
        (("bool", False), "false"),
        (("i64", 3), "3"),
        (("f64", 3.0), "3.0"),
        (("String", "a"), '"a"'),
        (("Unit", None), "()"),
    ],
)
def test_literals_are_shown_as_the_engine_spells_them(
    literal: tuple[str, int | float | str | bool | None], text: str
) -> None:
    assert show_literal(literal) == text


def test_facts_are_shown_as_their_author_wrote_them() -> None:
    text = '(Op (Cast (MNum 3) (F32)) (ICons (Input ?n "x" ?t) (INil)))'
    file = read(f'(rule ((= ?y {text}) {text}) ((MNum 7)) :ruleset expr :name "r")')
    first, second = file.rules[0].body
    assert isinstance(first, Eq)
    assert isinstance(second, Holds)
    assert show(first.right) == show(second.expr) == text
