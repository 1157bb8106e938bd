"""Terms become steps: each family of ops, the sizes of leaves, and what has no plan."""

from __future__ import annotations

import pytest

from rulecheck.records import (
    Access,
    CastStep,
    DType,
    FailureKind,
    FillStep,
    InputSpec,
    MatmulStep,
    PointwiseStep,
    ReduceStep,
    ValueSpec,
)
from tests.accesses import strided
from tests.luminal_terms import Graph, Value, gemm_step

UNARY = ("Exp2", "Log2", "Sin", "Recip", "Sqrt")
BINARY = ("Add", "Mul", "Mod", "LessThan")


def matmul(graph: Graph, *inputs: int, k: int = 4, summed: tuple[int, ...] = (12, 4)) -> int:
    """2 x 3 of 2 x 4 times 4 x 3, row-major, in bf16."""
    kind = graph.add(
        "GenericMatmul",
        graph.shape(2, 3),
        graph.shape(2, 3, 4),
        graph.number(k),
        graph.strides(4, 0, 1),
        graph.strides(0, 1, 3),
        graph.strides(*summed),
        graph.stride(1),
        graph.strides(3, 1),
        graph.dtype(DType.BF16),
    )
    return graph.op(kind, *inputs)


def test_a_leaf_alone_is_a_plan_without_steps() -> None:
    graph = Graph()
    built = graph.plan(graph.leaf("i0.x", DType.F32))
    assert built.values == (ValueSpec(DType.F32, 1),)
    assert built.inputs == (InputSpec(0, "i0.x#0"),)
    assert (built.steps, built.result) == ((), 0)


def test_a_leaf_is_known_by_its_label_and_its_number() -> None:
    graph = Graph()
    assert graph.plan(graph.leaf("", identity=7)).inputs[0].label == "input#7"
    both = graph.pointwise("Add", (2,), graph.leaf("x", identity=1), graph.leaf("x", identity=2))
    assert [leaf.label for leaf in graph.plan(both).inputs] == ["x#1", "x#2"]


@pytest.mark.parametrize("name", BINARY)
def test_binary_ops(name: str) -> None:
    graph = Graph()
    kind = graph.add(
        name, graph.shape(2, 3), graph.strides(3, 1), graph.strides(1, 2), graph.strides(6, 2)
    )
    root = graph.op(kind, graph.leaf("a", DType.F16), graph.leaf("b", DType.F16))
    built = graph.plan(root)
    (step,) = built.steps
    accesses = (strided((2, 3), (3, 1)), strided((2, 3), (1, 2)))
    out = strided((2, 3), (6, 2))
    assert step == PointwiseStep(2, name, (0, 1), accesses, out, root)
    result = DType.BOOL if name == "LessThan" else DType.F16
    assert built.values == (ValueSpec(DType.F16, 6), ValueSpec(DType.F16, 6), ValueSpec(result, 6))


@pytest.mark.parametrize("name", UNARY)
def test_unary_ops(name: str) -> None:
    graph = Graph()
    built = graph.plan(graph.pointwise(name, (2, 3), graph.leaf("a", DType.F64)))
    (step,) = built.steps
    assert isinstance(step, PointwiseStep)
    assert (step.op, step.operands) == (name, (0,))
    assert built.values[1] == ValueSpec(DType.F64, 6)


def test_a_result_has_the_type_of_the_first_input() -> None:
    graph = Graph()
    root = graph.pointwise("Add", (2,), graph.leaf("a", DType.F16), graph.leaf("b", DType.F32))
    assert graph.plan(root).values[2].dtype is DType.F16


@pytest.mark.parametrize("name", ["Sum", "Max"])
def test_reductions(name: str) -> None:
    graph = Graph()
    kind = graph.add(
        name,
        graph.shape(2, 3),
        graph.number(4),
        graph.strides(12, 4),
        graph.stride(1),
        graph.strides(3, 1),
    )
    root = graph.op(kind, graph.leaf("a", DType.F32))
    built = graph.plan(root)
    base, out = strided((2, 3), (12, 4)), strided((2, 3), (3, 1))
    assert built.steps == (ReduceStep(1, name, 0, base, (0, 1, 2, 3), out, root),)
    assert built.values == (ValueSpec(DType.F32, 24), ValueSpec(DType.F32, 6))


def test_casts_have_the_size_and_type_of_their_fields() -> None:
    graph = Graph()
    root = graph.cast(graph.leaf("a", DType.F64), 6, DType.E4M3)
    built = graph.plan(root)
    assert built.steps == (CastStep(1, 0, 6, root),)
    assert built.values == (ValueSpec(DType.F64, 6), ValueSpec(DType.E4M3, 6))


def test_constants_are_one_f32_element() -> None:
    graph = Graph()
    root = graph.op(graph.add("Constant", graph.literal("f64", 1 / 3)))
    built = graph.plan(root)
    assert built.steps == (FillStep(0, 1 / 3, root),)
    assert built.values == (ValueSpec(DType.F32, 1),)
    assert built.inputs == ()


def test_generic_matmuls() -> None:
    graph = Graph()
    root = matmul(graph, graph.leaf("a"), graph.leaf("b"))
    built = graph.plan(root)
    expected = MatmulStep(
        out=2,
        lhs=0,
        rhs=1,
        base=strided((2, 3), (12, 4)),
        iters=(0, 1, 2, 3),
        lhs_access=strided((2, 3, 4), (4, 0, 1)),
        rhs_access=strided((2, 3, 4), (0, 1, 3)),
        out_access=strided((2, 3), (3, 1)),
        term=root,
    )
    assert built.steps == (expected,)
    assert [value.count for value in built.values] == [8, 12, 6]
    assert built.values[2].dtype is DType.BF16


def test_a_matmul_may_not_sum_beyond_its_product() -> None:
    graph = Graph()
    failure = graph.failure(matmul(graph, graph.leaf("a"), graph.leaf("b"), summed=(12, 5)))
    assert failure.kind is FailureKind.ILLEGAL
    assert " elements of a product that has " in failure.message


def test_a_library_call_is_what_the_launch_says() -> None:
    graph = Graph()
    leaves = [graph.leaf(name) for name in ("A", "B", "C", "bias")]
    root = graph.gemm(*leaves, beta=0.5, epilogue="RELU_BIAS", ldc=6, lda=0)
    built = graph.plan(root)
    step = gemm_step(built)
    assert (step.a, step.b, step.c, step.bias, step.out, step.term) == (0, 1, 2, 3, 4, root)
    assert step.clamped == (("A", 0, 5),)
    assert (step.call.beta, step.call.epilogue, step.call.c.ld) == (0.5, "RELU_BIAS", 6)
    assert [value.count for value in built.values] == [55, 77, 6 * 6 + 5, 5, 35]


def test_a_call_that_reads_no_c_takes_its_bias_third() -> None:
    graph = Graph()
    root = graph.gemm(*[graph.leaf(name) for name in ("A", "B", "bias")], epilogue="BIAS")
    step = gemm_step(graph.plan(root))
    assert (step.c, step.bias) == (None, 2)


def test_inputs_beyond_those_of_the_call_are_lowered_and_ignored() -> None:
    graph = Graph()
    built = graph.plan(graph.gemm(*[graph.leaf(name) for name in ("A", "B", "C", "D")]))
    step = gemm_step(built)
    assert (step.c, step.bias) == (None, None)
    assert len(built.inputs) == 4


@pytest.mark.parametrize(
    ("count", "changes", "roles"),
    [
        (1, {}, "A, B"),
        (2, {"beta": 1.0}, "A, B, C"),
        (2, {"epilogue": "BIAS"}, "A, B, bias"),
        (3, {"beta": 1.0, "epilogue": "GELU_BIAS"}, "A, B, C, bias"),
    ],
)
def test_a_call_with_too_few_inputs_says_which_it_takes(
    count: int, changes: dict[str, Value], roles: str
) -> None:
    graph = Graph()
    failure = graph.failure(
        graph.gemm(*[graph.leaf(f"x{index}") for index in range(count)], **changes)
    )
    assert failure.kind is FailureKind.ILLEGAL
    assert f"({roles})" in failure.message
    assert f"the list has {count}" in failure.message


def test_a_batched_result_holds_every_matrix() -> None:
    graph = Graph()
    root = graph.gemm(
        graph.leaf("A"),
        graph.leaf("B"),
        batch_count=3,
        stride_a=55,
        stride_b=0,
        stride_c=35,
        stride_d=35,
    )
    assert [value.count for value in graph.plan(root).values] == [165, 77, 105]


def test_a_refused_launch_is_illegal() -> None:
    graph = Graph()
    failure = graph.failure(graph.gemm(graph.leaf("A"), graph.leaf("B"), epilogue="TANH"))
    assert failure.kind is FailureKind.ILLEGAL
    assert "TANH" in failure.message


# ---- sharing and sizes ---------------------------------------------------------------------------


def test_a_shared_term_is_one_value_and_one_step() -> None:
    graph = Graph()
    leaf = graph.leaf("a", DType.F32)
    root = graph.pointwise("Exp2", (6,), leaf)
    total = graph.pointwise("Add", (6,), root, root)
    built = graph.plan(graph.pointwise("Mul", (6,), total, leaf))
    assert len(built.steps) == 3
    assert len(built.inputs) == 1
    (add,) = [step for step in built.steps if isinstance(step, PointwiseStep) and step.op == "Add"]
    assert add.operands == (1, 1)


def test_steps_come_after_the_steps_that_they_read() -> None:
    graph = Graph()
    deep = graph.leaf("a", DType.F32)
    for _ in range(300):
        deep = graph.pointwise("Sqrt", (2,), deep)
    built = graph.plan(graph.pointwise("Add", (2,), graph.leaf("b", DType.F32), deep))
    written = {leaf.value for leaf in built.inputs}
    for step in built.steps:
        assert isinstance(step, PointwiseStep)
        assert written.issuperset(step.operands)
        written.add(step.out)
    assert len(built.steps) == 301


def test_leaves_are_as_large_as_their_largest_read() -> None:
    graph = Graph()
    leaf = graph.leaf("a", DType.F32)
    padded = graph.op(
        graph.add("Sqrt", graph.shape(2, 3), graph.strides(10, 1), graph.strides(3, 1)), leaf
    )
    built = graph.plan(graph.pointwise("Add", (6,), padded, leaf))
    assert built.values[0].count == 13


def test_leaves_take_the_sizes_that_are_given() -> None:
    graph = Graph()
    root = graph.pointwise("Add", (6,), graph.leaf("a"), graph.leaf("b"))
    built = graph.plan(root, {"a#0": 100, "elsewhere": 3})
    assert [value.count for value in built.values] == [100, 6, 6]


def test_strides_that_are_not_linear_are_tabulated() -> None:
    graph = Graph()
    wrapped = graph.add("MMod", graph.add("MIter"), graph.number(3))
    kind = graph.add("Sqrt", graph.shape(7), graph.listing([wrapped]), graph.strides(1))
    (step,) = graph.plan(graph.op(kind, graph.leaf("a"))).steps
    assert isinstance(step, PointwiseStep)
    assert step.accesses[0] == Access((7,), ((0, 1, 2, 0, 1, 2, 0),))
