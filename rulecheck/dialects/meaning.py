"""What the rows of a dialect's relations state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from rulecheck.dialects.terms import TermReader
from rulecheck.records import TermTable


class Truth(NamedTuple):
    """Whether a row states something true; ``holds`` is None where that cannot be told."""

    holds: bool | None
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class Meaning:
    """What a row of a relation, or a value of a function, states about the terms in it.

    ``check`` reads the row's terms (the value of a function comes last). ``graphs`` turns them
    into two graphs, of which the row says that they are one buffer: (reference, what is claimed).
    """

    check: Callable[[TermReader, tuple[int, ...]], Truth] | None = None
    graphs: Callable[[TermTable, tuple[int, ...]], tuple[int, int]] | None = None
