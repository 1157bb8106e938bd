"""What goes to the numerics child process and what comes back."""

from __future__ import annotations

import msgspec

from rulecheck.records.calls import Plan
from rulecheck.records.results import Evidence, Failure, WorstElement


class Comparable(msgspec.Struct, frozen=True):
    """A graph as written and the member that claims to be the same buffer.

    ``broken``: the member violates the contract. Then it is only run, to show what comes out;
    no oracle is asked about a call that reads foreign bytes.
    """

    original: Plan
    member: Plan
    broken: bool = False


class JudgeRequest(msgspec.Struct, frozen=True, tag=True):
    """Judge members. ``elements`` asks for that many of the worst elements of each."""

    backend: str
    seed: int
    items: tuple[Comparable, ...]
    elements: int = 0


class Judged(msgspec.Struct, frozen=True, tag=True):
    """One answer. ``operands`` are (name, text): dtype, count and first elements of each input."""

    evidence: Evidence
    elements: tuple[WorstElement, ...] = ()
    operands: tuple[tuple[str, str], ...] = ()


class JudgeReply(msgspec.Struct, frozen=True, tag=True):
    """Answers in the order of the request's items."""

    answers: tuple[Judged | Failure, ...]
