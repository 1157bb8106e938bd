"""RC502: fields that may have any value, and that the product ignores."""

from __future__ import annotations

import pytest

from rulecheck.records import Lint
from tests.linting import line, lints, of_code
from tests.luminal_terms import GEMM_FIELDS
from tests.rule_texts import RESIDUAL, RULES, WIDEN, inputs, old_call, rule, swap

RESIDUAL_PINS = """(= ?shape (ECons ?n (ECons ?m (ENil))))
  (= ?s (ECons (MMul (MIter) ?m) (ECons (MIter) (ENil))))
  (= ?rs (ECons (MMul (MIter) ?m) (ECons (MIter) (ENil)))) ; strides of the residual"""
C_OR_BATCH = {"c_order", "ldc", "c_dtype", "ldd", *(f"stride_{operand}" for operand in "abcd")}
LEAF = '(Input 0 "x" (F32))'


def only(text: str) -> Lint:
    (found,) = lints(text)
    assert found.code == "RC502"
    return found


@pytest.mark.parametrize("name", RULES)
def test_right_rules_have_no_lint(name: str) -> None:
    assert lints(RULES[name]) == []


def test_strides_that_nothing_pins() -> None:
    text = swap(("Add ?shape ?s ?rs ?s", "Add ?shape ?s ?rs ?out"))(RESIDUAL)
    found = only(text)
    assert found.message == (
        "a field of the left side may have any value, and the product ignores it: "
        "Add.out_strides (?out)"
    )
    assert found.hint.startswith("pin each, or use it in the product")
    assert line(text, found).startswith("?out) (ICons ?ab")


def test_one_lint_lists_the_fields_in_order_and_cuts_the_list() -> None:
    text = swap((f"  {RESIDUAL_PINS}", ""), ("Add ?shape ?s ?rs ?s", "Add ?w ?x ?y ?z"))(RESIDUAL)
    found = only(text)
    assert found.message == (
        "4 fields of the left side may have any value, and the product ignores them: "
        "Add.shape (?w), Add.a_strides (?x), Add.b_strides (?y), Add.out_strides (?z)"
    )
    assert line(text, found).startswith("?w ?x ?y ?z)")

    chain = "".join(
        f"(= ?x{step + 1} (Op (Exp2 ?w{step} ?s{step} ?o{step}) {inputs(f'?x{step}')}))\n"
        for step in range(3)
    )
    found = only(rule("chain", chain, f"(union ?x3 (Op (Cast (MNum 1) (F32)) {inputs('?x0')}))"))
    assert found.message.startswith("9 fields")
    assert found.message.endswith("Exp2.out_strides (?o1) and 3 more")


def test_a_wildcard_is_named_by_its_field() -> None:
    text = swap(("Add ?shape ?s ?rs ?s", "Add ?shape ?s ?rs _"))(RESIDUAL)
    assert only(text).message.endswith("ignores it: Add.out_strides")


def test_an_element_of_a_list_may_be_free() -> None:
    text = swap(("?rs (ECons (MMul (MIter) ?m)", "?rs (ECons ?row"))(RESIDUAL)
    assert only(text).message.endswith("ignores it: Add.b_strides (?row)")
    inside = swap(("Add ?shape ?s ?rs ?s", "Add ?shape ?s (ECons ?row (ECons (MIter) (ENil))) ?s"))
    assert only(inside(RESIDUAL)).message.endswith("ignores it: Add.b_strides (?row)")


def test_a_list_that_the_product_uses_is_pinned_by_it() -> None:
    body = f"""(= ?top (Op (Exp2 ?shape ?s ?s) {inputs("?x")}))
      (= ?shape (ECons ?one (ECons ?two (ENil)))) (= ?s (ECons ?three (ENil)))"""
    head = f"(union ?top (Op (Sin ?shape ?s ?s) {inputs('?x')}))"
    assert lints(rule("same shape", body, head)) == []


