"""What goes to the engine's child process and what comes back."""

from __future__ import annotations

import msgspec

from rulecheck.records.syntax import RuleFile
from rulecheck.records.terms import Node


class Limits(msgspec.Struct, frozen=True):
    """Bounds on one request to the engine's child."""

    seconds: float = 10.0
    memory_bytes: int = 3 << 30
    nodes: int = 200_000
    file_bytes: int = 2 << 20
    depth: int = 200


class LoadRequest(msgspec.Struct, frozen=True, tag=True):
    """Load a dialect's declarations (trusted text) and one rule file (bytes, not trusted).

    ``context`` are (path, bytes) of files that declare what this one uses. Their declarations and
    rows are loaded too, and those of their rules that only derive facts; with ``whole`` all of
    their rules.
    """

    dialect_text: str
    dialect_path: str
    path: str
    data: bytes
    limits: Limits
    context: tuple[tuple[str, bytes], ...] = ()
    whole: bool = False


class LoadReply(msgspec.Struct, frozen=True, tag=True):
    """The parsed file; the dialect's own declarations come first in ``declarations``."""

    file: RuleFile


class InstanceBatch(msgspec.Struct, frozen=True):
    """Ground graphs over one node table. ``roots[j]`` are the term ids that instance j inserts.

    ``unions`` are pairs of graph terms that are put into one class, as other rules would have.
    """

    nodes: tuple[Node, ...]
    roots: tuple[tuple[int, ...], ...]
    unions: tuple[tuple[int, int], ...] = ()


class MatchRequest(msgspec.Struct, frozen=True, tag=True):
    """Apply one rule of the loaded file (by position in ``RuleFile.rules``) to a batch.

    ``before`` are rules that are applied first, in order, by their position in the file's rules
    followed by its neighbours.
    """

    rule: int
    batch: InstanceBatch
    limits: Limits
    before: tuple[int, ...] = ()


class Member(msgspec.Struct, frozen=True):
    """One union that a firing performed: term ids in the reply's node table, before the union.

    ``claimed`` are facts that hold of either term once the rule acted, such as (("dtype", id),).
    """

    union: int  # position among the rule's unions
    left: int
    right: int
    claimed: tuple[tuple[str, int], ...] = ()


class Firing(msgspec.Struct, frozen=True):
    """One match. ``instance`` is None if it lies in no single instance.

    ``bindings`` give each body variable's term id, as found *before* the rule acted.
    """

    instance: int | None
    bindings: tuple[tuple[str, int], ...]
    members: tuple[Member, ...]


class MatchReply(msgspec.Struct, frozen=True, tag=True):
    """What one rule did to a batch.

    ``nodes`` starts with the request's nodes (same ids). ``error`` is a clean engine error
    raised when the rule itself was applied, else None. ``united`` says, per firing, whether
    the engine really merged the two sides when the rule was applied unmodified.
    ``matches_reported`` is the engine's own count of the matches.
    """

    nodes: tuple[Node, ...]
    firings: tuple[Firing, ...]
    united: tuple[bool, ...]
    matches_reported: int
    error: str | None = None


class CanaryRequest(msgspec.Struct, frozen=True, tag=True):
    """Ask whether the engine joins rightly (egglog 13.2.0 returned false matches)."""


class CanaryReply(msgspec.Struct, frozen=True, tag=True):
    """The engine's version, and its answer to a query whose only right answer is (1,)."""

    version: str
    ok: bool
    answer: tuple[int, ...]
