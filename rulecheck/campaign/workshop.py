"""The processes of one run, and the dialect they share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rulecheck import dialects
from rulecheck.contract import support
from rulecheck.egraph.client import Engine
from rulecheck.instantiate import TypeTuple
from rulecheck.records import (
    Call,
    Comparable,
    Declaration,
    DType,
    Failure,
    FailureKind,
    InstanceBatch,
    Judged,
    JudgeReply,
    JudgeRequest,
    Limits,
    Lit,
    MatchReply,
    RuleFile,
    Settings,
    TermTable,
)
from rulecheck.workers import Startable, Worker

NUMERICS = "rulecheck.children.numerics"
# A batch is a few dozen small calls, well under a second; one that hangs costs this much, and then
# each of its cases until ``MAX_LOST`` of them did.
JUDGE_TIMEOUT_S = 30.0
CHUNK = 24
MAX_LOST = 3
_GIVEN_UP = Failure(FailureKind.CRASH, "Earlier cases crashed or hung; this one was not tried.")
_STOPPED = Failure(FailureKind.CRASH, "The run was interrupted.")


class Workshop(Startable):
    """The engine's child and the numerics child, started together and used in turn."""

    def __init__(self, settings: Settings, sources: dict[str, bytes] | None = None) -> None:
        """Prepare; nothing runs before the context is entered.

        Args:
            settings: what to do.
            sources: bytes of files that were read before; workshops that share it judge the same
                text even if a file changes while they run.

        Raises:
            UserError: the dialect does not exist.
        """
        self.settings = settings
        self._sources = {} if sources is None else sources
        self.vocabulary = dialects.load(settings.dialect)
        self.limits = Limits()
        self.engine = Engine(
            self.vocabulary.declarations(), self.vocabulary.declarations_path, self.limits
        )
        self._numerics: Worker[JudgeReply | Failure] = Worker(NUMERICS, JudgeReply | Failure)
        self.types = supported_types()
        self._loaded: tuple[tuple[str, ...], RuleFile | Failure] | None = None
        self._stopped = False

    def start(self) -> None:
        """Start both children; they import while the parent reads files."""
        self.engine.start()
        self._numerics.start()

    def close(self) -> None:
        """Stop both children."""
        self.engine.close()
        self._numerics.close()

    def stop(self) -> None:
        """Give up, from another thread: what waits fails at once, and nothing is retried."""
        self._stopped = True
        self.engine.interrupt()
        self._numerics.interrupt()

    def match(
        self, rule_index: int, batch: InstanceBatch, before: tuple[int, ...] = ()
    ) -> MatchReply | Failure:
        """Apply one rule of the loaded file to a batch of instances, after the rules ``before``."""
        return _STOPPED if self._stopped else self.engine.match(rule_index, batch, before)

    def load(
        self, path: str, context: tuple[str, ...] = (), *, whole: bool = False
    ) -> RuleFile | Failure:
        """Read a rule file through the engine's child, unless it is loaded already.

        Args:
            path: the file.
            context: files that declare what this one uses.
            whole: take all rules of these files, not only those that derive facts.

        Raises:
            OSError: a file cannot be read.
        """
        key = (path, *context, "whole" if whole else "")
        if self._loaded is None or self._loaded[0] != key:
            known = tuple((other, self._read(other)) for other in context)
            self._loaded = (key, self.engine.load(path, self._read(path), known, whole=whole))
        return self._loaded[1]

    def _read(self, path: str) -> bytes:
        if path not in self._sources:
            with Path(path).open("rb") as stream:
                self._sources[path] = stream.read(self.limits.file_bytes + 1)
        return self._sources[path]

    def judge(
        self, items: Sequence[Comparable], elements: int = 0, *, salt: int = 0
    ) -> list[Judged | Failure]:
        """Judge members in batches; a batch that fails is tried again case by case.

        ``salt`` is added to the seed of the inputs.

        After ``MAX_LOST`` cases that crashed or hung the others are not tried: a backend that
        always does would cost its time limit for each of them.
        """
        answers: list[Judged | Failure] = []
        lost: list[Failure] = []
        for start in range(0, len(items), CHUNK):
            chunk = items[start : start + CHUNK]
            reply = _GIVEN_UP if len(lost) >= MAX_LOST else self._ask(chunk, elements, salt)
            if isinstance(reply, JudgeReply):
                answers.extend(reply.answers)
                continue
            for item in chunk:
                answer = lost[-1] if len(lost) >= MAX_LOST else self._one(item, elements, salt)
                if isinstance(answer, Failure):
                    lost.append(answer)
                answers.append(answer)
        return answers

    def _one(self, item: Comparable, elements: int, salt: int) -> Judged | Failure:
        reply = self._ask((item,), elements, salt)
        return reply if isinstance(reply, Failure) else reply.answers[0]

    def _ask(self, items: Sequence[Comparable], elements: int, salt: int) -> JudgeReply | Failure:
        if self._stopped:
            return _STOPPED
        seed = self.settings.seed + salt
        request = JudgeRequest(self.settings.backend, seed, tuple(items), elements)
        return self._numerics.request(request, JUDGE_TIMEOUT_S)


def supported_types() -> tuple[TypeTuple, ...]:
    """Type combinations of the support table that the dialects can name, documented ones first."""
    by_name = {dtype.name: dtype for dtype in DType}
    merged: dict[tuple[DType, DType, DType, DType], frozenset[str]] = {}
    for row in support.rows():
        names = (row.a, row.b, row.c, row.d)
        if all(name in by_name for name in names):
            a, b, c, d = (by_name[name] for name in names)
            merged[a, b, c, d] = merged.get((a, b, c, d), frozenset()) | frozenset(row.compute)
    order = sorted(merged.items(), key=lambda entry: _preference(entry[0]))
    return tuple(TypeTuple(*dtypes, compute) for dtypes, compute in order)


_FAVOURITES = (DType.F32, DType.BF16, DType.F16, DType.F64, DType.E4M3, DType.E5M2)


def _preference(dtypes: tuple[DType, ...]) -> tuple[bool, tuple[int, ...]]:
    """Uniform types first, then in the order in which they are used most."""
    return (len(set(dtypes)) > 1, tuple(_FAVOURITES.index(dtype) for dtype in dtypes))


def table_rows(file: RuleFile, table: TermTable) -> dict[str, frozenset[tuple[int, ...]]]:
    """Relations that are fixed tables: those with ground rows, as terms of ``table``.

    A relation without rows is derived by rules; only the engine knows what it holds.
    """
    rows: dict[str, set[tuple[int, ...]]] = {}
    for fact in file.facts:
        rows.setdefault(fact.fn, set()).add(tuple(_ground(arg, table) for arg in fact.args))
    return {name: frozenset(found) for name, found in rows.items()}


def _ground(expr: object, table: TermTable) -> int:
    if isinstance(expr, Lit) and expr.value is not None:
        return table.literal(expr.sort, expr.value)
    assert isinstance(expr, Call), "ground rows hold no variables"
    return table.add(expr.fn, *(_ground(arg, table) for arg in expr.args))


def signatures(file: RuleFile) -> dict[str, Declaration]:
    """Every declared function, constructor and relation by name."""
    kinds = ("constructor", "function", "relation")
    return {item.name: item for item in file.declarations if item.kind in kinds}
