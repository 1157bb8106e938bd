"""What is executed: typed buffers, steps over them, and the exact matmul call as pure data."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec


class DType(enum.Enum):
    """A storage type. The value is the name that reports use."""

    F64 = "F64"
    F32 = "F32"
    TF32 = "TF32"  # f32 in memory; 10 mantissa bits are used by the multiplier
    F16 = "F16"
    BF16 = "Bf16"
    E4M3 = "F8E4M3"
    E5M2 = "F8E5M2"
    I32 = "Int"
    I64 = "Int64"
    BOOL = "Bool"

    # An enum hashes the name of a member, in Python, each time.
    __hash__ = object.__hash__

    @property
    def bytes(self) -> int:
        """Bytes per element in memory."""
        return _BYTES[self]

    @property
    def is_float(self) -> bool:
        """Whether the type holds floating-point numbers."""
        return self not in (DType.I32, DType.I64, DType.BOOL)

    @property
    def storage(self) -> DType:
        """The type as memory knows it: TF32 is F32, every other type is itself."""
        return DType.F32 if self is DType.TF32 else self

    @property
    def is_fp8(self) -> bool:
        """Whether the type is one of the two 8-bit float formats."""
        return self in (DType.E4M3, DType.E5M2)


_BYTES = {
    DType.F64: 8,
    DType.F32: 4,
    DType.TF32: 4,
    DType.F16: 2,
    DType.BF16: 2,
    DType.E4M3: 1,
    DType.E5M2: 1,
    DType.I32: 4,
    DType.I64: 8,
    DType.BOOL: 1,
}

Order = Literal["COL", "ROW"]
Transpose = Literal["N", "T", "C"]
Epilogue = Literal["DEFAULT", "BIAS", "RELU", "RELU_BIAS", "GELU", "GELU_BIAS"]


class MatrixLayout(msgspec.Struct, frozen=True):
    """A ``cublasLtMatrixLayout``: how the call looks at an operand's bytes. ld in elements."""

    dtype: DType
    rows: int
    cols: int
    ld: int
    order: Order = "COL"
    batch_count: int = 1
    batch_stride: int = 0

    @property
    def extent(self) -> int:
        """Elements from the first to one past the last that the call touches (0 if none)."""
        if min(self.rows, self.cols, self.batch_count) <= 0:
            return 0
        inner, outer = (self.rows, self.cols) if self.order == "COL" else (self.cols, self.rows)
        last = (outer - 1) * self.ld + (inner - 1)
        return last + (self.batch_count - 1) * self.batch_stride + 1

    @property
    def min_ld(self) -> int:
        """The smallest leading dimension that keeps columns (or rows) apart."""
        return self.rows if self.order == "COL" else self.cols


class GemmCall(msgspec.Struct, frozen=True):
    """Every attribute of one ``cublasLtMatmul`` call; no pointers, no data.

    D = epilogue(alpha * sA * sB * op(A) op(B) + beta * C + bias), one rounding to D's type.
    ``a``, ``b`` describe the *stored* matrices (before ``transa``/``transb``). ``bias_dtype``
    None means that BIAS_DATA_TYPE is not set and the library's default holds. ``c_is_d``: the
    C pointer is the D pointer.
    """

    compute_type: str
    scale_type: DType
    transa: Transpose
    transb: Transpose
    a: MatrixLayout
    b: MatrixLayout
    c: MatrixLayout
    d: MatrixLayout
    alpha: float
    beta: float
    epilogue: Epilogue = "DEFAULT"
    bias_dtype: DType | None = None
    bias_batch_stride: int = 0
    c_is_d: bool = False
    a_scale: bool = False
    b_scale: bool = False
    c_scale: bool = False
    d_scale: bool = False
    fast_accum: bool = False
    pointer_mode: Literal["HOST", "DEVICE"] = "HOST"
    workspace_bytes: int = 32 << 20
    reduction_mask: int = 2

    @property
    def m(self) -> int:
        """Rows of D."""
        return self.d.rows

    @property
    def n(self) -> int:
        """Columns of D."""
        return self.d.cols

    @property
    def k(self) -> int:
        """The contracted extent."""
        return self.a.cols if self.transa == "N" else self.a.rows

    @property
    def uses_bias(self) -> bool:
        """Whether the epilogue reads a bias vector."""
        return self.epilogue.endswith("BIAS")

    @property
    def bias_type(self) -> DType:
        """What the library takes the bias for: BIAS_DATA_TYPE, else its default.

        The default is D's type; with fp8 operands it is C's 16-bit type, and BF16 where C is F32.
        """
        if self.bias_dtype is not None:
            return self.bias_dtype
        if not self.a.dtype.is_fp8:
            return self.d.dtype.storage
        return DType.F16 if self.c.dtype is DType.F16 else DType.BF16


