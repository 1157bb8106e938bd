"""The luminal vocabulary: declarations and bindings agree, and calls are issued as luminal does."""

from __future__ import annotations

import re

import msgspec
import pytest

from rulecheck import dialects
from rulecheck.dialects.vocabulary import Launch
from rulecheck.egraph.bindings import Parser
from rulecheck.errors import UserError
from rulecheck.ops import OPS
from rulecheck.records import Declaration, DType, Failure, FailureKind, GemmCall, Limits
from rulecheck.rules.parse import read_dialect
from tests.luminal_terms import GEMM_FIELDS, VOCABULARY, Value, launch_fields


def issue(**changes: Value) -> Launch:
    launch = VOCABULARY.launch(launch_fields(**changes))
    assert isinstance(launch, Launch), launch
    return launch


def call(**changes: Value) -> GemmCall:
    return issue(**changes).call


def refusal(**changes: Value) -> Failure:
    failure = VOCABULARY.launch(launch_fields(**changes))
    assert isinstance(failure, Failure)
    return failure


@pytest.fixture(scope="module")
def declared() -> dict[str, Declaration]:
    text, path = VOCABULARY.declarations(), VOCABULARY.declarations_path
    dialect = read_dialect(path, text, Parser(), Limits())
    assert dialect.problems == ()
    return {item.name: item for item in dialect.declarations}


def of_sort(declared: dict[str, Declaration], sort: str) -> dict[str, Declaration]:
    return {
        name: item
        for name, item in declared.items()
        if item.kind == "constructor" and item.output == sort
    }


def test_every_op_kind_is_bound_and_every_binding_declared(
    declared: dict[str, Declaration],
) -> None:
    kinds = of_sort(declared, VOCABULARY.encoding.kind_sort)
    assert set(kinds) == set(VOCABULARY.ops)
    for name, binding in VOCABULARY.ops.items():
        assert len(binding.fields) == len(kinds[name].inputs), name
        assert len(set(binding.fields)) == len(binding.fields), name
        assert binding.spec in OPS


def test_authors_name_fields_as_the_compiler_does(declared: dict[str, Declaration]) -> None:
    """The dialect's names are the vocabulary's, but for the views of pointwise inputs."""
    binary, unary = ("a_strides", "b_strides"), ("strides",)
    for name, binding in VOCABULARY.ops.items():
        views = binary if "strides.1" in binding.fields else unary
        spelled = {f"strides.{at}": view for at, view in enumerate(views)}
        expected = tuple(spelled.get(field, field) for field in binding.fields)
        assert declared[name].fields == expected, name


def test_every_op_of_the_table_has_a_constructor() -> None:
    assert {binding.spec for binding in VOCABULARY.ops.values()} == set(OPS)


def test_fields_have_the_sorts_that_their_roles_want(declared: dict[str, Declaration]) -> None:
    lists = re.compile(r"(.*_)?(shape|strides)(\.\d)?")
    for name, binding in VOCABULARY.ops.items():
        for field, sort in zip(binding.fields, declared[name].inputs, strict=True):
            if field.endswith("dtype") and field != "scale_dtype":
                assert sort == "DType", (name, field)
            elif lists.fullmatch(field):
                assert sort == "EList", (name, field)
            elif field == "op":
                assert sort == "String", (name, field)
            elif field == "id":
                assert sort == "i64", (name, field)
            elif field in ("alpha", "beta", "value"):
                assert sort == "f64", (name, field)
            elif field.endswith(("_layout", "_order", "_type", "epilogue", "scale_dtype")):
                assert sort == "String", (name, field)
            else:
                assert sort == "Expression", (name, field)


def test_the_library_matmul_has_the_27_fields_in_the_order_of_the_compiler() -> None:
    operands = ("m n k", "a_layout b_layout", "a_order b_order c_order d_order")
    strides = ("lda ldb ldc ldd", "batch_count stride_a stride_b stride_c stride_d")
    types = ("a_dtype b_dtype c_dtype d_dtype", "compute_type scale_dtype")
    expected = " ".join((*operands, *strides, *types, "alpha beta epilogue"))
    assert " ".join(GEMM_FIELDS) == expected
    assert len(GEMM_FIELDS) == 27


def test_results_of_ops_name_a_field_that_their_constructors_have() -> None:
    for binding in VOCABULARY.ops.values():
        result = OPS[binding.spec].result
        assert isinstance(result, DType) or result in ("input", *binding.fields)


