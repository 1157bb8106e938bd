"""What has no plan: unknown ops and types, symbolic sizes, wrong inputs, sizes without bound."""

from __future__ import annotations

import pytest

from rulecheck.records import DType, FailureKind, ReduceStep
from tests.luminal_terms import Graph


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


def unsupported(graph: Graph, root: int, words: str) -> None:
    failure = graph.failure(root)
    assert failure.kind is FailureKind.UNSUPPORTED
    assert words in failure.message


def test_an_op_outside_the_dialect_is_unsupported() -> None:
    graph = Graph()
    root = graph.op(graph.add("KernelQuantF8", graph.dtype(DType.F32)), graph.leaf("a"))
    unsupported(graph, root, "the op KernelQuantF8 is not in the dialect luminal")


def test_a_term_that_is_no_graph_is_unsupported() -> None:
    graph = Graph()
    unsupported(graph, graph.add("Output", graph.leaf("a"), graph.literal("i64", 0)), "Output")


def test_an_open_input_list_is_unsupported() -> None:
    graph = Graph()
    kind = graph.add("Constant", graph.literal("f64", 1.0))
    unsupported(graph, graph.add("Op", kind, graph.add("Tail")), "not spelled out")


def test_an_open_list_of_strides_is_unsupported() -> None:
    graph = Graph()
    open_end = graph.add("RowMajor", graph.number(3))
    kind = graph.add("Sqrt", open_end, graph.strides(1), graph.strides(1))
    unsupported(graph, graph.op(kind, graph.leaf("a")), "shape is not a list")


def test_a_type_that_is_not_modelled_is_unsupported_wherever_it_stands() -> None:
    graph = Graph()
    narrow = graph.add("F4E2M1")
    leaf = graph.add("Input", graph.literal("i64", 0), graph.literal("String", "a"), narrow)
    unsupported(graph, leaf, "F4E2M1")
    plain = graph.leaf("b")
    unsupported(graph, graph.op(graph.add("Cast", graph.number(3), narrow), plain), "F4E2M1")
    good = graph.gemm(plain, plain)
    kind, inputs = graph.nodes[good].args
    args = list(graph.nodes[kind].args)
    args[20] = narrow
    bad = graph.add("Op", graph.add("cublaslt", *args), inputs)
    unsupported(graph, bad, "the type F4E2M1 of c_dtype")


def symbolic(graph: Graph) -> int:
    return graph.add("MVar", graph.literal("String", "n"))


@pytest.mark.parametrize("field", ["m", "lda", "stride_a"])
def test_symbolic_sizes_are_unsupported(field: str) -> None:
    graph = Graph()
    good = graph.gemm(graph.leaf("a"), graph.leaf("b"))
    kind, inputs = graph.nodes[good].args
    args = list(graph.nodes[kind].args)
    args[{"m": 0, "lda": 9, "stride_a": 14}[field]] = symbolic(graph)
    unsupported(
        graph, graph.add("Op", graph.add("cublaslt", *args), inputs), f"{field} has no number"
    )


def test_symbolic_shapes_strides_and_steps_are_unsupported() -> None:
    graph = Graph()
    n, leaf, one = symbolic(graph), graph.leaf("a"), graph.strides(1)
    lone = graph.listing([n])
    unsupported(graph, graph.op(graph.add("Sqrt", lone, one, one), leaf), "shape has no number")
    kind = graph.add("Sqrt", graph.shape(3), lone, one)
    unsupported(graph, graph.op(kind, leaf), "strides.0 has no number")
    kind = graph.add("Sum", graph.shape(3), graph.number(2), one, n, one)
    unsupported(graph, graph.op(kind, leaf), "iter_stride has no number")


def test_a_field_that_is_no_number_is_unsupported() -> None:
    graph = Graph()
    root = graph.op(graph.add("Constant", graph.literal("String", "pi")))
    unsupported(graph, root, "value is no number")


def test_a_node_with_another_number_of_fields_is_unsupported() -> None:
    graph = Graph()
    unsupported(
        graph, graph.op(graph.add("Cast", graph.number(3)), graph.leaf("a")), "has 1 fields, not 2"
    )


def test_a_wrong_number_of_inputs_is_illegal() -> None:
    graph = Graph()
    dense = graph.strides(1)
    failure = graph.failure(
        graph.op(graph.add("Add", graph.shape(3), dense, dense, dense), graph.leaf("a"))
    )
    assert failure.kind is FailureKind.ILLEGAL
    assert "takes 2 inputs, the list has 1" in failure.message


def test_strides_of_another_rank_are_illegal() -> None:
    graph = Graph()
    kind = graph.add("Sqrt", graph.shape(2, 3), graph.strides(1), graph.strides(3, 1))
    failure = graph.failure(graph.op(kind, graph.leaf("a")))
    assert failure.kind is FailureKind.ILLEGAL
    assert "1 strides for rank 2" in failure.message


def test_a_wrong_input_deep_in_a_graph_is_found() -> None:
    graph = Graph()
    bad = graph.op(graph.add("Nothing"), graph.leaf("a"))
    unsupported(graph, graph.pointwise("Add", (3,), graph.leaf("b"), bad), "Nothing")


# ---- sizes that no one can mean ------------------------------------------------------------------


def cast_of(graph: Graph, size: int) -> int:
    return graph.cast(graph.leaf("a"), size, DType.F32)


def sqrt_of(graph: Graph, *shape: int) -> int:
    strides = graph.strides(*[1] * len(shape))
    return graph.op(graph.add("Sqrt", graph.shape(*shape), strides, strides), graph.leaf("a"))


def reduce_of(graph: Graph, name: str, iters: int) -> int:
    one = graph.strides(1)
    kind = graph.add(name, graph.shape(3), graph.number(iters), one, graph.stride(1), one)
    return graph.op(kind, graph.leaf("a"))


def test_negative_sizes_are_illegal() -> None:
    graph = Graph()
    for root, words in (
        (cast_of(graph, -1), "Cast of -1"),
        (sqrt_of(graph, 3, -2), "negative extent in (3, -2)"),
        (reduce_of(graph, "Sum", -1), "-1 iterations"),
        (reduce_of(graph, "Max", 0), "Max over no element"),
    ):
        failure = graph.failure(root)
        assert failure.kind is FailureKind.ILLEGAL
        assert words in failure.message


def test_sizes_beyond_all_bounds_are_refused_before_a_table_is_made() -> None:
    graph = Graph()
    leaves = (graph.leaf("A"), graph.leaf("B"))
    huge = 10**15
    for root in (
        cast_of(graph, huge),
        sqrt_of(graph, 10**8, 10**8),
        reduce_of(graph, "Sum", huge),
        graph.gemm(*leaves, m=huge),
        graph.gemm(*leaves, lda=huge),
        matmul(graph, *leaves, k=huge),
    ):
        unsupported(graph, root, "is the limit")


def test_a_sum_over_nothing_is_planned() -> None:
    graph = Graph()
    (step,) = graph.plan(reduce_of(graph, "Sum", 0)).steps
    assert isinstance(step, ReduceStep)
    assert step.iters == ()
