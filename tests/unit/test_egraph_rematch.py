"""The second opinion on a match: right ones pass, and a wrong binding is caught by its fact."""

from __future__ import annotations

import pytest

from rulecheck.egraph.load import Program, read_header
from rulecheck.egraph.match import Session
from rulecheck.egraph.rematch import rematch
from rulecheck.records import (
    Firing,
    InstanceBatch,
    Limits,
    MatchRequest,
    Node,
    Rule,
    TermTable,
)
from rulecheck.rules.printer import print_fact
from tests.toy import DIALECT, Terms, dialect, read

SAME_TYPE = """
(rule ((= ?s (Add ?l ?r)) (= ?l (Cast ?a ?n ?t)) (= ?r (Cast ?b ?n ?t)) (= ?t (F32))
       (!= ?a ?b) (= ?n (N ?size)) (< ?size 9) (= ?half (/ ?size 2)) (narrow ?u)
       (= (dtype ?a) ?u))
      ((union ?s (Cast (Add ?a ?b) ?n (F32)))))
"""


def prepare(text: str) -> tuple[Rule, Session]:
    file = read(text)
    assert file.problems == ()
    inherited = len(dialect().declarations)
    session = Session(Program(dialect().commands, read_header(DIALECT), file, inherited))
    return file.rules[0], session


def judge(rule: Rule, firing: Firing, nodes: tuple[Node, ...]) -> str | None:
    fact = rematch(rule, firing, nodes, dialect().declarations)
    return None if fact is None else print_fact(fact)


def instance() -> tuple[Terms, InstanceBatch]:
    terms = Terms()
    size = terms.number(7)
    left = terms.cast(terms.leaf(0), size, "F32")
    right = terms.cast(terms.leaf(1), size, "F32")
    terms.leaf(2)
    terms.number(5)
    terms.add("F16")
    return terms, terms.batch(terms.add("Add", left, right))


def test_what_the_engine_matches_holds() -> None:
    rule, session = prepare(SAME_TYPE)
    _, batch = instance()
    reply = session.match(MatchRequest(0, batch, Limits()))
    (firing,) = reply.firings
    assert judge(rule, firing, reply.nodes) is None


@pytest.mark.parametrize(
    ("variable", "wrong", "fact"),
    [
        ("?s", "(Leaf 0 (F16))", "(= ?s (Add ?l ?r))"),
        ("?l", "(Cast (Leaf 1 (F16)) (N 7) (F32))", "(= ?s (Add ?l ?r))"),
        ("?a", "(Leaf 2 (F16))", "(= ?l (Cast ?a ?n ?t))"),
        ("?b", "(Leaf 0 (F16))", "(= ?r (Cast ?b ?n ?t))"),
        ("?t", "(F16)", "(= ?l (Cast ?a ?n ?t))"),
        ("?n", "(N 5)", "(= ?l (Cast ?a ?n ?t))"),
        ("?size", "5", "(= ?n (N ?size))"),
        ("?half", "7", "(= ?half (/ ?size 2))"),
    ],
)
def test_one_wrong_binding_is_caught(variable: str, wrong: str, fact: str) -> None:
    """As egglog 13.2.0 did: a term that is in the graph, but not where the rule wants it."""
    rule, session = prepare(SAME_TYPE)
    _, batch = instance()
    reply = session.match(MatchRequest(0, batch, Limits()))
    table = TermTable(reply.nodes)
    (index,) = (i for i in range(len(table.nodes)) if table.show(i) == wrong)
    (firing,) = reply.firings
    bindings = tuple((name, index if name == variable else i) for name, i in firing.bindings)
    assert dict(bindings) != dict(firing.bindings)
    assert judge(rule, Firing(0, bindings, firing.members), reply.nodes) == fact


def check_body(body: str, **bindings: float | str | bool) -> str | None:
    """Judge a body over literals only."""
    sorts = {int: "i64", float: "f64", str: "String", bool: "bool"}
    uses = {
        "i64": "(N {0})",
        "f64": "(Scale _ {0})",
        "String": "(Named _ {0} _)",
        "bool": "(Named _ _ {0})",
    }
    table = TermTable()
    bound = {name: table.literal(sorts[type(value)], value) for name, value in bindings.items()}
    ground = " ".join(uses[sorts[type(value)]].format(name) for name, value in bindings.items())
    rule, _ = prepare(f"(rule ({body} {ground}) ())")
    return judge(rule, Firing(None, tuple(bound.items()), ()), tuple(table.nodes))


@pytest.mark.parametrize(
    ("fact", "right", "wrong"),
    [
        ("(< x 3)", 2, 3),
        ("(<= x 3)", 3, 4),
        ("(> x -1)", 0, -1),
        ("(>= x 3)", 3, 2),
        ("(!= x 3)", 4, 3),
        ("(!= 3 x)", 4, 3),
        ("(= x 3)", 3, 4),
        ("(= 3 x)", 3, 4),
        ("(= x (+ 1 2))", 3, 4),
        ("(= x (- 1 2))", -1, 1),
        ("(= x (* 2 -2))", -4, 4),
        ("(= x (/ -7 2))", -3, -4),
        ("(= x (% -7 2))", -1, 1),
        ("(= x (min 1 2))", 1, 2),
        ("(= x (max 1 2))", 2, 1),
        ("(= x (abs -2))", 2, -2),
        ("(= (+ x 1) 3)", 2, 3),
        ("(< x 2.5)", 2.25, 2.75),
        ("(= x (neg 0.5))", -0.5, 0.5),
        ("(= x (to-f64 2))", 2.0, 3.0),
        ("(= x (/ 1.0 4.0))", 0.25, 4.0),
        ("(= x (% -7.0 2.0))", -1.0, 1.0),
        ("(= x NaN)", float("nan"), 1.0),
        ("(= x 0.0)", -0.0, 1.0),
        ('(= x "a")', "a", "b"),
        ('(!= x "a")', "b", "a"),
        ("(= x (bool-< 1 2))", True, False),
        ("(= x (bool-> 1 2))", False, True),
        ("(= x (bool-<= 2 2))", True, False),
        ("(= x (bool->= 1 2))", False, True),
        ("(= x (bool-= 1 2))", False, True),
        ("(= x (and true false))", False, True),
        ("(= x (or true false))", True, False),
        ("(= x (xor true true))", False, True),
        ("(= x (=> true false))", False, True),
        ("(= x (not true))", False, True),
    ],
)
def test_primitives_are_evaluated_as_the_engine_does(
    fact: str, right: float | str, wrong: float | str
) -> None:
    assert check_body(fact, x=right) is None
    assert check_body(fact, x=wrong) == fact
    assert engine_says(fact, right)
    assert not engine_says(fact, wrong)


def engine_says(fact: str, value: float | str | bool) -> bool:
    """Let the engine itself judge the same fact for the same value."""
    kind = {int: "N", float: "Scale", str: "Named", bool: "Named"}[type(value)]
    pattern = {
        int: "(N x)",
        float: "(Scale ?b x)",
        str: "(Named ?b x ?f)",
        bool: "(Named ?b ?s x)",
    }[type(value)]
    _, session = prepare(f"(rule ((= ?it {pattern}) {fact}) ((union ?it ?it)))")
    terms = Terms()
    literal = terms.literal(
        {int: "i64", float: "f64", str: "String", bool: "bool"}[type(value)], value
    )
    leaf = terms.leaf(0)
    args = {
        int: (literal,),
        float: (leaf, literal),
        str: (leaf, literal, terms.literal("bool", value=True)),
        bool: (leaf, terms.literal("String", "s"), literal),
    }[type(value)]
    root = terms.add(kind, *args)
    reply = session.match(MatchRequest(0, terms.batch(root), Limits()))
    assert reply.error is None
    return any(dict(firing.bindings)["?it"] == root for firing in reply.firings)


@pytest.mark.parametrize(
    "fact", ["(= y (/ x 0))", "(= y (* x 9223372036854775807))", "(narrow (F32))", "(N 3)"]
)
def test_what_cannot_be_told_is_not_held_against_a_match(fact: str) -> None:
    assert check_body(fact, x=2, y=3) is None


def test_terms_that_an_algebra_makes_equal() -> None:
    rule, _ = prepare("(rule ((= ?c (Cast ?a (Times ?p ?q) (F32)))) ((union ?c ?a)))")
    terms = Terms()
    product = terms.add("Times", terms.number(2), terms.number(3))
    folded = terms.number(6)
    leaf = terms.leaf(0)
    root = terms.cast(leaf, folded, "F32")
    bindings = {"?c": root, "?a": leaf, "?p": terms.number(2), "?q": terms.number(3)}
    firing = Firing(0, tuple(bindings.items()), ())
    nodes = tuple(terms.nodes)
    strict = rematch(rule, firing, nodes, dialect().declarations)
    assert strict is rule.body[0]

    def equal(sort: str, left: int, right: int) -> bool:
        return sort == "Num" and {left, right} == {product, folded}

    assert rematch(rule, firing, nodes, dialect().declarations, equal) is None
    wrong = Firing(0, (*firing.bindings[:3], ("?q", terms.number(2))), ())
    assert rematch(rule, wrong, nodes, dialect().declarations, equal) is rule.body[0]


def test_a_guard_on_terms_that_are_equal_by_algebra_fails() -> None:
    rule, _ = prepare("(rule ((= ?c (Cast ?a ?n ?t)) (!= ?n (N 6))) ((union ?c ?a)))")
    terms = Terms()
    product = terms.add("Times", terms.number(2), terms.number(3))
    six = terms.number(6)
    leaf = terms.leaf(0)
    root = terms.cast(leaf, product, "F32")
    bindings = {"?c": root, "?a": leaf, "?n": product, "?t": terms.add("F32")}
    firing = Firing(0, tuple(bindings.items()), ())
    declarations = dialect().declarations
    assert rematch(rule, firing, tuple(terms.nodes), declarations) is None

    def equal(sort: str, left: int, right: int) -> bool:
        return sort == "Num" and {left, right} == {product, six}

    assert rematch(rule, firing, tuple(terms.nodes), declarations, equal) is rule.body[1]
