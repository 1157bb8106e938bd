"""What every backend must do. What torch defines alike is compared with torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from rulecheck.backends import Backend
from rulecheck.contract import check_plan
from rulecheck.dtypes import decode, encode
from rulecheck.records import DType, GemmStep, InputSpec, Outcome, Plan, ValueSpec
from tests.gemms import TORCH, Operands, Sample, draw, gemm, pack, plan_of, samples, unpack


def run(backend: Backend, plan: Plan, inputs: tuple[bytes, ...]) -> Outcome:
    outcome = backend.run(plan, inputs, 30.0)
    assert isinstance(outcome, Outcome), outcome
    return outcome


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_agrees_with_torch(backend: Backend, sample: Sample) -> None:
    assert check_plan(sample.plan()) == ()
    outcome = run(backend, sample.plan(), sample.inputs())
    assert sample.departures(outcome) == 0


def test_padding_of_d_is_left_alone(backend: Backend) -> None:
    sample = Sample("padded", gemm(5, 7, 3, pads=(0, 0, 0, 4)), 1, exact=True)
    before = sample.inputs()
    outcome = run(backend, sample.plan(), before)
    assert outcome.buffers[:4] == before
    padded = decode(outcome.buffers[4], DType.BF16)
    written = unpack(outcome.buffers[4], sample.call.d)
    assert np.isfinite(written).all()
    assert np.isnan(padded).sum() == padded.size - written.size


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F16, DType.F32, DType.F64])
def test_beta_zero_does_not_read_c(backend: Backend, dtype: DType) -> None:
    call = gemm(5, 7, 3, dtype)
    operands = draw(call, 2, exact=True)
    expected = operands.a @ operands.b
    for poison in (np.nan, np.inf):
        inputs = operands._replace(c=np.full((1, 5, 7), poison)).packed(call)
        outcome = run(backend, plan_of(call), inputs)
        assert np.array_equal(unpack(outcome.buffers[4], call.d), expected)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32])
def test_bias_and_residual_come_before_the_only_rounding(backend: Backend, dtype: DType) -> None:
    call = gemm(16, 16, 16, dtype, beta=1.0, epilogue="BIAS")
    ones = np.ones((1, 16, 16))
    inputs = Operands(16 * ones, ones, ones, np.ones(16)).packed(call)
    result = unpack(run(backend, plan_of(call), inputs).buffers[4], call.d)
    assert (result == 258).all()  # rounding 256 + 1 to bf16 first gives 256


def test_activation_follows_beta_c_and_bias(backend: Backend) -> None:
    call = gemm(2, 2, 2, DType.F32, beta=1.0, epilogue="RELU_BIAS")
    ones = np.ones((1, 2, 2))
    inputs = Operands(ones, ones, -5 * ones, np.array([2.0, 4.0])).packed(call)
    result = unpack(run(backend, plan_of(call), inputs).buffers[4], call.d)
    assert np.array_equal(result, [[[0, 0], [1, 1]]])  # max(0, 2 - 5 + bias)


@pytest.mark.parametrize("letter", ["a", "b", "c"])
def test_batch_stride_zero_repeats_a_matrix(backend: Backend, letter: str) -> None:
    call = gemm(5, 7, 3, DType.F32, beta=1.0, batch=3)
    operands = draw(call, 4, exact=True)
    shared = getattr(operands, letter)[:1]
    repeated = operands._replace(**{letter: np.repeat(shared, 3, axis=0)})
    spec = replace(getattr(call, letter), batch_stride=0)
    broadcast = replace(call, **{letter: spec})
    outcome = run(backend, plan_of(broadcast), repeated.packed(broadcast))
    expected = repeated.a @ repeated.b + repeated.c
    assert np.array_equal(unpack(outcome.buffers[4], call.d), expected)
    assert outcome.events == ()


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32])
def test_ldc_zero_repeats_one_column(backend: Backend, dtype: DType) -> None:
    call = gemm(5, 7, 3, dtype, beta=1.0)
    call = replace(call, c=replace(call.c, ld=0))
    operands = draw(call, 2, exact=True)
    operands = operands._replace(c=np.repeat(operands.c[:, :, :1], 7, axis=2))
    assert check_plan(plan_of(call)) == ()
    outcome = run(backend, plan_of(call), operands.packed(call))
    expected = operands.a @ operands.b + operands.c
    assert np.array_equal(unpack(outcome.buffers[4], call.d), expected)
    assert outcome.events == ()


@pytest.mark.parametrize(("held", "taken"), [(DType.BF16, DType.F32), (DType.F16, DType.F32)])
def test_a_16_bit_c_read_as_f32_is_poison_in_its_second_half(
    backend: Backend, held: DType, taken: DType
) -> None:
    call = gemm(6, 8, 4, held, out=taken, beta=1.0)
    plan = plan_of(call, c_holds=held)
    operands = draw(call, 2, exact=False)
    c = encode(operands.c.ravel(), held)
    inputs = (pack(operands.a, call.a), pack(operands.b, call.b), c, encode(operands.bias, taken))
    outcome = run(backend, plan, inputs)
    result = decode(outcome.buffers[4], taken)
    assert np.isnan(result[24:]).all()
    assert np.isfinite(result[:24]).all()
    (event,) = outcome.events
    assert (event.operand, event.access, event.count) == ("C", "read", 24)
    assert (event.start, event.stop) == (96, 192)


@pytest.mark.parametrize("out", [DType.F32, DType.BF16, DType.F16, DType.E4M3])
@pytest.mark.parametrize("pair", [(DType.E4M3, DType.E4M3), (DType.E4M3, DType.E5M2)])
def test_fp8_agrees_with_torch(backend: Backend, out: DType, pair: tuple[DType, DType]) -> None:
    residual = DType.BF16 if out.is_fp8 else out
    call = gemm(16, 16, 32, DType.E4M3, out=out, trans="TN", a_scale=True, b_scale=True)
    call = replace(call, b=replace(call.b, dtype=pair[1]), c=replace(call.c, dtype=residual))
    operands = draw(call, 4, exact=True)
    values = (*plan_of(call).values, ValueSpec(DType.F32, 1), ValueSpec(DType.F32, 1))
    leaves = tuple(InputSpec(i, str(i)) for i in (0, 1, 2, 3, 5, 6))
    plan = Plan(values, leaves, (GemmStep(4, call, 0, 1, None, None, 5, 6),), 4)
    assert check_plan(plan) == ()
    scales = tuple(encode(np.array([x]), DType.F32) for x in (0.5, 8.0))
    outcome = run(backend, plan, (*operands.packed(call), *scales))
    expected = torch._scaled_mm(
        torch.from_numpy(operands.a[0].T.copy()).to(TORCH[pair[0]]),
        torch.from_numpy(operands.b[0].T.copy()).to(TORCH[pair[1]]).T,
        scale_a=torch.tensor(0.5),
        scale_b=torch.tensor(8.0),
        out_dtype=TORCH[out],
    )
    got = unpack(outcome.buffers[4], call.d)[0]
    assert np.array_equal(got, expected.to(torch.float64).numpy())


@pytest.mark.parametrize(("number", "stored"), [(30.0, 448.0), (-30.0, -448.0), (np.nan, np.nan)])
def test_fp8_results_saturate(backend: Backend, number: float, stored: float) -> None:
    call = gemm(16, 16, 16, DType.E4M3, trans="TN")
    assert call.d.dtype is DType.E4M3
    ones = np.ones((1, 16, 16))
    operands = Operands(number * ones, ones, ones, np.ones(16))
    outcome = run(backend, plan_of(call), operands.packed(call))
    result = unpack(outcome.buffers[4], call.d)
    assert np.array_equal(result, np.full_like(result, stored), equal_nan=True)


def test_same_plan_and_bytes_give_the_same_outcome(backend: Backend) -> None:
    for sample in samples(12):
        first = run(backend, sample.plan(), sample.inputs())
        assert run(backend, sample.plan(), sample.inputs()) == first
