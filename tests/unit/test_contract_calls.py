"""Rules about a call alone."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from rulecheck.contract import CODES, check_plan, notes, support_row
from rulecheck.contract.extents import is_injective, share
from rulecheck.contract.support import rows
from rulecheck.errors import UserError
from rulecheck.records import DType, Epilogue, GemmCall, Verdict, Violation
from tests.gemms import gemm, plan_of

BY_NAME = {dtype.name: dtype for dtype in DType}


def check(call: GemmCall, device: str = "sm_90") -> tuple[Violation, ...]:
    return check_plan(plan_of(call), device)


def only(call: GemmCall) -> tuple[str, str | None, str]:
    """The single violation's code, field and verdict word."""
    (found,) = check(call)
    assert found.code in CODES
    assert found.message
    assert found.hint
    return found.code, found.field, found.verdict.value


def fp8(**attributes: Any) -> GemmCall:
    call = gemm(16, 6, 32, DType.E4M3, out=DType.BF16, trans="TN", **attributes)
    return replace(call, a_scale=True, b_scale=True)


def test_imports_no_numpy() -> None:
    code = "import sys, rulecheck.contract; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("row", [row for row in rows() if row.group != "fp4" and row.a != "I8"])
def test_every_row_of_the_table_is_legal(row: Any) -> None:
    narrow = row.group == "fp8"
    call = gemm(16, 8, 32, BY_NAME[row.a], out=BY_NAME[row.d], trans="TN" if narrow else "NN")
    call = replace(
        call,
        compute_type=row.compute[0],
        scale_type=BY_NAME[row.scale],
        b=replace(call.b, dtype=BY_NAME[row.b]),
        c=replace(call.c, dtype=BY_NAME[row.c]),
        epilogue="BIAS",
    )
    assert support_row(call) == row
    assert call.bias_type.name == row.bias
    assert check(call) == ()


@pytest.mark.parametrize(
    ("call", "code", "field"),
    [
        (gemm(5, 4, 3, c_is_d=True), None, None),
        (replace(gemm(5, 4, 3), compute_type="16F"), "RC211", "compute_type"),
        (replace(gemm(5, 4, 3), scale_type=DType.F16), "RC211", "scale_dtype"),
        (replace(gemm(5, 4, 3, DType.F32), compute_type="64F"), "RC211", "compute_type"),
        (gemm(5, 4, 3, DType.F32, out=DType.BF16), "RC211", "compute_type"),
    ],
)
def test_type_combinations(call: GemmCall, code: str | None, field: str | None) -> None:
    found = check(call)
    assert [(v.code, v.field) for v in found] == ([] if code is None else [(code, field)])
    assert all(v.verdict is Verdict.ILLEGAL for v in found)


def test_c_and_d_of_two_types() -> None:
    call = gemm(5, 4, 3, out=DType.F32, beta=1.0)
    call = replace(call, c=replace(call.c, dtype=DType.BF16))
    (found,) = check(call)
    assert (found.code, found.field, found.verdict) == ("RC204", "c_dtype", Verdict.ILLEGAL)
    assert (found.expected, found.actual) == ("F32", "Bf16")
    assert "C is Bf16 and D is F32" in found.message


def test_fast_bf16_is_assumed_and_noted() -> None:
    call = gemm(5, 4, 3)
    row = support_row(call)
    assert row is not None
    assert row.group == "assumed"
    (note,) = notes(plan_of(call))
    assert "32F_FAST_16BF" in note
    assert notes(plan_of(gemm(5, 4, 3, DType.F16))) == ()


@pytest.mark.parametrize("field", ["m", "n", "k"])
@pytest.mark.parametrize("extent", [0, -1])
def test_empty_extents(field: str, extent: int) -> None:
    extents = {"m": 5, "n": 4, "k": 3} | {field: extent}
    found = check_plan(plan_of(gemm(**extents)))  # type: ignore[arg-type]  # keys are m, n, k
    assert {(v.code, v.verdict) for v in found} == {("RC214", Verdict.ILLEGAL)}
    assert found[0].field == field


