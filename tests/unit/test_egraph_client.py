"""The engine as the parent uses it: over a real child, which hostile files may kill."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rulecheck.egraph.client import Engine
from rulecheck.errors import InternalError
from rulecheck.records import (
    CanaryReply,
    Failure,
    FailureKind,
    InstanceBatch,
    Limits,
    MatchReply,
    RuleFile,
)
from tests.toy import DIALECT, FILE, PATH, Terms, place

SWAP = '(rule ((= ?s (Add ?a ?b))) ((union ?s (Add ?b ?a))) :name "swap")\n'
ROWS = "(relation row (i64))\n" + "\n".join(f"(row {index})" for index in range(60)) + "\n"
JOIN = " ".join(f"(row ?{name})" for name in "abcdefg")
EATS_MEMORY = (
    f"{SWAP}{ROWS}(relation out (i64 i64 i64 i64))\n"
    "(rule ((row ?a) (row ?b) (row ?c) (row ?d)) ((out ?a ?b ?c ?d)))"
)
EATS_TIME = f"{SWAP}{ROWS}(rule ({JOIN} (< (+ ?a ?g) -1)) ((row ?a)))"


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(DIALECT, PATH, Limits()) as running:
        yield running


def load(engine: Engine, text: str | bytes) -> RuleFile:
    file = engine.load(FILE, text)
    assert isinstance(file, RuleFile)
    return file


def sum_of_two() -> InstanceBatch:
    terms = Terms()
    return terms.batch(terms.add("Add", terms.leaf(0), terms.leaf(1)))


def fires(engine: Engine, rule: int = 0) -> int:
    reply = engine.match(rule, sum_of_two())
    assert isinstance(reply, MatchReply)
    assert reply.error is None
    return len(reply.firings)


def starts(engine: Engine) -> int:
    return engine._worker.starts


def test_the_canary_sings(engine: Engine) -> None:
    assert engine.canary() == CanaryReply("13.1.0", ok=True, answer=(1,))


def test_load_and_match(engine: Engine) -> None:
    file = load(engine, SWAP)
    assert [rule.name for rule in file.rules] == ["swap"]
    assert [fact.fn for fact in file.facts] == ["narrow"]
    assert fires(engine) == 1
    assert starts(engine) == 1


def test_the_last_file_counts(engine: Engine) -> None:
    load(engine, SWAP)
    load(engine, SWAP.replace("?a ?b)))", "?a ?a)))", 1).replace("(Add ?b ?a)", "?a"))
    assert fires(engine) == 0
    load(engine, SWAP)
    assert fires(engine) == 1


def test_match_needs_a_file(engine: Engine) -> None:
    with pytest.raises(InternalError):
        engine.match(0, sum_of_two())


@pytest.mark.parametrize(
    ("data", "kind", "line", "column"),
    [
        (b"(sort A)\n(\xff)", "encoding", 2, 2),
        ("(sort A)\n(\ud800)", "encoding", 2, 2),
        (b"(f \x00)", "encoding", 1, 4),
        (b"(" * 100_000, "too-deep", 1, 201),
        (b"x" * 1_000_000, "syntax", 1, 1),
        (b" " * 50_000_000, "too-large", 1, 1),
        ('(include "x")', "refused", 1, 2),
        ("(rule ((Foo ?x)) ())", "unknown-name", 1, 8),
        ("(rule ((Add ?x)) ())", "arity", 1, 8),
        ("(relation R (Nun))", "unknown-sort", 1, 1),
        (SWAP + SWAP, "duplicate", 2, 59),
        ("(rule ((= a b c)) ())", "syntax", 1, 8),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_bad_file_is_a_problem_and_the_next_is_judged(
    engine: Engine, data: bytes | str, kind: str, line: int, column: int
) -> None:
    begin_s = time.monotonic()
    file = load(engine, data)
    assert time.monotonic() - begin_s < 5
    (found,) = file.problems
    assert (found.kind, place(found)[:2]) == (kind, (line, column))
    load(engine, SWAP)
    assert fires(engine) == 1
    assert starts(engine) == 1, "no process died of it"


def test_what_only_the_engine_rejects_is_a_problem_too(engine: Engine) -> None:
    text = (
        '(rule ((= ?t (dtype ?b)))\n  ((subsume (dtype ?b))) :name "bad")\n'
        f"(relation from-string (Buf))\n{SWAP}"
    )
    file = load(engine, text)
    first, second = file.problems
    assert (second.kind, second.rule, place(second)[:2]) == ("type", "bad", (2, 4))
    assert "Cannot subsume" in second.message
    assert (first.rule, first.subject, place(first)[:2]) == (None, "from-string", (3, 1))
    assert [rule.name for rule in file.rules] == ["swap"]
    assert fires(engine) == 1


def test_a_file_that_the_engine_rejects_throughout(engine: Engine) -> None:
    bad = "".join(
        f'(rule ((= ?t (dtype ?b))) ((subsume (dtype ?b))) :name "bad {index}")\n'
        for index in range(40)
    )
    file = load(engine, bad + SWAP)
    assert file.rules == ()
    assert file.problems[-1].kind == "engine"
    load(engine, SWAP)
    assert fires(engine) == 1


@pytest.mark.parametrize(
    ("text", "limits", "kind"),
    [
        (EATS_MEMORY, Limits(memory_bytes=64 << 20), FailureKind.MEMORY),
        (EATS_TIME, Limits(seconds=0.5), FailureKind.TIMEOUT),
    ],
)
def test_a_file_that_kills_the_engine_costs_only_itself(
    text: str, limits: Limits, kind: FailureKind
) -> None:
    with Engine(DIALECT, PATH, limits) as engine:
        assert load(engine, text).problems == ()
        begin_s = time.monotonic()
        failure = engine.match(0, sum_of_two())
        assert isinstance(failure, Failure)
        assert failure.kind is kind
        assert time.monotonic() - begin_s < 30  # bounded, on a machine that may be busy
        load(engine, SWAP)
        assert fires(engine) == 1
        assert starts(engine) == 2


def test_the_deadline_holds_if_the_kernels_limits_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rulecheck.egraph.client._GRACE_S", 0.3)
    with Engine(DIALECT, PATH, Limits(seconds=0.2)) as engine:
        load_reply = engine.load(FILE, EATS_TIME)
        assert isinstance(load_reply, RuleFile)
        begin_s = time.monotonic()
        failure = engine.match(0, sum_of_two())
        assert time.monotonic() - begin_s < 2
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.TIMEOUT
        assert "no answer within 0.5 s" in failure.message


def test_a_new_child_learns_the_file_again(engine: Engine) -> None:
    load(engine, SWAP)
    engine.close()
    assert fires(engine) == 1
    assert starts(engine) == 2


def test_a_dialect_that_does_not_parse_is_a_failure() -> None:
    with Engine("(sort A)\n(datatype B", PATH, Limits()) as engine:
        failure = engine.load(FILE, SWAP)
    assert failure == Failure(FailureKind.CRASH, "toy.egg:2:1: This `(` is never closed.")


def test_a_dialect_that_the_engine_does_not_take_is_a_failure() -> None:
    with Engine("(datatype A (a))\n(union (a) (b))", PATH, Limits()) as engine:
        failure = engine.load(FILE, "(sort B)")
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.CRASH
    assert "does not take the dialect" in failure.message
