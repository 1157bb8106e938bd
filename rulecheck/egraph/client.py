"""The engine as the parent sees it: records in, records or a ``Failure`` out."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from rulecheck.errors import InternalError
from rulecheck.records import (
    CanaryReply,
    CanaryRequest,
    Failure,
    InstanceBatch,
    Limits,
    LoadReply,
    LoadRequest,
    MatchReply,
    MatchRequest,
    RuleFile,
)
from rulecheck.workers import Startable, Worker

_MODULE = "rulecheck.children.engine"
# The child stops by itself at its limit; this is how long it may take to say so, and to import.
_GRACE_S = 5.0

Reply = LoadReply | MatchReply | CanaryReply | Failure
Answer = TypeVar("Answer", LoadReply, MatchReply, CanaryReply)


class Engine(Startable):
    """A child process that holds one dialect and one rule file at a time.

    It is started again, and its file loaded again, when it died of the request before.
    """

    def __init__(self, dialect_text: str, dialect_path: str, limits: Limits) -> None:
        """Remember the dialect; nothing is started yet."""
        self._dialect_text = dialect_text
        self._dialect_path = dialect_path
        self._limits = limits
        self._worker: Worker[Reply] = Worker(_MODULE, Reply)
        self._loaded: LoadRequest | None = None
        self._loaded_start = 0

    def start(self) -> None:
        """Start the child; return while it is still importing."""
        self._worker.start()

    def load(
        self,
        path: str,
        data: bytes | str,
        context: tuple[tuple[str, bytes], ...] = (),
        *,
        whole: bool = False,
    ) -> RuleFile | Failure:
        """Read a rule file. What is wrong with it is in ``problems``; a ``Failure`` is fatal.

        ``data`` need not hold more than ``limits.file_bytes`` + 1 bytes of the file. ``context``
        are (path, bytes) of files that declare what this one uses; ``whole`` takes all their rules
        as neighbours, not only those that derive facts.
        """
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        self._loaded = LoadRequest(
            self._dialect_text,
            self._dialect_path,
            path,
            raw[: self._limits.file_bytes + 1],
            self._limits,
            context,
            whole,
        )
        return self._load(self._loaded)

    def match(
        self, rule_index: int, batch: InstanceBatch, before: tuple[int, ...] = ()
    ) -> MatchReply | Failure:
        """Apply one rule of the loaded file to a batch of instances, after the rules ``before``."""
        if self._loaded is None:
            raise InternalError("match before load")
        self._worker.start()
        if self._worker.starts != self._loaded_start:
            reloaded = self._load(self._loaded)
            if isinstance(reloaded, Failure):
                return reloaded
        return self._ask(MatchRequest(rule_index, batch, self._limits, before), MatchReply)

    def canary(self) -> CanaryReply | Failure:
        """Ask whether the engine joins rightly."""
        return self._ask(CanaryRequest(), CanaryReply)

    def close(self) -> None:
        """Stop the child."""
        self._worker.close()

    def interrupt(self) -> None:
        """Kill the child from another thread."""
        self._worker.interrupt()

    def _load(self, request: LoadRequest) -> RuleFile | Failure:
        reply = self._ask(request, LoadReply)
        if isinstance(reply, Failure):
            return reply
        self._loaded_start = self._worker.starts
        return reply.file

    def _ask(self, request: msgspec.Struct, kind: type[Answer]) -> Answer | Failure:
        reply = self._worker.request(request, self._limits.seconds + _GRACE_S)
        if isinstance(reply, kind | Failure):
            return reply
        raise InternalError(f"{type(request).__name__} was answered by {type(reply).__name__}")
