from __future__ import annotations

import pytest

from rulecheck.errors import InternalError
from rulecheck.records import Severity, Verdict
from rulecheck.severity import ExitCode, exit_code, severity
from tests import samples

TABLE = {
    Verdict.AGREES: Severity.OK,
    Verdict.NEAR_TIE: Severity.OK,
    Verdict.ROUNDING_ELIDED: Severity.WARNING,
    Verdict.ROUNDING_ADDED: Severity.ERROR,
    Verdict.MISREAD: Severity.ERROR,
    Verdict.ILLEGAL: Severity.ERROR,
    Verdict.MISMATCH: Severity.ERROR,
    Verdict.INVALID: Severity.ERROR,
    Verdict.CRASH: Severity.ERROR,
    Verdict.VACUOUS: Severity.INCONCLUSIVE,
    Verdict.UNSUPPORTED: Severity.INCONCLUSIVE,
    Verdict.UNTRUSTED: Severity.INCONCLUSIVE,
    Verdict.TIMEOUT: Severity.INCONCLUSIVE,
}


@pytest.mark.parametrize("verdict", Verdict)
def test_severities_are_those_of_the_design(verdict: Verdict) -> None:
    assert severity(verdict) is TABLE[verdict]


@pytest.mark.parametrize("verdict", Verdict)
def test_strict_rounding_changes_the_skipped_rounding_only(verdict: Verdict) -> None:
    strict = severity(verdict, strict_rounding=True)
    if verdict is Verdict.ROUNDING_ELIDED:
        assert strict is Severity.ERROR
    else:
        assert strict is TABLE[verdict]


def test_errors_win_over_doubt_and_doubt_over_success() -> None:
    fine, warning, doubt, wrong = (
        samples.finding(),
        samples.elided(),
        samples.vacuous(),
        samples.misread(),
    )
    assert exit_code(samples.report(fine, warning)) is ExitCode.OK
    assert exit_code(samples.report(fine, doubt)) is ExitCode.INCONCLUSIVE
    assert exit_code(samples.report(doubt, wrong, fine)) is ExitCode.ERROR


def test_nothing_checked_is_inconclusive_unless_allowed() -> None:
    assert exit_code(samples.report()) is ExitCode.INCONCLUSIVE
    assert exit_code(samples.report(), allow_empty=True) is ExitCode.OK


def test_allow_empty_excuses_no_finding() -> None:
    assert exit_code(samples.report(samples.vacuous()), allow_empty=True) is ExitCode.INCONCLUSIVE


def test_exit_zero_covers_findings() -> None:
    assert exit_code(samples.report(samples.misread()), exit_zero=True) is ExitCode.OK
    assert exit_code(samples.report(samples.vacuous()), exit_zero=True) is ExitCode.OK


@pytest.mark.parametrize("exit_zero", [True, False])
def test_success_without_a_comparison_is_a_bug_of_ours(exit_zero: bool) -> None:
    report = samples.report(samples.finding(compared=0))
    with pytest.raises(InternalError, match="nothing compared"):
        exit_code(report, exit_zero=exit_zero)
