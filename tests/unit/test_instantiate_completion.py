"""What a left side leaves open, field by field, and what is in the way of an instance."""

from __future__ import annotations

import pytest

from rulecheck import plan
from rulecheck.instantiate import Cause
from rulecheck.records import GemmStep, Plan
from tests.luminal_rules import Maker
from tests.luminal_terms import VOCABULARY
from tests.rule_texts import COLUMN, NO_C, ONE, PLAIN, dtypes, inputs, old_call

FIXED = {**dtypes("F32"), **COLUMN, **ONE, **PLAIN, **NO_C, "b_layout": '"N"', "alpha": "1.0"}
SECOND = {
    **FIXED,
    **{name: f"?{name}2" for name in ("m", "n", "k", "lda", "ldb", "ldc", "ldd")},
}


def maker(body: str) -> Maker:
    return Maker(f'(rule ({body}) ((MNum 7)) :ruleset matmul_backend :name "r")')


def call(**fields: str) -> str:
    return f"(= ?x {old_call(fields, '?i')})"


@pytest.mark.parametrize(
    ("body", "cause", "words"),
    [
        ('(= ?m (MVar "n")) ' + call(), Cause.GAP, "no value for cublaslt.m x n x k"),
        ('(= ?lda (MVar "n")) ' + call(), Cause.GAP, "a size has no number"),
        (call(a_dtype="(I8)"), Cause.GAP, "no value for cublaslt.types"),
        (call(**dtypes("I8")), Cause.GAP, "a_dtype is a type that is not modelled"),
        (call(a_layout='"X"'), Cause.GAP, "no value for cublaslt.transpose of A, B"),
        (
            call(lda="(MNum 2)", m="(MNum 5)", a_layout='"N"', a_order='"COL"'),
            Cause.ILL_TYPED,
            "lda is 2, the stored matrix needs 5",
        ),
        ("(= ?x (Output ?y ?n))", Cause.UNKNOWN_OP, "Output has no meaning"),
        ("(= ?x (Op ?kind ?i))", Cause.UNKNOWN_OP, "names no op"),
        (
            "(= ?x (Op (Cast ?n ?t) (ICons (Op ?kind ?i) (INil))))",
            Cause.GAP,
            "part of the graph stays undetermined",
        ),
        ("(= ?x (Op (Cast ?n (I8)) (ICons ?y (INil))))", Cause.GAP, "I8"),
        (
            "(= ?x (Op (Constant ?v) ?i)) (= ?w (* ?v 2.0)) (> ?w 1e30)",
            Cause.GAP,
            "that was tried",
        ),
        (
            "(= ?x (Op (Constant ?v) ?i)) (= ?one 1.0) (> ?one 2.0)",
            Cause.CONTRADICTION,
            "the guard (> ?one 2.0)",
        ),
        (
            f"(= ?x {old_call(NO_C, inputs('?a', '?b', '?c'))})",
            Cause.GAP,
            "reads 2 inputs here, the left side lists 3",
        ),
    ],
)
def test_what_is_in_the_way_is_named_with_its_cause(body: str, cause: Cause, words: str) -> None:
    found = maker(body).make()
    assert found.instances == ()
    assert found.reason is not None
    assert words in found.reason
    assert found.cause is cause


def built(body: str) -> list[Plan]:
    """The plans of every graph of every instance."""
    made, plans = maker(body), []
    for instance in made.make().instances:
        for root in instance.roots:
            if made.table.nodes[root].fn == VOCABULARY.encoding.op:
                found = plan.build(made.table.nodes, root, VOCABULARY)
                assert isinstance(found, Plan)
                plans.append(found)
    return plans


@pytest.mark.parametrize("position", [0, 1])
def test_the_result_of_a_call_fits_the_call_that_reads_it(position: int) -> None:
    names = ["?v", "?w"]
    names[position] = "?p"
    first = f"(= ?p {old_call(FIXED, inputs('?a', '?b'))})"
    second = f"(= ?x {old_call(SECOND, inputs(*names))})"
    plans = built(f"{first} {second}")
    assert len(plans) > 3
    for found in plans:
        inner, outer = (step for step in found.steps if isinstance(step, GemmStep))
        used = outer.call.a if position == 0 else outer.call.b
        assert (used.rows, used.cols) == (inner.call.m, inner.call.n)
        assert (outer.a if position == 0 else outer.b) == inner.out


def test_an_input_that_the_pattern_spells_out_keeps_its_name_and_type() -> None:
    body = '(= ?y (Input ?n "w" (F32))) (= ?x (Op (Cast ?s ?t) (ICons ?y (INil))))'
    plans = built(body)
    assert len(plans) > 3
    for found in plans:
        (leaf,) = found.inputs
        assert leaf.label.startswith("w#")
        assert found.values[leaf.value].dtype.value == "F32"


def test_a_guard_on_a_type_is_kept() -> None:
    plans = built(f"{call(**FIXED | {'d_dtype': '?t', 'c_dtype': '?t'})} (!= ?t (F32))")
    assert plans == []
    wide = {name: text for name, text in FIXED.items() if not name.endswith("_dtype")}
    plans = built(f"{call(**wide)} (= ?t (dtype ?x)) (!= ?t (F32))")
    assert plans
    assert all(found.values[found.result].dtype.value != "F32" for found in plans)
