"""Numbers worth trying: beside every literal that a rule holds a scalar against."""

from __future__ import annotations

import pytest

from rulecheck.campaign.workshop import signatures
from rulecheck.instantiate.guards import guard_values
from rulecheck.instantiate.pattern import PatternGraph, build_pattern
from tests.luminal_rules import read

RIGID = frozenset({"DType", "EList", "IList", "OpKind"})


def values(guards: str, head: str = "?v") -> list[float]:
    """What is suggested for the constant ``?v``."""
    text = f"""(rule ((= ?c (Op (Constant ?v) (INil))) (= ?d (Op (Constant ?w) (INil))) {guards})
      ((union ?c (Op (Constant {head}) (INil)))) :ruleset expr :name "r")"""
    file = read(text)
    graph: PatternGraph = build_pattern(file.rules[0], signatures(file), RIGID)
    return list(guard_values(graph, graph.variables["?v"]))


def test_nothing_is_suggested_without_a_literal() -> None:
    assert values("") == []
    assert values("(> ?v ?w)") == []
    assert values("(> ?w 2.0)") == []


@pytest.mark.parametrize("bound", ["-0.5", "-0.001", "3.0", "1e-10", "1000.0"])
def test_values_stand_close_on_both_sides_of_a_bound(bound: str) -> None:
    number = float(bound)
    found = values(f"(> ?v {bound})")
    assert number in found
    assert any(number < value <= number + abs(number) / 10 for value in found)
    assert any(number - abs(number) / 10 <= value < number for value in found)
    assert any(value > number + 1 for value in found)


def test_the_gap_between_a_negative_bound_and_zero_is_met() -> None:
    assert any(-0.001 < value < 0 for value in values("(> ?v -0.001)"))


def test_a_window_is_tried_in_its_middle_and_near_both_ends() -> None:
    inside = sorted(value for value in values("(> ?v 1.0) (< ?v 3.0)") if 1.0 < value < 3.0)
    assert 2.0 in inside
    assert inside[0] < 1.25
    assert inside[-1] > 2.75


@pytest.mark.parametrize("head", ["(min ?v 3.0)", "(max 3.0 ?v)", "(+ 1.0 (min ?v 3.0))"])
def test_limits_on_the_right_side_count_too(head: str) -> None:
    found = values("", head)
    assert any(3.0 < value < 3.5 for value in found)
    assert any(2.5 < value < 3.0 for value in found)


def test_limits_of_another_scalar_do_not() -> None:
    assert values("", "(min ?w 3.0)") == []
