"""Equality of a rule's expressions, and how long a rule may be."""

from __future__ import annotations

import time

from rulecheck.lint.classes import Classes, brief, show
from rulecheck.records import Call, Expr, Lit, Span, Var
from tests.linting import lints
from tests.rule_texts import rule

SPAN = Span("a.egg", 1, 1, 1, 2)


def var(name: str) -> Var:
    return Var(name, SPAN)


def call(fn: str, *args: Expr) -> Call:
    return Call(fn, args, SPAN)


def lit(value: float | str | bool | None, sort: str) -> Lit:
    return Lit(value, sort, SPAN)


def test_equal_arguments_make_equal_calls() -> None:
    classes = Classes()
    left, right = classes.add(call("f", call("g", var("?x")))), classes.add(call("f", var("?y")))
    assert classes.find(left) != classes.find(right)
    classes.unite(classes.add(call("g", var("?x"))), classes.add(var("?y")))
    assert classes.find(left) == classes.find(right)
    assert classes.add(call("f", call("g", var("?x")))) == classes.find(left)
    assert {show(one) for one in classes.calls(left)} == {"(f (g ?x))", "(f ?y)"}


def test_a_cycle_ends() -> None:
    classes = Classes()
    classes.unite(classes.add(var("?x")), classes.add(call("f", var("?x"))))
    assert classes.add(call("f", call("f", var("?x")))) == classes.add(var("?x"))


def test_literals_are_told_apart_by_sort_and_sign() -> None:
    classes = Classes()
    values = [
        lit(1, "i64"),
        lit(1.0, "f64"),
        lit(True, "bool"),  # noqa: FBT003 -- a literal
        lit("1", "String"),
        lit(0.0, "f64"),
        lit(-0.0, "f64"),
    ]
    assert len({classes.add(value) for value in values}) == len(values)
    assert classes.add(lit(1, "i64")) == classes.add(lit(1, "i64"))


def test_each_wildcard_is_another_one_and_stays_it() -> None:
    classes = Classes()
    first, second = var("_"), var("_")
    pattern = call("f", first)
    assert classes.add(first) == classes.add(first)
    assert classes.add(first) != classes.add(second)
    assert classes.add(pattern) == classes.add(pattern)
    assert classes.spell(classes.add(first)) is None


def test_a_class_is_spelled_by_its_constant_else_its_variable() -> None:
    classes = Classes()
    node = classes.apply("dtype", classes.add(var("?x")))
    assert classes.spell(node) is None
    classes.unite(node, classes.add(var("?t")))
    assert classes.spell(node) == "?t"
    classes.unite(node, classes.add(call("F32")))
    assert classes.spell(node) == "F32"
    assert classes.spell(classes.add(lit(2, "i64"))) == "2"


def test_expressions_are_shown_as_written() -> None:
    shown = call("f", var("?x"), lit(1.5, "f64"), lit("a", "String"), lit(True, "bool"), call("g"))  # noqa: FBT003 -- a literal
    assert show(shown) == '(f ?x 1.5 "a" true (g))'
    assert show(lit(None, "Unit")) == "()"


def test_a_long_expression_is_cut_in_messages() -> None:
    name = "?" + "n" * 500
    assert len(brief(var(name))) == 80
    assert brief(var(name)).endswith("n…")
    assert brief(var("?x")) == "?x"
    (found,) = lints(
        rule("long", f"(= ?x (Op (Sin ?s ?s {name}) ?l))", "(union ?x (Op (Exp2 ?s ?s ?s) ?l))")
    )
    assert len(found.message) < 250


def test_a_rule_as_long_as_the_reader_takes_costs_little() -> None:
    steps = "".join(
        f"(= ?x{at + 1} (Op (Exp2 ?w{at} ?s ?s) (ICons ?x{at} (INil))))\n" for at in range(300)
    )
    unions = "".join(f"(union ?x{at} ?x0)\n" for at in range(300))
    started = time.monotonic()
    (found,) = lints(rule("chain", steps, unions))
    assert "299 fields" in found.message
    assert time.monotonic() - started < 10
