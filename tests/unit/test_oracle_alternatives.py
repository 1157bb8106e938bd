"""Roundings by name, and the graph without each of them."""

from __future__ import annotations

import numpy as np

from rulecheck.oracle import (
    Accumulator,
    InputKind,
    alternatives,
    draw_inputs,
    evaluate,
    roundings,
)
from rulecheck.oracle.alternatives import MAX_COMBINED, name_narrowings, name_rounding
from rulecheck.records import DType, Plan
from tests.luminal_terms import Graph

BF16, F32 = DType.BF16, DType.F32
ACCUMULATORS = (Accumulator(), Accumulator().as_f32())


def chain(*casts: DType) -> Plan:
    """a * b, converted to and fro."""
    graph = Graph()
    root = graph.pointwise("Mul", (12,), graph.leaf("a", F32), graph.leaf("b", F32))
    for target in casts:
        root = graph.cast(root, 12, target)
    return graph.plan(root)


def names(plan: Plan) -> list[str]:
    return [name_rounding(plan, index) for index in range(len(plan.steps))]


def test_roundings_are_named_by_their_op() -> None:
    graph = Graph()
    product = graph.gemm(graph.leaf("A"), graph.leaf("B"))
    total = graph.pointwise("Add", (35,), product, graph.leaf("R"))
    kind = graph.add(
        "Sum",
        graph.shape(5),
        graph.number(7),
        graph.strides(7),
        graph.stride(1),
        graph.strides(1),
    )
    root = graph.cast(graph.op(kind, total), 5, DType.F16)
    assert names(graph.plan(root)) == [
        "the rounding to Bf16 after the matmul",
        "the rounding to Bf16 after Add",
        "the rounding to Bf16 after Sum",
        "the Cast to F16",
    ]
    constant = graph.op(graph.add("Constant", graph.literal("f64", 1 / 3)))
    assert names(graph.plan(constant)) == ["the rounding to F32 of a constant"]


def skipped(plan: Plan) -> list[tuple[str, ...]]:
    data = draw_inputs(plan, InputKind.REALS, 0)
    return [found.names for found in alternatives(plan, data, ACCUMULATORS)]


def test_few_roundings_are_left_out_in_every_combination() -> None:
    first, second = "the Cast to Bf16", "the Cast to F16"
    plan = chain(BF16, F32, DType.F16, F32)
    assert skipped(plan) == [(first,), (second,), (first, second)]
    assert skipped(chain(F32)) == []


def test_many_roundings_are_left_out_one_by_one_and_from_both_ends() -> None:
    count = MAX_COMBINED + 1
    long = chain(*(BF16, F32) * count)
    pairs = [size for size in range(2, count) for _ in range(2)]
    assert [len(found) for found in skipped(long)] == [1] * count + pairs + [count]


def test_of_many_roundings_those_that_a_member_lost_are_left_out_first() -> None:
    long = chain(*(BF16, F32) * (MAX_COMBINED + 1))
    data = draw_inputs(long, InputKind.REALS, 0)
    steps = roundings(long)
    lost = (*steps[:2], steps[4])
    sizes = [len(a.names) for a in alternatives(long, data, ACCUMULATORS, lambda: lost)]
    assert sizes[:2] == [3, 1]
    known = [len(a.names) for a in alternatives(long, data, ACCUMULATORS, lambda: steps[:-1])]
    assert (known[0], known.count(len(steps) - 1)) == (len(steps) - 1, 2)  # and none twice


def test_an_alternative_is_the_graph_evaluated_without_those_roundings() -> None:
    plan = chain(BF16, F32, DType.F16, F32)
    data = draw_inputs(plan, InputKind.REALS, 1)
    steps = roundings(plan)
    found = {each.names: each for each in alternatives(plan, data, ACCUMULATORS)}
    for step in steps:
        wanted = evaluate(plan, data, Accumulator(), skip=frozenset({step}))[plan.result]
        assert np.array_equal(found[(name_rounding(plan, step),)].result.mid, wanted.mid)


def test_an_alternative_has_a_range_for_each_accumulator() -> None:
    graph = Graph()
    types = {f"{operand}_dtype": F32 for operand in "abcd"}
    product = graph.gemm(
        graph.leaf("A", F32), graph.leaf("B", F32), **types, compute_type="32F_FAST_TF32"
    )
    plan = graph.plan(graph.cast(product, 35, BF16))
    data = draw_inputs(plan, InputKind.REALS, 1)
    (found,) = alternatives(plan, data, ACCUMULATORS)
    assert (found.common.radius < found.result.radius / 50).all()
    (alike,) = alternatives(plan, data, (Accumulator(), Accumulator()))
    assert alike.common is alike.result


def test_a_narrow_multiplier_is_a_narrowing() -> None:
    graph = Graph()
    types = {f"{operand}_dtype": F32 for operand in "abcd"}
    leaves = (graph.leaf("A", F32), graph.leaf("B", F32))

    def narrowings(compute: str) -> tuple[str, ...]:
        return name_narrowings(graph.plan(graph.gemm(*leaves, **types, compute_type=compute)))

    assert narrowings("32F") == ()
    assert narrowings("32F_FAST_TF32") == ("the 32F_FAST_TF32 multiplier",)
    assert name_narrowings(chain(BF16, F32)) == ("the Cast to Bf16",)


def test_an_fp8_accumulator_is_a_narrowing() -> None:
    graph = Graph()
    fp8 = DType.E4M3
    types = {"a_dtype": fp8, "b_dtype": fp8, "c_dtype": F32, "d_dtype": F32}
    plan = graph.plan(graph.gemm(graph.leaf("A", fp8), graph.leaf("B", fp8), **types))
    assert name_narrowings(plan) == ("the fp8 accumulator",)
