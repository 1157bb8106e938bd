"""Rule files as records: names, hashes, desugaring, and every diagnostic with its place."""

from __future__ import annotations

import msgspec
import pytest

from rulecheck.egraph.bindings import Parser
from rulecheck.records import (
    Call,
    Change,
    Declaration,
    Do,
    Eq,
    Let,
    Limits,
    Lit,
    Problem,
    Set,
    Span,
    Union,
    Var,
)
from rulecheck.rules.parse import read_dialect
from rulecheck.rules.printer import print_action, print_fact
from tests.toy import FILE, RULE, dialect, only_rule, place, problem, read


def test_the_dialect_is_read() -> None:
    assert dialect().problems == ()
    kinds = {known.name: known.kind for known in dialect().declarations}
    assert kinds["Cast"] == "constructor"
    assert kinds["dtype"] == "function"
    assert kinds["narrow"] == "relation"
    assert kinds["Buf"] == "sort"
    assert kinds["backend"] == "ruleset"


def test_a_rule_keeps_its_parts_and_their_places() -> None:
    rule = only_rule("; é\n" + RULE)
    assert (rule.name, rule.kind, rule.ruleset, rule.form) == ("r", "rule", "", 0)
    assert rule.span == Span(FILE, 2, 1, 3, 29)
    assert rule.name_span == Span(FILE, 3, 25, 3, 28)
    first = rule.body[0]
    assert isinstance(first, Eq)
    assert first.left == Var("?b", Span(FILE, 2, 11, 2, 13))
    assert isinstance(first.right, Call)
    assert first.right.span == Span(FILE, 2, 14, 2, 32)
    assert rule.head == (
        Union(
            Var("?b", Span(FILE, 3, 11, 3, 13)),
            Var("?a", Span(FILE, 3, 14, 3, 16)),
            Span(FILE, 3, 4, 3, 17),
            "Buf",
        ),
    )
    assert rule.variables == (("?b", "Buf"), ("?a", "Buf"), ("?n", "Num"), ("?t", "Type"))


def test_columns_count_characters_not_bytes() -> None:
    rule = only_rule('(rule ((Named ?x "ü€𝄞" true) (= ?x ?é)) () :name "né")')
    (_, second), name = rule.body, rule.name_span
    assert second.span == Span(FILE, 1, 30, 1, 39)
    assert (rule.name, name) == ("né", Span(FILE, 1, 50, 1, 54))


def test_literals_have_their_sorts() -> None:
    rule = only_rule('(rule ((Named (Scale (Leaf -3 (F32)) 1e-2) "a\\"\\n\\\\" false)) ())')
    literals = []
    pending = [fact.expr for fact in rule.body if not isinstance(fact, Eq)]
    for expr in pending:
        if isinstance(expr, Call):
            pending += expr.args
        elif isinstance(expr, Lit):
            literals.append((expr.value, expr.sort))
    assert sorted(literals, key=str) == [
        (-3, "i64"),
        (0.01, "f64"),
        (False, "bool"),
        ('a"\n\\', "String"),
    ] or set(literals) == {(-3, "i64"), (0.01, "f64"), (False, "bool"), ('a"\n\\', "String")}


def test_all_actions_are_read() -> None:
    rule = only_rule(
        "(rule ((= ?b (Add ?x _)) (= ?t (dtype ?x)))"
        " ((let ?y (Cast ?x (N 1) ?t)) (union ?b ?y) (set (dtype ?y) ?t)"
        " (delete (Add ?x ?x)) (subsume (Add ?x ?y)) (narrow ?t) (Add ?y ?y)))"
    )
    kinds = [type(action) for action in rule.head]
    assert kinds == [Let, Union, Set, Change, Change, Do, Do]
    assert print_fact(rule.body[0]) == "(= ?b (Add ?x _))"
    assert dict(rule.variables).keys() == {"?b", "?x", "?t"}


def test_a_rewrite_becomes_body_and_head() -> None:
    rule = only_rule(
        "(rewrite (Add a b)\n         (Add b a) :when ((narrow (dtype a)) (!= a b))"
        " :ruleset backend)"
    )
    assert (rule.kind, rule.ruleset, rule.name) == ("rewrite", "backend", "file.egg:1")
    assert [print_fact(fact) for fact in rule.body] == [
        "(= $rewrite (Add a b))",
        "(narrow (dtype a))",
        "(!= a b)",
    ]
    assert [print_action(action) for action in rule.head] == ["(union $rewrite (Add b a))"]
    assert rule.body[0].span == Span(FILE, 1, 10, 1, 19)
    assert rule.head[0].span == Span(FILE, 2, 10, 2, 19)
    assert rule.name_span == Span(FILE, 1, 2, 1, 9)


def test_a_subsuming_rewrite_keeps_that() -> None:
    rule = only_rule("(rewrite (Add a b) (Add b a) :subsume)")
    assert [print_action(action) for action in rule.head] == [
        "(union $rewrite (Add b a))",
        "(subsume (Add a b))",
    ]


