"""``rulecheck check``: every rule of every file, by itself."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import platform
import queue
import sys
import time
from collections.abc import Callable
from importlib import metadata

import msgspec

from rulecheck import __version__
from rulecheck.campaign.context import find_context
from rulecheck.campaign.findings import judge_rule, problem_finding, problem_findings
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.workshop import Workshop
from rulecheck.errors import UserError
from rulecheck.lint import lint
from rulecheck.records import (
    Failure,
    FailureKind,
    Finding,
    Problem,
    Report,
    RuleFile,
    Settings,
    Span,
    Verdict,
)
from rulecheck.severity import severity

Progress = Callable[[str], None]
MAX_JOBS = 8


def check(settings: Settings, progress: Progress) -> Report:
    """Judge every rule of the files in ``settings.paths``.

    Rules are independent, so several are judged at once (``settings.jobs``, 0 for one per core);
    the report is the same whatever their number.

    Raises:
        UserError: the dialect is not known, or no rule has the name that was asked for.
    """
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        crew = _Crew(settings, stack)
        findings = [item for path in settings.paths for item in crew.read(path, progress)]
        findings += crew.plan_tasks()
        findings += crew.judge(progress)
    if settings.rule is not None and not any(item.rule == settings.rule for item in findings):
        raise UserError(
            f"no rule is called {settings.rule!r} in {', '.join(settings.paths[:3])}"
            + (" …" if len(settings.paths) > 3 else ""),
            "give the rule's :name, or file.egg:LINE for a rule without a name",
        )
    order = {path: position for position, path in enumerate(settings.paths)}
    findings.sort(key=lambda item: (order[item.file], item.span.line, item.span.column))
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


class _Crew:
    """Workshops that judge rules side by side. Threads suffice: the work is in the children."""

    def __init__(self, settings: Settings, stack: contextlib.ExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._idle: queue.SimpleQueue[Workshop] = queue.SimpleQueue()
        self._files: dict[str, RuleFile] = {}
        self._contexts: dict[str, tuple[str, ...]] = {}
        self._tasks: list[tuple[str, int]] = []
        self._sources: dict[str, bytes] = {}
        self._first = stack.enter_context(Workshop(settings, self._sources))
        self._idle.put(self._first)

    def read(self, path: str, progress: Progress) -> list[Finding]:
        """Load a file by itself; a finding if it cannot be."""
        progress(path)
        try:
            file = self._first.load(path)
        except OSError as error:
            return [_unreadable(path, f"cannot be read: {error.strerror}", self._settings)]
        if isinstance(file, Failure):
            return [_not_loaded(path, file, self._settings)]
        self._files[path] = file
        return []

    def plan_tasks(self) -> list[Finding]:
        """Give each file what it relies on; findings for what is wrong, tasks for its rules."""
        settings = self._settings
        findings: list[Finding] = []
        for path, alone in self._files.items():
            context = find_context(path, self._files)
            file = self._first.load(path, context) if context else alone
            if isinstance(file, Failure):
                findings.append(_not_loaded(path, file, settings))
                continue
            self._contexts[path] = context
            for index, rule in enumerate(file.rules):
                if settings.rule in {None, rule.name}:
                    self._tasks.append((path, index))
            found = problem_findings(file, strict=settings.strict_rounding)
            findings += [item for item in found if settings.rule in {None, item.rule}]
        return findings

    def judge(self, progress: Progress) -> list[Finding]:
        """Judge all rules that were read."""
        jobs = min(self._settings.jobs or usable_cores(), len(self._tasks), MAX_JOBS)
        more = [
            self._stack.enter_context(Workshop(self._settings, self._sources))
            for _ in range(jobs - 1)
        ]
        for shop in more:
            self._idle.put(shop)
        findings: list[Finding] = []
        with concurrent.futures.ThreadPoolExecutor(max(jobs, 1)) as pool:
            waiting = [pool.submit(self._judge_one, task, progress) for task in self._tasks]
            try:
                findings.extend(future.result() for future in waiting)
            finally:
                if len(findings) < len(waiting):  # interrupted: do not wait for what still runs
                    pool.shutdown(wait=False, cancel_futures=True)
                    for shop in (self._first, *more):
                        shop.stop()
        return findings

    def _judge_one(self, task: tuple[str, int], progress: Progress) -> Finding:
        path, index = task
        shop = self._idle.get()
        try:
            context = self._contexts[path]
            file = shop.load(path, context)
            if isinstance(file, Failure):
                return _not_loaded(path, file, self._settings)
            progress(f"{path}: {file.rules[index].name}")
            lints = lint(file.rules[index], file, shop.vocabulary)
            finding = judge_rule(RuleRun(shop, file, index, context))
            return msgspec.structs.replace(finding, lints=lints)
        finally:
            self._idle.put(shop)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _unreadable(path: str, message: str, settings: Settings) -> Finding:
    problem = Problem("encoding", message, "check the path and its permissions", _top(path))
    return problem_finding(path, [problem], strict=settings.strict_rounding)


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
