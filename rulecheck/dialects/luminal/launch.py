"""How luminal's host code issues ``cublasLtMatmul`` for a ``cublaslt`` op.

Facts: inputs are A, B, then C only if β ≠ 0, then a bias only for a *_BIAS epilogue, then for
``cublaslt_scaled`` the scales of A and B; further inputs are ignored. With β = 0 the C pointer is
the D pointer. A leading dimension smaller than its minimum is raised silently. Batch count and
strides are set only when the count exceeds 1. BIAS_DATA_TYPE is never set. The compute type
"default" follows the type of A.
"""

from __future__ import annotations

from typing import cast, get_args

from rulecheck.dialects.vocabulary import Launch, LaunchFields
from rulecheck.records import (
    DType,
    Epilogue,
    Failure,
    FailureKind,
    GemmCall,
    MatrixLayout,
    Order,
    Transpose,
)

_DEFAULT_COMPUTE = {
    DType.F64: "64F",
    DType.F32: "32F",
    DType.F16: "32F",
    DType.BF16: "32F_FAST_16BF",
    DType.TF32: "32F_FAST_TF32",
    DType.E4M3: "32F",
    DType.E5M2: "32F",
}
_COMPUTE = ("64F", "32F", "32F_FAST_16BF", "32F_FAST_TF32")
_SCALE = {"F32": DType.F32, "F64": DType.F64}
_ENUMS: dict[str, tuple[str, ...]] = {
    "a_layout": get_args(Transpose),
    "b_layout": get_args(Transpose),
    "a_order": get_args(Order),
    "b_order": get_args(Order),
    "c_order": get_args(Order),
    "d_order": get_args(Order),
    "epilogue": get_args(Epilogue),
}


def issue(fields: LaunchFields) -> Launch | Failure:
    """Return the call that the host code would issue, or why it would refuse.

    Args:
        fields: the op's fields; sizes are counts of elements, with the stride variable set to 1.
    """
    refusal = _refuse(fields)
    if refusal is not None:
        return refusal
    _, numbers, strings, scalars, dtypes = fields
    batch = numbers["batch_count"]
    layouts: dict[str, MatrixLayout] = {}
    clamped: list[tuple[str, int, int]] = []
    for operand, (rows, cols) in _extents(fields).items():
        low = operand.lower()
        order = cast("Order", strings[f"{low}_order"])
        declared = numbers[f"ld{low}"]
        used = max(declared, rows if order == "COL" else cols)
        if used != declared:
            clamped.append((operand, declared, used))
        layouts[low] = MatrixLayout(
            dtype=dtypes[f"{low}_dtype"],
            rows=rows,
            cols=cols,
            ld=used,
            order=order,
            batch_count=max(1, batch),
            batch_stride=numbers[f"stride_{low}"] if batch > 1 else 0,
        )
    fp8 = dtypes["a_dtype"].is_fp8
    call = GemmCall(
        compute_type=_compute(strings["compute_type"], dtypes["a_dtype"]),
        scale_type=_scale(strings["scale_dtype"], dtypes["a_dtype"]),
        transa=cast("Transpose", strings["a_layout"]),
        transb=cast("Transpose", strings["b_layout"]),
        a=layouts["a"],
        b=layouts["b"],
        c=layouts["c"],
        d=layouts["d"],
        alpha=scalars["alpha"],
        beta=scalars["beta"],
        epilogue=cast("Epilogue", strings["epilogue"]),
        c_is_d=scalars["beta"] == 0.0,
        # Narrow operands without a scale input get a device scalar of 1.0.
        a_scale=fp8 or fields.op == "ScaledGemm",
        b_scale=fp8 or fields.op == "ScaledGemm",
        c_scale=dtypes["c_dtype"].is_fp8,
        d_scale=dtypes["d_dtype"].is_fp8,
    )
    roles = ["A", "B"]
    if call.beta != 0.0:
        roles.append("C")
    if call.uses_bias:
        roles.append("bias")
    if fields.op == "ScaledGemm":
        roles += ["a_scale", "b_scale"]
    return Launch(call, tuple(roles), tuple(clamped))


def _extents(fields: LaunchFields) -> dict[str, tuple[int, int]]:
    """Rows and columns of each stored matrix."""
    m, n, k = (fields.numbers[name] for name in "mnk")
    return {
        "A": (m, k) if fields.strings["a_layout"] == "N" else (k, m),
        "B": (k, n) if fields.strings["b_layout"] == "N" else (n, k),
        "C": (m, n),
        "D": (m, n),
    }


def _compute(name: str, a_dtype: DType) -> str:
    return _DEFAULT_COMPUTE[a_dtype] if name == "default" else name


def _scale(name: str, a_dtype: DType) -> DType:
    if name == "default":
        return DType.F64 if a_dtype is DType.F64 else DType.F32
    return _SCALE[name]


def _refuse(fields: LaunchFields) -> Failure | None:
    """Refuse what the host code panics on: names it does not parse, types it has no default for."""
    for name, allowed in _ENUMS.items():
        value = fields.strings[name]
        if value not in allowed:
            known = ", ".join(allowed)
            return Failure(FailureKind.ILLEGAL, f"{name} is {value!r}; the launch knows {known}")
    if fields.strings["compute_type"] not in ("default", *_COMPUTE):
        value = fields.strings["compute_type"]
        return Failure(FailureKind.ILLEGAL, f"compute_type is {value!r}; the launch refuses it")
    if fields.strings["scale_dtype"] not in ("default", *_SCALE):
        value = fields.strings["scale_dtype"]
        return Failure(FailureKind.ILLEGAL, f"scale_dtype is {value!r}; the launch refuses it")
    a_dtype = fields.dtypes["a_dtype"]
    if a_dtype not in _DEFAULT_COMPUTE:
        return Failure(FailureKind.ILLEGAL, f"a_dtype is {a_dtype.value}: not a matmul type")
    return None