def test_no_batches() -> None:
    call = gemm(5, 4, 3)
    call = replace(call, d=replace(call.d, batch_count=0))
    found = check_plan(plan_of(call))
    assert [(v.code, v.operand) for v in found] == [("RC214", "D")]


@pytest.mark.parametrize("letter", ["a", "b", "c", "d"])
@pytest.mark.parametrize("orders", ["CCCC", "RRRR"])
def test_small_leading_dimension(letter: str, orders: str) -> None:
    call = gemm(5, 5, 5, DType.F32, beta=1.0, orders=orders)
    wrong = replace(call, **{letter: replace(getattr(call, letter), ld=4)})
    found = check(wrong)
    assert ("RC203", f"ld{letter}") in {(v.code, v.field) for v in found}


def test_c_may_repeat_its_first_column() -> None:
    call = gemm(5, 4, 3, DType.F32, beta=1.0)
    call = replace(call, c=replace(call.c, ld=0))
    assert check(call) == ()
    assert only(replace(call, d=call.c, c=call.d))[1] == "ldd"


@pytest.mark.parametrize(
    ("change", "field"),
    [({"rows": 6, "ld": 6}, "m"), ({"cols": 3}, "n"), ({"order": "ROW"}, "c_order")],
)
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_c_has_the_shape_of_d(change: dict[str, Any], field: str, beta: float) -> None:
    call = gemm(5, 4, 3, DType.F32, beta=beta)
    call = replace(call, c=replace(call.c, **change))
    assert only(call) == ("RC204", field, "illegal")


def test_in_place_needs_one_layout() -> None:
    call = gemm(5, 4, 3, DType.F32, beta=1.0, pads=(0, 0, 2, 0), c_is_d=True)
    assert only(call) == ("RC204", "ldc", "illegal")
    assert check(replace(call, beta=0.0)) == ()


def test_batch_counts_agree() -> None:
    call = gemm(5, 4, 3, DType.F32, beta=1.0, batch=3)
    assert only(replace(call, a=replace(call.a, batch_count=1))) == (
        "RC215",
        "batch_count",
        "illegal",
    )
    assert only(replace(call, c=replace(call.c, batch_count=1)))[0] == "RC204"
    assert check(replace(call, a=replace(call.a, batch_stride=0))) == ()


@pytest.mark.parametrize(("letter", "field"), [("a", "m"), ("b", "n")])
def test_shapes_multiply(letter: str, field: str) -> None:
    call = gemm(5, 4, 3, DType.F32)
    spec = getattr(call, letter)
    spec = replace(spec, **({"rows": 6, "ld": 6} if letter == "a" else {"cols": 7}))
    assert only(replace(call, **{letter: spec})) == ("RC215", field, "illegal")


def test_inner_extents_agree() -> None:
    call = gemm(5, 4, 3, DType.F32)
    assert only(replace(call, b=replace(call.b, rows=4, ld=4)))[:2] == ("RC215", "k")


@pytest.mark.parametrize("epilogue", ["BIAS", "RELU_BIAS", "GELU_BIAS"])
def test_bias_needs_column_order(epilogue: Epilogue) -> None:
    call = gemm(5, 4, 3, orders="CCRR", epilogue=epilogue)
    assert only(call) == ("RC212", "epilogue", "illegal")


def test_plain_activation_on_rows_passes_with_a_note() -> None:
    plan = plan_of(gemm(5, 4, 3, DType.F32, orders="CCRR", epilogue="RELU"))
    assert check_plan(plan) == ()
    assert notes(plan) == ("RELU on a ROW-ordered D is assumed to be supported",)


def test_explicit_bias_type_must_be_the_rows() -> None:
    call = gemm(5, 4, 3, epilogue="BIAS", bias_dtype=DType.F32)
    assert only(call) == ("RC205", "epilogue", "illegal")
    assert check(replace(call, bias_dtype=DType.BF16)) == ()


