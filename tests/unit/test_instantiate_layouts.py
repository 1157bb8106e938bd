"""What is rare is tried too: overlaps, skips, empty axes, parts, other orders; each once."""

from __future__ import annotations

import pytest

from rulecheck.instantiate import Instances
from rulecheck.instantiate.layouts import orders, parts, reach
from rulecheck.instantiate.setting import dense
from tests.luminal_rules import Maker
from tests.rule_texts import COLUMN, NO_C, ONE, PLAIN, dtypes, inputs, old_call

FIXED = {**dtypes("F32"), **COLUMN, **ONE, **PLAIN, **NO_C, "b_layout": '"N"', "alpha": "1.0"}
CALL = f"(= ?x {old_call({**FIXED, 'ldd': '?m'}, inputs('?a', '?b'))})"
SHAPE = "(ECons ?n (ECons ?m (ENil)))"
DENSE = "(ECons (MMul (MIter) ?m) (ECons (MIter) (ENil)))"
GENERIC = (
    "(= ?x (Op (GenericMatmul (ECons ?m (ECons ?n (ENil))) (ECons ?m (ECons ?n (ECons ?k (ENil))))"
    f" ?k ?l ?r ?p ?t ?o (F32)) {inputs('?a', '?b')}))"
)
SWAPPED = {**FIXED, "m": "?n", "n": "?m", "lda": "?n", "ldb": "?k", "ldc": "?n", "ldd": "?n"}
MADE = f"(union ?x {old_call(SWAPPED, inputs('?b', '?a'))})"


def make(body: str, head: str = "(MNum 7)") -> Instances:
    found = Maker(f'(rule ({body}) ({head}) :ruleset matmul_backend :name "r")').make()
    assert found.instances
    return found


def labels(found: Instances, axis: str) -> set[str]:
    return {label for made in found.instances for name, label in made.choices if name == axis}


def reading(strides: str) -> Instances:
    add = f"(= ?y (Op (Add {SHAPE} {DENSE} {strides} {DENSE}) {inputs('?x', '?c')}))"
    return make(f"{CALL} {add}")


def test_a_stride_that_is_free_alone_overlaps_skips_and_repeats() -> None:
    found = labels(reading("(ECons ?row (ECons (MIter) (ENil)))"), "Add.strides.1")
    assert {f"{step} along axis 0" for step in (1, 2, 3, 64)} <= found
    assert "one row for all" in found  # a stride of 0
    assert not any(label.endswith("axis 1") for label in found)
    found = labels(reading("(ECons (MMul (MIter) ?m) (ECons ?column (ENil)))"), "Add.strides.1")
    assert {f"{step} along axis 1" for step in (0, 2, 3, 64)} <= found


def test_a_list_that_is_free_as_a_whole_has_one_overlap_and_one_skip() -> None:
    found = labels(reading("?strides"), "Add.strides.1")
    assert {"1 along axis 0", "2 along axis 1", "padded", "transposed"} <= found
    assert "64 along axis 0" not in found


def test_what_another_op_wrote_is_read_inside_of_it() -> None:
    strides = "(ECons ?row (ECons (MIter) (ENil)))"
    body = f"{CALL} (= ?y (Op (Exp2 {SHAPE} {strides} {DENSE}) (ICons ?x (INil))))"
    found = labels(make(body), "Exp2.strides.0")
    assert "1 along axis 0" in found
    assert "64 along axis 0" not in found


def test_an_elementwise_op_takes_a_part_of_a_matmul() -> None:
    body = f"{CALL} (= ?y (Op (Exp2 ?s ?i ?o) (ICons ?x (INil))))"
    found = labels(make(body), "Exp2.shape")
    assert {"of input 0", "fewer rows of input 0", "fewer columns of input 0"} <= found


def test_a_sum_reads_its_product_in_another_order() -> None:
    product = f"(= ?p (Op (Mul ?s ?l ?r ?o) {inputs('?a', '?b')}))"
    body = f"{product} (= ?x (Op (Sum ?t ?n ?st ?it ?d) (ICons ?p (INil))))"
    found = labels(make(body), "Sum.reduce")
    assert {"another order of rows", "across what was written"} <= found


def test_rare_labels_are_tried_once() -> None:
    found = reading("(ECons ?row (ECons (MIter) (ENil)))")
    choices = [dict(made.choices) for made in found.instances]
    for step in (1, 2, 3):
        assert [made["Add.strides.1"] for made in choices].count(f"{step} along axis 0") == 1
    assert not any("along" in label for pair in found.coverage.pairs for _, label in pair)


@pytest.mark.parametrize("head", ["(MNum 7)", MADE])
def test_a_product_over_nothing_is_for_rules_that_make_a_call(head: str) -> None:
    product = (
        f"(= ?p (Op (Mul (ECons ?m (ECons ?n (ECons ?k (ENil)))) ?l ?r ?o) {inputs('?a', '?b')}))"
    )
    body = (
        f"{product} (= ?x (Op (Sum (ECons ?m (ECons ?n (ENil))) ?k ?st ?it ?d) (ICons ?p (INil))))"
    )
    found = labels(make(body, head), "Sum.sizes")
    assert ("0x7x11" in found) is (head == MADE)
    assert "5x7x11" in found


def test_a_fixed_extent_leaves_the_others_to_vary() -> None:
    found = labels(make(f"{GENERIC} (= ?n (MNum 32)) (= ?k (MNum 48))"), "GenericMatmul.shape")
    assert {"5x32x48", "8x32x48", "17x32x48"} <= found


def test_rows_of_an_fp8_result_are_aligned_by_their_own_type() -> None:
    fp8 = {"a_dtype": "(F8E4M3)", "b_dtype": "(F8E4M3)", "a_layout": '"T"'}
    for wide, label in (("F32", "20x7x48"), ("Bf16", "24x7x48")):
        fields = {**FIXED, **fp8, "c_dtype": f"({wide})", "d_dtype": f"({wide})"}
        found = labels(make(f"(= ?x {old_call(fields, '?i')})"), "cublaslt.m x n x k")
        assert label in found


def test_a_term_that_only_a_guard_names_is_not_built() -> None:
    maker = Maker(
        f'(rule ({CALL} (!= ?k (MNum 1234))) ((MNum 7)) :ruleset matmul_backend :name "r")'
    )
    for made in maker.make().instances:
        assert "1234" not in maker.show(made.roots)
    maker = Maker(
        f"(rule ({CALL} (= ?y (MNum 1234)) (!= ?k (MNum 1234))) ((MNum 7))"
        ' :ruleset matmul_backend :name "r")'
    )
    assert "1234" in maker.show(maker.make().instances[0].roots)


def test_parts_and_orders_stay_inside() -> None:
    assert dict(parts((5, 7))) == {
        "fewer rows": (4, 7),
        "fewer columns": (5, 6),
        "transposed": (7, 5),
    }
    assert list(parts((4,))) == []
    shape = (2, 5, 7, 11)
    found = [strides for _, strides in orders(shape)]
    assert len(set(found)) == len(found) == 2
    for strides in found:
        assert reach(strides, shape) == 2 * 5 * 7 * 11 - 1
        assert strides != dense(shape).strides
