"""The numerics child: what it says of two plans, and that a death or a hang costs one case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from rulecheck.campaign import workshop
from rulecheck.campaign.workshop import Workshop
from rulecheck.children import numerics
from rulecheck.records import (
    Comparable,
    DType,
    Failure,
    FailureKind,
    Judged,
    JudgeReply,
    JudgeRequest,
    Plan,
    Settings,
    Stage,
    Verdict,
)
from tests import dying_numerics
from tests.luminal_terms import Graph, Value

ROOT = str(Path(__file__).parents[2])
BF16, F32 = DType.BF16, DType.F32


def add(first: str = "a", second: str = "b", op: str = "Add", dtype: DType = F32) -> Plan:
    graph = Graph()
    return graph.plan(
        graph.pointwise(op, (12,), graph.leaf(first, dtype), graph.leaf(second, dtype))
    )


def chain(*casts: DType, dtype: DType = F32) -> Plan:
    """a * b, converted to and fro."""
    graph = Graph()
    root = graph.pointwise("Mul", (12,), graph.leaf("a", dtype), graph.leaf("b", dtype))
    for target in casts:
        root = graph.cast(root, 12, target)
    return graph.plan(root)


def ask(*items: Comparable, elements: int = 0, seed: int = 0, backend: str = "cpu") -> JudgeReply:
    reply = numerics.handle(JudgeRequest(backend, seed, items, elements))
    assert isinstance(reply, JudgeReply)
    return reply


def judge(original: Plan, member: Plan, *, elements: int = 0, seed: int = 0) -> Judged:
    (answer,) = ask(Comparable(original, member), elements=elements, seed=seed).answers
    assert isinstance(answer, Judged)
    return answer


def test_equal_plans_agree_on_every_kind_of_inputs() -> None:
    evidence = judge(add(), add()).evidence
    assert evidence.verdict is Verdict.AGREES
    assert evidence.compared == 3 * 12  # integers, reals, and all exponents
    assert evidence.differing == 0
    assert evidence.detectable is not None
    assert 0 < evidence.detectable < 1e-5


def test_wrong_numbers_are_a_mismatch_and_the_exact_inputs_show_it() -> None:
    evidence = judge(add(), add(op="Mul")).evidence
    assert (evidence.verdict, evidence.stage) == (Verdict.MISMATCH, Stage.EXACT)
    assert evidence.error_over_bound == math.inf


@pytest.mark.parametrize(
    ("original", "member", "verdict", "roundings"),
    [
        ((BF16, F32), (F32,), Verdict.ROUNDING_ELIDED, ("the Cast to Bf16",)),
        ((F32,), (BF16, F32), Verdict.ROUNDING_ADDED, ("the Cast to Bf16",)),
        ((DType.F16, BF16, F32), (BF16, F32), Verdict.ROUNDING_ELIDED, ("the Cast to F16",)),
        ((F32,), (), Verdict.AGREES, ()),
        ((DType.F64, F32), (F32,), Verdict.AGREES, ()),
    ],
)
def test_roundings_that_moved_are_named(
    original: tuple[DType, ...],
    member: tuple[DType, ...],
    verdict: Verdict,
    roundings: tuple[str, ...],
) -> None:
    evidence = judge(chain(*original), chain(*member)).evidence
    assert (evidence.verdict, evidence.roundings) == (verdict, roundings)


def fp8_sum(*, rounded: bool) -> Plan:
    """An fp8 product plus an F32 vector, which may be rounded to Bf16 and back."""
    graph = Graph()
    fp8 = DType.E4M3
    types = {"a_dtype": fp8, "b_dtype": fp8, "c_dtype": F32, "d_dtype": F32}
    product = graph.gemm(graph.leaf("a", fp8), graph.leaf("b", fp8), **types)
    vector = graph.leaf("r", F32)
    if rounded:
        vector = graph.cast(graph.cast(vector, 35, BF16), 35, F32)
    big = graph.pointwise("Mul", (35,), vector, graph.leaf("s", F32))
    return graph.plan(graph.pointwise("Add", (35,), product, big))


def test_a_narrow_product_that_the_graph_has_as_well_is_not_blamed() -> None:
    found = judge(fp8_sum(rounded=False), fp8_sum(rounded=True)).evidence
    assert found.verdict is Verdict.ROUNDING_ADDED
    assert found.roundings == ("the Cast to Bf16",)


def tf32_gelu(*, epilogue: bool, rounded: bool = False) -> Plan:
    """x / (1 + 2^(x (c x^2 + d))) of a TF32 product far in the negative tail, or the epilogue."""
    graph = Graph()
    fields: dict[str, Value] = {f"{operand}_dtype": F32 for operand in "abcd"}
    fields |= {"n": 1, "compute_type": "32F_FAST_TF32", "alpha": -6.0}
    a, b = graph.leaf("a", F32), graph.leaf("b", F32)
    if rounded:
        a = graph.cast(graph.cast(a, 55, DType.E5M2), 55, F32)
    x = graph.gemm(a, b, **fields, epilogue="GELU" if epilogue else "DEFAULT")
    if epilogue:
        return graph.plan(x)

    def constant(op: str, value: int, number: float) -> int:
        kind = graph.add(op, graph.shape(5), graph.strides(1), graph.strides(0), graph.strides(1))
        return graph.op(kind, value, graph.op(graph.add("Constant", graph.literal("f64", number))))

    slope = constant("Mul", graph.pointwise("Mul", (5,), x, x), -0.1029432395800235)
    slope = constant("Add", slope, -2.302208198144325)
    power = graph.pointwise("Exp2", (5,), graph.pointwise("Mul", (5,), x, slope))
    sigmoid = graph.pointwise("Recip", (5,), constant("Add", power, 1.0))
    return graph.plan(graph.pointwise("Mul", (5,), x, sigmoid))


def test_gelu_of_a_narrow_product_agrees_with_its_epilogue_even_in_the_tail() -> None:
    for seed in range(8):
        found = judge(tf32_gelu(epilogue=False), tf32_gelu(epilogue=True), seed=seed).evidence
        assert found.verdict is Verdict.AGREES, seed
    added = [
        judge(tf32_gelu(epilogue=False), tf32_gelu(epilogue=True, rounded=True), seed=seed)
        for seed in range(8)
    ]
    assert Verdict.ROUNDING_ADDED in {found.evidence.verdict for found in added}


def test_the_member_reads_the_same_bytes_and_its_own_for_what_only_it_reads() -> None:
    assert judge(add("a", "b"), add("b", "a")).evidence.verdict is Verdict.AGREES
    assert judge(add("a", "b"), add("a", "c")).evidence.verdict is Verdict.MISMATCH


def test_the_worst_elements_come_first_with_the_operands() -> None:
    found = judge(add(), add(op="Mul"), elements=5)
    away = [abs(item.got - item.as_written) for item in found.elements]
    assert len(away) == 5
    assert away == sorted(away, reverse=True)
    assert len({item.offset for item in found.elements}) == 5
    for item in found.elements:
        assert item.low <= item.as_written <= item.high
        assert item.float64 == item.as_written
    assert [name for name, _ in found.operands] == ["a", "b"]
    assert all(text.startswith("F32[12] = ") for _, text in found.operands)
    assert found.operands[0][1].endswith(", …")
    plain = judge(add(), add(op="Mul"))
    assert (plain.elements, plain.operands) == ((), ())


def test_other_seeds_are_other_numbers() -> None:
    first, second = (judge(add(), add(op="Mul"), elements=1, seed=seed) for seed in (0, 1))
    assert first.operands != second.operands
    assert judge(add(), add(op="Mul"), elements=1, seed=0) == first


def test_a_broken_call_is_only_shown() -> None:
    graph = Graph()
    original = graph.plan(graph.gemm(graph.leaf("A"), graph.leaf("B"), beta=0.0))
    reading = graph.gemm(
        graph.leaf("A"), graph.leaf("B"), graph.leaf("C"), beta=1.0, c_dtype=F32, d_dtype=F32
    )
    member = graph.plan(graph.cast(reading, 35, BF16), {"A#0": 55, "B#0": 77, "C#0": 10})
    (answer,) = ask(Comparable(original, member, broken=True), elements=3).answers
    assert isinstance(answer, Judged)
    assert answer.evidence.verdict is Verdict.MISREAD
    assert math.isnan(answer.elements[0].got)  # past its end C is poison
    assert "of 35 elements are wrong" in answer.evidence.message


def test_a_broken_call_may_give_the_right_numbers() -> None:
    (answer,) = ask(Comparable(add(), add(), broken=True)).answers
    assert isinstance(answer, Judged)
    assert answer.evidence.verdict is Verdict.AGREES
    assert answer.evidence.compared == 3 * 12


def test_a_broken_call_of_another_size_is_not_compared() -> None:
    graph = Graph()
    short = graph.plan(graph.pointwise("Sqrt", (3,), graph.leaf("a", F32)), {"a#0": 4})
    long = graph.plan(graph.pointwise("Sqrt", (4,), graph.leaf("a", F32)))
    (answer,) = ask(Comparable(short, long, broken=True), elements=2).answers
    assert isinstance(answer, Judged)
    assert answer.evidence.message == "the member writes 4 elements, the graph 3"
    assert (answer.evidence.compared, answer.elements) == (0, ())


# ---- a backend that misbehaves ---------------------------------------------------------------


def item(label: str) -> Comparable:
    return Comparable(add(label), add(label))


def test_a_refusal_and_a_failure_are_answers() -> None:
    assert dying_numerics.Dying.name == "dying"
    good, refused, given_up, last = ask(
        item("a"), item("refuse"), item("give up"), item("b"), backend="dying"
    ).answers
    assert isinstance(good, Judged)
    assert refused == Failure(FailureKind.UNSUPPORTED, "no such kernel here")
    assert given_up == Failure(FailureKind.TIMEOUT, "stopped before step 0")
    assert isinstance(last, Judged)


def test_memory_that_runs_out_is_a_failure_of_the_batch() -> None:
    reply = numerics.handle(JudgeRequest("dying", 0, (item("a"), item("memory"))))
    assert reply == Failure(FailureKind.MEMORY, "out of memory in numerics: 300 GiB")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    monkeypatch.setenv("PYTHONPATH", ROOT)
    monkeypatch.setattr(workshop, "NUMERICS", "tests.dying_numerics")
    monkeypatch.setattr(workshop, "JUDGE_TIMEOUT_S", 2.0)
    with Workshop(Settings(paths=(), backend="dying")) as running:
        yield running


def kinds(answers: list[Judged | Failure]) -> list[FailureKind | Verdict]:
    return [
        answer.kind if isinstance(answer, Failure) else answer.evidence.verdict
        for answer in answers
    ]


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("die", FailureKind.CRASH),
        ("hang", FailureKind.TIMEOUT),
        ("memory", FailureKind.MEMORY),
    ],
)
def test_a_death_a_hang_or_a_lack_of_memory_costs_one_case(
    shop: Workshop, label: str, kind: FailureKind
) -> None:
    answers = shop.judge([item("a"), item(label), item("b")])
    assert kinds(answers) == [Verdict.AGREES, kind, Verdict.AGREES]


def test_after_some_losses_the_rest_is_not_tried(shop: Workshop) -> None:
    labels = ["die"] * (workshop.MAX_LOST + 2) + ["a"] * workshop.CHUNK
    answers = shop.judge([item(label) for label in labels])
    assert len(answers) == len(labels)
    assert kinds(answers)[: workshop.MAX_LOST] == [FailureKind.CRASH] * workshop.MAX_LOST
    assert all(isinstance(answer, Failure) for answer in answers[workshop.MAX_LOST :])


def test_a_stopped_workshop_judges_nothing(shop: Workshop) -> None:
    shop.stop()
    assert kinds(shop.judge([item("a")])) == [FailureKind.CRASH]
