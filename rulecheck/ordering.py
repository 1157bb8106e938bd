"""Which of two verdicts is worse."""

from __future__ import annotations

from collections.abc import Iterable

from rulecheck.records import Verdict

# Worst first. Silently wrong numbers come before a call that is refused, any error before what
# is inconclusive, and that before what is fine.
_ORDER = (
    Verdict.INVALID,
    Verdict.MISREAD,
    Verdict.MISMATCH,
    Verdict.ROUNDING_ADDED,
    Verdict.ILLEGAL,
    Verdict.CRASH,
    Verdict.UNTRUSTED,
    Verdict.TIMEOUT,
    Verdict.UNSUPPORTED,
    Verdict.VACUOUS,
    Verdict.ROUNDING_ELIDED,
    Verdict.NEAR_TIE,
    Verdict.AGREES,
)


def badness(verdict: Verdict) -> int:
    """Rank of a verdict, 0 for the worst."""
    return _ORDER.index(verdict)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; ``vacuous`` for none, because nothing was shown."""
    return min(verdicts, key=badness, default=Verdict.VACUOUS)
