"""Where rules are judged: in this process, or in one beside it.

Building left sides is work for a processor of its own, and threads would share one. So a run with
several jobs has a process for each, which owns the engine and the numerics that its rules need.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from rulecheck.campaign.findings import judge_rule
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.pairs import PairResult, judge_pairs
from rulecheck.campaign.trial import ENGINE_BUDGET_S
from rulecheck.campaign.troubles import died, not_loaded
from rulecheck.campaign.workshop import Workshop
from rulecheck.errors import InternalError
from rulecheck.lint import lint
from rulecheck.records import (
    Comparable,
    Failure,
    FailureKind,
    Finding,
    InstanceBatch,
    Judged,
    MatchReply,
    Settings,
)
from rulecheck.workers import Startable, Worker, serve

# Every step of a rule has its own limit; this is for what none of them foresees.
TIMEOUT_S = 900.0


class RuleTask(msgspec.Struct, frozen=True, tag=True):
    """One rule by itself: its file, its position there, and the files that this relies on."""

    path: str
    index: int
    name: str
    context: tuple[str, ...]


class PairTask(msgspec.Struct, frozen=True, tag=True):
    """One rule after others: the files of the program, the rule's file and name.

    ``wrong`` are (file, name) of rules that are wrong by themselves.
    """

    files: tuple[str, ...]
    path: str
    name: str
    wrong: tuple[tuple[str, str], ...]


class Setup(msgspec.Struct, frozen=True, tag=True):
    """What to judge by, and the bytes of all files, so that every process judges the same text."""

    settings: Settings
    sources: dict[str, bytes]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The set-up is understood."""


class Found(msgspec.Struct, frozen=True, tag=True):
    """The finding on one rule.

    It is ``complete`` if no process failed and no time limit was near on the way to it; then the
    same rule has the same finding at any time.
    """

    finding: Finding
    complete: bool = True


class Paired(msgspec.Struct, frozen=True, tag=True):
    """What came of the pairs of one rule; ``complete`` as above."""

    result: PairResult
    complete: bool = True


class Broken(msgspec.Struct, frozen=True, tag=True):
    """A defect of this program, with its place."""

    message: str


Task = RuleTask | PairTask
Answer = Found | Paired
Reply = Ready | Answer | Broken | Failure


class Bench(Protocol):
    """Judges one task after the other."""

    def judge(self, task: Task) -> Answer:
        """Judge one rule, by itself or after its neighbours."""

    def stop(self) -> None:
        """Give up, from another thread."""


class WatchedShop(Workshop):
    """A workshop that remembers whether a child ever failed at what it was asked.

    Such a failure need not show: what is wrong on other graphs is worse than a limit reached on
    one, and a guard that could not be tried is not offered.
    """

    troubled = False

    def match(
        self, rule_index: int, batch: InstanceBatch, before: tuple[int, ...] = ()
    ) -> MatchReply | Failure:
        """Apply one rule of the loaded file to a batch of instances, after the rules ``before``."""
        reply = super().match(rule_index, batch, before)
        self.troubled |= isinstance(reply, Failure) or reply.error is not None
        return reply

    def judge(
        self, items: Sequence[Comparable], elements: int = 0, *, salt: int = 0
    ) -> list[Judged | Failure]:
        """Judge members in batches; a batch that fails is tried again case by case."""
        answers = super().judge(items, elements, salt=salt)
        self.troubled |= any(
            isinstance(answer, Failure) and answer.kind not in _LASTING for answer in answers
        )
        return answers


# What a backend cannot do or refuses today, it does not tomorrow.
_LASTING = (FailureKind.UNSUPPORTED, FailureKind.ILLEGAL)