class ValueSpec(msgspec.Struct, frozen=True):
    """A buffer in a plan: what its *producer* wrote, whatever a reader takes it for."""

    dtype: DType
    count: int


class InputSpec(msgspec.Struct, frozen=True):
    """A leaf of the graph and the value (index into ``Plan.values``) that holds it."""

    value: int
    label: str


class Access(msgspec.Struct, frozen=True):
    """Element offsets over a logical shape: offset(i…) = sum over dims of offsets[d][i_d]."""

    shape: tuple[int, ...]
    offsets: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """Number of logical elements."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def extent(self) -> int:
        """One past the largest offset; 0 if the shape is empty."""
        if self.size <= 0:
            return 0
        return sum(max(table) for table in self.offsets) + 1

    @property
    def lowest(self) -> int:
        """The smallest offset (negative means a read before the buffer); 0 if empty."""
        if self.size <= 0:
            return 0
        return sum(min(table) for table in self.offsets)


class GemmStep(msgspec.Struct, frozen=True, tag=True):
    """One library call. Numbers are indices into ``Plan.values``; ``term`` is the term's id.

    ``clamped`` lists (operand, declared ld, used ld) where the launch raised a leading
    dimension to its minimum.
    """

    out: int
    call: GemmCall
    a: int
    b: int
    c: int | None
    bias: int | None
    a_scale: int | None = None
    b_scale: int | None = None
    clamped: tuple[tuple[str, int, int], ...] = ()
    term: int = -1


class MatmulStep(msgspec.Struct, frozen=True, tag=True):
    """GenericMatmul: out[o] = sum_j lhs[l(base[o]+it[j])] * rhs[r(base[o]+it[j])].

    ``base`` runs over the output shape and ``iters`` over k; their sum is a flat index into
    ``mul_shape`` (row-major), which ``lhs_access`` and ``rhs_access`` (over ``mul_shape``) turn
    into element offsets. Accumulates in F32, rounds once to the output's dtype.
    """

    out: int
    lhs: int
    rhs: int
    base: Access
    iters: tuple[int, ...]
    lhs_access: Access
    rhs_access: Access
    out_access: Access
    term: int = -1


class PointwiseStep(msgspec.Struct, frozen=True, tag=True):
    """Elementwise ``op`` over one shape; computed in F32 (F64 for F64), rounded to the output."""

    out: int
    op: str
    operands: tuple[int, ...]
    accesses: tuple[Access, ...]
    out_access: Access
    term: int = -1


class ReduceStep(msgspec.Struct, frozen=True, tag=True):
    """``Sum`` or ``Max``: out[o] = reduce_j in[base[o] + iters[j]]; F32 accumulation."""

    out: int
    op: str
    source: int
    base: Access
    iters: tuple[int, ...]
    out_access: Access
    term: int = -1


class CastStep(msgspec.Struct, frozen=True, tag=True):
    """Convert the first ``count`` elements, in memory order."""

    out: int
    source: int
    count: int
    term: int = -1


class FillStep(msgspec.Struct, frozen=True, tag=True):
    """A one-element constant."""

    out: int
    number: float
    term: int = -1


Step = GemmStep | MatmulStep | PointwiseStep | ReduceStep | CastStep | FillStep


class Plan(msgspec.Struct, frozen=True):
    """Typed steps in execution order. ``result`` is the value that the root term denotes."""

    values: tuple[ValueSpec, ...]
    inputs: tuple[InputSpec, ...]
    steps: tuple[Step, ...]
    result: int
