"""Matmul calls to try, and what an independent implementation (torch) says they compute."""

from __future__ import annotations

import itertools
import random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from rulecheck.dtypes import decode, encode, round_to, ulp
from rulecheck.records import (
    DType,
    Epilogue,
    GemmCall,
    GemmStep,
    InputSpec,
    MatrixLayout,
    Order,
    Outcome,
    Plan,
    Transpose,
    ValueSpec,
)

Floats = npt.NDArray[np.float64]

TORCH = {
    DType.F64: torch.float64,
    DType.F32: torch.float32,
    DType.F16: torch.float16,
    DType.BF16: torch.bfloat16,
    DType.E4M3: torch.float8_e4m3fn,
    DType.E5M2: torch.float8_e5m2,
}
COMPUTE = {DType.F64: "64F", DType.F32: "32F", DType.F16: "32F", DType.BF16: "32F_FAST_16BF"}


def layout(
    dtype: DType, rows: int, cols: int, order: Order = "COL", *, batch: int = 1, pad: int = 0
) -> MatrixLayout:
    """A layout with ``pad`` unused elements after each line and each matrix."""
    inner, outer = (rows, cols) if order == "COL" else (cols, rows)
    ld = inner + pad
    stride = ld * outer + pad if batch > 1 else 0
    return MatrixLayout(dtype, rows, cols, ld, order, batch, stride)


def gemm(
    m: int,
    n: int,
    k: int,
    dtype: DType = DType.BF16,
    *,
    out: DType | None = None,
    trans: str = "NN",
    orders: str = "CCCC",
    alpha: float = 1.0,
    beta: float = 0.0,
    epilogue: Epilogue = "DEFAULT",
    batch: int = 1,
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    **attributes: Any,
) -> GemmCall:
    """A legal call; ``orders`` spells the order of A, B, C, D by initials."""
    ordered: list[Order] = ["COL" if letter == "C" else "ROW" for letter in orders]
    a_shape = (m, k) if trans[0] == "N" else (k, m)
    b_shape = (k, n) if trans[1] == "N" else (n, k)
    out = out or dtype
    transposes: dict[str, Transpose] = {"N": "N", "T": "T", "C": "C"}
    attributes.setdefault("compute_type", COMPUTE.get(dtype, "32F"))
    attributes.setdefault("c_is_d", beta == 0.0)
    return GemmCall(
        scale_type=DType.F64 if dtype is DType.F64 else DType.F32,
        transa=transposes[trans[0]],
        transb=transposes[trans[1]],
        a=layout(dtype, *a_shape, ordered[0], batch=batch, pad=pads[0]),
        b=layout(dtype, *b_shape, ordered[1], batch=batch, pad=pads[1]),
        c=layout(out, m, n, ordered[2], batch=batch, pad=pads[2]),
        d=layout(out, m, n, ordered[3], batch=batch, pad=pads[3]),
        alpha=alpha,
        beta=beta,
        epilogue=epilogue,
        **attributes,
    )


def plan_of(call: GemmCall, c_holds: DType | None = None, bias_holds: DType | None = None) -> Plan:
    """One call over buffers that fit it: values A, B, C, bias, D. C and bias may hold others."""
    values = (
        ValueSpec(call.a.dtype, call.a.extent),
        ValueSpec(call.b.dtype, call.b.extent),
        ValueSpec(c_holds or call.c.dtype, call.c.extent),
        ValueSpec(bias_holds or call.bias_type, call.m),
        ValueSpec(call.d.dtype, call.d.extent),
    )
    inputs = tuple(InputSpec(i, name) for i, name in enumerate(("A", "B", "C", "bias")))
    c = 2 if call.beta != 0.0 else None
    return Plan(values, inputs, (GemmStep(4, call, 0, 1, c, 3 if call.uses_bias else None),), 4)


