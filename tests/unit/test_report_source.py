from __future__ import annotations

from pathlib import Path

import pytest

from rulecheck.records import Span
from rulecheck.report.source import Sources


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.egg"


def snippet(file: Path, text: str | bytes, span: tuple[int, int, int, int]) -> list[str]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return Sources().snippet(Span(str(file), *span))


def test_the_carets_stand_under_the_span(file: Path) -> None:
    assert snippet(file, "(a\n  (F32) (F16))\n", (2, 9, 2, 14)) == [
        "    2 |   (F32) (F16))",
        "      |         ^^^^^",
    ]


def test_a_span_of_many_lines_marks_its_first(file: Path) -> None:
    assert snippet(file, "(rule (a)\n (b))", (1, 1, 2, 5)) == [
        "    1 | (rule (a)",
        "      | ^^^^^^^^^",
    ]


def test_an_empty_span_and_one_past_the_end_still_point(file: Path) -> None:
    assert snippet(file, "ab\n", (1, 2, 1, 2))[1] == "      |  ^"
    assert snippet(file, "ab\n", (1, 3, 1, 3))[1] == "      |   ^"
    assert snippet(file, "ab\n", (1, 99, 1, 100))[1] == "      |   ^"
    assert snippet(file, "a\n\nb", (2, 1, 2, 1)) == ["    2 |", "      | ^"]


def test_tabs_and_wide_and_combining_characters_take_their_columns(file: Path) -> None:
    assert snippet(file, "\tx\ty", (1, 4, 1, 5)) == ["    1 |     x   y", "      |         ^"]
    assert snippet(file, "\tx", (1, 1, 1, 2)) == ["    1 |     x", "      | ^^^^"]
    assert snippet(file, "行列 (F32)", (1, 4, 1, 9)) == ["    1 | 行列 (F32)", "      |      ^^^^^"]
    assert snippet(file, "e\u0301 x", (1, 4, 1, 5))[1] == "      |   ^"
    assert snippet(file, "行列", (1, 1, 1, 3))[1] == "      | ^^^^"


def test_nothing_in_a_rule_reaches_the_terminal_as_a_command(file: Path) -> None:
    shown = snippet(file, "a\x1b[31mb\u202ec\x07 (F32)", (1, 12, 1, 17))
    assert shown == [
        "    1 | a\\x1b[31mb\\u202ec\\x07 (F32)",
        "      |                       ^^^^^",
    ]


def test_only_newlines_end_a_line(file: Path) -> None:
    assert snippet(file, "a\x0cb\u2028c\r\nd\r\n", (2, 1, 2, 2)) == ["    2 | d", "      | ^"]


def test_a_long_line_is_cut_around_the_span(file: Path) -> None:
    text = "x" * 5000 + "(F32)" + "y" * 5000
    shown, carets = snippet(file, text, (1, 5001, 1, 5006))
    assert len(shown) < 120
    assert shown.startswith("    1 | …")
    assert shown.endswith("…")
    start = carets.index("^")
    assert shown[start : start + 5] == "(F32)"
    assert carets[start:] == "^^^^^"


def test_bytes_that_are_no_text_are_replaced(file: Path) -> None:
    assert snippet(file, b"a\xff (b)", (1, 4, 1, 7)) == ["    1 | a� (b)", "      |    ^^^"]


@pytest.mark.parametrize("span", [(9, 1, 9, 2), (0, 1, 0, 2)])
def test_a_line_that_is_not_there_has_no_snippet(
    file: Path, span: tuple[int, int, int, int]
) -> None:
    assert snippet(file, "a\n", span) == []


def test_a_file_that_has_gone_has_no_snippet(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.egg", tmp_path, "a\0b"):
        assert Sources().snippet(Span(str(path), 1, 1, 1, 2)) == []


def test_a_huge_file_is_not_read_back(file: Path) -> None:
    assert snippet(file, b"a" * (5 << 20), (1, 1, 1, 2)) == []