def test_fp8_call_is_legal() -> None:
    assert check(fp8()) == ()
    assert check(fp8(epilogue="BIAS")) == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"transa": "N"}, "a_layout"),
        ({"transb": "T"}, "b_layout"),
    ],
)
def test_fp8_is_tn_only(change: dict[str, str], field: str) -> None:
    found = check(replace(gemm(32, 32, 32, DType.E4M3, out=DType.BF16, trans="TN"), **change))
    assert [(v.code, v.field) for v in found] == [("RC213", field)]
    assert check(replace(gemm(32, 32, 32, DType.E4M3, out=DType.BF16), transa="T"), "sm_100") == ()


def test_fp8_alignment() -> None:
    for call, fields in (
        (gemm(16, 6, 24, DType.E4M3, out=DType.BF16, trans="TN"), {"lda", "ldb", "k"}),
        (gemm(12, 6, 32, DType.E4M3, out=DType.BF16, trans="TN"), {"ldc", "ldd", "m"}),
    ):
        found = check(call)
        assert {(v.code, v.verdict) for v in found} == {("RC213", Verdict.ILLEGAL)}
        assert {v.field for v in found} == fields


def test_fp8_needs_column_order() -> None:
    found = check(gemm(32, 32, 32, DType.E4M3, out=DType.BF16, trans="TN", orders="RCCC"))
    assert [(v.code, v.field) for v in found] == [("RC213", "a_order")]


def test_fp8_pairs() -> None:
    call = gemm(16, 16, 32, DType.E5M2, out=DType.BF16, trans="TN")
    (found,) = check(call)
    assert (found.code, found.expected) == ("RC211", "F8E4M3")


def test_fp8_devices() -> None:
    (found,) = check(fp8(), "sm_80")
    assert (found.code, found.actual) == ("RC211", "sm_80")
    with pytest.raises(UserError, match="hopper"):
        check(fp8(), "hopper")


@pytest.mark.parametrize("letter", "abd")
def test_scales_belong_to_fp8(letter: str) -> None:
    call = gemm(5, 4, 3, **{f"{letter}_scale": True})  # type: ignore[arg-type]  # one keyword
    assert only(call) == ("RC216", f"{letter}_dtype", "illegal")


def test_d_scale_needs_an_fp8_d() -> None:
    assert only(replace(fp8(), d_scale=True))[:2] == ("RC216", "d_dtype")
    assert check(replace(fp8(), c_scale=True)) == ()


@pytest.mark.parametrize(
    ("out", "noted"), [(DType.E4M3, True), (DType.F32, True), (DType.BF16, False)]
)
def test_doubtful_fp8_epilogues_are_notes(out: DType, noted: bool) -> None:
    call = gemm(16, 16, 32, DType.E4M3, out=out, trans="TN", epilogue="GELU")
    call = replace(call, c=replace(call.c, dtype=DType.BF16 if out.is_fp8 else out))
    assert check(call) == ()
    assert bool(notes(plan_of(call))) is noted


def test_large_batches_are_noted() -> None:
    call = gemm(1, 1, 1, DType.F32, batch=70_000)
    assert check(call) == ()
    assert "65535" in notes(plan_of(call))[0]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (((0, 1, 2), (0, 3, 6)), True),
        (((0, 1, 2), (0, 2)), False),
        (((0, 6, 12), (0, 2, 4), (0, 1)), True),
        (((0, 2), (0, 3)), True),  # interleaved: not nested, yet no clash
        (((0, 0),), False),
        (((0,), (5,)), True),
        ((range(0, 4000, 2), range(0, 2001, 1)), False),
    ],
)
def test_injective(tables: tuple[tuple[int, ...], ...], expected: bool) -> None:
    assert is_injective(tables) is expected


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (1, 2, "half of"),
        (4, 4, "all of"),
        (1, 3, "a third of"),
        (1, 5, "20 % of"),
        (1, 999, "1 % of"),
    ],
)
def test_shares_in_words(part: int, whole: int, words: str) -> None:
    assert share(part, whole) == words
