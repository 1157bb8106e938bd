"""A call against its buffers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rulecheck.contract import check_plan
from rulecheck.contract.buffers import reads_of
from rulecheck.records import (
    Access,
    CastStep,
    DType,
    Epilogue,
    FillStep,
    GemmCall,
    GemmStep,
    InputSpec,
    MatmulStep,
    Plan,
    PointwiseStep,
    ReduceStep,
    ValueSpec,
    Verdict,
    Violation,
)
from tests.gemms import gemm, plan_of


def sized(plan: Plan, value: int, spec: ValueSpec) -> Plan:
    """The same plan with another buffer."""
    values = (*plan.values[:value], spec, *plan.values[value + 1 :])
    return replace(plan, values=values)


def stepped(plan: Plan, **changes: object) -> Plan:
    """The same plan with other fields of its only step."""
    return replace(plan, steps=(replace(plan.steps[0], **changes),))


def only(plan: Plan) -> Violation:
    (found,) = check_plan(plan)
    return found


@pytest.mark.parametrize("beta", [1.0, 0.5, -1.0])
@pytest.mark.parametrize("held", [DType.BF16, DType.F16])
def test_c_read_as_f32_and_held_in_16_bits(held: DType, beta: float) -> None:
    call = gemm(5, 7, 3, held, out=DType.F32, beta=beta)
    found = only(plan_of(call, c_holds=held))
    assert (found.verdict, found.code) == (Verdict.MISREAD, "RC201")
    assert (found.operand, found.field) == ("C", "c_dtype")
    assert (found.expected, found.actual) == (held.value, "F32")
    assert found.message == (
        f"C is read as F32 and holds {held.value}; "
        "70 of the 140 bytes read lie past its end (half of the read)"
    )
    assert "guard β = 0" in found.hint


def test_c_is_not_read_when_beta_is_zero() -> None:
    assert check_plan(plan_of(gemm(5, 7, 3, out=DType.F32), c_holds=DType.BF16)) == ()


@pytest.mark.parametrize("epilogue", ["BIAS", "RELU_BIAS", "GELU_BIAS"])
def test_bias_read_as_the_type_of_d(epilogue: Epilogue) -> None:
    call = gemm(5, 7, 3, out=DType.F32, epilogue=epilogue)
    found = only(plan_of(call, bias_holds=DType.BF16))
    assert (found.verdict, found.code, found.operand) == (Verdict.MISREAD, "RC205", "bias")
    assert found.field == "epilogue"
    assert "bias is read as F32 and holds Bf16" in found.message
    assert "10 of the 20 bytes read lie past its end (half of the read)" in found.message
    assert "pin the epilogue" in found.hint


def test_short_bias() -> None:
    plan = plan_of(gemm(5, 7, 3, epilogue="BIAS"))
    found = only(sized(plan, 3, ValueSpec(DType.BF16, 4)))
    assert (found.code, found.verdict) == ("RC205", Verdict.MISREAD)
    assert "2 of the 10 bytes read lie past its end (20 % of the read)" in found.message
    assert check_plan(sized(plan, 3, ValueSpec(DType.BF16, 9))) == ()


def test_bias_of_each_batch() -> None:
    call = gemm(5, 7, 3, epilogue="BIAS", batch=3, bias_batch_stride=5)
    assert only(plan_of(call)).code == "RC205"
    assert check_plan(sized(plan_of(call), 3, ValueSpec(DType.BF16, 15))) == ()


def test_missing_bias() -> None:
    plan = stepped(plan_of(gemm(5, 7, 3, epilogue="BIAS")), bias=None)
    assert (only(plan).code, only(plan).verdict) == ("RC205", Verdict.ILLEGAL)


def test_same_size_other_type_has_no_extent_in_the_message() -> None:
    found = only(sized(plan_of(gemm(5, 7, 3)), 0, ValueSpec(DType.F16, 15)))
    assert found.message == "A is read as Bf16 and holds F16"
    assert found.field == "a_dtype"


def test_tf32_and_f32_are_the_same_bytes() -> None:
    call = gemm(5, 7, 3, DType.F32)
    call = replace(call, a=replace(call.a, dtype=DType.TF32), compute_type="32F_FAST_TF32")
    assert check_plan(sized(plan_of(call), 0, ValueSpec(DType.F32, 15))) == ()


@pytest.mark.parametrize(
    ("call", "value", "spare", "field"),
    [
        (gemm(5, 7, 3), 0, 1, "m"),
        (gemm(5, 7, 3, trans="TN"), 0, 1, "k"),
        (gemm(5, 7, 3), 1, 1, "k"),
        (gemm(5, 7, 3, trans="NT"), 1, 1, "n"),
        (gemm(5, 7, 3, pads=(2, 0, 0, 0)), 0, 4, "lda"),
        (gemm(5, 7, 3, beta=1.0, pads=(0, 0, 3, 0)), 2, 1, "ldc"),
        (gemm(5, 7, 3, batch=3), 0, 1, "stride_a"),
        (gemm(5, 7, 3, beta=1.0, batch=3), 2, 20, "stride_c"),
    ],
)
def test_short_operand(call: GemmCall, value: int, spare: int, field: str) -> None:
    plan = plan_of(call)
    spec = plan.values[value]
    found = only(sized(plan, value, replace(spec, count=spec.count - spare)))
    assert (found.verdict, found.code, found.field) == (Verdict.MISREAD, "RC202", field)
    assert "past its end" in found.message
    assert check_plan(plan) == ()


def test_read_before_the_start() -> None:
    call = gemm(5, 7, 3, batch=2)
    call = replace(call, a=replace(call.a, batch_stride=-15))
    found = only(sized(plan_of(call), 0, ValueSpec(DType.BF16, 30)))
    assert found.code == "RC202"
    assert "30 of the 60 bytes read lie before its start (half of the read)" in found.message


@pytest.mark.parametrize(
    ("call", "clamped", "harmful"),
    [
        (gemm(5, 7, 3, beta=1.0), ("C", 4, 5), True),
        (gemm(5, 7, 3), ("C", 4, 5), False),  # not read
        (gemm(5, 1, 3, beta=1.0), ("C", 1, 5), False),  # one column: never used
        (gemm(5, 7, 3, trans="TN"), ("A", 1, 3), True),
        (gemm(5, 7, 3), ("D", 1, 5), True),
    ],
)
def test_clamped_leading_dimension(
    call: GemmCall, clamped: tuple[str, int, int], harmful: bool
) -> None:
    found = check_plan(stepped(plan_of(call), clamped=(clamped,)))
    assert bool(found) is harmful
    for violation in found:
        assert violation.code == "RC203"
        assert violation.verdict is Verdict.MISREAD
        assert violation.field == f"ld{clamped[0].lower()}"
        assert f"raises it to {clamped[2]}" in violation.message


def test_c_without_a_buffer() -> None:
    plan = plan_of(gemm(5, 7, 3, beta=1.0))
    found = only(stepped(plan, c=None))
    assert (found.code, found.verdict) == ("RC206", Verdict.ILLEGAL)
    call = replace(gemm(5, 7, 3, beta=1.0), c_is_d=True)
    found = only(stepped(plan_of(call), c=None))
    assert (found.code, found.verdict) == ("RC206", Verdict.MISREAD)
    assert "nothing has written" in found.message
    found = only(stepped(plan, c=4))
    assert (found.code, found.verdict) == ("RC206", Verdict.MISREAD)
    leaf = InputSpec(4, "C and D")
    assert check_plan(replace(stepped(plan, c=4), inputs=(*plan.inputs, leaf))) == ()


@pytest.mark.parametrize(("letter", "field"), [("A", "a"), ("B", "b"), ("bias", "bias")])
def test_d_over_an_operand(letter: str, field: str) -> None:
    call = gemm(5, 5, 5, epilogue="BIAS")
    found = only(stepped(plan_of(call), **{field: 4}))
    assert (found.code, found.operand, found.verdict) == ("RC206", letter, Verdict.MISREAD)


def test_in_place_c_must_have_no_later_reader() -> None:
    plan = plan_of(gemm(5, 7, 3, beta=1.0, c_is_d=True))
    assert check_plan(plan) == ()
    assert only(replace(plan, result=2)).code == "RC206"
    later = replace(
        plan,
        values=(*plan.values, ValueSpec(DType.F32, 35)),
        steps=(*plan.steps, CastStep(5, 2, 35)),
        result=5,
    )
    assert only(later).message.startswith("D overwrites C in place")


def test_d_outside_its_buffer() -> None:
    plan = plan_of(gemm(5, 7, 3, pads=(0, 0, 0, 1)))
    found = only(sized(plan, 4, ValueSpec(DType.BF16, 35)))
    assert (found.code, found.field, found.verdict) == ("RC207", "ldd", Verdict.MISREAD)
    assert "past its end" in found.message


def test_d_of_another_type_than_its_buffer() -> None:
    plan = plan_of(gemm(5, 7, 3, out=DType.F32))
    found = only(sized(plan, 4, ValueSpec(DType.BF16, 35)))
    assert (found.code, found.field) == ("RC201", "d_dtype")
    assert "half of the write" in found.message


@pytest.mark.parametrize(("stride", "clash"), [(0, True), (20, True), (35, False), (40, False)])
def test_batches_of_d_do_not_overlap(stride: int, clash: bool) -> None:
    call = gemm(5, 7, 3, batch=3)
    call = replace(call, d=replace(call.d, batch_stride=stride))
    found = check_plan(plan_of(call))
    assert [(v.code, v.field) for v in found] == ([("RC207", "stride_d")] if clash else [])


def test_interleaved_batches_of_d_are_apart() -> None:
    call = gemm(5, 7, 3, batch=3)
    assert check_plan(plan_of(replace(call, d=replace(call.d, ld=15, batch_stride=5)))) == ()


@pytest.mark.parametrize("spec", [ValueSpec(DType.BF16, 1), ValueSpec(DType.F32, 0)])
def test_scale_is_an_f32_scalar(spec: ValueSpec) -> None:
    call = gemm(16, 6, 32, DType.E4M3, out=DType.BF16, trans="TN", a_scale=True)
    plan = stepped(plan_of(call), a_scale=5)
    assert check_plan(replace(plan, values=(*plan.values, ValueSpec(DType.F32, 1)))) == ()
    found = only(replace(plan, values=(*plan.values, spec)))
    assert (found.code, found.operand) == ("RC216", "a_scale")


def test_dtype_and_table_are_reported_apart() -> None:
    call = gemm(5, 7, 3, out=DType.F32, beta=1.0)
    call = replace(call, c=replace(call.c, dtype=DType.BF16))
    plan = plan_of(call, c_holds=DType.F16)
    assert [v.code for v in check_plan(plan)] == ["RC204", "RC201"]


def test_what_steps_read() -> None:
    call = gemm(5, 7, 3)
    assert reads_of(GemmStep(4, call, 0, 1, None, 3, a_scale=6)) == (0, 1, 3, 6)
    one = Access((1,), ((0,),))
    assert reads_of(PointwiseStep(2, "Add", (0, 1), (one, one), one)) == (0, 1)
    assert reads_of(MatmulStep(2, 0, 1, one, (0,), one, one, one)) == (0, 1)
    assert reads_of(ReduceStep(1, "Sum", 0, one, (0,), one)) == (0,)
    assert reads_of(CastStep(1, 0, 1)) == (0,)
    assert reads_of(FillStep(1, 2.0)) == ()
