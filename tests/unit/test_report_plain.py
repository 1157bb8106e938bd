from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulecheck.records import Severity
from rulecheck.report.plain import count, field, number, paint, power_of_two, safe


@given(st.text() | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl", "Zp"])))
def test_safe_text_is_one_printable_line(text: str) -> None:
    shown = safe(text)
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert shown.replace("\u200d", "").replace(" ", "").replace("\u3000", "") == "" or all(
        char.isprintable() or char == "\u200d" or char.isspace() for char in shown
    )
    shown.encode("utf-8")


@pytest.mark.parametrize("text", ["plain", "Bf16 → F32", "行列", "café", "≤ 2⁻⁹"])
def test_safe_text_keeps_what_people_write(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    ("text", "shown"), [("\x1b[2J", "\\x1b[2J"), ("a\nb", "a\\nb"), ("\u202e", "\\u202e")]
)
def test_safe_text_shows_what_a_terminal_would_do(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.floats())
def test_numbers_read_back(value: float) -> None:
    read = float(number(value))
    assert math.isnan(read) if math.isnan(value) else read == value
    assert math.copysign(1, read) == math.copysign(1, value) or math.isnan(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (-0.0, "-0"), (0.5, "0.5"), (1e300, "1e+300"), (math.inf, "inf"), (2.0, "2")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2**-9, "2^-9"), (0.003, "2^-8"), (1.0, "2^0"), (0.0, "0"), (math.inf, "inf")],
)
def test_an_effect_is_rounded_up_to_a_power_of_two(value: float, text: str) -> None:
    assert power_of_two(value) == text


def test_counts() -> None:
    assert (count(1, "rule"), count(0, "rule"), count(1234, "case")) == (
        "1 rule",
        "0 rules",
        "1,234 cases",
    )


def test_fields_wrap_with_a_hanging_indent() -> None:
    lines = field("hint", "word " * 30, 50)
    assert lines[0].startswith("   hint: word")
    assert all(line.startswith("      word") for line in lines[1:])
    assert all(len(line) <= 50 for line in lines)
    assert field("hint", "", 50) == ["   hint:"]


def test_paint_only_on_demand() -> None:
    assert paint("x", Severity.ERROR, color=False) == "x"
    assert paint("x", Severity.ERROR, color=True) == "\x1b[1;31mx\x1b[0m"
