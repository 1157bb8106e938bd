"""Ops of fused kernels and of the host program: what they compute, mark, or leave open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rulecheck import contract
from rulecheck.campaign.workshop import Workshop
from rulecheck.ops import OPS
from rulecheck.records import DType, FailureKind, Plan, PointwiseStep, Settings, Verdict
from tests.luminal_terms import Graph
from tests.rule_bench import Bench
from tests.rule_texts import rule

SHAPE = (5, 7)
UNARY = ["Exp2", "Log2", "Sin", "Recip", "Sqrt"]
BINARY = ["Add", "Mul", "Mod", "LessThan"]


def fused(graph: Graph, name: str, *inputs: int, dtype: DType = DType.F32) -> int:
    """An elementwise op inside a kernel, over dense operands."""
    words = {1: "CudaUnaryElementwise", 2: "CudaBinaryElementwise"}
    dense = graph.strides(7, 1)
    kind = graph.add(
        words[len(inputs)],
        graph.literal("String", name),
        graph.shape(*SHAPE),
        *[dense] * (len(inputs) + 1),
        graph.dtype(dtype),
    )
    return graph.op(kind, *inputs)


def mark(
    graph: Graph, name: str, source: int, dtype: DType = DType.F32, shape: tuple[int, ...] = SHAPE
) -> int:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return graph.op(
        graph.add(name, graph.shape(*shape), graph.strides(*strides), graph.dtype(dtype)), source
    )


def leaves(graph: Graph, count: int, dtype: DType = DType.F32) -> list[int]:
    return [graph.leaf(f"x{at}", dtype, at) for at in range(count)]


def computed(built: Plan) -> list[tuple[object, ...]]:
    """Steps without the terms that they come from."""
    found = []
    for step in built.steps:
        assert isinstance(step, PointwiseStep)
        fields = {name: getattr(step, name) for name in step.__struct_fields__ if name != "term"}
        found.append(tuple(fields.values()))
    return found


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_an_op_of_a_kernel_is_the_op_of_that_name(name: str) -> None:
    graph = Graph()
    inputs = leaves(graph, 1 if name in UNARY else 2)
    dtype = DType.BOOL if name == "LessThan" else DType.F32
    inside = graph.plan(fused(graph, name, *inputs, dtype=dtype))
    outside = graph.plan(graph.pointwise(name, SHAPE, *inputs))
    assert computed(inside) == computed(outside)
    assert inside.values == outside.values
    assert inside.inputs == outside.inputs
    assert contract.check_plan(inside) == ()


def test_its_result_is_of_the_type_that_it_says() -> None:
    graph = Graph()
    built = graph.plan(fused(graph, "Add", *leaves(graph, 2, DType.BF16), dtype=DType.BF16))
    assert built.values[built.result].dtype is DType.BF16


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Gelu", 1),  # not in the table
        ("Add", 1),  # takes two
        ("Sin", 2),
        ("Sum", 1),  # no elementwise op
        ("Cast", 1),
        ("Matmul", 2),
        ("Unary", 1),  # the row of the op that only names another
        ("Binary", 2),
        ("", 1),
    ],
)
def test_another_name_is_unsupported_and_never_guessed(name: str, count: int) -> None:
    graph = Graph()
    failure = graph.failure(fused(graph, name, *leaves(graph, count)))
    assert failure.kind is FailureKind.UNSUPPORTED
    assert repr(name) in failure.message


def test_a_name_that_is_no_text_is_unsupported() -> None:
    graph = Graph()
    dense = graph.strides(7, 1)
    kind = graph.add(
        "CudaUnaryElementwise",
        graph.number(3),
        graph.shape(*SHAPE),
        dense,
        dense,
        graph.dtype(DType.F32),
    )
    assert graph.failure(graph.op(kind, *leaves(graph, 1))).kind is FailureKind.UNSUPPORTED


def test_every_row_of_the_table_that_names_another_is_elementwise() -> None:
    assert {name for name, spec in OPS.items() if spec.arithmetic is not None} == {
        "Unary",
        "Binary",
    }


# ---- markers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["FusionStart", "FusionEnd"])
def test_a_marker_is_the_buffer_that_it_marks(name: str) -> None:
    graph = Graph()
    (leaf,) = leaves(graph, 1)
    built = graph.plan(mark(graph, name, leaf))
    assert built.steps == ()
    assert built.result == built.inputs[0].value
    assert built.values[built.result].count == 35, "the leaf is as large as what is marked"


def test_a_kernel_between_markers_computes_what_its_ops_do() -> None:
    graph = Graph()
    one, other = leaves(graph, 2)
    starts = [mark(graph, "FusionStart", leaf) for leaf in (one, other)]
    inner = fused(graph, "Sin", fused(graph, "Mul", *starts))
    kernel = graph.plan(mark(graph, "FusionEnd", inner))
    plain = graph.plan(graph.pointwise("Sin", SHAPE, graph.pointwise("Mul", SHAPE, one, other)))
    assert computed(kernel) == computed(plain)
    assert kernel.values == plain.values


def test_a_marker_does_not_change_the_type() -> None:
    """It writes nothing: bytes of another type stay what they are."""
    graph = Graph()
    failure = graph.failure(mark(graph, "FusionEnd", leaves(graph, 1, DType.BF16)[0]))
    assert failure.kind is FailureKind.ILLEGAL
    assert "F32" in failure.message
    assert "Bf16" in failure.message


def test_tf32_is_how_f32_is_used_so_a_marker_may_say_it() -> None:
    graph = Graph()
    graph.plan(mark(graph, "FusionStart", leaves(graph, 1)[0], DType.TF32))


def test_a_marked_leaf_is_as_large_as_its_largest_reader() -> None:
    graph = Graph()
    (leaf,) = leaves(graph, 1)
    small = mark(graph, "FusionStart", leaf, shape=(2, 3))
    built = graph.plan(fused(graph, "Add", small, leaf))
    assert [built.values[item.value].count for item in built.inputs] == [35]


def test_markers_of_markers_are_still_the_buffer() -> None:
    graph = Graph()
    (leaf,) = leaves(graph, 1)
    twice = mark(graph, "FusionStart", mark(graph, "FusionEnd", leaf))
    assert graph.plan(twice).result == graph.plan(twice).inputs[0].value


# ---- ops of the host program ------------------------------------------------------------


def custom(graph: Graph, number: int, *inputs: int, dtype: DType = DType.E4M3) -> int:
    return graph.op(
        graph.add("CustomOpKind", graph.literal("i64", number), graph.dtype(dtype)), *inputs
    )


def label(graph: Graph, root: int) -> str:
    built = graph.plan(graph.cast(root, 35, DType.F32))
    (found,) = [item.label for item in built.inputs if item.label.startswith("custom#")]
    return found


def test_what_the_host_program_makes_is_an_input_of_the_graph() -> None:
    graph = Graph()
    made = custom(graph, 1, *leaves(graph, 2))
    built = graph.plan(graph.cast(made, 35, DType.F32))
    (item,) = [item for item in built.inputs if item.label.startswith("custom#")]
    assert built.values[item.value].dtype is DType.E4M3
    assert built.values[item.value].count == 35, "as large as what reads it"
    assert len(built.steps) == 1


def test_one_op_on_one_input_is_one_buffer_wherever_it_stands() -> None:
    """Else both sides of a claim would read different bytes."""
    graph, other = Graph(), Graph()
    other.leaf("first", DType.F16, 9)  # so that the ids of terms differ
    made = [custom(one, 1, *leaves(one, 2)) for one in (graph, other)]
    assert label(graph, made[0]) == label(other, made[1])
    both = graph.pointwise("Add", SHAPE, made[0], made[0])
    assert len([item for item in graph.plan(both).inputs if "custom" in item.label]) == 1


def test_another_op_or_another_input_is_another_buffer() -> None:
    graph = Graph()
    one, other = leaves(graph, 2)
    roots = [
        custom(graph, 1, one),
        custom(graph, 2, one),
        custom(graph, 1, other),
        custom(graph, 1, one, other),
        custom(graph, 1, other, one),
        custom(graph, 1),
    ]
    assert len({label(graph, root) for root in roots}) == len(roots)


def test_its_size_may_be_given_by_the_other_side_of_a_claim() -> None:
    graph = Graph()
    made = custom(graph, 1, *leaves(graph, 1))
    name = label(graph, made)
    built = graph.plan(graph.cast(made, 6, DType.F32), {name: 35})
    (item,) = [item for item in built.inputs if item.label == name]
    assert built.values[item.value].count == 35


# ---- judged ------------------------------------------------------------

_INNER = """(= ?in (Op (CudaBinaryElementwise "Mul" ?s ?d ?e ?o (F32))
    (ICons (Op (FusionStart ?s ?d (F32)) (ICons ?a (INil)))
    (ICons (Op (FusionStart ?s ?e (F32)) (ICons ?b (INil))) (INil)))))
  (= ?x (Op (FusionEnd ?s ?o (F32)) (ICons ?in (INil))))"""
_APART = "(union ?x (Op (Mul ?s ?d ?e ?o) (ICons ?a (ICons ?b (INil)))))"
RULES = {
    "apart": rule("apart", _INNER, _APART),
    "another": rule("another", _INNER, _APART.replace("(Mul", "(Add")),
    "narrow": rule(
        "narrow",
        _INNER,
        _APART.replace("(ICons ?a", "(ICons (Op (Cast (MNum 35) (Bf16)) (ICons ?a (INil)))"),
    ),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Workshop(Settings(paths=())) as shop:
        yield Bench(shop, tmp_path_factory.mktemp("fused"), RULES)


def test_a_kernel_taken_apart_is_judged(bench: Bench) -> None:
    right = bench.judge("apart")
    assert right.verdict is Verdict.AGREES, right.message
    assert right.compared > 0
    assert bench.judge("another").verdict is Verdict.MISMATCH
    assert bench.judge("narrow").verdict in {Verdict.MISREAD, Verdict.ILLEGAL}
