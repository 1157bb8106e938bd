"""Ops that are not library calls."""

from __future__ import annotations

from rulecheck.contract import check_plan
from rulecheck.records import (
    Access,
    CastStep,
    DType,
    FillStep,
    MatmulStep,
    Plan,
    PointwiseStep,
    ReduceStep,
    Step,
    ValueSpec,
    Verdict,
    Violation,
)
from tests.accesses import strided

F32, BF16 = DType.F32, DType.BF16


def check(values: tuple[ValueSpec, ...], *steps: Step) -> tuple[Violation, ...]:
    return check_plan(Plan(values, (), steps, len(values) - 1))


def codes(values: tuple[ValueSpec, ...], *steps: Step) -> list[tuple[str, str, str]]:
    return [(v.code, v.operand, v.verdict.value) for v in check(values, *steps)]


GRID = strided((3, 4), (4, 1))
FULL = (ValueSpec(F32, 12),) * 3


def add(left: Access, right: Access, out: Access) -> PointwiseStep:
    return PointwiseStep(2, "Add", (0, 1), (left, right), out)


def test_pointwise_in_order() -> None:
    assert codes(FULL, add(GRID, strided((3, 4), (1, 3)), GRID)) == []
    assert codes(FULL, add(GRID, strided((3, 4), (0, 1)), GRID)) == []


def test_pointwise_read_past_the_end() -> None:
    (found,) = check(FULL, add(GRID, strided((3, 4), (4, 2)), GRID))
    assert (found.code, found.operand, found.verdict) == ("RC202", "1", Verdict.MISREAD)
    assert (
        "input 1 holds 12 elements of F32; the op reads offsets 0 to 14, 20 % of" in found.message
    )


def test_pointwise_read_before_the_start() -> None:
    backwards = Access((3, 4), ((0, -4, -8), (0, 1, 2, 3)))
    (found,) = check(FULL, add(backwards, GRID, GRID))
    assert (found.code, found.actual) == ("RC202", "offsets -8 to 3")


def test_pointwise_operands_agree() -> None:
    mixed = (ValueSpec(F32, 12), ValueSpec(BF16, 12), ValueSpec(F32, 12))
    assert codes(mixed, add(GRID, GRID, GRID)) == [("RC208", "1", "misread")]
    tf32 = (ValueSpec(F32, 12), ValueSpec(DType.TF32, 12), ValueSpec(F32, 12))
    assert codes(tf32, add(GRID, GRID, GRID)) == []


def test_constant_takes_the_type_of_the_rest() -> None:
    values = (ValueSpec(BF16, 12), ValueSpec(F32, 1), ValueSpec(BF16, 12))
    constant = strided((3, 4), (0, 0))
    assert codes(values, FillStep(1, 2.0), add(GRID, constant, GRID)) == []
    assert codes(values, add(GRID, constant, GRID)) == [("RC208", "1", "misread")]


def test_two_constants_agree() -> None:
    values = (ValueSpec(F32, 1), ValueSpec(BF16, 1), ValueSpec(F32, 1))
    one = strided((1,), (1,))
    assert codes(values, FillStep(0, 1.0), FillStep(1, 2.0), add(one, one, one)) == []


def test_pointwise_shapes_agree() -> None:
    assert codes(FULL, add(strided((4, 3), (3, 1)), GRID, GRID)) == [("RC208", "0", "illegal")]


def test_output_stays_inside_and_apart() -> None:
    assert codes(FULL, add(GRID, GRID, strided((3, 4), (5, 1)))) == [("RC207", "out", "misread")]
    assert codes(FULL, add(GRID, GRID, strided((3, 4), (3, 1)))) == [("RC207", "out", "misread")]


def test_empty_shapes_touch_nothing() -> None:
    empty = strided((0, 4), (4, 1))
    assert codes(FULL, add(empty, empty, empty)) == []


def test_reduce() -> None:
    values = (ValueSpec(F32, 12), ValueSpec(F32, 3))
    base, out = strided((3,), (4,)), strided((3,), (1,))
    assert codes(values, ReduceStep(1, "Sum", 0, base, (0, 1, 2, 3), out)) == []
    assert codes(values, ReduceStep(1, "Sum", 0, base, (0, 1, 2, 4), out)) == [
        ("RC202", "0", "misread")
    ]
    assert codes(values, ReduceStep(1, "Sum", 0, base, (), out)) == []
    assert codes(values, ReduceStep(1, "Sum", 0, base, (0,), strided((2,), (1,)))) == [
        ("RC208", "0", "illegal")
    ]


def test_cast() -> None:
    values = (ValueSpec(F32, 12), ValueSpec(BF16, 12))
    assert codes(values, CastStep(1, 0, 12)) == []
    assert codes(values, CastStep(1, 0, 0)) == []
    assert codes(values, CastStep(1, 0, 13)) == [
        ("RC202", "0", "misread"),
        ("RC207", "out", "misread"),
    ]


def test_fill_needs_an_element() -> None:
    assert codes((ValueSpec(F32, 0),), FillStep(0, 1.0)) == [("RC207", "out", "misread")]


def matmul(lhs: Access, iters: tuple[int, ...] = (0, 1, 2)) -> MatmulStep:
    base = strided((2, 4), (12, 3))
    return MatmulStep(
        2, 0, 1, base, iters, lhs, strided((2, 4, 3), (0, 3, 1)), strided((2, 4), (4, 1))
    )


PRODUCT = (ValueSpec(BF16, 6), ValueSpec(BF16, 12), ValueSpec(BF16, 8))


def test_matmul() -> None:
    good = strided((2, 4, 3), (3, 0, 1))
    assert codes(PRODUCT, matmul(good)) == []
    assert codes(PRODUCT, matmul(strided((2, 4, 3), (4, 0, 1)))) == [("RC202", "0", "misread")]
    (found,) = check(PRODUCT, matmul(good, (0, 1, 2, 3)))
    assert (found.code, found.expected) == ("RC202", "product elements 0 to 23")
    mixed = (PRODUCT[0], ValueSpec(F32, 12), PRODUCT[2])
    assert codes(mixed, matmul(good)) == [("RC208", "1", "misread")]


def test_matmul_counts_only_what_it_visits() -> None:
    wide = strided((2, 4, 3), (3, 0, 2))  # reaches 7, but not with the first two iterations
    assert codes(PRODUCT, matmul(wide, (0, 1))) == []
    assert codes(PRODUCT, matmul(wide)) == [("RC202", "0", "misread")]
