"""Rules and batches on which the engine fails, stops, or never comes to rest."""

from __future__ import annotations

import pytest

from rulecheck.egraph.bindings import Parser
from rulecheck.egraph.load import Program, RejectedError, build_egraph, read_header
from rulecheck.egraph.match import Session
from rulecheck.records import Call, InstanceBatch, Limits, MatchRequest, RuleFile, Span, TermTable
from rulecheck.rules.parse import read_dialect, read_file
from tests.matching import FUSE, double_cast, match, program
from tests.toy import Terms, read

NOWHERE = Span("", 0, 0, 0, 0)


def test_an_error_of_the_head_is_told_and_the_next_batch_is_right() -> None:
    text = '(rule ((= ?n (N ?i))) ((union ?n (N (* ?i 9223372036854775807)))) :name "over")'
    terms = Terms()
    failed = match(text, terms.batch(terms.number(2)))
    assert failed.error is not None
    assert "At 1:37 of rules/file.egg" in failed.error
    assert "* failed" in failed.error
    assert (failed.firings, failed.united) == ((), ())
    other = Terms()
    reply = match(text, other.batch(other.number(1)))
    assert reply.error is None
    assert len(reply.firings) == 1


def test_an_error_while_applying_keeps_what_was_matched() -> None:
    """The function may hold one value only; the union gives it another."""
    text = """
    (function tag (Buf) i64 :no-merge)
    (rule ((= ?b (Leaf ?i ?t))) ((set (tag ?b) ?i)) :name "tags")
    (rule ((= ?s (Add ?a ?b))) ((union ?a ?b)) :name "clash")
    """
    terms = Terms()
    batch = terms.batch(terms.add("Add", terms.leaf(0), terms.leaf(1)))
    reply = match(text, batch, rule=1)
    assert reply.error is not None
    assert len(reply.firings) == 1
    assert reply.united == ()
    other = Terms()
    same = other.add("Add", other.leaf(0), other.leaf(0))
    assert match(text, other.batch(same), rule=1).error is None


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(nodes=500), "limit: more than 500 nodes"),
        (Limits(seconds=0.0), "limit: more than 0 s"),
    ],
)
def test_context_that_never_rests_is_stopped(limits: Limits, words: str) -> None:
    text = f"{FUSE}\n(rule ((= ?n (N ?i)) (< ?i 1000000)) ((N (+ ?i 1)) (N (* 2 ?i))))"
    terms = Terms()
    reply = match(text, terms.batch(double_cast(terms, 1)), limits=limits)
    assert reply.error == words


def test_context_without_growth_that_never_rests_is_stopped() -> None:
    text = f"""{FUSE}
    (function turn (Num) Type :merge new)
    (rule ((= ?n (N ?i))) ((set (turn ?n) (F32))) :name "start")
    (rule ((= (F32) (turn ?n))) ((set (turn ?n) (F16))) :name "to")
    (rule ((= (F16) (turn ?n))) ((set (turn ?n) (F32))) :name "fro")
    """
    terms = Terms()
    reply = match(text, terms.batch(double_cast(terms, 1)))
    assert reply.error is not None
    assert "does not come to rest in 256 iterations" in reply.error


def custom(dialect_text: str, text: str) -> Session:
    """Load a file over another dialect than the toy one."""
    base = read_dialect("d.egg", dialect_text, Parser(), Limits())
    assert base.problems == ()
    file = read_file("f.egg", text.encode(), base, Parser(), Limits())
    assert file.problems == ()
    inherited = len(base.declarations)
    return Session(Program(base.commands, read_header(dialect_text), file, inherited))


def test_rulesets_that_undo_each_other_are_stopped() -> None:
    session_ = custom(
        """; rulecheck-schedule: left right
        (ruleset left) (ruleset right)
        (datatype Side (Left) (Right)) (datatype Coin (Flip i64))
        (function side (Coin) Side :merge new)
        (rule ((= ?c (Flip ?i))) ((set (side ?c) (Left))) :ruleset left)
        (rule ((= (Right) (side ?c))) ((set (side ?c) (Left))) :ruleset left)
        (rule ((= (Left) (side ?c))) ((set (side ?c) (Right))) :ruleset right)
        """,
        "(rule ((= ?c (Flip ?i))) ((union ?c (Flip 2))))",
    )
    terms = TermTable()
    coin = terms.add("Flip", terms.literal("i64", 1))
    batch = InstanceBatch(tuple(terms.nodes), ((coin,),))
    reply = session_.match(MatchRequest(0, batch, Limits()))
    assert reply.error == "limit: the facts do not come to rest in 64 rounds"


def test_a_class_without_a_term_is_told() -> None:
    """The dialect derives a term, and deletes it while a relation still knows its class."""
    session_ = custom(
        """; rulecheck-schedule: derive clean
        (ruleset derive) (ruleset clean)
        (datatype Num (N i64) (Twice Num))
        (relation seen (Num Num))
        (rule ((= ?n (N ?i))) ((seen ?n (Twice ?n))) :ruleset derive)
        (rule ((= ?t (Twice ?n)) (seen ?n ?t)) ((delete (Twice ?n))) :ruleset clean)
        """,
        "(rule ((seen ?n ?t)) ((union ?n ?t)))",
    )
    terms = TermTable()
    number = terms.add("N", terms.literal("i64", 1))
    batch = InstanceBatch(tuple(terms.nodes), ((number,),))
    reply = session_.match(MatchRequest(0, batch, Limits()))
    assert reply.error == "unreadable: a class of sort Num holds no term"


def test_an_undeclared_op_in_a_batch_is_an_error() -> None:
    terms = Terms()
    reply = match(FUSE, terms.batch(terms.add("Nobody")))
    assert reply.error is not None
    assert "Nobody" in reply.error
    assert match(FUSE, terms.batch(double_cast(terms, 0))).error is None


def test_an_item_that_only_the_engine_rejects_is_named() -> None:
    row = Call("narrow", (Call("F64", (), NOWHERE),), NOWHERE)
    file = read(FUSE)
    wrong = RuleFile(file.path, file.rules, file.declarations, (row,), (), (), file.sha256)
    with pytest.raises(RejectedError, match="F64") as caught:
        build_egraph(program(wrong))
    assert caught.value.item is row
