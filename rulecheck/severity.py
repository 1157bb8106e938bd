"""How verdicts count: the severity of each, and the exit code of a run (DESIGN section 5)."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import assert_never

from rulecheck.errors import InternalError
from rulecheck.records import Report, Severity, Verdict


class ExitCode(enum.IntEnum):
    """What the process says to its caller. USAGE and INTERNAL are never masked by a flag."""

    OK = 0
    ERROR = 1
    USAGE = 2
    INTERNAL = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130  # 128 + SIGINT, as shells expect


def severity(verdict: Verdict, *, strict_rounding: bool = False) -> Severity:
    """Return how much ``verdict`` matters.

    Args:
        verdict: the word for one rule.
        strict_rounding: whether a rounding that the graph writes down must be kept.
    """
    match verdict:
        case Verdict.AGREES | Verdict.NEAR_TIE:
            return Severity.OK
        case Verdict.ROUNDING_ELIDED:
            return Severity.ERROR if strict_rounding else Severity.WARNING
        case Verdict.ROUNDING_ADDED | Verdict.MISREAD | Verdict.ILLEGAL | Verdict.MISMATCH:
            return Severity.ERROR
        case Verdict.INVALID | Verdict.CRASH:
            return Severity.ERROR
        case Verdict.VACUOUS | Verdict.UNSUPPORTED | Verdict.UNTRUSTED | Verdict.TIMEOUT:
            return Severity.INCONCLUSIVE
        case _:
            assert_never(verdict)


def exit_code(report: Report, *, allow_empty: bool = False, exit_zero: bool = False) -> ExitCode:
    """Return the exit code of a run that produced ``report``.

    Args:
        report: what the run found. Its format plays no part.
        allow_empty: a run that had nothing to check succeeds.
        exit_zero: findings of any kind succeed.

    Raises:
        InternalError: a finding passes although nothing was compared. No vacuous pass.
    """
    for finding in report.findings:
        if finding.severity in (Severity.OK, Severity.WARNING) and not finding.compared:
            msg = f"{finding.file}: {finding.rule} is {finding.verdict.value} with nothing compared"
            raise InternalError(msg)
    if not report.findings:
        return ExitCode.OK if allow_empty or exit_zero else ExitCode.INCONCLUSIVE
    return ExitCode.OK if exit_zero else worst_exit(finding.severity for finding in report.findings)


def worst_exit(severities: Iterable[Severity]) -> ExitCode:
    """Return the exit code that the worst of ``severities`` calls for: errors win over doubt."""
    present = set(severities)
    if Severity.ERROR in present:
        return ExitCode.ERROR
    if Severity.INCONCLUSIVE in present:
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK
