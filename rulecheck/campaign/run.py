"""``rulecheck check``: every rule of every file, by itself."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata

from rulecheck import __version__
from rulecheck.campaign.findings import judge_rule, problem_finding
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.workshop import Workshop
from rulecheck.errors import UserError
from rulecheck.records import (
    Failure,
    FailureKind,
    Finding,
    Problem,
    Report,
    Settings,
    Span,
    Verdict,
)
from rulecheck.severity import severity

Progress = Callable[[str], None]


def check(settings: Settings, progress: Progress) -> Report:
    """Judge every rule of the files in ``settings.paths``.

    Raises:
        UserError: the dialect is not known, or no rule has the name that was asked for.
    """
    started = time.monotonic()
    findings: list[Finding] = []
    with Workshop(settings) as shop:
        for path in settings.paths:
            progress(path)
            findings.extend(check_file(shop, path, progress))
    if settings.rule is not None and not any(item.rule == settings.rule for item in findings):
        raise UserError(
            f"no rule is called {settings.rule!r} in {len(settings.paths)} files",
            "give the rule's :name, or file.egg:LINE for a rule without a name",
        )
    return Report(
        tool=f"rulecheck {__version__}",
        environment=environment(settings),
        argv=tuple(sys.argv),
        seed=settings.seed,
        findings=tuple(findings),
        elapsed_s=time.monotonic() - started,
        files=len(settings.paths),
        strict_rounding=settings.strict_rounding,
    )


def check_file(shop: Workshop, path: str, progress: Progress) -> list[Finding]:
    """Findings of one file, in the order of their places."""
    settings = shop.settings
    try:
        file = shop.load(path)
    except OSError as error:
        return [_unreadable(path, f"cannot be read: {error.strerror}", settings)]
    if isinstance(file, Failure):
        return [_not_loaded(path, file, settings)]
    findings = [
        problem_finding(path, problem, strict=settings.strict_rounding)
        for problem in file.problems
        if settings.rule in (None, problem.rule)
    ]
    for index, rule in enumerate(file.rules):
        if settings.rule in (None, rule.name):
            progress(f"{path}: {rule.name}")
            findings.append(judge_rule(RuleRun(shop, file, index)))
    return sorted(findings, key=lambda item: (item.span.line, item.span.column))


def _unreadable(path: str, message: str, settings: Settings) -> Finding:
    problem = Problem("encoding", message, "check the path and its permissions", _top(path))
    return problem_finding(path, problem, strict=settings.strict_rounding)


def _not_loaded(path: str, failure: Failure, settings: Settings) -> Finding:
    """The engine's child died while it read the file."""
    verdict = Verdict.TIMEOUT if failure.kind is FailureKind.TIMEOUT else Verdict.INVALID
    return Finding(
        rule=None,
        file=path,
        span=_top(path),
        verdict=verdict,
        severity=severity(verdict, strict_rounding=settings.strict_rounding),
        code="RC431" if verdict is Verdict.TIMEOUT else "RC109",
        message=f"the engine did not survive reading the file: {failure.message}",
        hint="halve the file until the form that does it is found",
    )


def _top(path: str) -> Span:
    return Span(path, 1, 1, 1, 1)


def environment(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What a result depends on."""
    found = [("python", platform.python_version()), ("platform", platform.platform())]
    for name in ("egglog", "numpy", "ml_dtypes"):
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append((name, "not installed"))
    return (*found, ("dialect", settings.dialect), ("backend", settings.backend))
