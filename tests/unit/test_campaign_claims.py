"""One union as a claim: which side was there, what the head says of types, what is no graph."""

from __future__ import annotations

import pytest

from rulecheck.campaign.claims import Claim, directions, examine, failed
from rulecheck.campaign.facts import find_stamps
from rulecheck.explain import ENTRIES
from rulecheck.instantiate import Instance
from rulecheck.records import DType, Failure, FailureKind, Member, Stage, Verdict
from tests.luminal_rules import dialect, first_rule
from tests.luminal_terms import VOCABULARY, Graph

HERE = Instance((), (), ())
BF16, F32 = DType.BF16, DType.F32


def claim(graph: Graph, original: int, member: int, *stamps: tuple[int, int]) -> Claim:
    """An examined claim."""
    made = Claim(HERE, 0, 0, tuple(graph.nodes), original, member)
    examine(made, VOCABULARY, {}, stamps)
    return made


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 7, ((1, 7),)),
        (7, 1, ((1, 7),)),
        (1, 2, ((1, 2), (2, 1))),
        (7, 8, ((7, 8),)),
    ],
)
def test_what_was_there_before_is_the_reference(
    left: int, right: int, expected: tuple[tuple[int, int], ...]
) -> None:
    assert directions(Member(0, left, right), 5) == expected


def test_a_member_inside_its_graph_is_noticed() -> None:
    graph = Graph()
    leaf = graph.leaf("x", F32)
    outer = graph.pointwise("Add", (4,), graph.pointwise("Sqrt", (4,), leaf), leaf)
    assert claim(graph, outer, leaf).inside
    assert not claim(graph, leaf, outer).inside
    assert claim(graph, outer, outer).inside
    original, member = claim(graph, outer, leaf).show()
    assert original.startswith("(Op (Add")
    assert member == '(Input 0 "x" (F32))'


def test_a_claim_that_keeps_the_contract_has_plans_and_no_evidence_yet() -> None:
    graph = Graph()
    first = graph.pointwise("Sqrt", (4,), graph.leaf("x", F32))
    second = graph.pointwise("Sin", (4,), graph.leaf("x", F32))
    made = claim(graph, first, second)
    assert made.evidence is None
    assert made.plans is not None
    assert not made.plans.broken


@pytest.mark.parametrize(
    ("size", "dtype", "code", "field"),
    [(4, BF16, "RC201", "d_dtype"), (3, F32, "RC202", "m")],
)
def test_a_result_of_another_type_or_size_is_a_misread(
    size: int, dtype: DType, code: str, field: str
) -> None:
    graph = Graph()
    original = graph.pointwise("Sqrt", (4,), graph.leaf("x", F32))
    member = graph.pointwise("Sqrt", (size,), graph.leaf("y", dtype))
    made = claim(graph, original, member)
    assert made.evidence is not None
    assert (made.evidence.verdict, made.evidence.code) == (Verdict.MISREAD, code)
    assert made.evidence.violations[0].field == field
    assert made.plans is not None
    assert made.plans.broken


def test_a_cast_of_another_size_is_shown_at_its_size() -> None:
    graph = Graph()
    leaf = graph.leaf("x", BF16)
    made = claim(graph, graph.cast(leaf, 4, F32), graph.cast(leaf, 3, F32))
    assert made.evidence is not None
    assert made.evidence.violations[0].field == "size"


def test_tf32_is_f32_in_memory() -> None:
    graph = Graph()
    leaf = graph.leaf("x", BF16)
    assert claim(graph, graph.cast(leaf, 4, F32), graph.cast(leaf, 4, DType.TF32)).evidence is None


def test_sizes_and_strides_are_compared_as_numbers() -> None:
    graph = Graph()
    made = claim(graph, graph.number(3), graph.number(4))
    assert made.evidence is not None
    assert (made.evidence.verdict, made.evidence.code) == (Verdict.MISMATCH, "RC301")
    sum_ = graph.add("MAdd", graph.number(1), graph.number(2))
    made = claim(graph, graph.number(3), sum_)
    assert made.evidence is not None
    assert (made.evidence.verdict, made.evidence.compared) == (Verdict.AGREES, 6)