def test_every_arithmetic_constructor_is_an_operator(declared: dict[str, Declaration]) -> None:
    names = VOCABULARY.encoding
    expressions = of_sort(declared, names.expression_sort)
    binary = {
        name
        for name, item in expressions.items()
        if item.inputs == (names.expression_sort, names.expression_sort)
    }
    assert binary == set(names.arithmetic)
    assert {names.number, names.iterator, names.symbol, names.product} <= set(expressions)


def test_structure_is_declared_as_the_encoding_says(declared: dict[str, Declaration]) -> None:
    names = VOCABULARY.encoding
    for name, inputs, output in (
        (names.op, (names.kind_sort, names.inputs_sort), names.graph_sort),
        (names.leaf, ("i64", "String", names.dtype_sort), names.graph_sort),
        (names.input_cons, (names.graph_sort, names.inputs_sort), names.inputs_sort),
        (names.input_nil, (), names.inputs_sort),
        (names.list_cons, (names.expression_sort, names.list_sort), names.list_sort),
        (names.list_nil, (), names.list_sort),
        (names.number, ("i64",), names.expression_sort),
        (names.dtype_function, (names.graph_sort,), names.dtype_sort),
        (names.nth_function, (names.list_sort, "i64"), names.expression_sort),
        (names.length_function, (names.list_sort,), "i64"),
    ):
        assert (declared[name].inputs, declared[name].output) == (inputs, output), name


def test_types_are_declared_and_those_not_modelled_are_never_guessed(
    declared: dict[str, Declaration],
) -> None:
    known = of_sort(declared, VOCABULARY.encoding.dtype_sort)
    assert set(VOCABULARY.dtypes) <= set(known)
    assert "I8" in known
    assert "I8" not in VOCABULARY.dtypes
    assert {VOCABULARY.dtype_constructor(dtype) for dtype in DType} == set(VOCABULARY.dtypes)


def test_an_unknown_dialect_is_a_usage_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match="marker") as raised:
        dialects.load("marker")
    assert "luminal" in str(raised.value)


# ---- launch conventions -----------------------------------------------------------------------


def test_without_beta_c_is_the_d_pointer_and_no_input() -> None:
    launch = issue(beta=0.0)
    assert launch.call.c_is_d
    assert launch.roles == ("A", "B")
    assert issue(beta=-0.0).roles == ("A", "B")


@pytest.mark.parametrize(
    ("beta", "epilogue", "roles"),
    [
        (1.0, "DEFAULT", ("A", "B", "C")),
        (0.0, "BIAS", ("A", "B", "bias")),
        (0.5, "RELU", ("A", "B", "C")),
        (0.5, "RELU_BIAS", ("A", "B", "C", "bias")),
        (-1.0, "GELU_BIAS", ("A", "B", "C", "bias")),
        (0.0, "GELU", ("A", "B")),
    ],
)
def test_inputs_are_a_b_then_c_if_beta_then_the_bias(
    beta: float, epilogue: str, roles: tuple[str, ...]
) -> None:
    launch = issue(beta=beta, epilogue=epilogue)
    assert launch.roles == roles
    assert launch.call.c_is_d is (beta == 0.0)


def test_scalars_and_epilogue_are_passed_on() -> None:
    made = call(alpha=1 / 3, beta=0.5, epilogue="GELU_BIAS")
    assert (made.alpha, made.beta, made.epilogue) == (1 / 3, 0.5, "GELU_BIAS")


def test_the_bias_type_is_left_to_the_library() -> None:
    assert call(epilogue="BIAS").bias_dtype is None
    assert call(epilogue="BIAS", d_dtype=DType.F32, c_dtype=DType.F32).bias_type is DType.F32
    assert call(epilogue="BIAS", batch_count=3).bias_batch_stride == 0


def test_stored_matrices_follow_the_transposes() -> None:
    def sizes(**changes: Value) -> list[tuple[int, int]]:
        made = call(**changes)
        return [(matrix.rows, matrix.cols) for matrix in (made.a, made.b, made.c, made.d)]

    assert sizes() == [(5, 11), (11, 7), (5, 7), (5, 7)]
    assert sizes(a_layout="T", b_layout="C") == [(11, 5), (7, 11), (5, 7), (5, 7)]
    made = call(a_layout="T", b_layout="C")
    assert (made.transa, made.transb, made.m, made.n, made.k) == ("T", "C", 5, 7, 11)


