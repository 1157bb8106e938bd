"""The caret: the offending field of the new call, else what the rule changed, else the union."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rulecheck.campaign.places import changed_of, point_at, unions
from rulecheck.records import Evidence, MatrixLayout, Rule, Stage, Verdict, Violation
from tests.gemms import gemm
from tests.luminal_rules import first_rule
from tests.luminal_terms import GEMM_FIELDS, VOCABULARY
from tests.rule_texts import RESIDUAL, WIDEN, fields, swap
from tests.samples import VIOLATION

OLD = gemm(5, 7, 11)
NEW_INPUTS = "(ICons ?a (ICons ?b (ICons ?r (INil)))) ; new inputs"
SWAPPED = NEW_INPUTS.replace("?a (ICons ?b", "?b (ICons ?a")
PLAIN = Evidence(Verdict.MISMATCH, Stage.BOUND, "RC301", "wrong")


def line(text: str, rule: Rule, evidence: Evidence, union: int = 0) -> str:
    """The line that the caret stands on, from the caret on."""
    place = point_at(rule, union, evidence, VOCABULARY)
    assert place is not None
    return text.split("\n")[place.line - 1][place.column - 1 :]


def caret(text: str, evidence: Evidence, union: int = 0) -> str:
    return line(text, first_rule(text), evidence, union)


def violating(*names: str | None) -> Evidence:
    found: tuple[Violation, ...] = tuple(replace(VIOLATION, field=name) for name in names)
    return replace(PLAIN, violations=found)


@pytest.mark.parametrize("field", GEMM_FIELDS)
def test_every_field_can_be_pointed_at(field: str) -> None:
    assert caret(RESIDUAL, violating(field)).endswith(f" ; new {field}")


def test_the_first_violation_with_a_place_decides() -> None:
    assert caret(RESIDUAL, violating(None, "nowhere", "ldb", "lda")).endswith("; new ldb")


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("alpha", {"alpha": 2.0}),
        ("beta", {"beta": 1.0}),
        ("epilogue", {"epilogue": "RELU"}),
        ("compute_type", {"compute_type": "COMPUTE_32F_FAST_TF32"}),
        ("a_layout", {"transa": "T"}),
        ("b_layout", {"transb": "T"}),
    ],
)
def test_without_a_violation_a_changed_field_is_shown(
    field: str, change: dict[str, object]
) -> None:
    evidence = replace(PLAIN, original_call=OLD, member_call=replace(OLD, **change))
    assert caret(RESIDUAL, evidence).endswith(f" ; new {field}")


@pytest.mark.parametrize("operand", "abcd")
def test_a_changed_layout_is_shown(operand: str) -> None:
    layout: MatrixLayout = getattr(OLD, operand)
    for field, changed in (
        (f"{operand}_order", replace(layout, order="ROW")),
        (f"ld{operand}", replace(layout, ld=layout.ld + 1)),
    ):
        new = replace(OLD, **{operand: changed})
        evidence = replace(PLAIN, original_call=OLD, member_call=new)
        assert caret(RESIDUAL, evidence).endswith(f" ; new {field}")


def test_of_a_violated_operand_the_changed_field_is_shown() -> None:
    new = replace(OLD, a=replace(OLD.a, order="ROW"), transb="T")
    found = replace(VIOLATION, operand="A", field="lda")
    evidence = replace(PLAIN, violations=(found,), original_call=OLD, member_call=new)
    assert caret(RESIDUAL, evidence).endswith("; new a_order")
    other = replace(evidence, violations=(replace(found, operand="C", field="ldc"),))
    assert caret(RESIDUAL, other).endswith("; new ldc")
    assert changed_of(evidence, "A") == ["a_order"]
    assert changed_of(evidence, "C") == []


def test_another_input_under_the_old_fields_is_shown() -> None:
    found = replace(VIOLATION, operand="B", field="k")
    evidence = replace(PLAIN, violations=(found,), original_call=OLD, member_call=OLD)
    swapped = swap((NEW_INPUTS, SWAPPED))(RESIDUAL)
    assert SWAPPED in swapped
    assert caret(swapped, evidence).startswith("?a (ICons ?r")
    assert caret(RESIDUAL, evidence).endswith("; new k")


def test_a_violation_comes_before_a_changed_field() -> None:
    evidence = replace(violating("ldd"), original_call=OLD, member_call=replace(OLD, alpha=2.0))
    assert caret(RESIDUAL, evidence).endswith("; new ldd")


def test_equal_calls_leave_the_first_field_that_is_spelled_otherwise() -> None:
    evidence = replace(PLAIN, original_call=OLD, member_call=OLD)
    assert caret(RESIDUAL, evidence).endswith("; new beta")  # 0.0 became 1.0
    assert caret(fields(k="?m")(RESIDUAL), PLAIN).endswith("; new k")
    assert caret(WIDEN, PLAIN).endswith("; new c_dtype")
    assert caret(fields(lda="(MAdd ?lda (MNum 1))")(WIDEN), PLAIN).endswith("; new lda")


def test_a_new_call_that_is_the_old_one_leaves_the_union() -> None:
    text = fields(c_dtype="(Bf16)", d_dtype="(Bf16)")(WIDEN)
    assert caret(text, PLAIN).startswith("(union ?wide")


def test_without_a_call_in_the_head_the_union_is_shown() -> None:
    text = """(rule ((= ?sum (Op (Add ?s ?x ?y ?o) (ICons ?a (ICons ?b (INil))))))
      ((union ?sum ?a)) :ruleset matmul_backend :name "drop")"""
    assert caret(text, violating("ldc")).startswith("(union ?sum ?a)")


def test_calls_are_found_through_lets() -> None:
    text = swap(
        ("(union ?sum (Op", "(let ?call (Op"),
        (" ; new inputs\n  ))", " ; new inputs\n  )) (let ?alias ?call) (union ?alias ?sum)"),
    )(RESIDUAL)
    assert caret(text, violating("ldc")).endswith("; new ldc")


def test_a_wrong_claim_is_shown_where_it_is_set() -> None:
    claim = replace(PLAIN, code="RC304")
    text = swap(("(union ?sum", "(set (dtype ?sum) (F16)) (union ?sum"))(RESIDUAL)
    assert caret(text, claim).startswith("(F16)")
    assert caret(RESIDUAL, claim).endswith("; new beta")  # none is set: as for any other evidence


def test_each_union_has_its_own_place() -> None:
    text = swap(("(union ?sum (Op", "(union ?ab ?ab) (union ?sum (Op"))(RESIDUAL)
    rule = first_rule(text)
    assert len(unions(rule)) == 2
    assert line(text, rule, violating("ldc"), 0).startswith("(union ?ab ?ab)")
    assert line(text, rule, violating("ldc"), 1).endswith("; new ldc")
    assert point_at(rule, 2, PLAIN, VOCABULARY) is None