class LocalBench:
    """Judges in this process."""

    def __init__(self, shop: WatchedShop) -> None:
        """Use a workshop that is running."""
        self.shop = shop

    def judge(self, task: Task) -> Answer:
        """Judge one rule, by itself or after its neighbours."""
        self.shop.troubled, started = False, time.monotonic()
        answer = self._pairs(task) if isinstance(task, PairTask) else self._rule(task)
        # The engine's part may have been cut short only in what took longer than that.
        hurried = time.monotonic() - started > ENGINE_BUDGET_S
        if self.shop.troubled or hurried:
            return msgspec.structs.replace(answer, complete=False)
        return answer

    def stop(self) -> None:
        """Give up, from another thread."""
        self.shop.stop()

    def _rule(self, task: RuleTask) -> Found:
        file = self.shop.load(task.path, task.context)
        if isinstance(file, Failure):
            return Found(not_loaded(task.path, file, self.shop.settings), complete=False)
        lints = lint(file.rules[task.index], file, self.shop.vocabulary)
        finding = judge_rule(RuleRun(self.shop, file, task.index, task.context))
        return Found(msgspec.structs.replace(finding, lints=lints))

    def _pairs(self, task: PairTask) -> Paired:
        first, *others = task.files
        program = self.shop.load(first, tuple(others), whole=True)
        if isinstance(program, Failure):
            lost = died(task.path, task.name, program)
            return Paired(PairResult(findings=[lost]), complete=False)
        for index, rule in enumerate((*program.rules, *program.neighbours)):
            if (rule.span.file, rule.name) == (task.path, task.name):
                run = RuleRun(self.shop, program, index, tuple(others))
                return Paired(judge_pairs(run, frozenset(task.wrong)))
        return Paired(PairResult())  # another file has a rule of this name: they are no one program


class RemoteBench(Startable):
    """Judges in a process of its own."""

    def __init__(self, settings: Settings, sources: dict[str, bytes]) -> None:
        """Prepare; the process starts with the context."""
        self._settings = settings
        self._setup = Setup(settings, dict(sources))
        self._worker: Worker[Reply] = Worker(__name__, Reply)
        self._known = 0

    def start(self) -> None:
        """Start the process; it sets itself up while others are judged."""
        self._worker.start()

    def close(self) -> None:
        """Stop the process and everything it started."""
        self._worker.close()

    def stop(self) -> None:
        """Give up, from another thread."""
        self._worker.interrupt()

    def judge(self, task: Task) -> Answer:
        """Judge one rule, by itself or after its neighbours.

        Raises:
            InternalError: the program itself failed there.
        """
        self._worker.start()
        if self._worker.starts != self._known:
            self._known = self._worker.starts
            ready = self._worker.request(self._setup, TIMEOUT_S)
            if not isinstance(ready, Ready):
                return self._trouble(task, ready)
        reply = self._worker.request(task, TIMEOUT_S)
        return reply if isinstance(reply, Found | Paired) else self._trouble(task, reply)

    def _trouble(self, task: Task, reply: Reply) -> Answer:
        if isinstance(reply, Failure):
            if isinstance(task, PairTask):
                lost = died(task.path, task.name, reply)
                return Paired(PairResult(findings=[lost]), complete=False)
            return Found(died(task.path, task.name, reply), complete=False)
        what = reply.message if isinstance(reply, Broken) else type(reply).__name__
        raise InternalError(what)


class _Server:
    """The process's side: one workshop, set up by the first request."""

    def __init__(self) -> None:
        self._bench: LocalBench | None = None

    def answer(self, request: Setup | RuleTask | PairTask) -> Reply:
        try:
            return self._answer(request)
        except Exception as error:  # noqa: BLE001 -- told to the parent, which raises it again
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
            return Broken(f"{type(error).__name__}: {error} (at {place})")

    def _answer(self, request: Setup | RuleTask | PairTask) -> Reply:
        if isinstance(request, Setup):
            shop = WatchedShop(request.settings, request.sources)
            shop.start()
            self._bench = LocalBench(shop)
            return Ready()
        assert self._bench is not None, "a task before the set-up"
        return self._bench.judge(request)

    def close(self) -> None:
        if self._bench is not None:
            self._bench.shop.close()


def main() -> None:
    """Serve tasks until the parent closes the pipe."""
    server = _Server()
    try:
        serve(server.answer, Setup | RuleTask | PairTask)
    finally:
        server.close()


if __name__ == "__main__":
    main()
