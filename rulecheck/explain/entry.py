"""The shape of one explanation."""

from __future__ import annotations

from typing import NamedTuple

# The word in place of a verdict for what stands beside any verdict and changes none.
LINT = "lint"


class Entry(NamedTuple):
    """What one diagnostic code means. ``verdicts`` are the words it may come with, or ``LINT``."""

    code: str
    title: str
    verdicts: tuple[str, ...]
    meaning: str
    why: str
    repair: str
    example: str