def places(spec: MatrixLayout) -> list[tuple[tuple[int, int, int], int]]:
    """Every (batch, row, column) and its element offset, the long way."""
    indices = itertools.product(range(spec.batch_count), range(spec.rows), range(spec.cols))
    found = []
    for batch, row, col in indices:
        within = row + col * spec.ld if spec.order == "COL" else row * spec.ld + col
        found.append(((batch, row, col), batch * spec.batch_stride + within))
    return found


def pack(matrix: Floats, spec: MatrixLayout, filler: float = 1000.0) -> bytes:
    """Store [batch, rows, cols] as a layout says, with ``filler`` in the padding."""
    flat = np.full(spec.extent, filler)
    for index, offset in places(spec):
        flat[offset] = matrix[index]
    return encode(flat, spec.dtype)


def unpack(data: bytes, spec: MatrixLayout) -> Floats:
    """Load [batch, rows, cols]."""
    flat = decode(data, spec.dtype)
    matrix = np.empty((spec.batch_count, spec.rows, spec.cols))
    for index, offset in places(spec):
        matrix[index] = flat[offset]
    return matrix


class Operands(NamedTuple):
    """Logical matrices [batch, rows, cols] as stored (before a transpose) and the bias [m]."""

    a: Floats
    b: Floats
    c: Floats
    bias: Floats

    def packed(self, call: GemmCall) -> tuple[bytes, ...]:
        """The four input buffers of ``plan_of``."""
        return (
            pack(self.a, call.a),
            pack(self.b, call.b),
            pack(self.c, call.c),
            encode(self.bias, call.bias_type),
        )


def draw(call: GemmCall, seed: int, *, exact: bool) -> Operands:
    """Operands on their types' grids: small integers, or normal numbers."""
    rng = np.random.default_rng(seed)

    def numbers(shape: tuple[int, ...], dtype: DType) -> Floats:
        if exact:
            limit = 24 if seed % 2 else 4  # large enough for sums that bf16 and f16 must round
            return rng.integers(-limit, limit + 1, shape).astype(np.float64)
        return round_to(rng.standard_normal(shape), dtype)

    def matrix(spec: MatrixLayout) -> Floats:
        return numbers((spec.batch_count, spec.rows, spec.cols), spec.dtype)

    return Operands(
        matrix(call.a), matrix(call.b), matrix(call.c), numbers((call.m,), call.bias_type)
    )


def torch_result(call: GemmCall, operands: Operands) -> Floats:
    """What torch's CPU kernels make of the call: [batch, m, n].

    16-bit results of 16-bit operands come from the 16-bit kernels themselves, which round once;
    an activation is applied to the F32 result, because torch has no fused one.
    """
    fused = call.epilogue in ("DEFAULT", "BIAS") and call.a.dtype is call.d.dtype
    work = TORCH[call.a.dtype] if fused else torch.float32
    work = torch.float64 if call.a.dtype is DType.F64 else work
    a, b, c = (torch.from_numpy(matrix).to(work) for matrix in operands[:3])
    a = a if call.transa == "N" else a.transpose(1, 2)
    b = b if call.transb == "N" else b.transpose(1, 2)
    if call.uses_bias and call.beta == 0.0 and call.alpha == 1.0:
        bias = torch.from_numpy(operands.bias).to(work)
        total = torch.stack(
            [
                torch.nn.functional.linear(right.T, left, bias).T
                for left, right in zip(a, b, strict=True)
            ]
        )
    else:
        wide = torch.float64 if work is torch.float64 else torch.float32
        work = wide if call.uses_bias else work
        total = torch.baddbmm(c.to(work), a.to(work), b.to(work), beta=call.beta, alpha=call.alpha)
        if call.uses_bias:
            total += torch.from_numpy(operands.bias).to(work)[:, None]
    if call.epilogue.startswith("RELU"):
        total = torch.relu(total)
    if call.epilogue.startswith("GELU"):
        total = torch.nn.functional.gelu(total, approximate="tanh")
    result: Floats = total.to(TORCH[call.d.dtype]).to(torch.float64).numpy()
    return result


