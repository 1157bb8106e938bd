"""What the lints know of a library call: which field describes what, and when it is not read.

The table is keyed by names of the op table's fields; a dialect whose calls have other fields is
simply not told anything by it.
"""

from __future__ import annotations

from collections.abc import Mapping

# Roles in the order of the inputs, and the field by which the call knows the type of each. The
# launch never sets BIAS_DATA_TYPE, so that a bias is read as what D is.
TYPE_FIELDS: Mapping[str, str] = {
    "A": "a_dtype",
    "B": "b_dtype",
    "C": "c_dtype",
    "bias": "d_dtype",
}
GEMMS = ("gemm",)
SCALED = ("ScaledGemm",)  # made for 8-bit operands
ALPHA, BETA, EPILOGUE, BATCH = "alpha", "beta", "epilogue", "batch_count"

# Not read where beta is 0.0, and where the batch count is 1.
ONLY_WITH_C = frozenset({"c_order", "ldc", "stride_c", "c_dtype"})
ONLY_WITH_BATCH = frozenset({"stride_a", "stride_b", "stride_c", "stride_d"})
# Not read where alpha is 0.0.
ONLY_WITH_PRODUCT = frozenset(
    {"k"}
    | {f"{operand}_{field}" for operand in "ab" for field in ("layout", "order", "dtype")}
    | {f"{field}{operand}" for operand in "ab" for field in ("ld", "stride_")}
)
# Rows and columns of each matrix as it is stored, unless its layout says that it is transposed. A
# leading dimension lies between columns, or rows in row order: where there is one, between nothing.
EXTENTS: Mapping[str, tuple[str, str]] = {
    "a": ("m", "k"),
    "b": ("k", "n"),
    "c": ("m", "n"),
    "d": ("m", "n"),
}
# A call that lacks one of these is none that the table describes.
CALL_FIELDS = frozenset({*TYPE_FIELDS.values(), ALPHA, BETA, EPILOGUE, BATCH}) | {
    "m",
    "n",
    "k",
    "a_layout",
    "b_layout",
    *(f"{operand}_order" for operand in EXTENTS),
}
# (op of the table, field): says nothing about what is computed.
NEVER_MATTERS = frozenset({("Cast", "size"), ("Opaque", "id")})
