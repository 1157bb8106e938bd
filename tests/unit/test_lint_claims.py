"""RC504: values that conflict, of functions that keep the newest."""

from __future__ import annotations

import pytest

from tests.linting import line, lints
from tests.rule_texts import WIDEN, inputs, rule

BODY = f"(= ?top (Op (Cast ?size (F32)) {inputs('?x')}))"
BUILT = f"(let ?new (Op (Cast ?size (F32)) {inputs('?y')}))"
SOURCE = f"(= ?x (Op (Cast ?size (F16)) {inputs('?y')}))"


def claiming(*actions: str, body: str = BODY) -> str:
    return rule("claims", f"{body}\n{SOURCE}", "\n".join([BUILT, *actions]))


UNION = "(union ?top ?new)"


def test_the_type_of_the_built_op() -> None:
    assert lints(claiming(UNION, "(set (dtype ?new) (F32))")) == []
    text = claiming(UNION, "(set (dtype ?new) (F16))")
    (found,) = lints(text)
    assert found.code == "RC504"
    assert found.message == "dtype of ?new is set to F16, and its op writes F32"
    assert found.hint == "set it to F32, or change the op"
    assert line(text, found).startswith("(F16))")


def test_the_type_of_a_matched_op() -> None:
    assert lints(claiming(UNION, "(set (dtype ?top) (F32))")) == []
    assert len(lints(claiming(UNION, "(set (dtype ?top) (F16))"))) == 1


def test_a_type_that_need_not_be_the_one_written() -> None:
    facts = f"{BODY} (= ?t (dtype ?z)) (= ?z (Op (Cast ?size ?t) {inputs('?y')}))"
    (found,) = lints(claiming(UNION, "(set (dtype ?new) ?t)", body=facts))
    assert found.message == "dtype of ?new is set to ?t, and its op writes F32"
    assert lints(claiming(UNION, "(set (dtype ?new) ?t)", body=f"{facts} (= ?t (F32))")) == []


def test_the_type_of_an_elementwise_op_is_that_of_its_input() -> None:
    body = f"(= ?top (Op (Sin ?shape ?s ?s) {inputs('?x')}))"
    typed = f"{body} (= ?t (dtype ?x))"
    head = f"(let ?new (Op (Exp2 ?shape ?s ?s) {inputs('?x')})) (union ?top ?new)"
    assert lints(rule("same", typed, f"{head} (set (dtype ?new) ?t)")) == []
    assert lints(rule("none known", body, f"{head} (set (dtype ?new) (F32))")) == []
    (found,) = lints(rule("other", f"{typed} (= ?t (F16))", f"{head} (set (dtype ?new) (F32))"))
    assert found.message == "dtype of ?new is set to F32, and its op writes F16"


def test_a_comparison_writes_a_type_of_its_own() -> None:
    body = f"(= ?top (Op (LessThan ?shape ?s ?s ?s) {inputs('?x', '?y')}))"
    assert lints(rule("right", body, "(set (dtype ?top) (Bool))")) == []
    assert len(lints(rule("wrong", body, "(set (dtype ?top) (F32))"))) == 1


def test_two_sets_of_one_term() -> None:
    text = claiming(UNION, "(set (dtype ?y) (F32))", "(set (dtype ?y) (Bf16))")
    (found,) = lints(text)
    assert found.message == "dtype is set to (F32) and to (Bf16) for one term"
    assert found.hint.startswith("the value that is written last wins")
    assert line(text, found).startswith("(Bf16))")
    assert lints(claiming(UNION, *["(set (dtype ?y) (F32))"] * 2)) == []


def test_two_sets_of_terms_that_are_united() -> None:
    body = f"(= ?l (Op (Sum ?l1 ?n ?l2 ?t ?l2) {inputs('?x')}))"
    lists = "(set (len ?l1) 1) (set (len ?l2) 2)"
    assert lints(rule("apart", body, lists)) == []
    (found,) = lints(rule("united", body, f"{lists} (union ?l1 ?l2)"))
    assert found.message == "len is set to 1 and to 2 for one term"


def test_a_function_that_merges_may_be_set_twice() -> None:
    body = f"(= ?l (Op (Sum ?s ?n ?s ?t ?s) {inputs('?x')}))"
    assert lints(rule("bounds", body, "(set (lower ?n) 1) (set (lower ?n) 2)")) == []


@pytest.mark.parametrize(("old", "new"), [("F32", "F16"), ("F32", "TF32"), ("Int", "Int64")])
def test_two_types_of_one_buffer(old: str, new: str) -> None:
    body = f"(= ?top (Op (Cast ?size ({old})) {inputs('?x')}))"
    text = rule("cast", body, f"(union ?top (Op (Cast ?size ({new})) {inputs('?x')}))")
    (found,) = lints(text)
    assert found.code == "RC504"
    assert found.message == f"a buffer of {old} is united with one of {new}"
    assert line(text, found).startswith("(union ?top")
    assert lints(text.replace(f"({new})", f"({old})")) == []


def test_a_wrong_set_speaks_for_the_union() -> None:
    body = f"(= ?top (Op (Cast ?size (F32)) {inputs('?x')}))"
    head = f"(let ?new (Op (Cast ?size (F16)) {inputs('?x')})) (union ?top ?new)"
    assert len(lints(rule("one lint", body, f"{head} (set (dtype ?new) (F32))"))) == 1
    assert len(lints(rule("one lint", body, f"{head} (set (dtype ?new) (F16))"))) == 1


def test_the_widening_rule_with_its_claim() -> None:
    head, _, tail = WIDEN.rpartition(") :ruleset")
    claimed = head.replace("(union ?wide", "(set (dtype ?wide) (F32))\n(union ?wide")
    assert lints(f"{claimed}) :ruleset{tail}") == []
    assert len(lints(f"{claimed}) :ruleset{tail}".replace("?wide) (F32)", "?wide) (F16)"))) == 1
