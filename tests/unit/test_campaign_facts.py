"""What a head states beside its unions: rows that are judged, types, removals, terms it builds."""

from __future__ import annotations

import functools
from typing import NamedTuple

import pytest

from rulecheck.campaign.facts import Fact, facts, find_stamps, ground, removed
from rulecheck.campaign.workshop import signatures
from rulecheck.records import Declaration, Do, Expr, Let, Rule, TermTable, Verdict
from tests.luminal_rules import dialect, read
from tests.luminal_terms import VOCABULARY, Graph
from tests.rule_texts import rule

BODY = "(= ?x (Op (Cast ?n ?t) (ICons ?y (INil)))) (= ?c (Op (Constant ?v) (INil))) (len ?l)"


@functools.cache
def known() -> dict[str, Declaration]:
    return {item.name: item for item in dialect().declarations if item.kind != "sort"}


class Fired(NamedTuple):
    """A rule, what a firing bound, and the table."""

    rule: Rule
    graph: Graph
    bound: dict[str, int]

    def facts(self) -> list[Fact]:
        return list(facts(self.rule, self.bound, self.graph, VOCABULARY, known()))

    def stamps(self) -> list[str]:
        found = find_stamps(self.rule, self.bound, self.graph, "dtype", known())
        return [f"{self.graph.show(term)} {self.graph.show(kind)}" for term, kind in found]

    def removed(self) -> list[str]:
        return [
            self.graph.show(term) for _, term in removed(self.rule, self.bound, self.graph, known())
        ]


def fire(head: str) -> Fired:
    text = rule("r", BODY.replace("(len ?l)", "(= ?z (len ?l))"), head)
    file = read(text)
    graph = Graph()
    y = graph.leaf("y")
    bound = {
        "?y": y,
        "?n": graph.number(35),
        "?t": graph.add("F32"),
        "?x": graph.op(graph.add("Cast", graph.number(35), graph.add("F32")), y),
        "?v": graph.literal("f64", 2.0),
        "?c": graph.op(graph.add("Constant", graph.literal("f64", 2.0))),
        "?l": graph.shape(5, 7),
        "?z": graph.literal("i64", 2),
    }
    assert dict(file.rules[0].variables).keys() == bound.keys()
    return Fired(file.rules[0], graph, bound)


def test_a_row_without_meaning_states_nothing() -> None:
    assert fire("(cublaslt_base_dtype ?t)").facts() == []
    assert fire("(union ?x ?y)").facts() == []
    assert fire("(let ?new (MNum 3)) (MMul ?n ?n)").facts() == []


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        ("(cublaslt_valid_leading_dimension ?n (MNum 35))", Verdict.AGREES),
        ("(cublaslt_valid_leading_dimension ?n (MNum 36))", Verdict.MISMATCH),
        ("(let ?m (MMul ?n (MNum 2))) (cublaslt_valid_leading_dimension ?n ?m)", Verdict.MISMATCH),
        ("(cublaslt_stride_coefficient ?n (+ 34 1))", Verdict.AGREES),
        ("(cublaslt_stride_coefficient ?n (* 5 6))", Verdict.MISMATCH),
        ("(set (len ?l) 2)", Verdict.AGREES),
        ("(set (len ?l) 3)", Verdict.MISMATCH),
        ("(set (len ?l) ?z)", Verdict.AGREES),
    ],
)
def test_a_row_with_a_meaning_is_held_against_it(head: str, verdict: Verdict) -> None:
    (found,) = fire(head).facts()
    assert found.evidence is not None
    assert found.evidence.verdict is verdict
    assert found.graphs is None
    if verdict is Verdict.MISMATCH:
        assert found.evidence.code == "RC306"
        assert found.evidence.message.startswith("the rule states a false row of ")
    assert found.span.line == 4, "the caret belongs under the row"


@pytest.mark.parametrize(
    "head",
    [
        '(cublaslt_valid_leading_dimension (MVar "s") ?n)',
        "(cublaslt_stride_coefficient ?n (/ 5 0))",  # no value: the engine would not fire
    ],
)
def test_what_cannot_be_told_is_not_judged(head: str) -> None:
    assert fire(head).facts() == []


def test_a_row_about_graphs_gives_two_graphs_to_compare() -> None:
    fired = fire("(cublaslt_fp8_scale_product ?x ?c ?c)")
    (found,) = fired.facts()
    assert found.evidence is None
    assert found.graphs is not None
    reference, claimed = found.graphs
    assert claimed == fired.bound["?x"]
    assert fired.graph.show(reference).startswith(
        "(Op (Mul (ENil) (ENil) (ENil) (ENil)) (ICons (Op (Const"
    )


def test_types_that_are_set_are_found_behind_lets() -> None:
    fired = fire("(let ?kind (F16)) (let ?new ?y) (set (dtype ?new) ?kind) (set (dtype ?x) ?t)")
    leaf = '(Input 0 "y" (Bf16))'
    assert fired.stamps() == [
        f"{leaf} (F16)",
        f"(Op (Cast (MNum 35) (F32)) (ICons {leaf} (INil))) (F32)",
    ]
    assert fire("(set (lower ?n) 0)").stamps() == []


@pytest.mark.parametrize("kind", ["delete", "subsume"])
def test_what_is_removed(kind: str) -> None:
    fired = fire(f"(let ?kind (Cast ?n ?t)) ({kind} (Op ?kind (ICons ?y (INil)))) (union ?x ?y)")
    assert fired.removed() == [fired.graph.show(fired.bound["?x"])]
    assert fire("(union ?x ?y)").removed() == []


# ---- terms of a head -------------------------------------------------------------------------


def only_expr(known_rule: Rule) -> Expr:
    """The expression of a head of one action."""
    (action,) = known_rule.head
    assert isinstance(action, Let | Do)
    return action.expr


def built(text: str) -> str | None:
    """The term that an expression of a head builds, in the firing above."""
    fired = fire(f"(let ?it {text})")
    term = ground(only_expr(fired.rule), fired.bound, fired.graph, known())
    return None if term is None else fired.graph.show(term)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("?n", "(MNum 35)"),
        ("(MNum (+ ?z 1))", "(MNum 3)"),
        ("(Constant (* ?v 1.5))", "(Constant 3.0)"),
        ("(Constant (to-f64 ?z))", "(Constant 2.0)"),
        ("(Constant (/ 1.0 ?v))", "(Constant 0.5)"),
        ("(MNum (/ -7 2))", "(MNum -3)"),  # towards zero, as the engine divides
        ("(MNum (/ 1 0))", None),
        ("(MNum (* 4611686018427387904 2))", None),  # beyond 64 bits
    ],
)
def test_a_term_is_built_as_the_engine_would(text: str, shown: str | None) -> None:
    assert built(text) == shown


def test_a_computed_number_is_of_the_sort_of_its_value() -> None:
    """The i64 2 as f64 is another literal than the i64 2."""
    fired = fire("(let ?it (to-f64 ?z))")
    term = ground(only_expr(fired.rule), fired.bound, fired.graph, known())
    assert term is not None
    assert fired.graph.nodes[term].fn == "f64"
    assert term == fired.graph.literal("f64", 2.0)


def test_what_is_not_bound_builds_nothing() -> None:
    table = TermTable()
    file = read(rule("r", BODY.replace("(len ?l)", "(= ?z (len ?l))"), "(MMul ?n ?n)"))
    assert ground(only_expr(file.rules[0]), {}, table, signatures(file)) is None
