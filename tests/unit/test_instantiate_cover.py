"""What is tried: every label, every pair that can occur, and each of it again from its choices."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rulecheck import plan
from rulecheck.instantiate import Instance, Instances
from rulecheck.records import DType, GemmStep, MatrixLayout, Plan
from tests.luminal_rules import Maker
from tests.luminal_terms import GEMM_FIELDS, VOCABULARY
from tests.rule_texts import RULES, old_call

ROOT = Path(__file__).parents[2]
Pair = frozenset[tuple[str, str]]
FREE = f"""(rule ((= ?x {old_call({}, "?inputs")}))
  ((union ?x {old_call({"alpha": "2.0"}, "?inputs")})) :ruleset matmul_backend :name "free")"""
CAST = """(rule ((= ?x (Op (Cast ?size ?dt) (ICons ?y (INil)))) (!= ?dt (F16)))
  ((union ?x ?y)) :ruleset matmul_backend :name "cast")"""
SCALED = """(rule ((= ?c (Op (Constant ?v) (INil))) (> ?v 0.4) (< ?v 2.5)
    (= ?x (Op (Mul ?s ?a ?b ?o) (ICons (Op (Cast ?n ?dt) (ICons ?y (INil))) (ICons ?c (INil))))))
  ((union ?x ?y)) :ruleset matmul_backend :name "scaled")"""
REDUCE = """(rule ((= ?x (Op (Sum ?s ?n ?st ?it ?o) (ICons ?y (INil)))))
  ((union ?x ?y)) :ruleset matmul_backend :name "reduce")"""
FLATTEN = """(rule (
    (= ?p (Op (Mul ?s1 ?a ?b ?o1) (ICons ?x (ICons ?y (INil)))))
    (= ?q (Op (Sum ?s2 ?k ?st ?it ?o2) (ICons ?p (INil)))))
  ((union ?q ?p)) :ruleset matmul_backend :name "flatten")"""
CHAIN = """(rule (
    (= ?p (Op (LessThan ?s ?a ?b ?o) (ICons ?x (ICons ?y (INil)))))
    (= ?q (Op (Cast ?n (F32)) (ICons ?p (INil))))
    (= ?r (Op (Exp2 ?s2 ?c ?d) (ICons ?q (INil)))))
  ((union ?r ?q)) :ruleset matmul_backend :name "chain")"""
PIECES = {"reduce": REDUCE, "flatten": FLATTEN, "chain": CHAIN}
TEXTS = {**RULES, **PIECES, "free": FREE, "cast": CAST, "scaled": SCALED}


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[Maker, Instances]]:
    makers = {name: Maker(text) for name, text in TEXTS.items()}
    return {name: (maker, maker.make()) for name, maker in makers.items()}


def labels(found: Instances, axis: str) -> set[str]:
    return {label for name, label in all_labels(found) if name == axis}


def all_labels(found: Instances) -> set[tuple[str, str]]:
    return {choice for instance in found.instances for choice in instance.choices}


def pairs(instance: Instance) -> set[Pair]:
    return {frozenset(pair) for pair in itertools.combinations(instance.choices, 2)}


def plans(maker: Maker, instance: Instance) -> list[Plan]:
    names = VOCABULARY.encoding
    nodes = maker.table.nodes
    graphs = [root for root in instance.roots if nodes[root].fn in (names.op, names.leaf)]
    built = [plan.build(nodes, root, VOCABULARY) for root in graphs]
    return [item for item in built if isinstance(item, Plan)]


def steps(maker: Maker, found: Instances) -> list[GemmStep]:
    """The library call of every instance."""
    return [
        step
        for instance in found.instances
        for built in plans(maker, instance)
        for step in built.steps
        if isinstance(step, GemmStep)
    ]


# ---- every instance --------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_instances_are_distinct_and_well_formed(
    made: dict[str, tuple[Maker, Instances]], name: str
) -> None:
    maker, found = made[name]
    assert found.reason is None
    assert len(found.instances) > 10
    for instance in found.instances:
        assert maker.flaw(instance.roots) is None
        assert len(dict(instance.choices)) == len(instance.choices)
        assert set(instance.deviations) <= set(instance.choices)
        assert plans(maker, instance)
    assert len({instance.choices for instance in found.instances}) == len(found.instances)
    shown = [maker.show(instance.roots) for instance in found.instances]
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("name", TEXTS)
def test_the_first_instance_is_the_default_one(
    made: dict[str, tuple[Maker, Instances]], name: str
) -> None:
    _, found = made[name]
    counts = [len(instance.deviations) for instance in found.instances]
    assert counts[0] == min(counts)


@pytest.mark.parametrize("name", TEXTS)
def test_leaves_of_two_instances_never_have_one_label(
    made: dict[str, tuple[Maker, Instances]], name: str
) -> None:
    maker, found = made[name]
    seen: set[str] = set()
    for instance in found.instances:
        own = {leaf.label for built in plans(maker, instance) for leaf in built.inputs}
        assert own
        assert not own & seen
        seen |= own


@pytest.mark.parametrize("name", TEXTS)
def test_every_instance_is_made_again_from_its_choices(
    made: dict[str, tuple[Maker, Instances]], name: str
) -> None:
    maker, found = made[name]
    for number, instance in enumerate(found.instances):
        again = Maker(TEXTS[name])
        (single,) = again.make(dict(instance.deviations), only=True).instances
        assert single.choices == instance.choices, number
        assert single.deviations == instance.deviations
        shown = maker.show(instance.roots)
        tag = next(text for text in shown.split('"') if text.startswith("i")).partition(".")[0]
        assert again.show(single.roots) == shown.replace(f'"{tag}.', '"i0.')


# ---- coverage --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_all_pairs_that_were_found_possible_are_covered(
    made: dict[str, tuple[Maker, Instances]], name: str
) -> None:
    _, found = made[name]
    occurring = {(axis, label) for axis, listed in found.coverage.axes for label in listed}
    assert occurring == all_labels(found)
    covered = set().union(*(pairs(instance) for instance in found.instances))
    assert found.coverage.pairs
    assert found.coverage.pairs <= covered


@pytest.mark.parametrize("name", ["cast", "scaled"])
def test_no_possible_pair_is_missing_by_brute_force(
    made: dict[str, tuple[Maker, Instances]], name: str
) -> None:
    """Every combination of all labels, one by one; layouts of elementwise ops are no pairs."""
    _, found = made[name]
    axes = {
        axis: listed
        for axis, listed in found.coverage.axes
        if "strides" not in axis and not axis.endswith(".shape")
    }
    covered = set().union(*(pairs(instance) for instance in found.instances))
    maker, possible = Maker(TEXTS[name]), set[Pair]()
    for combination in itertools.product(*axes.values()):
        wanted = dict(zip(axes, combination, strict=True))
        for instance in maker.make(wanted, only=True).instances:
            choices = [choice for choice in instance.choices if choice[0] in axes]
            possible |= {frozenset(pair) for pair in itertools.combinations(choices, 2)}
    assert len(possible) > 20
    assert possible <= covered


def test_no_possible_pair_of_a_free_call_is_missing(
    made: dict[str, tuple[Maker, Instances]],
) -> None:
    """Each missing pair is asked for in many contexts; none may come out."""
    _, found = made["free"]
    axes = dict(found.coverage.axes)
    covered = set().union(*(pairs(instance) for instance in found.instances))
    paired = set().union(*found.coverage.pairs)  # what is rare is tried once, and not in pairs
    every = [
        (axis, label)
        for axis, listed in axes.items()
        for label in listed
        if (axis, label) in paired
    ]
    missing = [
        pair
        for pair in itertools.combinations(every, 2)
        if pair[0][0] != pair[1][0]
        if frozenset(pair) not in covered
    ]
    maker = Maker(FREE)
    contexts = [dict(instance.deviations) for instance in found.instances[::12]]
    for first, second in missing[::3]:
        for context in contexts:
            wanted = context | dict([first, second])
            for instance in maker.make(wanted, only=True).instances:
                assert not {first, second} <= set(instance.choices), (first, second)


def test_a_free_call_meets_everything_that_was_promised(
    made: dict[str, tuple[Maker, Instances]],
) -> None:
    _, found = made["free"]
    assert labels(found, "cublaslt.alpha") == {"1", "1/64", "-1", "0", "1/3", "2"}
    assert labels(found, "cublaslt.beta") == {"0", "1", "1/2", "-1", "2", "1/3"}
    epilogues = {"DEFAULT", "BIAS", "RELU", "RELU_BIAS", "GELU", "GELU_BIAS"}
    assert labels(found, "cublaslt.epilogue") == epilogues
    assert labels(found, "cublaslt.batch_count") == {"1", "3"}
    assert {"NN", "NT", "TN", "TT"} <= labels(found, "cublaslt.transpose of A, B")
    assert labels(found, "cublaslt.order of C, D") == {"COL", "ROW"}
    assert len(labels(found, "cublaslt.order of A, B")) == 4
    for operand in "ab":
        assert labels(found, f"cublaslt.ld{operand}") == {"minimal", "padded"}
    assert labels(found, "cublaslt.ldc") == {"minimal", "padded", "padded by 16 bytes", "1"}


def test_the_calls_are_what_their_labels_say(made: dict[str, tuple[Maker, Instances]]) -> None:
    calls = [step.call for step in steps(*made["free"])]
    assert len(calls) == len(made["free"][1].instances)
    assert {call.alpha for call in calls} == {1.0, 1 / 64, -1.0, 0.0, 1 / 3, 2.0}
    assert {call.beta for call in calls} == {0.0, 1.0, 0.5, -1.0, 2.0, 1 / 3}
    assert {(call.transa, call.transb) for call in calls} >= {
        (first, second) for first in "NT" for second in "NT"
    }
    assert {call.d.batch_count for call in calls} == {1, 3}
    assert any(call.m == call.n == call.k for call in calls)
    assert any(len({call.m, call.n, call.k}) == 3 and 1 not in (call.m, call.n) for call in calls)
    for operand in "abc":
        matrices: list[MatrixLayout] = [getattr(call, operand) for call in calls]
        assert {"COL", "ROW"} == {matrix.order for matrix in matrices}
        assert any(matrix.ld == matrix.min_ld for matrix in matrices)
        assert any(matrix.ld > matrix.min_ld for matrix in matrices)
    types = {call.d.dtype for call in calls}
    assert {DType.F32, DType.BF16, DType.F16, DType.F64} <= types
    assert any(call.a.dtype.is_fp8 for call in calls)
    assert any(call.a.dtype is not call.d.dtype for call in calls)
    strides = {(call.a.batch_stride, call.d.batch_stride > 0) for call in calls}
    assert (0, True) in strides  # one A for the whole batch


def test_guards_of_the_rule_supply_values(made: dict[str, tuple[Maker, Instances]]) -> None:
    found = made["scaled"][1]
    values = labels(found, "Constant.value")
    assert values
    assert all(0.4 < eval(value) < 2.5 for value in values)  # labels such as 29/20
    assert "F16" not in labels(made["cast"][1], "Cast.dtype")


# ---- determinism -----------------------------------------------------------------------------

PRINT = """
import sys
from tests.luminal_rules import Maker
from tests.unit.test_instantiate_cover import TEXTS
for name in ("widen", "layout", "scaled"):
    maker = Maker(TEXTS[name])
    for instance in maker.make().instances:
        print(instance.choices, maker.show(instance.roots))
