"""What a graph and a member share: narrow products, and roundings that both have."""

from __future__ import annotations

import pytest

from rulecheck.oracle import (
    Accumulator,
    InputKind,
    Side,
    common_accumulator,
    draw_inputs,
    lost_roundings,
    roundings,
)
from rulecheck.records import DType, Plan
from tests.luminal_terms import Graph, Value

BF16, F32, E4M3 = DType.BF16, DType.F32, DType.E4M3
ACCUMULATOR = Accumulator()
WIDE = {f"{operand}_dtype": F32 for operand in "abcd"}
FP8: dict[str, Value] = {"a_dtype": E4M3, "b_dtype": E4M3, "c_dtype": F32, "d_dtype": F32}


def side(plan: Plan) -> Side:
    return plan, draw_inputs(plan, InputKind.REALS, 3)


def product(*compute: str, epilogue: str = "DEFAULT", swapped: bool = False) -> Side:
    """The sum of A B over some compute types; swapped: B A, in the transposed layout."""
    graph = Graph()
    a, b = graph.leaf("A", F32), graph.leaf("B", F32)
    change: dict[str, Value] = {**WIDE, "epilogue": epilogue}
    if swapped:
        change |= {"m": 7, "n": 5, "a_layout": "T", "b_layout": "T"}
        change |= {"lda": 11, "ldb": 5, "ldc": 7, "ldd": 7}
        a, b = b, a
    terms = [graph.gemm(a, b, **change, compute_type=kind) for kind in compute]
    root = terms[0]
    for term in terms[1:]:
        root = graph.pointwise("Add", (35,), root, term)
    return side(graph.plan(root))


TF32 = "32F_FAST_TF32"


@pytest.mark.parametrize(
    ("original", "member", "shared"),
    [
        (product(TF32), product(TF32, epilogue="GELU"), True),
        (product(TF32), product(TF32, swapped=True), True),
        (product(TF32), product("32F"), True),  # the member has nothing narrow
        (product("32F"), product(TF32), False),
        (product(TF32), product("32F_FAST_16BF"), False),
        (product(TF32, "32F"), product(TF32), False),  # the graph takes the same one accurately
        (product("32F", "32F"), product("32F", TF32), False),
    ],
)
def test_narrow_products_are_shared_if_the_graph_takes_them_alike(
    original: Side, member: Side, shared: bool
) -> None:
    found = common_accumulator(original, member, ACCUMULATOR)
    assert found == (ACCUMULATOR.as_f32() if shared else ACCUMULATOR)


def test_other_operands_are_another_product() -> None:
    def of(factor: float) -> Side:
        graph = Graph()
        scale = graph.op(graph.add("Constant", graph.literal("f64", factor)))
        dense, none = graph.strides(1), graph.strides(0)
        kind = graph.add("Mul", graph.shape(55), dense, none, dense)
        scaled = graph.op(kind, graph.leaf("A", F32), scale)
        return side(graph.plan(graph.gemm(scaled, graph.leaf("B", F32), **WIDE, compute_type=TF32)))

    assert common_accumulator(of(1.0), of(1.001), ACCUMULATOR) is ACCUMULATOR
    assert common_accumulator(of(1.5), of(1.5), ACCUMULATOR) == ACCUMULATOR.as_f32()


def test_fp8_products_are_narrow_and_without_any_the_accumulator_stays() -> None:
    def of(epilogue: str) -> Side:
        graph = Graph()
        leaves = (graph.leaf("A", E4M3), graph.leaf("B", E4M3))
        return side(graph.plan(graph.gemm(*leaves, **FP8, epilogue=epilogue)))

    assert common_accumulator(of("DEFAULT"), of("RELU"), ACCUMULATOR) == ACCUMULATOR.as_f32()
    plain = product("32F")
    assert common_accumulator(plain, plain, ACCUMULATOR) is ACCUMULATOR


def casts(*types: DType) -> Side:
    graph = Graph()
    root = graph.pointwise("Mul", (12,), graph.leaf("a", F32), graph.leaf("b", F32))
    for dtype in types:
        root = graph.cast(root, 12, dtype)
    return side(graph.plan(root))


def test_roundings_of_the_same_numbers_to_the_same_type_are_kept() -> None:
    long = casts(BF16, F32, DType.F16, F32, BF16)
    first, second, third = roundings(long[0])
    assert lost_roundings(long, long) == ()
    assert lost_roundings(long, casts(F32)) == (first, second, third)
    assert lost_roundings(long, casts(BF16)) == (first, second)  # the last one is the result's
    assert lost_roundings(long, casts(DType.F16)) == (first, third)
    assert lost_roundings(long, casts(E4M3)) == (first, second, third)


def test_roundings_of_other_numbers_are_not_kept() -> None:
    def doubled(*, inside: bool) -> Side:
        graph = Graph()
        x = graph.leaf("x", F32)
        twice = graph.pointwise("Add", (12,), x, x)
        back = graph.cast(graph.cast(twice if inside else x, 12, BF16), 12, F32)
        root = back if inside else graph.pointwise("Add", (12,), back, back)
        return side(graph.plan(root))

    assert len(lost_roundings(doubled(inside=True), doubled(inside=False))) == 1
    fewer = Graph()
    half = side(fewer.plan(fewer.cast(fewer.leaf("x", F32), 6, BF16)))
    assert len(lost_roundings(casts(BF16), half)) == 1
