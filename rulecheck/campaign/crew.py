"""Benches that judge rules side by side. Threads suffice here: the work is in the children."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import queue
from collections.abc import Callable, Sequence

import msgspec

from rulecheck.campaign.bench import (
    Answer,
    Bench,
    Found,
    LocalBench,
    Paired,
    PairTask,
    RemoteBench,
    RuleTask,
    Task,
    WatchedShop,
)
from rulecheck.campaign.cache import Cache
from rulecheck.campaign.context import find_context
from rulecheck.campaign.findings import problem_findings
from rulecheck.campaign.pairs import PairResult
from rulecheck.campaign.troubles import not_loaded, unreadable
from rulecheck.records import Failure, Finding, RuleFile, Settings, Severity

Progress = Callable[[str], None]
MAX_JOBS = 8
# A further process pays only where it has more than one rule to judge.
TASKS_PER_JOB = 2
# Codes of rules that do not fire by themselves; they may after another one.
NEVER_FIRED = ("RC402", "RC413")
# More files than this are hardly one program; then rules have neighbours in their own file only.
MAX_PROGRAM = 40


class Crew:
    """The benches of one run and the files that it has read."""

    def __init__(self, settings: Settings, stack: contextlib.ExitStack, cache: Cache) -> None:
        """Start the first workshop; ``stack`` closes all of them."""
        self._settings = msgspec.structs.replace(settings, cache="")  # the parent's own affair
        self._cache = cache
        self._stack = stack
        self._idle: queue.SimpleQueue[Bench] = queue.SimpleQueue()
        self._files: dict[str, RuleFile] = {}
        self._contexts: dict[str, tuple[str, ...]] = {}
        self._loaded: dict[str, RuleFile] = {}  # each with its context
        self._tasks: list[RuleTask] = []
        self._sources: dict[str, bytes] = {}
        self._benches: list[Bench] = []
        self._first = stack.enter_context(WatchedShop(self._settings, self._sources))

    def read(self, path: str, progress: Progress) -> list[Finding]:
        """Load a file by itself; a finding if it cannot be."""
        progress(path)
        try:
            file = self._first.load(path)
        except OSError as error:
            return [unreadable(path, f"cannot be read: {error.strerror}", self._settings)]
        if isinstance(file, Failure):
            return [not_loaded(path, file, self._settings)]
        self._files[path] = file
        return []

    @property
    def files(self) -> list[RuleFile]:
        """All files that could be loaded, each with its context."""
        return list(self._loaded.values())

    def plan_tasks(self) -> list[Finding]:
        """Give each file what it relies on; findings for what is wrong, tasks for its rules."""
        settings = self._settings
        findings: list[Finding] = []
        for path, alone in self._files.items():
            context = find_context(path, self._files)
            file = self._first.load(path, context) if context else alone
            if isinstance(file, Failure):
                findings.append(not_loaded(path, file, settings))
                continue
            self._contexts[path] = context
            self._loaded[path] = file
            for index, rule in enumerate(file.rules):
                if settings.rule in {None, rule.name}:
                    self._tasks.append(RuleTask(path, index, rule.name, context))
            found = problem_findings(file, strict=settings.strict_rounding)
            findings += [item for item in found if settings.rule in {None, item.rule}]
        return findings

    def judge_rules(self, progress: Progress) -> list[Finding]:
        """Judge all rules that were read, each by itself."""
        answers = self._share(self._tasks, progress)
        return [item.finding for item in answers if isinstance(item, Found)]

    def judge_pairs(self, findings: Sequence[Finding], progress: Progress) -> list[PairResult]:
        """Judge each rule that is not wrong by itself after those that make something for it."""
        wrong = tuple(
            (item.file, item.rule or "") for item in findings if item.severity is Severity.ERROR
        )
        paths = tuple(self._contexts)
        tasks = [
            PairTask(
                paths if len(paths) <= MAX_PROGRAM else (item.file,), item.file, item.rule, wrong
            )
            for item in findings
            if item.rule
            and (item.severity in (Severity.OK, Severity.WARNING) or item.code in NEVER_FIRED)
        ]
        answers = self._share(tasks, progress)
        return [item.result for item in answers if isinstance(item, Paired)]

    def _share(self, tasks: Sequence[Task], progress: Progress) -> list[Answer]:
        """Let the benches do what is not known already; answers come in the order of the tasks."""
        keys = [self._cache.key(task, self._loaded) for task in tasks]
        known = [self._cache.find(key, task) for key, task in zip(keys, tasks, strict=True)]
        missing = [place for place, answer in enumerate(known) if answer is None]
        fresh = self._judge([(keys[place], tasks[place]) for place in missing], progress)
        found = iter(fresh)
        return [next(found) if answer is None else answer for answer in known]

    def _judge(self, tasks: Sequence[tuple[str, Task]], progress: Progress) -> list[Answer]:
        """Let the benches do the tasks, and keep each answer under its key."""
        if not tasks:
            return []
        jobs = self._hire(len(tasks))

        def one(key: str, task: Task) -> Answer:
            bench = self._idle.get()
            try:
                progress(f"{task.path}: {task.name}")
                answer = bench.judge(task)
            finally:
                self._idle.put(bench)
            self._cache.keep(key, answer)
            return answer

        answers: list[Answer] = []
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            waiting = [pool.submit(one, key, task) for key, task in tasks]
            try:
                answers.extend(future.result() for future in waiting)
            finally:
                if len(answers) < len(waiting):  # interrupted: do not wait for what still runs
                    pool.shutdown(wait=False, cancel_futures=True)
                    for bench in self._benches:
                        bench.stop()
        return answers

    def _hire(self, tasks: int) -> int:
        """Have enough benches for so many tasks; return how many work."""
        jobs = min(self._settings.jobs or usable_cores(), tasks // TASKS_PER_JOB, MAX_JOBS)
        if jobs < 2 and not self._benches:
            self._add(LocalBench(self._first))
        while len(self._benches) < jobs:
            remote = RemoteBench(self._settings, self._sources)
            self._add(self._stack.enter_context(remote))
        return max(len(self._benches), 1)

    def _add(self, bench: Bench) -> None:
        self._benches.append(bench)
        self._idle.put(bench)


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