"""


def printed(seed: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", PRINT],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def test_instances_do_not_depend_on_the_hash_seed() -> None:
    first = printed("1")
    assert len(first.splitlines()) > 50
    assert printed("2") == first


# ---- what has no instance --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "(= ?x (Op (Cast ?n ?t) ?i)) (= ?t (F32)) (= ?t (Bf16))",
            "the left side contradicts itself: (F32 …) = (Bf16 …)",
        ),
        ("(= ?x (Op ?kind ?i))", "the left side names no op"),
        ("(= ?x (Op (Constant ?v) ?i)) (!= ?v ?v)", "the guard (!= ?v ?v)"),
        (
            "(= ?x (Op (Cast ?n ?t) (ICons ?x (INil))))",
            "the left side is cyclic",
        ),
        (
            "(= ?x (Op (Cast ?n ?t) (ICons ?y (ICons ?z (INil)))))",
            "Cast reads 1 inputs here, the left side lists 2",
        ),
        (
            (
                "(= ?x (Op (Add ?s ?a ?b ?o) (ICons ?y (ICons ?z (INil)))))"
                " (= (F32) (dtype ?y)) (= (Bf16) (dtype ?z))"
            ),
            "an input of Add would be Bf16 and F32",
        ),
    ],
)
def test_the_reason_names_what_is_in_the_way(body: str, reason: str) -> None:
    text = f'(rule ({body}) ((MNum 7)) :ruleset matmul_backend :name "r")'
    found = Maker(text).make()
    assert found.instances == ()
    assert found.reason is not None
    assert reason in found.reason
    assert found.coverage.pairs == frozenset()


def test_an_op_without_a_role_is_named() -> None:
    text = """(datatype Extra (E))
    (constructor Silu (EList) OpKind)
    (rule ((= ?x (Op (Silu ?s) ?i))) ((MNum 7)) :ruleset matmul_backend :name "r")"""
    found = Maker(text).make()
    assert found.reason == "the op Silu has no role in this dialect"


def test_preferences_that_do_not_fit_lead_to_the_nearest_instance() -> None:
    maker = Maker(CAST)
    (single,) = maker.make({"Cast.dtype": "F16", "nowhere": "x"}, only=True).instances
    assert dict(single.choices)["Cast.dtype"] != "F16"


def test_the_fields_of_a_call_are_all_bound(made: dict[str, tuple[Maker, Instances]]) -> None:
    maker, found = made["free"]
    for instance in found.instances:
        kinds = [
            maker.table.nodes[maker.table.nodes[root].args[0]]
            for root in instance.roots
            if maker.table.nodes[root].fn == "Op"
        ]
        assert [len(kind.args) for kind in kinds] == [len(GEMM_FIELDS)]
