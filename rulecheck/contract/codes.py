"""Diagnostic codes of the contract stage: one row each, stable across releases."""

from __future__ import annotations

DTYPE = "RC201"
EXTENT = "RC202"
LEADING_DIMENSION = "RC203"
C_AGAINST_D = "RC204"
BIAS = "RC205"
ALIAS = "RC206"
WRITE = "RC207"
ILL_TYPED = "RC208"
SUPPORT = "RC211"
EPILOGUE = "RC212"
FP8 = "RC213"
RANGE = "RC214"
SHAPE = "RC215"
SCALE = "RC216"

CODES: dict[str, str] = {
    DTYPE: "an operand is read or written as another type than its buffer holds",
    EXTENT: "an operand is read outside its buffer",
    LEADING_DIMENSION: "a leading dimension is too small, or the launch replaced it",
    C_AGAINST_D: "C and D differ in type, shape, order or batch",
    BIAS: "the bias is not what the library takes it for",
    ALIAS: "a buffer is overwritten or read while it is written",
    WRITE: "D (or an op's output) leaves its buffer or writes an element twice",
    ILL_TYPED: "the operands of an op disagree in type or shape",
    SUPPORT: "cuBLASLt has no kernel for this combination of types",
    EPILOGUE: "the epilogue does not go with the other fields",
    FP8: "an fp8 matmul breaks the layout or alignment rules",
    RANGE: "an extent or a batch count is zero, negative or too large",
    SHAPE: "the matrices' shapes or batch counts do not fit together",
    SCALE: "a scale pointer is not allowed there, or is no F32 scalar",
}
