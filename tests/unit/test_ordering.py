"""Which of several verdicts counts."""

from __future__ import annotations

from rulecheck.ordering import badness, worst
from rulecheck.records import Severity, Verdict
from rulecheck.severity import severity


def test_every_verdict_has_one_rank() -> None:
    assert sorted(badness(verdict) for verdict in Verdict) == list(range(len(Verdict)))


def test_errors_are_worse_than_doubt_and_doubt_than_warnings() -> None:
    order = [Severity.ERROR, Severity.INCONCLUSIVE, Severity.WARNING, Severity.OK]
    by_rank = sorted(Verdict, key=badness)
    ranks = [order.index(severity(verdict)) for verdict in by_rank]
    assert ranks == sorted(ranks)


def test_the_worst_verdict_wins_whatever_the_order() -> None:
    some = [Verdict.AGREES, Verdict.MISREAD, Verdict.VACUOUS, Verdict.MISMATCH]
    assert worst(some) is worst(reversed(some)) is Verdict.MISREAD
    assert worst([Verdict.ROUNDING_ELIDED, Verdict.AGREES]) is Verdict.ROUNDING_ELIDED
    assert worst([Verdict.UNTRUSTED, Verdict.ILLEGAL]) is Verdict.ILLEGAL


def test_no_verdict_at_all_is_vacuous() -> None:
    assert worst([]) is Verdict.VACUOUS
