"""What is there already: a declaration or a rule that agrees is one, one that differs is shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rulecheck.egraph.bindings import Parser
from rulecheck.egraph.client import Engine
from rulecheck.records import InstanceBatch, Limits, MatchReply, Problem, RuleFile
from rulecheck.rules.parse import read_file
from rulecheck.rules.same import canonical, is_named
from tests.toy import DIALECT, FILE, PATH, Terms, dialect, only_rule, place, problem, read

SAME = [
    ("(rewrite (Add a b) (Add b a))", "(rule ((= ?s (Add ?x ?y))) ((union ?s (Add ?y ?x))))"),
    ("(rule ((Cast ?a _ (F32))) ((narrow (F32))))", "(rule ((Cast ?a ?n (F32))) ((narrow (F32))))"),
    ("(rule ((Cast _ _ ?t)) ((narrow ?t)))", '(rule ((Cast ?a ?n ?t)) ((narrow ?t)) :name "x")'),
    (
        "(rule ((= a (Leaf i t))) ((let b a) (set (dtype b) t)))",
        "(rule ((= t (Leaf u b))) ((let i t) (set (dtype i) b)) :ruleset types)",
    ),
    (
        "(rewrite (Scale a 0.5) a :when ((!= a (Scale a 1.0))) :subsume)",
        "(rule ((= r (Scale x 0.5)) (!= x (Scale x 1.0))) ((union r x) (subsume (Scale x 0.5))))",
    ),
]  # fmt: skip
OTHER = [
    ("(rule ((Add ?a ?b)) ())", "(rule ((Add ?a ?a)) ())"),
    ("(rule ((Cast _ _ ?t)) ())", "(rule ((Cast ?a ?n ?t) (Times ?n ?n)) ())"),
    ("(rule ((Scale ?a 0.0)) ())", "(rule ((Scale ?a -0.0)) ())"),
    ('(rule ((Named ?a "1" true)) ())', '(rule ((Named ?a "1" false)) ())'),
    ("(rule ((Add ?a ?b)) ((delete (Add ?a ?b))))", "(rule ((Add ?a ?b)) ((subsume (Add ?a ?b))))"),
    ("(rule ((Add ?a ?b) (narrow ?t)) ())", "(rule ((Add ?a ?b)) ())"),
    ("(rule ((= ?a (Add ?a ?b))) ())", "(rule ((= ?b (Add ?a ?b))) ())"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_rules_that_are_one(one: str, other: str) -> None:
    assert canonical(only_rule(one)) == canonical(only_rule(other))


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_rules_that_are_two(one: str, other: str) -> None:
    assert canonical(only_rule(one)) != canonical(only_rule(other))


def test_a_rule_without_a_name_is_called_after_its_place() -> None:
    texts = [
        "(rule ((Add a a)) ())",
        "(birewrite (Add a a) (Add (Add a a) a))",
        '(rule ((Add a a)) () :name "f:1")',
    ]
    assert [[is_named(rule) for rule in read(text).rules] for text in texts] == [
        [False], [False, False], [True]
    ]  # fmt: skip
    twins = read("(rule ((Add a a)) ()) (rule ((Add a a)) ())").rules
    assert [is_named(rule) for rule in twins] == [False, False]


# Declarations

REPEATED = [
    "(sort Buf)",
    "(datatype Num (N i64) (Times Num Num))",
    "(datatype* (Type (F16)) (Buf (Scale :source Buf :by f64)))",
    "(constructor Z () Num)",
    "(datatype Num (Z :cost 2))",
    "(constructor Z () Num :unextractable)",
    "(function lower (Num) i64 :merge (max old new))",
    "(function lower (:of Num) i64 :merge (max old new))",
    "(function dtype (Buf) Type :merge new)",
    "(relation narrow (Type))\n(narrow (F16))",
    "(relation narrow (:type Type))\n(narrow :type (F16))",
    "(ruleset algebra)",
    "(ruleset mine)\n(ruleset mine)",
    "(relation r (i64))\n(relation r (:of i64))\n(rule ((r :of ?x)) ((r 1)))",
]


@pytest.mark.parametrize("text", REPEATED)
def test_declarations_that_agree_are_one(text: str) -> None:
    file = read(text)
    assert file.problems == ()
    names = [(item.kind == "ruleset", item.name) for item in file.declarations]
    assert len(set(names)) == len(names)


CLASHES = [
    ("(function lower (Num) i64 :merge new)",
     "(function lower (Num) i64 :merge new)", "(function lower (Num) i64 :merge (max old new))"),
    ("(function lower (Num) i64 :no-merge)",
     "(function lower (Num) i64 :no-merge)", "(function lower (Num) i64 :merge (max old new))"),
    ("(function narrow (Type) bool :merge new)",
     "(function narrow (Type) bool :merge new)", "(relation narrow (Type))"),
    ("(relation Num (i64))", "(relation Num (i64))", "(sort Num)"),
    ("(unstable-combined-ruleset algebra types)",
     "(unstable-combined-ruleset algebra types)", "(ruleset algebra)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "here", "there"), CLASHES)
def test_declarations_that_differ_are_both_shown(text: str, here: str, there: str) -> None:
    found = problem(text)
    assert found.kind == "duplicate"
    assert f"declared as `{here}` here, and as `{there}` at toy.egg:" in found.message


def test_long_declarations_show_what_differs() -> None:
    fields = [f":field_{at} i64" for at in range(40)]
    swapped = [*fields[:20], ":other i64", *fields[21:]]
    found = problem("\n".join(f"(relation r ({' '.join(part)}))" for part in (fields, swapped)))
    assert found.message == (
        "`r` is declared as `(relation r … i64 :other i64 …` here, "
        "and as `(relation r … i64 :field_20 i64 …` at rules/file.egg:1:1."
    )
    longer = problem("\n".join(f"(relation r ({' '.join(part)}))" for part in (fields, fields[1:])))
    assert (
        "`(relation r (:field_1 i64 …` here, and as `(relation r (:field_0 i64 " in longer.message
    )


# Rules of the dialect

HALVES = """(rule ((= ?s (Scale ?a 0.5))) ((union ?s ?a)) :ruleset algebra :name "half")
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(DIALECT + HALVES, PATH, Limits()) as running:
        yield running


