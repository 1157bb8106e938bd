"""Bytes to forms: places, encodings, limits, and time."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rulecheck.egraph.bindings import Parser, egg
from rulecheck.records import Limits, Problem, Span
from rulecheck.rules.scanner import Form, Places, scan, tokenize

PATH = "a.egg"


def scan_text(text: str) -> tuple[Form, ...]:
    result = scan(PATH, text.encode(), Limits())
    assert result.fatal is None
    return result.forms


def fatal(data: str | bytes, limits: Limits | None = None) -> Problem:
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    result = scan(PATH, raw, limits or Limits())
    assert result.fatal is not None
    assert result.forms == ()
    return result.fatal


def test_forms_keep_their_text_place_and_first_word() -> None:
    text = '; head\n(sort A)\n  (rule ((B "x;)(" c)) ; c\n ()) (f)()'
    forms = scan_text(text)
    assert [form.text for form in forms] == [
        "(sort A)",
        '(rule ((B "x;)(" c)) ; c\n ())',
        "(f)",
        "()",
    ]
    assert [form.keyword for form in forms] == ["sort", "rule", "f", ""]
    assert [form.index for form in forms] == [0, 1, 2, 3]
    places = Places(PATH, text)
    assert [places.point(form.start) for form in forms] == [(2, 1), (3, 3), (4, 6), (4, 9)]


@pytest.mark.parametrize("text", ["", " \n\t", "; only a comment", "\u00a0\u3000"])
def test_an_empty_file_has_no_forms(text: str) -> None:
    assert scan_text(text) == ()


def test_windows_line_ends_are_accepted() -> None:
    first, second = scan_text("(sort A)\r\n; c\r\n(sort B)\r\n")
    assert (first.text, second.text) == ("(sort A)", "(sort B)")
    result = scan(PATH, b"; RULECHECK-EXPECT: agrees\r\n(sort A)\r\n", Limits())
    assert result.directives == (("EXPECT", "agrees"),)


def test_white_space_is_the_engines() -> None:
    form = scan_text("(f a\u00a0b\u2003c\x1cd)")[0]
    words = [token.text for token in tokenize(form.text)]
    assert words == ["(", "f", "a", "b", "c\x1cd", ")"]


@pytest.mark.parametrize(
    ("data", "kind", "message", "span"),
    [
        (b"(sort A)\n(so\xffrt B)", "encoding", r"Byte 0xff at offset 12", (2, 4, 2, 5)),
        ("é(f \ud800)", "encoding", r"Byte 0xed .* is not UTF-8", (1, 5, 1, 6)),
        (b"(f \x00)", "encoding", r"a NUL byte", (1, 4, 1, 5)),
        (b'(sort A)\n(f "\x00")', "encoding", r"a NUL byte", (2, 5, 2, 6)),
        ("\ufeff(sort A)", "encoding", r"a byte-order mark", (1, 1, 1, 2)),
        ("(sort A)\n (f (g)", "syntax", r"This `\(` is never closed", (2, 2, 2, 3)),
        ("(sort A)\n(f))\n", "syntax", r"This `\)` closes nothing", (2, 4, 2, 5)),
        ("é ;x\n word (f)", "syntax", r"`é` stands outside", (1, 1, 1, 2)),
        ('(f)\n"text"', "syntax", r"`\"text\"` stands outside", (2, 1, 2, 7)),
        ('(f a\n "text)', "syntax", r"This string never ends", (2, 2, 2, 3)),
        ('(f "text\\")', "syntax", r"This string never ends", (1, 4, 1, 5)),
    ],
)
def test_an_unreadable_file_names_the_place(
    data: str | bytes, kind: str, message: str, span: tuple[int, int, int, int]
) -> None:
    problem = fatal(data)
    assert problem.kind == kind
    assert re.search(message, problem.message)
    assert problem.hint
    assert problem.span == Span(PATH, *span)
    assert problem.rule is None


def test_an_unclosed_form_is_told_from_the_next() -> None:
    problem = fatal("(sort A)\n(rule ((f))\n  ((g))\n\n(sort B)\n(sort C)\n")
    assert problem.span == Span(PATH, 2, 1, 2, 2)
    assert problem.hint == "Add the missing `)`, probably before the form that starts on line 5."


def test_size_is_limited() -> None:
    limits = Limits(file_bytes=20)
    assert scan(PATH, b"(sort A)" + b" " * 12, limits).fatal is None
    problem = fatal(b"(sort A)" + b" " * 13, limits)
    assert problem.kind == "too-large"
    assert problem.span == Span(PATH, 1, 1, 1, 1)


def test_nesting_is_limited() -> None:
    limits = Limits(depth=3)
    assert scan(PATH, b"(((a)))", limits).fatal is None
    problem = fatal(b"(sort A)\n(((\n (a))))", limits)
    assert problem.kind == "too-deep"
    assert problem.span == Span(PATH, 3, 2, 3, 3)


def test_a_form_that_would_cost_the_parser_too_much_is_left_out() -> None:
    text = "(sort A)\n (f" + " (x)" * 20_000 + ")\n(sort B)"
    result = scan(PATH, text.encode(), Limits())
    assert [form.text for form in result.forms] == ["(sort A)", "(sort B)"]
    assert [form.index for form in result.forms] == [0, 2]
    (problem,) = result.problems
    assert problem.kind == "too-large"
    assert problem.span == Span(PATH, 2, 2, 2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000 + ")" * 100_000,
        "(" * 1_000_000,
        ")" * 1_000_000,
        "(f " + "x" * 1_000_000 + ")",
        '(f "' + "x" * 1_000_000 + '")',
        '(f "' + "\\n" * 500_000 + '")',
        '(f "' + "\\" * 1_000_001,
        ";" * 1_000_000,
        '"' * 1_000_001,
        "\n" * 1_000_000 + "(f)",
        "(f)" * 300_000,
        "(\n" * 100 + "\n(\n)" * 200_000,
        "\u00e9" * 500_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_hostile_text_is_scanned_in_linear_time(text: str) -> None:
    begin_s = time.process_time()
    scan(PATH, text.encode(), Limits())
    assert time.process_time() - begin_s < 10


@pytest.mark.parametrize(
    ("text", "directives"),
    [
        ("; RULECHECK-EXPECT: mismatch\n(sort A)", (("EXPECT", "mismatch"),)),
        (
            ";; RULECHECK-ARGS: --dtype bf16  \n;RULECHECK-MESSAGE:a: b\n",
            (("ARGS", "--dtype bf16"), ("MESSAGE", "a: b")),
        ),
        ("; a plain comment: RULECHECK-EXPECT: no\n", ()),
        ('(f "; RULECHECK-EXPECT: in a string")', ()),
    ],
)
def test_directives_of_the_header(text: str, directives: tuple[tuple[str, str], ...]) -> None:
    result = scan(PATH, text.encode(), Limits())
    assert result.directives == directives
    assert result.problems == ()


@pytest.mark.parametrize(
    ("text", "message", "span"),
    [
        ("\n; RULECHECK-EXPCT: x\r\n", "`RULECHECK-EXPCT` is no directive.", (2, 1, 2, 21)),
        ("; RULECHECK-EXPECT x", "`RULECHECK-EXPECT` has no colon.", (1, 1, 1, 21)),
        (
            "(sort A)\n ; RULECHECK-XFAIL: x",
            "`RULECHECK-XFAIL` stands after the first form.",
            (2, 2, 2, 22),
        ),
    ],
)
def test_wrong_directives(text: str, message: str, span: tuple[int, int, int, int]) -> None:
    (problem,) = scan(PATH, text.encode(), Limits()).problems
    assert problem.message == message
    assert problem.span == Span(PATH, *span)


def test_the_hash_ignores_layout_and_comments_only() -> None:
    plain, spaced = "(rule ((f a)) ())", "(rule ; why\n  ((f\ta))\n\n ( ) )"
    assert scan_text(plain)[0].text_hash == scan_text(spaced)[0].text_hash
    assert scan_text(plain)[0].text_hash != scan_text("(rule ((f b)) ())")[0].text_hash
    assert scan_text('(f "a  b")')[0].text_hash != scan_text('(f "a b")')[0].text_hash


# Against the engine's parser

ATOMS = st.text("ab?é\x1c-1:\"'", min_size=1, max_size=4).filter(lambda text: text[0] != '"')
STRINGS = st.text('a;() \\"\n\té', max_size=4).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
COMMENTS = st.text('; (é"', max_size=4).map(lambda text: f" ;{text}\n")
SPACES = COMMENTS | st.text(" \t\n\r\u00a0\u2028\u3000", min_size=1, max_size=3)


@st.composite
def nested(draw: st.DrawFn, depth: int = 3) -> str:
    parts = ["(", "f"]
    for _ in range(draw(st.integers(0, 3))):
        parts.append(draw(SPACES))
        if depth and draw(st.booleans()):
            parts.append(draw(nested(depth - 1)))
        else:
            parts.append(draw(ATOMS | STRINGS))
    return "".join([*parts, draw(SPACES), ")"])


def engine_calls(node: Any) -> int:
    """Count the calls in an expression of the engine."""
    return 1 + sum(engine_calls(arg) for arg in node.args) if hasattr(node, "args") else 0


@given(st.lists(st.tuples(nested(), SPACES), max_size=4))
@example([('(f "é")', " "), ("(f é)", "\n")])
def test_the_scanner_agrees_with_the_engines_parser(pieces: list[tuple[str, str]]) -> None:
    text = "".join(form + space for form, space in pieces)
    whole = list(egg.EGraph().parse_program(text))
    forms = scan_text(text)
    assert len(whole) == len(forms)
    for command, form in zip(whole, forms, strict=True):
        span = command.action.expr.span
        assert text.encode()[span.i : span.j].decode() == form.text
        opened = sum(token.kind == "open" for token in tokenize(form.text))
        assert engine_calls(command.action.expr) == opened
        (alone,), error = Parser()(form.text)
        assert error is None
        assert str(alone) == str(command)
