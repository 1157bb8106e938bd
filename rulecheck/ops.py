"""The op table: what ops exist, how many inputs they take, and what type their result has.

To add an op: one row here, its arithmetic in the backends and the oracle (one row each), its
constructor in a dialect, and one corpus file per verdict it can cause.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from rulecheck.records import DType

Family = Literal["pointwise", "reduce", "cast", "fill", "matmul", "gemm", "marker", "opaque"]


@dataclasses.dataclass(frozen=True, slots=True)
class OpSpec:
    """One op.

    ``inputs`` is the number of graph inputs (None: the op's own fields decide). ``result`` is
    the type of what it writes: a fixed DType, ``"input"`` (that of the first input), or the
    name of the field that holds it. ``arithmetic`` is the field that names which op of the table
    is computed; None where that is the op itself.

    A ``marker`` writes nothing: its result is the buffer that it marks. What an ``opaque`` op
    writes is not known; its result is taken for an input of the graph.
    """

    name: str
    family: Family
    inputs: int | None
    result: DType | str
    arithmetic: str | None = None


def _table(*specs: OpSpec) -> dict[str, OpSpec]:
    table = {spec.name: spec for spec in specs}
    assert len(table) == len(specs), "two ops of one name"
    return table


OPS = _table(
    OpSpec("Add", "pointwise", 2, "input"),
    OpSpec("Mul", "pointwise", 2, "input"),
    OpSpec("Mod", "pointwise", 2, "input"),
    OpSpec("LessThan", "pointwise", 2, DType.BOOL),
    OpSpec("Exp2", "pointwise", 1, "input"),
    OpSpec("Log2", "pointwise", 1, "input"),
    OpSpec("Sin", "pointwise", 1, "input"),
    OpSpec("Recip", "pointwise", 1, "input"),
    OpSpec("Sqrt", "pointwise", 1, "input"),
    OpSpec("Sum", "reduce", 1, "input"),
    OpSpec("Max", "reduce", 1, "input"),
    OpSpec("Cast", "cast", 1, "dtype"),
    OpSpec("Constant", "fill", 0, DType.F32),
    OpSpec("ConstantF64", "fill", 0, DType.F64),
    OpSpec("Unary", "pointwise", 1, "dtype", arithmetic="op"),
    OpSpec("Binary", "pointwise", 2, "dtype", arithmetic="op"),
    OpSpec("Marker", "marker", 1, "dtype"),
    OpSpec("Opaque", "opaque", None, "dtype"),
    OpSpec("Matmul", "matmul", 2, "dtype"),
    OpSpec("Gemm", "gemm", None, "d_dtype"),
    OpSpec("ScaledGemm", "gemm", None, "d_dtype"),
)
