"""RC501: inputs that the new call need not know the type of."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.linting import line, lints, of_code
from tests.rule_texts import COLUMN, NO_C, ONE, PLAIN, dtypes, inputs, new_call, old_call, rule

NARROW = {**dtypes("Bf16"), **COLUMN, **ONE, **PLAIN}
WIDE = {**NARROW, "c_dtype": "(F32)", "d_dtype": "(F32)"}
BIASED = {"beta": "0.0", "epilogue": '"BIAS"'}


def cast(
    old: Mapping[str, str],
    new: Mapping[str, str],
    listed: str = "?inputs",
    given: str | None = None,
    *,
    facts: str = "",
    lets: str = "",
) -> str:
    """A cast over a call becomes another call; the inputs are copied unless ``given``."""
    return rule(
        "cast",
        f"  (= ?ab {old_call(old, listed)})\n"
        f"  (= ?wide (Op (Cast ?size (F32)) {inputs('?ab')}))\n{facts}",
        f"{lets}\n(union ?wide {new_call(new, given or listed)})",
    )


def messages(text: str) -> list[str]:
    return [item.message for item in of_code(text, "RC501")]


def test_the_founding_bug_and_its_first_repair() -> None:
    default = {"epilogue": '"DEFAULT"'}
    founding = cast({**NARROW, **default}, {**WIDE, **default})
    (found,) = lints(founding)
    assert found.code == "RC501"
    assert found.message == "C is copied as it is, but c_dtype changes from Bf16 to F32"
    assert "guard beta = 0.0" in found.hint
    assert line(founding, found) == "(F32) ; new c_dtype"

    half = cast({**NARROW, "beta": "0.0"}, {**WIDE, "beta": "0.0"})
    (found,) = lints(half)
    assert found.message == (
        "the bias is copied as it is, but d_dtype, by which the call knows its type, changes from "
        "Bf16 to F32"
    )
    assert "pin an epilogue without a bias" in found.hint
    assert line(half, found) == "(F32) ; new d_dtype"

    assert len(lints(cast(NARROW, WIDE))) == 2
    assert lints(cast({**NARROW, **NO_C}, {**WIDE, **NO_C})) == []


@pytest.mark.parametrize(
    "facts",
    [
        '(= ?beta 0.0) (= ?epilogue "RELU")',
        '(= ?beta 0.0) (!= ?epilogue "BIAS") (!= ?epilogue "RELU_BIAS") (!= ?epilogue "GELU_BIAS")',
        '(= ?zero 0.0) (= ?zero ?beta) (= ?epilogue ?e) (= ?e "DEFAULT")',
    ],
)
def test_a_pin_may_be_a_fact(facts: str) -> None:
    assert lints(cast(NARROW, WIDE, facts=facts)) == []


def test_a_guard_that_leaves_one_bias_is_no_pin() -> None:
    facts = '(= ?beta 0.0) (!= ?epilogue "BIAS") (!= ?epilogue "RELU_BIAS")'
    assert len(messages(cast(NARROW, WIDE, facts=facts))) == 1


def test_inputs_that_are_written_out_are_judged_one_by_one() -> None:
    with_c = {"beta": "1.0", "epilogue": '"BIAS"'}
    listed = inputs("?a", "?b", "?c", "?v")
    text = cast({**NARROW, **with_c}, {**WIDE, **with_c}, listed)
    first, second = messages(text)
    assert first.startswith("C is copied")
    assert second.startswith("the bias is copied")


def test_a_guard_that_beta_is_not_zero_makes_the_third_input_c() -> None:
    listed = inputs("?a", "?b", "?x")
    assert len(messages(cast(NARROW, WIDE, listed, facts="(!= ?beta 0.0)"))) == 1
    assert len(messages(cast(NARROW, WIDE, listed))) == 2


def test_the_rest_of_a_list_may_hold_what_is_not_written_out() -> None:
    with_c = {"beta": "1.0", "epilogue": '"BIAS"'}
    listed = inputs("?a", "?b", "?c", tail="?rest")
    given = inputs("?a", "?b", "?wide_c", tail="?rest")
    lets = f"(let ?wide_c (Op (Cast ?size (F32)) {inputs('?c')}))"
    found = messages(cast({**NARROW, **with_c}, {**WIDE, **with_c}, listed, given, lets=lets))
    assert len(found) == 1
    assert found[0].startswith("the bias is copied")


def test_an_input_that_is_converted_is_fine() -> None:
    with_c = {"beta": "1.0", "epilogue": '"DEFAULT"'}
    listed, given = inputs("?a", "?b", "?c"), inputs("?a", "?b", "?wide_c")
    lets = f"(let ?wide_c (Op (Cast ?size (F32)) {inputs('?c')}))"
    text = cast({**NARROW, **with_c}, {**WIDE, **with_c}, listed, given, lets=lets)
    assert messages(text) == []
    wrong = text.replace(
        "(let ?wide_c (Op (Cast ?size (F32))", "(let ?wide_c (Op (Cast ?size (F16))"
    )
    assert messages(wrong) == ["c_dtype is F32, but C, ?wide_c, holds F16"]


def test_a_fact_on_the_type_is_enough() -> None:
    with_c = {**NARROW, "beta": "1.0", "epilogue": '"DEFAULT"', "c_dtype": "?t"}
    new = {**with_c, "c_dtype": "(F32)"}
    listed = inputs("?a", "?b", "?c")
    assert messages(cast(with_c, new, listed)) == [
        "C is copied as it is, but c_dtype changes from ?t to F32"
    ]
    assert messages(cast(with_c, new, listed, facts="(= (F32) (dtype ?c))")) == []


def test_the_operands_of_the_product_count_too() -> None:
    old = {**NARROW, **NO_C}
    new = {**old, "a_dtype": "(F16)"}
    for listed in ("?inputs", inputs("?a", "?b")):
        assert messages(cast(old, new, listed)) == [
            "A is copied as it is, but a_dtype changes from Bf16 to F16"
        ]
    swapped = cast({**old, "a_dtype": "(F16)"}, old, inputs("?a", "?b"), inputs("?b", "?a"))
    assert messages(swapped) == ["b_dtype is Bf16, but B, ?a, holds F16"]


def test_tf32_and_f32_are_one_in_memory() -> None:
    old = {**NARROW, **NO_C, **dtypes("F32")}
    assert messages(cast(old, {**old, **dtypes("TF32")})) == []


def residual(c_dtype: str, facts: str) -> str:
    """A product and a C that comes from elsewhere."""
    old = {**NARROW, **NO_C, "c_dtype": "?t", "d_dtype": "(F32)", "ldc": "?m", "ldd": "?m"}
    new = {**old, "beta": "1.0", "c_dtype": c_dtype}
    return rule(
        "residual",
        f"  (= ?ab {old_call(old, inputs('?a', '?b'))})\n{facts}",
        f"(union ?top {new_call(new, inputs('?a', '?b', '?c'))})",
    )


LOOSE = f"""(= ?top (Op (Cast ?size (F32)) {inputs("?ab")}))
  (= ?x (Op (Cast ?size (F16)) {inputs("?c")}))"""
SUM = f"(= ?top (Op (Add ?s ?s ?s ?s) {inputs('?ab', '?c')}))"


def test_a_sum_has_inputs_of_one_type() -> None:
    assert messages(residual("(F32)", SUM)) == []
    assert messages(residual("?t", SUM)) == ["c_dtype is ?t, but C, ?c, holds F32"]


def test_an_input_of_no_known_type() -> None:
    (found,) = of_code(residual("(F32)", LOOSE), "RC501")
    assert found.message == "c_dtype is F32, but nothing says that C, ?c, holds it"
    assert found.hint.startswith("require (= (F32) (dtype ?c)), or guard beta = 0.0")


def test_a_relation_may_say_the_type() -> None:
    text = "(relation holds (IR DType))\n" + residual("?t", f"{LOOSE} (holds ?c ?t)")
    assert messages(text) == []


def test_a_constant_takes_the_type_of_the_rest() -> None:
    facts = f"{SUM} (= ?c (Op (Constant ?value) (INil)))"
    assert messages(residual("(F32)", facts)) == []
    late = f"""(= ?top (Op (Add ?s ?s ?s ?s) {inputs("?one", "?c")}))
      (= ?one (Op (Constant 1.0) (INil)))"""
    assert len(messages(residual("(F32)", late))) == 1


def test_what_an_8_bit_call_takes_for_a_bias_is_not_the_type_of_d() -> None:
    narrow = {**NARROW, **BIASED, **dtypes("F32"), "a_dtype": "(F8E4M3)", "b_dtype": "(F8E4M3)"}
    assert messages(cast(narrow, {**narrow, "d_dtype": "(Bf16)"})) == []
    scaled = (
        cast({**NARROW, **BIASED, "a_dtype": "?x"}, {**WIDE, **BIASED, "a_dtype": "?x"})
        .replace("(cublaslt ", "(cublaslt_scaled ")
        .replace("(cublaslt\n", "(cublaslt_scaled\n")
    )
    assert messages(scaled) == []


def test_named_fields_are_read_as_well() -> None:
    text = f"""(rule (
  (= ?ab (Op (cublaslt :c_dtype (Bf16) :d_dtype ?d :epilogue "RELU" ...) ?inputs))
  (= ?top (Op (Cast ?size (F32)) {inputs("?ab")}))
) (
  (union ?top {new_call({**WIDE, **BIASED}, "?inputs")})
) :ruleset matmul_backend :name "named")"""
    text = text.replace(
        ":c_dtype",
        ":m ?m :n ?n :k ?k :lda ?lda :ldb ?ldb :ldc ?ldc :ldd ?ldd "
        ":b_layout ?b_layout :alpha ?alpha :c_dtype",
    )
    said = messages(text)
    assert "A is copied as it is, but a_dtype changes from any type to Bf16" in said
    assert len(said) == 2
