"""The shape of one explanation."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """What one diagnostic code means. ``verdicts`` are the words it may come with."""

    code: str
    title: str
    verdicts: tuple[str, ...]
    meaning: str
    why: str
    repair: str
    example: str