def load(engine: Engine, text: str, context: tuple[tuple[str, bytes], ...] = ()) -> RuleFile:
    file = engine.load(FILE, text, context)
    assert isinstance(file, RuleFile)
    return file


def firings(engine: Engine, rule: int, batch: InstanceBatch) -> list[bool]:
    """Match a rule; say for each firing whether it joined what was apart."""
    reply = engine.match(rule, batch)
    assert isinstance(reply, MatchReply)
    assert reply.error is None
    return [member.left != member.right for one in reply.firings for member in one.members]


def halved() -> InstanceBatch:
    terms = Terms()
    return terms.batch(terms.add("Scale", terms.leaf(0), terms.literal("f64", 0.5)))


@pytest.mark.parametrize("name", ["half", "mine"])
def test_a_rule_of_the_dialect_is_judged_as_the_files(engine: Engine, name: str) -> None:
    again = f'(rewrite (Scale ?x 0.5) ?x :name "{name}")'
    other = '(rule ((= ?s (Scale ?a ?f))) ((union ?s ?a)) :name "any")'
    file = load(engine, again + other)
    assert [rule.name for rule in file.rules] == [name, "any"]
    assert firings(engine, 0, halved()) == [True]
    assert firings(engine, 1, halved()) == [False], "the dialect has joined them already"
    assert firings(engine, 0, halved()) == [True]


def test_another_rule_of_that_name_is_an_error_that_shows_both(engine: Engine) -> None:
    file = load(engine, '\n(rewrite (Scale ?x 0.25) ?x :name "half")')
    assert file.rules == ()
    (found,) = file.problems
    line = DIALECT.count("\n") + 1
    assert (found.kind, found.rule, place(found)[:2]) == ("duplicate", "half", (2, 35))
    assert found.message == (
        f"The name `half` is taken by the rule at toy.egg:{line}:70, which is another: "
        "`(Scale ?x 0.25)` here, `(= ?s (Scale ?a 0.5))` there."
    )


def test_names_made_of_places_do_not_clash() -> None:
    line = next(at for at, text in enumerate(DIALECT.split("\n"), 1) if "rewrite" in text)
    text = "\n" * (line - 1) + "(rewrite (Add a b) (Add b a))"
    file = load_beside(text, f"elsewhere/{PATH}")
    assert [rule.name for rule in file.rules] == [f"{PATH}:{line}"]


def load_beside(text: str, path: str) -> RuleFile:
    file = read_file(path, text.encode(), dialect(), Parser(), Limits())
    assert file.problems == ()
    return file


# Rules of other files

BLESS = '(relation blessed (Buf))\n(rule ((= ?x (Leaf 0 _))) ((blessed ?x)) :name "bless")\n'
USE = '(rule ((= ?s (Scale ?x 0.25)) (blessed ?x)) ((union ?s ?x)) :name "use")\n'


@pytest.mark.parametrize(
    "text",
    [
        USE,
        BLESS + USE,
        USE + BLESS.replace("_", "?type").replace("?x", "?leaf"),
        USE + '(rule ((= ?x (Leaf 0 ?any))) ((blessed ?x)) :name "other")',
    ],
)
def test_a_file_may_repeat_what_its_context_has(engine: Engine, text: str) -> None:
    file = load(engine, text, (("rules/bless.egg", BLESS.encode()),))
    assert file.problems == ()
    terms = Terms()
    batch = terms.batch(terms.add("Scale", terms.leaf(0), terms.literal("f64", 0.25)))
    use = next(at for at, rule in enumerate(file.rules) if rule.name == "use")
    assert firings(engine, use, batch) == [True]


def test_a_file_may_not_change_what_its_context_has(engine: Engine) -> None:
    text = USE + BLESS.replace("0 _", "1 _").replace("(Buf)", "(Num)")
    file = load(engine, text, (("rules/bless.egg", BLESS.encode()),))
    messages = [found.message for found in file.problems]
    assert [found.subject for found in file.problems] == ["blessed", "bless"]
    assert (
        "`(relation blessed (Num))` here, and as `(relation blessed (Buf))` at rules/bless.egg:1:1"
        in messages[0]
    )
    assert (
        "rules/bless.egg:2:48, which is another: `(= ?x (Leaf 1 _))` here, `(= ?x (Leaf 0 _))`"
        in messages[1]
    )


def both(engine: Engine, one: str, other: str) -> tuple[Problem, ...]:
    return load(engine, one + other).problems


def test_one_name_twice_in_a_file(engine: Engine) -> None:
    one = '(rewrite (Add a b) a :name "r")\n'
    (same,) = both(engine, one, one)
    assert same.message == "The rule `r` stands at rules/file.egg:1:28 already."
    (other,) = both(engine, one, one.replace("b) a", "b) b"))
    assert "rules/file.egg:1:28, which is another: `b` here, `a` there" in other.message
