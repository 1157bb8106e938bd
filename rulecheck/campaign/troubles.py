"""Findings on what could not be judged at all: files that cannot be read, processes that died."""

from __future__ import annotations

from rulecheck.campaign.findings import problem_finding
from rulecheck.records import (
    Failure,
    FailureKind,
    Finding,
    Problem,
    Settings,
    Severity,
    Span,
    Verdict,
)
from rulecheck.severity import severity


def unreadable(path: str, message: str, settings: Settings) -> Finding:
    """A file whose bytes cannot be had."""
    problem = Problem("encoding", message, "check the path and its permissions", top(path))
    return problem_finding(path, [problem], strict=settings.strict_rounding)


def not_loaded(path: str, failure: Failure, settings: Settings) -> Finding:
    """The engine's child died while it read the file."""
    verdict = Verdict.TIMEOUT if failure.kind is FailureKind.TIMEOUT else Verdict.INVALID
    return Finding(
        rule=None,
        file=path,
        span=top(path),
        verdict=verdict,
        severity=severity(verdict, strict_rounding=settings.strict_rounding),
        code="RC431" if verdict is Verdict.TIMEOUT else "RC109",
        message=f"the engine did not survive reading the file: {failure.message}",
        hint="halve the file until the form that does it is found",
    )


def died(path: str, rule: str, failure: Failure) -> Finding:
    """The process that judged a rule died of it."""
    timeout = failure.kind is FailureKind.TIMEOUT
    return Finding(
        rule=rule,
        file=path,
        span=top(path),
        verdict=Verdict.TIMEOUT if timeout else Verdict.CRASH,
        severity=Severity.INCONCLUSIVE if timeout else Severity.ERROR,
        code="RC431" if timeout else "RC441",
        message=f"the process that judged the rule did not survive it: {failure.message}",
        hint="check the rule by itself, with --rule and --jobs 1",
    )


def top(path: str) -> Span:
    """The beginning of a file."""
    return Span(path, 1, 1, 1, 1)