def test_what_the_launch_does_not_look_at_may_be_free() -> None:
    fields = {"beta": "0.0", "epilogue": '"DEFAULT"', "batch_count": "(MNum 1)"}
    cast = f"(= ?top (Op (Cast ?size (F32)) {inputs('?ab')}))"
    for beta, batch, expected in (
        ("0.0", "(MNum 1)", {"ldd"}),
        ("1.0", "(MNum 1)", {"c_order", "ldc", "c_dtype", "ldd"}),
        ("0.0", "(MNum 2)", {"stride_a", "stride_b", "stride_d", "ldd"}),
    ):
        given = {**fields, "beta": beta, "batch_count": batch}
        kept = [name for name in GEMM_FIELDS if name not in {*C_OR_BATCH, *given}]
        uses = " ".join(f"(seen{at} ?{name})" for at, name in enumerate(kept))
        text = declare(kept) + rule(
            "call", f"(= ?ab {old_call(given, '?list')}) {cast} {uses}", f"(union ?top {LEAF})"
        )
        found = only(text)
        names = {part.split(" (")[0] for part in found.message.split(": ")[1].split(", ")}
        assert names == {f"cublaslt.{name}" for name in expected}


SORTS = {
    **dict.fromkeys(("m", "n", "k", "batch_count"), "Expression"),
    **{f"{field}{operand}": "Expression" for field in ("ld", "stride_") for operand in "abcd"},
    **{f"{operand}_dtype": "DType" for operand in "abcd"},
    **dict.fromkeys(("alpha", "beta"), "f64"),
}


def declare(names: list[str]) -> str:
    """A relation for each field, so that a fact can speak of it."""
    lines = (
        f"(relation seen{at} ({SORTS.get(name, 'String')}))\n" for at, name in enumerate(names)
    )
    return "".join(lines)


def free_of(**given: str) -> set[str]:
    """What is free in a call of which other fields are pinned, and that a leaf replaces."""
    body = f"(= ?ab {old_call(given, '?list')}) (= ?top (Op (Cast ?size (F32)) {inputs('?ab')}))"
    text = rule("call", body, f"(union ?top {LEAF})")
    open_fields = [name for name in GEMM_FIELDS if name not in given]
    found = set()
    for name in open_fields:  # one at a time: a message lists six
        others = [other for other in open_fields if other != name]
        uses = " ".join(f"(seen{at} ?{other})" for at, other in enumerate(others))
        listed = lints(declare(others) + text.replace(") (= ?top", f") {uses} (= ?top"))
        found |= {name for item in listed if f"cublaslt.{name} (" in item.message}
    return found


COLUMNS = {f"{operand}_order": '"COL"' for operand in "abcd"}
LINES = {"a_layout": '"N"', "b_layout": '"N"', **COLUMNS}


@pytest.mark.parametrize(
    ("given", "ignored"),
    [
        ({**LINES, "k": "(MNum 1)"}, {"lda"}),
        ({**LINES, "n": "(MNum 1)"}, {"ldb", "ldc", "ldd"}),
        ({**LINES, "m": "(MNum 1)"}, set()),
        ({**LINES, "b_layout": '"T"', "k": "(MNum 1)"}, {"lda", "ldb"}),
        ({**LINES, "a_layout": '"T"', "m": "(MNum 1)"}, {"lda"}),
        ({**LINES, "d_order": '"ROW"', "m": "(MNum 1)"}, {"ldd"}),
        ({**COLUMNS, "k": "(MNum 1)"}, set()),  # the layouts are free
        ({"a_layout": '"N"', "k": "(MNum 1)"}, set()),  # the orders are
        (
            {**LINES, "alpha": "0.0"},
            {"k", "lda", "ldb", "a_dtype", "b_dtype", "stride_a", "stride_b"},
        ),
    ],
)
def test_what_lies_between_lines_does_not_matter_for_one(
    given: dict[str, str], ignored: set[str]
) -> None:
    assert free_of(**given) == set(GEMM_FIELDS) - given.keys() - ignored


def test_the_size_of_a_cast_says_nothing() -> None:
    body = f"(= ?top (Op (Cast ?size (F32)) {inputs('?x')})) (= (F32) (dtype ?x))"
    assert lints(rule("cast to itself", body, "(union ?top ?x)")) == []


def test_a_relation_of_the_op_may_say_what_the_pattern_does_not() -> None:
    body = f"""(= ?sum (Op (GenericMatmul ?o ?s ?k ?l ?r ?p ?t ?w ?dt) {inputs("?a", "?b")}))
      (generic_matmul_exact_2d ?sum ?m ?n ?k ?dt)"""
    head = f"(union ?sum {LEAF})"
    assert lints(rule("witnessed", body, head)) == []
    bare = body.replace("(generic_matmul_exact_2d ?sum ?m ?n ?k ?dt)", "")
    assert only(rule("bare", bare, head)).message.startswith("9 fields")


def test_what_the_product_reuses_is_not_ignored() -> None:
    body = f"""(= ?inner (Op (Exp2 ?shape ?s ?o) {inputs("?x")}))
      (= ?top (Op (Cast ?size (F32)) {inputs("?inner")}))"""
    built = f"(Op (Cast ?size (F32)) {inputs('?inner')})"
    twice = f"(union ?top (Op (Cast ?size (F32)) {inputs(built)}))"
    assert lints(rule("reused", body, twice)) == []
    assert lints(rule("reused", body, f"(union ?top {built})")) == []
    assert of_code(rule("a part", body, "(union ?top ?inner)"), "RC502") == []
    assert of_code(rule("a part", body, "(union ?inner ?top)"), "RC502") == []
    (found,) = of_code(rule("gone", body, "(union ?top ?x)"), "RC502")
    assert "Exp2.shape (?shape)" in found.message


def test_a_list_that_is_reused_keeps_what_is_in_it() -> None:
    body = f"""(= ?inner (Op (Exp2 ?shape ?s ?o) {inputs("?x")}))
      (= ?list {inputs("?inner")}) (= ?top (Op (Cast ?size (F32)) ?list))"""
    assert lints(rule("list", body, "(union ?top (Op (Cast ?size (F32)) ?list))")) == []


def test_two_matched_terms_are_both_claimed() -> None:
    body = f"""(= ?one (Op (Exp2 ?shape ?s ?o) {inputs("?x")}))
      (= ?two (Op (Sin ?shape ?s ?p) {inputs("?x")}))"""
    found = only(rule("both", body, "(union ?one ?two)"))
    assert "Exp2.out_strides (?o), Sin.out_strides (?p)" in found.message


def test_a_term_that_is_united_with_itself_is_no_product() -> None:
    body = f"(= ?one (Op (Exp2 ?shape ?s ?o) {inputs('?x')}))"
    assert lints(rule("itself", body, "(union ?one ?one)")) == []


def test_a_rule_that_only_adds_facts_has_no_product() -> None:
    body = f"(= ?one (Op (Exp2 ?shape ?s ?o) {inputs('?x')}))"
    assert lints("(relation seen (IR))\n" + rule("fact", body, "(seen ?one)")) == []


def test_a_rewrite_is_read_as_a_rule() -> None:
    text = f"""(rewrite (Op (Exp2 ?shape ?s _) {inputs("?x")})
      (Op (Sin ?shape ?s ?s) {inputs("?x")}) :ruleset matmul_backend)"""
    assert only(text).message.endswith("ignores it: Exp2.out_strides")


def test_a_kind_may_be_named_first() -> None:
    body = f"(= ?kind (Exp2 ?shape ?s ?o)) (= ?top (Op ?kind {inputs('?x')}))"
    head = f"(union ?top (Op (Sin ?shape ?s ?s) {inputs('?x')}))"
    assert only(rule("kind", body, head)).message.endswith("Exp2.out_strides (?o)")


def test_the_widening_rule_has_no_lint() -> None:
    assert lints(WIDEN) == []


def test_a_term_that_the_rule_removes_is_not_used_by_it() -> None:
    body = f"(= ?top (Op (Exp2 ?shape ?s ?o) {inputs('?x')}))"
    removed = f"(subsume (Op (Exp2 ?shape ?s ?o) {inputs('?x')}))"
    head = f"(union ?top (Op (Sin ?shape ?s ?s) {inputs('?x')})) {removed}"
    assert only(rule("subsumed", body, head)).message.endswith("Exp2.out_strides (?o)")
