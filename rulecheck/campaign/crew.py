"""Workshops that judge rules side by side. Threads suffice: the work is in the children."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import queue
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from rulecheck.campaign.context import find_context
from rulecheck.campaign.findings import judge_rule, problem_finding, problem_findings
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.pairs import PairResult, judge_pairs
from rulecheck.campaign.workshop import Workshop
from rulecheck.lint import lint
from rulecheck.records import (
    Failure,
    FailureKind,
    Finding,
    Problem,
    RuleFile,
    Settings,
    Severity,
    Span,
    Verdict,
)
from rulecheck.severity import severity

Progress = Callable[[str], None]
Task = TypeVar("Task")
Answer = TypeVar("Answer")
MAX_JOBS = 8
# Codes of rules that do not fire by themselves; they may after another one.
NEVER_FIRED = ("RC402", "RC413")
# More files than this are hardly one program; then rules have neighbours in their own file only.
MAX_PROGRAM = 40


class PairTask(NamedTuple):
    """A rule to be applied after others: the files of its program, then its file and name."""

    files: tuple[str, ...]
    file: str
    name: str


class Crew:
    """The workshops of one run and what they have read."""

    def __init__(self, settings: Settings, stack: contextlib.ExitStack) -> None:
        """Start the first workshop; ``stack`` closes all of them."""
        self._settings = settings
        self._stack = stack
        self._idle: queue.SimpleQueue[Workshop] = queue.SimpleQueue()
        self._files: dict[str, RuleFile] = {}
        self._contexts: dict[str, tuple[str, ...]] = {}
        self._tasks: list[tuple[str, int]] = []
        self._sources: dict[str, bytes] = {}
        self._shops: list[Workshop] = []
        self._first = self._hire()

    def _hire(self) -> Workshop:
        shop = self._stack.enter_context(Workshop(self._settings, self._sources))
        self._shops.append(shop)
        self._idle.put(shop)
        return shop

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

    def judge_rules(self, progress: Progress) -> list[Finding]:
        """Judge all rules that were read, each by itself."""
        return self._share(self._tasks, lambda shop, task: self._judge_one(shop, task, progress))

    def judge_pairs(self, findings: Sequence[Finding], progress: Progress) -> list[PairResult]:
        """Judge each rule that is not wrong by itself after those that make something for it."""
        wrong = frozenset(
            (item.file, item.rule or "") for item in findings if item.severity is Severity.ERROR
        )
        right = [
            (item.file, item.rule)
            for item in findings
            if item.rule
            and (item.severity in (Severity.OK, Severity.WARNING) or item.code in NEVER_FIRED)
        ]
        paths = tuple(self._contexts)
        tasks = [
            PairTask(paths if len(paths) <= MAX_PROGRAM else (file,), file, name)
            for file, name in right
        ]

        def judge(shop: Workshop, task: PairTask) -> PairResult:
            return self._judge_pair(shop, task, wrong, progress)

        return self._share(tasks, judge)

    def _share(
        self, tasks: Sequence[Task], work: Callable[[Workshop, Task], Answer]
    ) -> list[Answer]:
        """Let the workshops do the tasks; answers come in the order of the tasks."""
        jobs = min(self._settings.jobs or usable_cores(), len(tasks), MAX_JOBS)
        while len(self._shops) < jobs:
            self._hire()

        def one(task: Task) -> Answer:
            shop = self._idle.get()
            try:
                return work(shop, task)
            finally:
                self._idle.put(shop)

        answers: list[Answer] = []
        with concurrent.futures.ThreadPoolExecutor(max(jobs, 1)) as pool:
            waiting = [pool.submit(one, task) for task in tasks]
            try:
                answers.extend(future.result() for future in waiting)
            finally:
                if len(answers) < len(waiting):  # interrupted: do not wait for what still runs
                    pool.shutdown(wait=False, cancel_futures=True)
                    for shop in self._shops:
                        shop.stop()
        return answers

    def _judge_one(self, shop: Workshop, task: tuple[str, int], progress: Progress) -> Finding:
        path, index = task
        context = self._contexts[path]
        file = shop.load(path, context)
        if isinstance(file, Failure):
            return _not_loaded(path, file, self._settings)
        progress(f"{path}: {file.rules[index].name}")
        lints = lint(file.rules[index], file, shop.vocabulary)
        finding = judge_rule(RuleRun(shop, file, index, context))
        return msgspec.structs.replace(finding, lints=lints)

    def _judge_pair(
        self,
        shop: Workshop,
        task: PairTask,
        wrong: frozenset[tuple[str, str]],
        progress: Progress,
    ) -> PairResult:
        first, *others = task.files
        program = shop.load(first, tuple(others), whole=True)
        if isinstance(program, Failure):
            return PairResult()
        for index, rule in enumerate((*program.rules, *program.neighbours)):
            if (rule.span.file, rule.name) == (task.file, task.name):
                progress(f"{task.file}: {task.name} and its neighbours")
                return judge_pairs(RuleRun(shop, program, index, tuple(others)), wrong)
        return PairResult()  # another file has a rule of this name: they are no one program


def merge(findings: Sequence[Finding], pairs: Sequence[PairResult]) -> list[Finding]:
    """Findings on rules and on pairs; a rule that fires only after others has their verdict.

    If one of its pairs is wrong, that is the finding, and the rule by itself stays unjudged.
    """
    instead = {
        (result.whole.file, result.whole.rule): result.whole
        for result in pairs
        if result.whole is not None and result.whole.severity is not Severity.ERROR
    }
    merged = []
    for finding in findings:
        other = instead.get((finding.file, finding.rule))
        if finding.code in NEVER_FIRED and other is not None:
            merged.append(msgspec.structs.replace(other, lints=finding.lints))
        else:
            merged.append(finding)
    return [*merged, *(item for result in pairs for item in result.findings)]


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
