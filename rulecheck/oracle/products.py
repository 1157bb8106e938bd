"""Sums of products: what they are, and how far a legal accumulator may be from it.

|D - mid| <= |alpha| (K+1) u (|A||B|) + 4u (|alpha AB| + |beta C| + |bias|), propagated through
the activation by its Lipschitz constant (VERDICT.md stage 3). The scale is |A||B| + |C|, never
the result: cancelling elements are legal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rulecheck.oracle.indexing import Ints, matrix_offsets, product_offsets
from rulecheck.oracle.intervals import (
    F32_ROUNDOFF,
    F64_ROUNDOFF,
    Floats,
    Range,
    add,
    fits_f32,
    gelu_tanh,
    relu,
    spread,
    widen,
)
from rulecheck.records import DType, GemmCall, GemmStep, MatmulStep, MatrixLayout


class Accumulator(NamedTuple):
    """How a backend sums products: a parameter of the hardware, never of the storage type.

    ``unit``: error per addition relative to the sum of magnitudes. Tensor cores align blocks of
    products and truncate, so F32 accumulation has 2^-23 per term, not 2^-24 (Fasi et al., PeerJ
    CS 2021). Hopper's fp8 keeps 13 fraction bits. ``exact_below``: integers whose magnitudes
    add up to less than this are summed exactly in any order. ``narrow_multipliers``: whether the
    fast compute types round F32 operands. ``activation``: error of the GELU epilogue, relative to
    its argument, in units of the roundoff: 1 + tanh loses up to one, times |x|/2, and tanhf, the
    cubic and the products add a few units more.
    """

    unit: float = 2.0**-23
    exact_below: float = 2.0**24
    fp8_unit: float = 2.0**-13
    fp8_exact_below: float = 2.0**13
    narrow_multipliers: bool = True
    activation: float = 8.0

    def as_f32(self) -> Accumulator:
        """The same with every product taken and summed as F32 takes it."""
        return self._replace(
            fp8_unit=self.unit, fp8_exact_below=self.exact_below, narrow_multipliers=False
        )


class Arithmetic(NamedTuple):
    """The types that one step computes in.

    ``wide``: F64. ``fp8``, ``tf32``: an operand has this type, so products may be taken and
    summed with its precision. ``keep_scalars``: do not narrow alpha and beta.
    """

    accumulator: Accumulator
    wide: bool
    fp8: bool
    tf32: bool
    keep_scalars: bool

    @property
    def unit(self) -> float:
        """Unit roundoff of elementwise arithmetic."""
        return F64_ROUNDOFF if self.wide else F32_ROUNDOFF

    def scalar(self, value: float) -> float:
        """A host scalar as the launch passes it: narrowed to the scale type."""
        return value if self.wide or self.keep_scalars else float(np.float32(value))


# Relative error of an F32 operand inside the multiplier: TF32 keeps 10 mantissa bits (rounding
# or truncation is not documented), the fast 16-bit modes round to Bf16 or F16.
_MULTIPLIER = {"32F_FAST_TF32": 2.0**-10, "32F_FAST_16BF": 2.0**-8, "32F_FAST_16F": 2.0**-11}


def sum_error(arithmetic: Arithmetic, left: Floats, right: Floats, total: Floats) -> Floats:
    """Freedom of a sum of products, per output.

    Args:
        arithmetic: the types involved.
        left: [..., k] magnitudes of the left factors.
        right: magnitudes of the right factors.
        total: sum of |left||right| per output.

    Returns:
        (K+1) * unit * total; zero where integers sum exactly in any order.
    """
    terms = left.shape[-1] + 1
    if arithmetic.wide:
        return np.asarray(total * (terms * F64_ROUNDOFF))
    accumulator = arithmetic.accumulator
    unit = accumulator.fp8_unit if arithmetic.fp8 else accumulator.unit
    limit = accumulator.fp8_exact_below if arithmetic.fp8 else accumulator.exact_below
    integers = np.array_equal(left, np.rint(left)) and np.array_equal(right, np.rint(right))
    if integers and total.size and float(total.max()) < limit:
        return np.zeros_like(total)
    return np.asarray(total * (terms * unit))


def narrows_operands(call: GemmCall) -> bool:
    """Whether the call's multiplier keeps fewer bits than its operands have."""
    return call.a.dtype.storage is DType.F32 and call.compute_type in _MULTIPLIER


def gemm(step: GemmStep, ranges: list[Range], arithmetic: Arithmetic) -> tuple[Ints, Range]:
    """D of a library call and the flat offsets that it writes."""
    call = step.call
    a, b = _factors(step, ranges)
    size_a, size_b = np.abs(a.mid), np.abs(b.mid)
    total = size_a @ size_b
    radius = sum_error(arithmetic, size_a, size_b, total)
    error = _operand_error(step, arithmetic)
    radius = radius + _multiplier_error(error, arithmetic, size_a, size_b, total)
    if not (a.is_exact and b.is_exact):
        radius = radius + a.radius @ (size_b + b.radius) + size_a @ b.radius
    scale = arithmetic.scalar(call.alpha)
    for pointer in (step.a_scale, step.b_scale):
        if pointer is not None:
            scale *= float(ranges[pointer].mid[0])
    value = scaled(spread(a.mid @ b.mid, radius), scale)
    terms = [value]
    if step.c is not None and call.beta != 0.0:
        c = ranges[step.c].take(matrix_offsets(call.c))
        terms.append(scaled(c, arithmetic.scalar(call.beta)))
    if step.bias is not None and call.uses_bias:
        terms.append(ranges[step.bias].take(_bias_offsets(call)))
    value = _activate(call, _sum_terms(terms, arithmetic, abs(scale) * total), arithmetic)
    return matrix_offsets(call.d).reshape(-1), value.flat()


