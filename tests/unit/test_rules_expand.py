"""Named fields spelled out: the same records as by position, at the author's places, in no time."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulecheck.egraph.bindings import Parser
from rulecheck.records import Call, Holds, Limits, Rule, Span, Var
from rulecheck.rules.parse import read_file
from tests.named_toy import NAMED_DIALECT, only_rule, read
from tests.toy import FILE


@st.composite
def terms(draw: st.DrawFn, sort: str, depth: int = 3) -> tuple[str, str]:
    """A term by position, and the same with some calls given by name."""
    known = [
        item
        for item in NAMED_DIALECT.declarations
        if item.kind == "constructor" and item.output == sort and item.name != "Named"
    ]
    if sort in ("i64", "f64"):
        return ("1", "1") if sort == "i64" else ("1.5", "1.5")
    if depth == 0 or draw(st.booleans()):
        return f"?{sort}", f"?{sort}"
    item = draw(st.sampled_from(known))
    pairs = [draw(terms(inner, depth - 1)) for inner in item.inputs]
    plain = [pair[0] for pair in pairs]
    named = [pair[1] for pair in pairs]
    if not item.fields or draw(st.booleans()):
        return f"({' '.join([item.name, *plain])})", f"({' '.join([item.name, *named])})"
    leading = draw(st.integers(0, len(named)))
    trailing = draw(st.permutations(list(range(leading, len(named)))))
    space = draw(st.sampled_from([" ", "\n ", " ; c :by ...\n", "\t"]))
    words = [*named[:leading], *(f":{item.fields[at]}{space}{named[at]}" for at in trailing)]
    is_open = draw(st.booleans())
    if trailing and is_open:
        plain[trailing[-1]] = "_"
        words[-1] = "..."
    return f"({' '.join([item.name, *plain])})", f"({space.join([item.name, *words])})"


def without_places(rule: Rule) -> object:
    def erase(value: object) -> object:
        if isinstance(value, dict):
            return {key: erase(part) for key, part in value.items() if not key.endswith("span")}
        return [erase(part) for part in value] if isinstance(value, list | tuple) else value

    return erase(msgspec.to_builtins(rule))


@given(terms("Buf"), terms("Buf"), st.booleans())
def test_by_name_and_by_position_give_the_same_records(
    left: tuple[str, str], right: tuple[str, str], is_rule: bool
) -> None:
    def text(at: int) -> str:
        names = "(Leaf 1 ?Type) (N ?i64) (Times ?Num ?Num) (Add ?Buf ?Buf)"
        if is_rule:
            return f'(rule ((= {left[at]} {right[at]}) {names}) ((narrow ?Type)) :name "é")'
        return f"(rewrite {left[at]} ?Buf :when ((= ?Buf {right[at]}) {names}))"

    plain, named = read(text(0)), read(text(1))
    assert plain.problems == ()
    assert named.problems == ()
    (first,), (second,) = plain.rules, named.rules
    assert without_places(first) == without_places(second)
    assert msgspec.structs.replace(second.span, end_line=0, end_column=0) == (
        msgspec.structs.replace(first.span, end_line=0, end_column=0)
    )


@given(terms("Buf"))
def test_every_place_shows_the_text_it_is_about(term: tuple[str, str]) -> None:
    text = f"(rule ((Add ?Buf {term[1]}) (Leaf 1 ?Type) (Times ?Num ?Num)) ())"
    lines = text.split("\n")
    rule = only_rule(text)
    first = rule.body[0]
    assert isinstance(first, Holds)
    pending = [first.expr]
    while pending:
        expr = pending.pop()
        span = expr.span
        shown_text = lines[span.line - 1][span.column - 1 :]
        if isinstance(expr, Call):
            assert shown_text.startswith(f"({expr.fn}")
            assert lines[span.end_line - 1][: span.end_column - 1].endswith(")")
            pending += expr.args
        elif isinstance(expr, Var):
            word = "..." if expr.name == "_" else expr.name
            assert shown_text.startswith(word)
            assert span.end_column == span.column + len(word)


# Hostile files

MANY = " ".join(f":f{at} Num" for at in range(2_500))
WIDE = f"(constructor Wide ({MANY}) Buf)\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (WIDE + "(rule ((Wide ...)) ())\n" * 20_000, "too-large"),
        (WIDE + "(rule ((Wide :f1 ?n)) ())\n" * 20_000, "field"),
        (WIDE + "(rule ((Wide :g1 ?n)) ())\n" * 20_000, "field"),
        (WIDE + f"(rule ({'(Wide ...)' * 1000}) ())", "too-large"),
        (f"(rule ({'(Cast ...)' * 20_000}) ())", "too-large"),
        (f"(rule ({'(Cast :x :y)' * 2_000}) ())", "field"),
        (f"(rule ((Cast {':size ?n ' * 3_000})) ())", "field"),
        (f"(rule ((Cast {'... ' * 5_000})) ())", "field"),
        (f"(relation r ({':a ' * 5_000}))", "field"),
        (f"(rule ({'(Scale :by 1.0 :source ' * 190}?x{')' * 190}) ())", ""),
        (f"(rule ((Cast {':' * 1_000_000} ?x)) ())", "field"),
    ],
    ids=lambda text: text[-30:],
)  # fmt: skip
def test_hostile_fields_are_read_in_bounded_time(text: str, kind: str) -> None:
    begin_s = time.process_time()
    file = read(text)
    assert time.process_time() - begin_s < 10
    assert {found.kind for found in file.problems} >= ({kind} if kind else set())
    assert all(len(found.message) <= 400 for found in file.problems)


def test_a_form_that_grows_too_large_is_left_out() -> None:
    file = read(f"{WIDE} (rule ({'(Wide ...)' * 8}) ())\n(rule ((Wide ...)) ())")
    (found,) = file.problems
    assert (found.kind, found.span) == ("too-large", Span(FILE, 2, 2, 2, 3))
    assert len(file.rules) == 1


MISSHAPEN = [
    "(datatype)",
    "(constructor)",
    "(relation :r)",
    "(datatype :D :x)",
    "(datatype D ())",
    "(datatype* (:D) :x (sort))",
    "(function f)",
    "(rule :x)",
    "(rewrite)",
    "(birewrite (:a) :when)",
]


@pytest.mark.parametrize("text", MISSHAPEN)
def test_misshapen_commands_are_reported(text: str) -> None:
    (found,) = read(text).problems
    assert found.kind in {"syntax", "field"}
    assert found.span.line == 1


def test_a_file_without_named_fields_is_left_alone() -> None:
    seen: list[str] = []
    parser = Parser()

    def parse(text: str) -> tuple[list[object], str | None]:
        seen.append(text)
        return parser(text)

    forms = [
        '(rule ((= ?b (Cast ?a ?n (F32))) ; :c ...\n) ((union ?b ?a)) :ruleset backend :name "r")',
        '(rewrite (Named a ":x ..." true) a :when ((Add a a)) :subsume)',
        "(datatype D (E i64 :cost 3))",
    ]
    read_file(FILE, "\n".join(forms).encode(), NAMED_DIALECT, parse, Limits())
    assert seen == forms
