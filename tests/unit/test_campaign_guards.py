"""The missing guard is learned from what passing cases share and failing ones lack."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from rulecheck.campaign.guards import MAX_GUARDS, Guard, Labels, describe, missing_guards

AXES = {
    "op.beta": ("0", "1", "1/3"),
    "op.epilogue": ("DEFAULT", "BIAS", "RELU"),
    "op.types": ("F32", "Bf16"),
}


def every_case() -> list[Labels]:
    cases: list[Labels] = [{}]
    for axis, labels in AXES.items():
        cases = [{**case, axis: label} for case in cases for label in labels]
    return cases


def learn(fails: Callable[[Labels], bool]) -> tuple[Guard, ...]:
    cases = every_case()
    return missing_guards(
        [case for case in cases if fails(case)], [case for case in cases if not fails(case)]
    )


def test_the_founding_guard() -> None:
    guards = learn(lambda case: case["op.beta"] != "0")
    assert guards == (("op.beta", ("0",)),)
    assert describe(guards) == "beta is 0"


def test_two_guards_are_found_where_both_are_missing() -> None:
    guards = learn(lambda case: case["op.beta"] != "0" or case["op.epilogue"] == "BIAS")
    assert dict(guards) == {"op.beta": ("0",), "op.epilogue": ("DEFAULT", "RELU")}
    assert describe(guards) == "beta is 0 and epilogue is DEFAULT or RELU"


def test_a_conjunction_is_broken_on_the_axis_that_keeps_more() -> None:
    """Failing needs both; excluding BIAS keeps two thirds, excluding the types only half."""
    guards = learn(lambda case: case["op.epilogue"] == "BIAS" and case["op.types"] == "Bf16")
    assert guards == (("op.epilogue", ("DEFAULT", "RELU")),)


def test_nothing_is_said_where_nothing_separates() -> None:
    same = {"op.beta": "0"}
    assert missing_guards([same], [same]) == ()
    assert missing_guards([same, {"op.beta": "1"}], [same, {"op.beta": "1"}]) == ()


def test_nothing_is_said_without_both_kinds_of_cases() -> None:
    case = {"op.beta": "0"}
    assert missing_guards([], [case]) == ()
    assert missing_guards([case], []) == ()
    assert missing_guards([], []) == ()


def test_axes_that_some_cases_lack_are_no_guards() -> None:
    """A stride is asked for only in a batch: its absence is no label."""
    failing = [{"op.batch": "3", "op.stride": "0"}]
    passing = [{"op.batch": "1"}, {"op.batch": "3", "op.stride": "one matrix"}]
    guards = missing_guards(failing, passing)
    assert guards == (("op.batch", ("1",)),)


def test_an_axis_is_named_once() -> None:
    failing = [{"k.shape": "a", "k.x": "1"}, {"k.shape": "b", "k.x": "1"}]
    passing = [{"k.shape": "b", "k.x": "2"}, {"k.shape": "c", "k.x": "1"}]
    guards = missing_guards(failing, passing)
    assert [axis for axis, _ in guards] == list(dict.fromkeys(axis for axis, _ in guards))
    assert guards == (("k.shape", ("c",)),)


def test_many_labels_are_listed_in_the_order_of_the_cases() -> None:
    assert describe((("a.x", ("1", "2", "3")),)) == "x is 1, 2 or 3"
    assert describe((("bare", ("1",)),)) == "bare is 1"


def test_one_restriction_that_costs_cases_is_better_than_four_that_do_not() -> None:
    base = {"a": "1", "b": "1", "c": "1", "d": "1"}
    failing = [base, *({**base, axis: "2"} for axis in "abc"), {**base, "d": "3"}]
    passing = [base, {**base, "d": "2"}]
    assert missing_guards(failing, passing) == (("d", ("2",)),)


@st.composite
def case_lists(draw: st.DrawFn) -> tuple[list[Labels], list[Labels]]:
    case = st.fixed_dictionaries({axis: st.sampled_from(labels) for axis, labels in AXES.items()})
    return draw(st.lists(case, max_size=8)), draw(st.lists(case, max_size=8))


@given(case_lists())
def test_guards_exclude_every_failing_case_and_keep_a_passing_one(
    cases: tuple[list[Labels], list[Labels]],
) -> None:
    failing, passing = cases
    guards = missing_guards(failing, passing)
    if not guards:
        return
    assert len(guards) <= MAX_GUARDS
    assert len({axis for axis, _ in guards}) == len(guards)

    def admitted(case: Labels) -> bool:
        return all(case[axis] in labels for axis, labels in guards)

    assert not any(admitted(case) for case in failing)
    assert any(admitted(case) for case in passing)


@given(case_lists())
def test_some_guard_is_found_where_one_label_separates(
    cases: tuple[list[Labels], list[Labels]],
) -> None:
    failing, passing = cases
    for axis in AXES:
        bad = {case[axis] for case in failing}
        if failing and any(case[axis] not in bad for case in passing):
            assert missing_guards(failing, passing)
            return