def tolerance(call: GemmCall, operands: Operands, expected: Floats) -> Floats:
    """How far two right answers may lie apart: both round once and sum in some order.

    One ulp of D, plus twice (k + 4) u (|alpha| |A||B| + |beta C| + |bias|) with the accumulator's
    unit roundoff; 1.13 bounds the slope of GELU.
    """
    a = operands.a if call.transa == "N" else operands.a.transpose(0, 2, 1)
    b = operands.b if call.transb == "N" else operands.b.transpose(0, 2, 1)
    scale = abs(call.alpha) * (np.abs(a) @ np.abs(b))
    if call.beta != 0.0:
        scale = scale + np.abs(call.beta * operands.c)
    if call.uses_bias:
        scale = scale + np.abs(operands.bias)[:, None]
    unit = 2.0**-53 if call.a.dtype is DType.F64 else 2.0**-24
    return ulp(expected, call.d.dtype) + 2 * 1.13 * (call.k + 4) * unit * scale


class Sample(NamedTuple):
    """A call with operands; ``exact`` ones have one right answer, bit for bit."""

    name: str
    call: GemmCall
    seed: int
    exact: bool

    def plan(self) -> Plan:
        """The call over fitting buffers."""
        return plan_of(self.call)

    def inputs(self) -> tuple[bytes, ...]:
        """The bytes of A, B, C and the bias; C is NaN if the call must not read it."""
        operands = draw(self.call, self.seed, exact=self.exact)
        if self.call.beta == 0.0:
            operands = operands._replace(c=np.full_like(operands.c, np.nan))
        return operands.packed(self.call)

    def departures(self, outcome: Outcome) -> int:
        """How many elements of D are wrong, events counted too."""
        operands = draw(self.call, self.seed, exact=self.exact)
        expected = torch_result(self.call, operands)
        got = unpack(outcome.buffers[4], self.call.d)
        if self.exact:
            wrong = got != expected
        else:
            wrong = ~(np.abs(got - expected) <= tolerance(self.call, operands, expected))
        return int(wrong.sum()) + len(outcome.events)


_EPILOGUES: tuple[Epilogue, ...] = ("DEFAULT", "BIAS", "RELU", "RELU_BIAS", "GELU", "GELU_BIAS")
_TYPES = (
    (DType.F32, DType.F32),
    (DType.F64, DType.F64),
    (DType.BF16, DType.BF16),
    (DType.F16, DType.F16),
    (DType.BF16, DType.F32),
    (DType.F16, DType.F32),
)
_SHAPES = ((5, 5, 5), (5, 7, 11), (1, 6, 3), (8, 1, 4), (4, 3, 1), (16, 16, 16))


def samples(count: int = 72) -> list[Sample]:
    """A fixed spread over types, shapes, transposes, orders, padding, batch, α, β, epilogue."""
    rng = random.Random(20)
    found = []
    for number in range(count):
        dtype, out = _TYPES[number % len(_TYPES)]
        epilogue = _EPILOGUES[number // len(_TYPES) % len(_EPILOGUES)]
        exact = not epilogue.startswith("GELU") and number % 4 != 3
        orders = "".join(rng.choice("CR") for _ in range(2)) + (
            rng.choice(("CC", "RR")) if "BIAS" not in epilogue else "CC"
        )
        scalars = (1.0, -1.0, 0.5, 2.0) if exact else (1.0, 1 / 3, -1.0, 1 / 64)
        call = gemm(
            *rng.choice(_SHAPES),
            dtype,
            out=out,
            trans=rng.choice("NT") + rng.choice("NTC"),
            orders=orders,
            alpha=rng.choice(scalars),
            beta=rng.choice((0.0, 1.0, 0.5, -1.0, 2.0)),
            epilogue=epilogue,
            batch=rng.choice((1, 1, 3)),
            pads=(rng.choice((0, 2)), rng.choice((0, 3)), rng.choice((0, 1)), rng.choice((0, 2))),
        )
        name = f"{number}-{dtype.value}-{out.value}-{epilogue}"
        found.append(Sample(name, call, number, exact))
    return found
