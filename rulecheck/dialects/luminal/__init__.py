"""luminal's classic cuBLASLt vocabulary (positional ``cublaslt`` with 27 fields)."""

from __future__ import annotations

import functools
import importlib.resources

from rulecheck.dialects.encoding import Encoding
from rulecheck.dialects.luminal.launch import issue
from rulecheck.dialects.luminal.meanings import MEANINGS
from rulecheck.dialects.vocabulary import OpBinding, Vocabulary
from rulecheck.records import DType


@functools.cache
def declarations() -> str:
    """The declarations that every rule file may rely on."""
    return importlib.resources.files(__package__).joinpath("declarations.egg").read_text("utf-8")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_BINARY = _names("shape strides.0 strides.1 out_strides")
_UNARY = _names("shape strides.0 out_strides")
_MARKER = _names("shape strides.0 dtype")
_REDUCE = _names("shape iters strides iter_stride out_strides")
_MATMUL = _names(
    "out_shape mul_shape k lhs_strides rhs_strides sum_input_strides sum_iter_stride "
    "out_strides dtype"
)
_GEMM = _names(
    "m n k a_layout b_layout a_order b_order c_order d_order lda ldb ldc ldd "
    "batch_count stride_a stride_b stride_c stride_d a_dtype b_dtype c_dtype d_dtype "
    "compute_type scale_dtype alpha beta epilogue"
)

VOCABULARY = Vocabulary(
    name="luminal",
    declarations_path="luminal/declarations.egg",
    declarations=declarations,
    encoding=Encoding(
        op="Op",
        leaf="Input",
        input_cons="ICons",
        input_nil="INil",
        list_cons="ECons",
        list_nil="ENil",
        number="MNum",
        iterator="MIter",
        product="MMul",
        symbol="MVar",
        arithmetic={
            "MAdd": "add",
            "MSub": "sub",
            "MMul": "mul",
            "MDiv": "div",
            "MCeilDiv": "ceildiv",
            "MMod": "mod",
            "MMin": "min",
            "MMax": "max",
            "MAnd": "and",
            "MOr": "or",
            "MGte": "ge",
            "MLt": "lt",
            "MFloorTo": "floorto",
        },
        graph_sort="IR",
        kind_sort="OpKind",
        inputs_sort="IList",
        list_sort="EList",
        expression_sort="Expression",
        dtype_sort="DType",
        dtype_function="dtype",
        nth_function="nth_from_end",
        length_function="len",
        row_major="RowMajor",
    ),
    dtypes={
        "F64": DType.F64,
        "F32": DType.F32,
        "TF32": DType.TF32,
        "F16": DType.F16,
        "Bf16": DType.BF16,
        "F8E4M3": DType.E4M3,
        "F8E5M2": DType.E5M2,
        "Int": DType.I32,
        "Int64": DType.I64,
        "Bool": DType.BOOL,
    },
    ops={
        **{name: OpBinding(name, _BINARY) for name in ("Add", "Mul", "Mod", "LessThan")},
        **{name: OpBinding(name, _UNARY) for name in ("Exp2", "Log2", "Sin", "Recip", "Sqrt")},
        **{name: OpBinding(name, _REDUCE) for name in ("Sum", "Max")},
        "Cast": OpBinding("Cast", ("size", "dtype")),
        "Constant": OpBinding("Constant", ("value",)),
        "ConstantF64": OpBinding("ConstantF64", ("value",)),
        "CudaUnaryElementwise": OpBinding("Unary", ("op", *_UNARY, "dtype")),
        "CudaBinaryElementwise": OpBinding("Binary", ("op", *_BINARY, "dtype")),
        **{name: OpBinding("Marker", _MARKER) for name in ("FusionStart", "FusionEnd")},
        "CustomOpKind": OpBinding("Opaque", ("id", "dtype")),
        "GenericMatmul": OpBinding("Matmul", _MATMUL),
        "cublaslt": OpBinding("Gemm", _GEMM),
        "cublaslt_scaled": OpBinding("ScaledGemm", _GEMM),
    },
    launch=issue,
    compute_names=("default", "32F", "64F", "32F_FAST_16BF", "32F_FAST_TF32"),
    meanings=MEANINGS,
)
