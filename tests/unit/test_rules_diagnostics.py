"""Every diagnostic of a rule file, with its line and column."""

from __future__ import annotations

import pytest

from rulecheck.records import Span
from rulecheck.rules.parse import place_message
from rulecheck.rules.printer import print_action
from tests.toy import FILE, RULE, only_rule, place, problem, read

UNKNOWN = "Declare it in the file if it is a helper; an op has to be in the dialect."
DIAGNOSTICS = [
    # Rules
    ("(rule ((= ?b\n  (Quux ?a))) ())", "unknown-name", (2, 3, 2, 12), "Quux", UNKNOWN),
    ("(rule ((Casd ?a)) ())", "unknown-name", (1, 8, 1, 17), "Casd", "Did you mean `Cast`?"),
    ("(rule ((Cast ?a ?n)) ())", "arity", (1, 8, 1, 20), "Cast", ""),
    ("(rule ((narrow ?a)) ((narrow ?a ?a)))", "arity", (1, 22, 1, 36), "narrow", ""),
    ("(rule ((< 1 2 3)) ())", "arity", (1, 8, 1, 17), "<", ""),
    ("(rule ((Add ?a ?b)) ((set (dtype ?a ?b) ?a)))", "arity", (1, 22, 1, 44), "dtype", ""),
    ("(rule ((Scale ?a 1)) ())", "type", (1, 18, 1, 19), None, "1.0 is an f64"),
    ("(rule ((Scale ?a ?a)) ())", "type", (1, 18, 1, 20), None, "Change one"),
    ("(rule ((= ?a (F32)) (Add ?a ?b)) ())", "type", (1, 26, 1, 28), None, "Change one"),
    ("(rule ((Leaf ?i ?t) (< ?i 1.0)) ())", "type", (1, 21, 1, 31), "<", "1 is an i64"),
    ("(rule ((Leaf 99999999999999999999 ?t)) ())", "type", (1, 14, 1, 34), None, "smaller"),
    ("(rule ((Add ?a ?b)) ((union ?a ?c)))", "type", (1, 32, 1, 34), "?c", "Bind it"),
    ("(rule ((Leaf ?i ?t)) ((union ?i 1)))", "type", (1, 23, 1, 35), None, "declared sort"),
    ("(rule ((Add ?a ?b)) ((let ?a (F32))))", "type", (1, 22, 1, 36), "?a", "another name"),
    ("(rule ((Add ?a ?b)) ((set (Add ?a ?b) ?a)))", "type", (1, 22, 1, 42), "Add", "`union`"),
    (
        "(rule ((Add ?a ?b)) ((narrow (dtype ?a))))",
        "type",
        (1, 30, 1, 40),
        "dtype",
        "Bind its value in the body",
    ),
    ("(rule ((= ?z (+ ?y 1)) (N ?z)) ())", "type", (1, 17, 1, 19), "?y", "Use the variable"),
    ("(rule ((= ?z ?y)) ())", "type", (1, 11, 1, 13), "?z", "Use the variable"),
    ("(rule ((= ?z (narrow ?t))) ())", "type", (1, 11, 1, 13), "?z", "by itself"),
    ('(rule ((Add a b)) () :ruleset bakend :name "x")', "unknown-name", (1, 44, 1, 47), "bakend",
     "Did you mean `backend`?"),
    ("(rule ((= a b c)) ())", "syntax", (1, 8, 1, 9), None, "engine's own"),
    ("(sort A)\n (rule\n)", "syntax", (2, 2, 2, 3), None, "engine's own"),
    ('(rule ((Add a b)) ((panic "x")))', "refused", (1, 20, 1, 31), "panic", "Remove"),
    ("(rule ((Cast a n F32)) ())", "type", (1, 18, 1, 21), "F32", "Write `(F32)` for the term, or"),
    ("(rule ((Add a b)) ((let types a)))", "type", (1, 20, 1, 33), "types", "variable `?types`"),
    ("(rule ((Add Buf b)) ())", "type", (1, 13, 1, 16), "Buf", "Name the variable `?Buf`"),
    ("(rule ((Add a b)) ()\n :ruleset a :ruleset b)", "syntax", (2, 13, 2, 21), None, "Join"),
    ('(rule ((Add a b)) () :name "x" :name "y")', "syntax", (1, 32, 1, 37), None, "Join"),
    # Declarations and rows
    ("(constructor C (Nun) Buf)", "unknown-sort", (1, 1, 1, 26), "Nun", "Did you mean `Num`?"),
    ("(relation R (Vec))", "refused", (1, 1, 1, 19), "Vec", "datatype"),
    ("(sort V (Vec i64))", "refused", (1, 1, 1, 19), "V", "datatype"),
    ("(datatype* (sort V (Vec i64)))", "refused", (1, 12, 1, 30), "V", "datatype"),
    ("(constructor C () i64)", "type", (1, 1, 1, 23), "C", "another result"),
    ("(relation narrow (Num))", "duplicate", (1, 1, 1, 24), "narrow", "the same"),
    ("(sort A)\n(constructor A () A)", "duplicate", (2, 1, 2, 21), "A", "the same"),
    ("(relation + (i64))", "duplicate", (1, 1, 1, 19), "+", "another name"),
    ("(function f () i64 :merge (+ old new))", "refused", (1, 27, 1, 38), "+", "`max`"),
    ("(narrow x)", "type", (1, 9, 1, 10), "x", "constant"),
    ("(narrow 1)", "type", (1, 9, 1, 10), None, "Change one"),
    ("(relation r (i64))\n(r (+ 1 2))", "refused", (2, 4, 2, 11), "+", "result"),
    ("(narow (F32))", "unknown-name", (1, 2, 1, 7), "narow", "Did you mean `narrow`?"),
    ("(unstable-combined-ruleset c backend nope)", "unknown-name", (1, 1, 1, 43), "nope", ""),
    ("(unstable-combined-ruleset c backend c)", "refused", (1, 1, 1, 40), "c", "own list"),
    ("()", "syntax", (1, 1, 1, 2), None, "Remove"),
    ("(rule ((narrow ?t)) () :ruleset all)\n(unstable-combined-ruleset all backend types)", "type",
     (1, 2, 1, 6), "all", "Use one of backend, types"),
    ("(rule ((narrow ?t)) ((let x (+ 1 1.0))))", "type", (1, 29, 1, 38), "+", "`to-f64` converts"),
    ("(rule ((narrow _)) ((narrow _)))", "type", (1, 29, 1, 30), "_", "Bind it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "span", "subject", "hint"), DIAGNOSTICS)
def test_a_diagnostic_names_its_place(
    text: str, kind: str, span: tuple[int, int, int, int], subject: str | None, hint: str
) -> None:
    found = problem(text)
    assert (found.kind, place(found), found.subject) == (kind, span, subject)
    assert found.message.endswith(".")
    assert hint in found.hint
    last = text.rsplit("\n", 1)[-1]
    about_a_rule = last.strip(" )").startswith("(rule") or "(rule" in text
    assert (found.rule is not None) == about_a_rule


@pytest.mark.parametrize(("text", "kind", "span", "subject", "hint"), DIAGNOSTICS)
def test_the_rest_of_the_file_is_still_read(
    text: str, kind: str, span: tuple[int, int, int, int], subject: str | None, hint: str
) -> None:
    del kind, span, subject, hint
    file = read(f"{text}\n{RULE}")
    assert [rule.name for rule in file.rules] == ["r"]
    assert len(file.problems) == 1


def test_rulesets_that_combine_each_other() -> None:
    file = read("(unstable-combined-ruleset a b)\n(unstable-combined-ruleset b a)")
    first, second = file.problems
    assert (first.kind, first.subject, place(first)[:2]) == ("refused", "a", (1, 1))
    assert (second.kind, second.subject) == ("unknown-name", "a"), "a was left out"


def test_a_row_of_what_is_no_relation_after_all() -> None:
    file = read("(relation Cast (i64))\n(Cast 1)")
    assert [(found.kind, found.subject) for found in file.problems] == [
        ("duplicate", "Cast"),
        ("refused", "Cast"),
    ]
    assert file.facts == ()


@pytest.mark.parametrize(
    ("message", "said", "line", "column"),
    [
        ("At 7:3 of rules/file.egg\nno good", "The engine says: No good.", 7, 3),
        ("At 7:3 of other.egg\nno good.", "The engine says: No good.", 2, 1),
        ("the engine panicked: it broke", "The engine says: The engine panicked: it broke.", 2, 1),
        ("In 9:1-4: (f)", "The engine says: In 9:1-4: (f).", 2, 1),
    ],
)
def test_the_engines_messages_are_taken_apart(
    message: str, said: str, line: int, column: int
) -> None:
    text, span = place_message(message, Span(FILE, 2, 1, 2, 9))
    assert (text, span.line, span.column) == (said, line, column)


def test_unit_is_a_literal() -> None:
    text = "(function done (Buf) Unit :no-merge)\n(rule ((Add ?a ?b)) ((set (done ?a) ())))"
    rule = only_rule(text)
    assert print_action(rule.head[0]) == "(set (done ?a) ())"


def test_a_merge_may_be_a_literal() -> None:
    file = read("(function done (Buf) i64 :merge 1)")
    assert file.problems == ()


def test_two_rules_of_one_name() -> None:
    file = read(f"{RULE}\n{RULE.replace('F32', 'F16')}")
    (found,) = file.problems
    assert (found.kind, found.rule, place(found)) == ("duplicate", "r", (4, 25, 4, 28))
    assert f"{FILE}:2:25" in found.message
    assert [(rule.name, rule.span.line) for rule in file.rules] == [("r", 1)]


def test_a_clash_with_the_dialect_shows_both_places() -> None:
    found = problem("(constructor Add (Buf) Buf)")
    assert found.message == (
        "`Add` is declared as `(constructor Add (Buf) Buf)` here, "
        "and as `(constructor Add (Buf Buf) Buf)` at toy.egg:9:3."
    )


def test_a_rule_that_needs_a_wrong_declaration_says_so() -> None:
    file = read('(sort A)\n(constructor C (Nun) Buf)\n(rule ((C ?x)) () :name "c")')
    first, second = file.problems
    assert first.kind == "unknown-sort"
    assert (second.rule, second.message) == ("c", "The declaration of `C` was left out.")
    assert second.hint == "First mend the problem on line 2."


def test_all_problems_of_a_rule_are_told_in_order() -> None:
    file = read("(rule ((Foo ?x)\n (Cast ?x)) ((Bar ?x)) :ruleset nope)")
    assert [(found.kind, found.subject) for found in file.problems] == [
        ("unknown-name", "nope"),
        ("unknown-name", "Foo"),
        ("arity", "Cast"),
        ("unknown-name", "Bar"),
    ]
    assert file.rules == ()


def test_a_fatal_problem_leaves_no_rules() -> None:
    file = read(f"; RULECHECK-EXPECT: invalid\n{RULE}\n(rule ((")
    assert file.rules == ()
    assert file.directives == (("EXPECT", "invalid"),)
    assert [found.rule for found in file.problems] == [None]


def test_problems_are_capped() -> None:
    found = read("(foo)\n" * 5000).problems
    assert len(found) == 1001
    assert found[-1].message.startswith("More than 1000 things are wrong")


def test_messages_stay_readable() -> None:
    found = problem(f"(rule (({'x' * 100_000} ?a)) ())")
    assert found.kind == "unknown-name"
    assert len(found.message) == 400
    assert found.message.endswith("…")
    assert len(found.subject or "") == 400
    stray = problem("x" * 100_000)
    assert stray.message == f"`{'x' * 39}…` stands outside any form."


def test_a_guard_that_the_engine_would_drop_is_reported() -> None:
    found = problem('(rewrite (Add a b) a :when ((= a b))\n :when ((= b (Add a a))) :name "x")')
    assert found.message == "`:when` is given twice; the engine keeps only the last."
    assert (found.rule, place(found)) == ("x", (2, 2, 2, 7))