def test_a_birewrite_is_two_rules() -> None:
    file = read("(sort X)\n(birewrite (Add a b) (Add b a))")
    assert [(rule.name, rule.form) for rule in file.rules] == [
        ("file.egg:2 =>", 1),
        ("file.egg:2 <=", 1),
    ]
    assert print_fact(file.rules[1].body[0]) == "(= $rewrite (Add b a))"


def test_unnamed_rules_are_named_by_their_place() -> None:
    file = read("(rule ((narrow x)) ())\n (rule ((narrow x)) ()) (rule ((narrow x)) ())")
    assert [rule.name for rule in file.rules] == ["file.egg:1", "file.egg:2", "file.egg:2:25"]
    assert file.problems == ()


def test_the_hash_is_of_the_form() -> None:
    assert only_rule(RULE).text_hash == only_rule("; c\n" + RULE.replace("\n", " ;c\n")).text_hash
    assert only_rule(RULE).text_hash != only_rule(RULE.replace("F32", "F16")).text_hash


def test_declarations_facts_and_directives_are_kept() -> None:
    file = read(
        "; RULECHECK-EXPECT: agrees\n(relation pair (Type Num))\n(pair (F16) (N 3))\n"
        "(function size (Buf) i64 :merge (min old new))\n(constructor Neg (Buf) Buf :cost 3)\n"
    )
    assert file.problems == ()
    assert file.directives == (("EXPECT", "agrees"),)
    assert [(fact.fn, fact.span.line) for fact in file.facts] == [("pair", 3)]
    own = file.declarations[len(dialect().declarations) :]
    assert [(known.kind, known.name, known.inputs, known.output) for known in own] == [
        ("relation", "pair", ("Type", "Num"), "Unit"),
        ("function", "size", ("Buf",), "i64"),
        ("constructor", "Neg", ("Buf",), "Buf"),
    ]
    assert own[2].cost == 3
    assert own[1].span == Span(FILE, 4, 1, 4, 47)


def test_order_of_declarations_does_not_matter() -> None:
    file = read("(rule ((Neg x)) ())\n(constructor Neg (New) New)\n(sort New)")
    assert file.problems == ()
    assert len(file.rules) == 1


@pytest.mark.parametrize(
    "text",
    [
        "(relation narrow (Type))",
        "(sort Buf)",
        "(function lower (Num) i64 :merge (max old new))",
        "(datatype Type (F32) (F16))",
        "(datatype* (Type (F32)) (Num (N i64)))",
        "(ruleset backend)",
    ],
)
def test_repeating_the_dialect_is_accepted_as_one(text: str) -> None:
    file = read(text)
    assert file.problems == ()
    assert file.declarations == dialect().declarations


def test_sorts_flow_through_primitives_and_equalities() -> None:
    rule = only_rule(
        "(rule ((= ?y (+ ?x 1)) (= ?z ?y) (< ?z (lower ?e)) (= ?e (N ?x)) (Scale ?b ?s)"
        " (= ?p (* (/ ?s 2.0) (to-f64 ?x))) (= true (bool-< ?x 3)) (!= ?e (N 1))) ())"
    )
    assert dict(rule.variables) == {
        "?y": "i64",
        "?x": "i64",
        "?z": "i64",
        "?e": "Num",
        "?b": "Buf",
        "?s": "f64",
        "?p": "f64",
    }


def test_sort_inference_takes_bounded_time() -> None:
    deep = "?x"
    for _ in range(180):
        deep = f"(+ {deep} ?y)"
    assert read(f"(rule ((= ?z {deep}) (N ?x) (N ?y)) ())").problems == ()
    chain = [f"(= ?v{i} (+ ?v{i + 1} ?v{i + 1}))" for i in range(300)]
    forwards = " ".join([*chain[::-1], "(N ?v300)"])
    assert read(f"(rule ({forwards}) ())").problems == ()
    backwards = " ".join([*chain, "(N ?v300)"])
    found = problem(f"(rule ({backwards}) ())")
    assert (found.kind, found.subject, place(found)[:2]) == ("type", "?v0", (1, 11))


def test_a_wrong_dialect_is_reported() -> None:
    broken = read_dialect("d.egg", "(sort A)\n (datatype B (b", Parser(), Limits())
    assert [found.kind for found in broken.problems] == ["syntax"]
    assert broken.problems[0].span == Span("d.egg", 2, 2, 2, 3)
    odd = read_dialect("d.egg", "(sort A)\n (rule)", Parser(), Limits())
    assert [found.span.line for found in odd.problems] == [2]


def test_records_pass_through_messages() -> None:
    file = read("; RULECHECK-EXPECT: agrees\n" + RULE + "\n(foo)")
    packed = msgspec.msgpack.encode(file)
    assert msgspec.msgpack.decode(packed, type=type(file)) == file
    assert isinstance(file.problems[0], Problem)
    assert isinstance(file.declarations[0], Declaration)
