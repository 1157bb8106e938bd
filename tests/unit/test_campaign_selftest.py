"""The self-test: what works is told, and what does not is told too."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rulecheck import campaign
from rulecheck.campaign.workshop import Workshop
from rulecheck.egraph.client import Engine
from rulecheck.records import CanaryReply, Comparable, Failure, FailureKind, Judged, Verdict

GONE = Failure(FailureKind.CRASH, "gone")


def test_both_canaries_sing_here() -> None:
    engine, numerics = campaign.probe()
    assert engine[:2] == ("engine canary", True)
    assert engine[2] == "egglog 13.1.0 joins rightly"
    assert numerics[:2] == ("numerics canary", True)


@pytest.mark.parametrize(
    ("reply", "words"),
    [(GONE, "gone"), (CanaryReply("13.2.0", ok=False, answer=(1, 2)), "false matches (1, 2)")],
)
def test_an_engine_that_joins_wrongly_is_told(
    monkeypatch: pytest.MonkeyPatch, reply: CanaryReply | Failure, words: str
) -> None:
    monkeypatch.setattr(Engine, "canary", lambda _engine: reply)
    engine, numerics = campaign.probe()
    assert not engine[1]
    assert words in engine[2]
    assert numerics[1]


def test_numerics_that_die_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workshop, "judge", lambda _shop, items: [GONE] * len(items))
    _, numerics = campaign.probe()
    assert numerics == ("numerics canary", False, "gone")


def test_numerics_that_take_a_product_for_a_sum_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Workshop.judge

    def judge(shop: Workshop, items: list[Comparable]) -> list[Judged | Failure]:
        answers = original(shop, items)
        return [
            replace(one, evidence=replace(one.evidence, verdict=Verdict.AGREES))
            for one in answers
            if isinstance(one, Judged)
        ]

    monkeypatch.setattr(Workshop, "judge", judge)
    _, numerics = campaign.probe()
    assert not numerics[1]
    assert "expected agrees and mismatch, got agrees and agrees" in numerics[2]
