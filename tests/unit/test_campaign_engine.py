"""An engine that dies, hangs, errs or matches wrongly: told for what it is, and no mismatch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from rulecheck.campaign.findings import judge_rule
from rulecheck.campaign.workshop import Workshop
from rulecheck.records import (
    Failure,
    FailureKind,
    Firing,
    InstanceBatch,
    MatchReply,
    Settings,
    Verdict,
)
from tests.rule_bench import Bench
from tests.rule_texts import RESIDUAL, fields, swap

UNDERIVED = """(relation blessed (IR))
(rule ((= ?x (Op (Cast ?n ?t) (ICons ?y (INil)))) (blessed ?y)) ((union ?x ?y))
  :ruleset matmul_backend :name "u")"""
# Fewer free fields, so fewer cases.
PINNED = swap(("?b_layout", '"N"'), ("?lda", "?m"), ("?ldb", "?k"))(RESIDUAL)
RULES = {"agrees": PINNED, "doubles": fields(beta="2.0")(PINNED), "underived": UNDERIVED}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Workshop(Settings(paths=())) as shop:
        yield Bench(shop, tmp_path_factory.mktemp("engine"), RULES)


Match = MatchReply | Failure


def answering(bench: Bench, monkeypatch: pytest.MonkeyPatch, change: object) -> None:
    """Let every answer of the engine pass through ``change(batch, reply)``."""
    original = bench.shop.match

    def match(rule: int, batch: InstanceBatch, before: tuple[int, ...] = ()) -> Match:
        assert callable(change)
        reply: Match = change(batch, original(rule, batch, before))
        return reply

    monkeypatch.setattr(bench.shop, "match", match)


@pytest.mark.parametrize(
    ("kind", "verdict", "code"),
    [
        (FailureKind.TIMEOUT, Verdict.TIMEOUT, "RC431"),
        (FailureKind.CRASH, Verdict.CRASH, "RC441"),
        (FailureKind.MEMORY, Verdict.CRASH, "RC441"),
    ],
)
def test_an_engine_that_always_fails_is_no_mismatch(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    kind: FailureKind,
    verdict: Verdict,
    code: str,
) -> None:
    answering(bench, monkeypatch, lambda _batch, _reply: Failure(kind, "gone"))
    finding = judge_rule(bench.run("underived"))
    assert (finding.verdict, finding.code) == (verdict, code)
    assert "gone" in finding.message


def test_the_instance_that_the_engine_dies_of_is_found_and_the_others_judged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(batch: InstanceBatch, reply: Match) -> Match:
        poisoned = any(node.value == 1 / 64 for node in batch.nodes)
        return Failure(FailureKind.CRASH, "gone") if poisoned else reply

    whole = bench.judge("agrees")
    answering(bench, monkeypatch, change)
    finding = judge_rule(bench.run("agrees"))
    assert (finding.verdict, finding.code) == (Verdict.CRASH, "RC441")
    assert 0 < finding.cases < whole.cases


def test_a_mismatch_is_not_hidden_by_a_timeout(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(batch: InstanceBatch, reply: Match) -> Match:
        poisoned = any(node.value == 1 / 64 for node in batch.nodes)
        return Failure(FailureKind.TIMEOUT, "slow") if poisoned else reply

    answering(bench, monkeypatch, change)
    assert judge_rule(bench.run("doubles")).verdict is Verdict.MISMATCH
    assert judge_rule(bench.run("agrees")).verdict is Verdict.TIMEOUT


@pytest.mark.parametrize(
    ("error", "verdict", "code"),
    [
        ("limit: more than 3 nodes", Verdict.TIMEOUT, "RC431"),
        ("illegal merge", Verdict.CRASH, "RC441"),
    ],
)
def test_an_error_of_the_engine_is_told(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    error: str,
    verdict: Verdict,
    code: str,
) -> None:
    answering(bench, monkeypatch, lambda _batch, reply: replace(reply, error=error))
    finding = judge_rule(bench.run("agrees"))
    assert (finding.verdict, finding.code) == (verdict, code)
    assert any(error in note for note in finding.notes)
    answering(bench, monkeypatch, lambda _batch, reply: replace(reply, error=error, firings=()))
    assert judge_rule(bench.run("agrees")).verdict is verdict


def test_a_match_that_does_not_hold_is_not_trusted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(firing: Firing) -> Firing:
        names = dict(firing.bindings)
        names["?m"], names["?n"] = names["?n"], names["?m"]
        return replace(firing, bindings=tuple(names.items()))

    def change(_batch: InstanceBatch, reply: MatchReply) -> MatchReply:
        return replace(reply, firings=tuple(wrong(firing) for firing in reply.firings))

    answering(bench, monkeypatch, change)
    finding = judge_rule(bench.run("agrees"))
    assert (finding.verdict, finding.code) == (Verdict.UNTRUSTED, "RC421")
    assert "the fact at line" in finding.message


def test_a_union_that_did_not_happen_is_not_trusted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(_batch: InstanceBatch, reply: MatchReply) -> MatchReply:
        return replace(reply, united=(False, *reply.united[1:]))

    answering(bench, monkeypatch, change)
    assert judge_rule(bench.run("agrees")).verdict is Verdict.UNTRUSTED


def test_matches_across_instances_are_noted_and_not_judged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(_batch: InstanceBatch, reply: MatchReply) -> MatchReply:
        first, *rest = reply.firings
        return replace(reply, firings=(replace(first, instance=None), *rest))

    whole = bench.judge("agrees")
    answering(bench, monkeypatch, change)
    finding = judge_rule(bench.run("agrees"))
    assert finding.verdict is Verdict.AGREES
    assert finding.cases < whole.cases
    assert any("no single left side" in note for note in finding.notes)
    assert any("did not fire on" in note for note in finding.notes)