def test_a_leading_dimension_is_raised_to_its_minimum_silently() -> None:
    launch = issue(lda=4, ldb=11, ldc=0, ldd=9, beta=1.0)
    assert [getattr(launch.call, operand).ld for operand in "abcd"] == [5, 11, 5, 9]
    assert launch.clamped == (("A", 4, 5), ("C", 0, 5))


def test_the_minimum_of_a_row_ordered_matrix_is_its_columns() -> None:
    launch = issue(b_order="ROW", d_order="ROW", ldb=7, ldd=5)
    assert launch.call.b.ld == 7
    assert launch.call.d.ld == 7
    assert launch.clamped == (("D", 5, 7),)
    assert (launch.call.b.order, launch.call.a.order) == ("ROW", "COL")


@pytest.mark.parametrize("count", [1, 0])
def test_batch_and_strides_are_set_only_above_one(count: int) -> None:
    made = call(batch_count=count, stride_a=55, stride_d=35)
    for matrix in (made.a, made.b, made.c, made.d):
        assert (matrix.batch_count, matrix.batch_stride) == (1, 0)


def test_batch_strides_are_those_of_the_op() -> None:
    made = call(batch_count=3, stride_a=55, stride_b=0, stride_c=40, stride_d=35)
    assert [getattr(made, operand).batch_stride for operand in "abcd"] == [55, 0, 40, 35]
    assert {getattr(made, operand).batch_count for operand in "abcd"} == {3}


@pytest.mark.parametrize(
    ("dtype", "compute", "scale"),
    [
        (DType.F64, "64F", DType.F64),
        (DType.F32, "32F", DType.F32),
        (DType.TF32, "32F_FAST_TF32", DType.F32),
        (DType.F16, "32F", DType.F32),
        (DType.BF16, "32F_FAST_16BF", DType.F32),
        (DType.E4M3, "32F", DType.F32),
        (DType.E5M2, "32F", DType.F32),
    ],
)
def test_defaults_follow_the_type_of_a(dtype: DType, compute: str, scale: DType) -> None:
    made = call(a_dtype=dtype)
    assert (made.compute_type, made.scale_type) == (compute, scale)
    assert (made.a.dtype, made.b.dtype) == (dtype, DType.BF16)


def test_explicit_compute_and_scale_types_are_taken() -> None:
    made = call(compute_type="32F", scale_dtype="F64")
    assert (made.compute_type, made.scale_type) == ("32F", DType.F64)
    for name in VOCABULARY.compute_names:
        assert call(compute_type=name).compute_type == (
            "32F_FAST_16BF" if name == "default" else name
        )


def test_narrow_operands_get_scale_pointers() -> None:
    def pointers(**changes: Value) -> tuple[bool, ...]:
        made = call(**changes)
        return (made.a_scale, made.b_scale, made.c_scale, made.d_scale)

    assert pointers() == (False, False, False, False)
    assert pointers(a_dtype=DType.E4M3, b_dtype=DType.E4M3) == (True, True, False, False)
    narrow = {f"{operand}_dtype": DType.E4M3 for operand in "abcd"}
    assert pointers(**narrow) == (True, True, True, True)


def test_what_the_launch_does_not_set_keeps_the_library_default() -> None:
    made = call()
    assert not made.fast_accum
    assert made.pointer_mode == "HOST"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("a_layout", "X"),
        ("b_layout", "n"),
        ("a_order", "COL32"),
        ("b_order", ""),
        ("c_order", "row"),
        ("d_order", "COL4_4R2_8C"),
        ("epilogue", "SIGMOID"),
        ("compute_type", "16F"),
        ("scale_dtype", "Bf16"),
        ("a_dtype", DType.I32),
        ("a_dtype", DType.BOOL),
    ],
)
def test_what_the_launch_cannot_read_is_refused_and_named(field: str, value: Value) -> None:
    failure = refusal(**{field: value})
    assert failure.kind is FailureKind.ILLEGAL
    assert field in failure.message
    assert str(value.value if isinstance(value, DType) else value) in failure.message


def test_calls_are_plain_data() -> None:
    made = call(beta=0.5, epilogue="BIAS", batch_count=3)
    assert msgspec.json.decode(msgspec.json.encode(made), type=GemmCall) == made