def test_terms_that_are_no_graphs_and_no_numbers_are_not_judged() -> None:
    graph = Graph()
    made = claim(graph, graph.add("F32"), graph.add("Bf16"))
    assert made.evidence is not None
    assert (made.evidence.verdict, made.evidence.code) == (Verdict.UNSUPPORTED, "RC412")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_side_without_a_plan_says_why(swapped: bool) -> None:
    graph = Graph()
    good = graph.pointwise("Sqrt", (4,), graph.leaf("x", F32))
    bad = graph.op(graph.add("Softmax"), graph.leaf("x", F32))
    made = claim(graph, *((bad, good) if swapped else (good, bad)))
    assert made.evidence is not None
    assert (made.evidence.verdict, made.evidence.code) == (Verdict.UNSUPPORTED, "RC411")
    assert "Softmax" in made.evidence.message
    assert made.plans is None


def test_a_reference_that_breaks_the_contract_is_no_reference() -> None:
    graph = Graph()
    leaves = (graph.leaf("A", BF16), graph.leaf("B", BF16))
    bad = graph.gemm(*leaves, c_dtype=F32)
    made = claim(graph, bad, graph.gemm(*leaves))
    assert made.evidence is not None
    assert made.evidence.verdict is Verdict.UNSUPPORTED
    assert "no legal graph" in made.evidence.message


def test_a_false_type_is_a_misread_and_a_true_one_is_not() -> None:
    graph = Graph()
    first = graph.pointwise("Sqrt", (4,), graph.leaf("x", F32))
    second = graph.pointwise("Sin", (4,), graph.leaf("x", F32))
    f16, f32, unknown = graph.add("F16"), graph.add("F32"), graph.add("F4E2M1")
    symbolic = graph.op(graph.add("Softmax"), first)
    assert claim(graph, first, second, (second, f32), (first, f32)).evidence is None
    assert claim(graph, first, second, (second, unknown), (symbolic, f16)).evidence is None
    lie = claim(graph, first, second, (first, f16)).evidence
    assert lie is not None
    assert (lie.verdict, lie.code) == (Verdict.MISREAD, "RC304")
    assert lie.message == "the rule says that the buffer is F16; it holds F32"


def stamps(head: str) -> list[tuple[str, str]]:
    """Which terms a head stamps with which types, for x = an input and t = Bf16."""
    rule = first_rule(
        f"""(rule ((= ?x (Op (Cast ?n ?t) (ICons ?y (INil)))))
        ({head}) :ruleset matmul_backend :name "r")"""
    )
    graph = Graph()
    leaf = graph.leaf("y", F32)
    bindings = {
        "?x": graph.cast(leaf, 4, BF16),
        "?y": leaf,
        "?n": graph.number(4),
        "?t": graph.add("Bf16"),
    }
    declared = {item.name: item for item in dialect().declarations}
    found = find_stamps(rule, bindings, graph, "dtype", declared)
    return [(graph.show(term), graph.show(kind)) for term, kind in found]


def test_types_that_the_head_sets_are_found_on_old_and_new_terms() -> None:
    old = '(Op (Cast (MNum 4) (Bf16)) (ICons (Input 0 "y" (F32)) (INil)))'
    new = '(Op (Cast (MNum 8) (F32)) (ICons (Input 0 "y" (F32)) (INil)))'
    assert stamps("(set (dtype ?x) (F32))") == [(old, "(F32)")]
    assert stamps("(set (dtype ?x) ?t)") == [(old, "(Bf16)")]
    spelled = "(Op (Cast (MNum 8) (F32)) (ICons ?y (INil)))"
    assert stamps(f"(let ?z {spelled}) (set (dtype ?z) (F16))") == [(new, "(F16)")]
    assert stamps(f"(set (dtype {spelled}) (F16)) (union ?x ?x)") == [(new, "(F16)")]


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_has_a_verdict_that_is_no_pass(kind: FailureKind) -> None:
    evidence = failed(Failure(kind, "why"), Stage.PLAN)
    assert evidence.verdict not in (Verdict.AGREES, Verdict.ROUNDING_ELIDED, Verdict.MISMATCH)
    assert (evidence.message, evidence.stage) == ("why", Stage.PLAN)
    assert evidence.code in ENTRIES
    assert evidence.hint