def _sum_terms(terms: list[Range], arithmetic: Arithmetic, product_size: Floats) -> Range:
    """Add C and bias to the product, with the freedom of fused or separate operations.

    Nothing is free where every partial sum is exact in F32.
    """
    value, size = terms[0], product_size
    exact = fits_f32(value.mid) if value.is_exact else np.zeros(value.mid.shape, dtype=bool)
    for term in terms[1:]:
        value, size = add(value, term), size + np.abs(term.mid)
        exact = exact & term.is_exact & fits_f32(term.mid) & fits_f32(value.mid)
    freedom = 4 * arithmetic.unit * size
    return widen(value, freedom if arithmetic.wide else np.where(exact, 0.0, freedom))


def _multiplier_error(
    error: float, arithmetic: Arithmetic, size_a: Floats, size_b: Floats, total: Floats
) -> Floats:
    """Freedom from narrowing F32 operands inside the multiplier; none if no bit is lost."""
    if arithmetic.wide or error == 0.0 or not arithmetic.accumulator.narrow_multipliers:
        return np.zeros_like(total)
    if all(np.array_equal(_keep_bits(size, error), size) for size in (size_a, size_b)):
        return np.zeros_like(total)
    return np.asarray(total * (2 * error + error**2))


def _keep_bits(values: Floats, error: float) -> Floats:
    """Round to as many significand bits as ``error`` leaves."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(mantissa / error) * error, exponent))


def matmul(step: MatmulStep, ranges: list[Range], arithmetic: Arithmetic) -> Range:
    """A sum of products over the last axis, one rounding left to the caller: [outputs]."""
    a, b = _factors(step, ranges)
    size_a, size_b = np.abs(a.mid), np.abs(b.mid)
    total = (size_a * size_b).sum(axis=-1)
    radius = sum_error(arithmetic, size_a, size_b, total)
    error = _operand_error(step, arithmetic)
    radius = radius + _multiplier_error(error, arithmetic, size_a, size_b, total)
    if not (a.is_exact and b.is_exact):
        spill = a.radius * (size_b + b.radius) + size_a * b.radius
        radius = radius + spill.sum(axis=-1)
    return spread((a.mid * b.mid).sum(axis=-1), radius)


class Product(NamedTuple):
    """One product of a graph, told apart by what it may be off by.

    ``kind``: (relative error of an operand, whether the accumulator is fp8's, number of terms).
    ``sizes``: |A||B| of every output, ascending, so that the layout does not matter.
    """

    kind: tuple[float, bool, int]
    sizes: Floats

    @property
    def is_narrow(self) -> bool:
        """Whether it keeps fewer bits than F32 does."""
        error, fp8, _ = self.kind
        return error > 0 or fp8


def product_of(step: GemmStep | MatmulStep, ranges: list[Range], arithmetic: Arithmetic) -> Product:
    """The product that a step takes."""
    a, b = (np.abs(factor.mid) for factor in _factors(step, ranges))
    total = a @ b if isinstance(step, GemmStep) else (a * b).sum(axis=-1)
    kind = (_operand_error(step, arithmetic), arithmetic.fp8, a.shape[-1])
    return Product(kind, np.sort(total, axis=None))


def _factors(step: GemmStep | MatmulStep, ranges: list[Range]) -> tuple[Range, Range]:
    """Both operands: [batch, m, k] and [batch, k, n] of a call, else [outputs, k] each."""
    if isinstance(step, GemmStep):
        call = step.call
        return (
            _oriented(ranges[step.a], call.a, call.transa),
            _oriented(ranges[step.b], call.b, call.transb),
        )
    return (
        ranges[step.lhs].take(product_offsets(step.base, step.iters, step.lhs_access)),
        ranges[step.rhs].take(product_offsets(step.base, step.iters, step.rhs_access)),
    )


def _operand_error(step: GemmStep | MatmulStep, arithmetic: Arithmetic) -> float:
    """Relative error of an operand inside the multiplier."""
    if isinstance(step, GemmStep):
        return _MULTIPLIER[step.call.compute_type] if narrows_operands(step.call) else 0.0
    return _MULTIPLIER["32F_FAST_TF32"] if arithmetic.tf32 else 0.0


def scaled(value: Range, factor: float) -> Range:
    """A range times a known number."""
    if value.is_exact:
        return Range.exactly(value.mid * factor)
    ends = (value.low * factor, value.high * factor)
    return Range(value.mid * factor, np.minimum(*ends), np.maximum(*ends))


def _oriented(value: Range, layout: MatrixLayout, transpose: str) -> Range:
    """A stored matrix as the product takes it: [batch, rows, cols]."""
    stored = value.take(matrix_offsets(layout))
    if transpose == "N":
        return stored
    if stored.is_exact:
        return Range.exactly(stored.mid.swapaxes(1, 2))
    return Range(*(part.swapaxes(1, 2) for part in stored))


def _bias_offsets(call: GemmCall) -> Ints:
    """Offsets of the bias of each row: [batch, rows, 1]."""
    batches = np.arange(call.d.batch_count) * call.bias_batch_stride
    return np.add.outer(batches, np.arange(call.m))[:, :, None]


def _activate(call: GemmCall, value: Range, arithmetic: Arithmetic) -> Range:
    if call.epilogue.startswith("RELU"):
        return relu(value)
    if call.epilogue.startswith("GELU"):
        return gelu_tanh(value, arithmetic.accumulator.activation * arithmetic.unit)
    return value
