"""Facts to judge, from a few numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rulecheck.compare import Allowed, compare
from rulecheck.records import Stage
from rulecheck.verdict import Alternative, Common, Facts

Numbers = Sequence[float]
Alternatives = Sequence[tuple[tuple[str, ...], Allowed]]
CAST, STORE = "the Cast to Bf16", "the rounding to F16 after Add"


def span(mid: Numbers, radius: float = 0.0) -> Allowed:
    middle = np.array(mid, dtype=np.float64)
    return Allowed(middle, middle - radius, middle + radius)


def facts(
    got: Numbers,
    *,
    written: Allowed | None = None,
    member: Allowed | None = None,
    real: Allowed | None = None,
    member_real: Allowed | None = None,
    alternatives: Alternatives = (),
    control: Numbers | None = None,
    roundings: tuple[str, ...] = (),
    common: Common | None = None,
    lost: tuple[str, ...] = (),
) -> Facts:
    """Facts of a member that gives ``got``; by default both graphs mean 1 and 258."""
    written = written or span([1, 258])
    alike = common or Common(written, member or span(got), written, member or span(got))
    given = written.mid if control is None else np.array(control, dtype=np.float64)
    return Facts(
        stage=Stage.BOUND,
        control=compare(given, written),
        got=np.array(got, dtype=np.float64),
        as_written=written,
        member_as_written=lambda: member or span(got),
        float64=lambda: real or written,
        member_float64=lambda: member_real or real or written,
        common=lambda: alike,
        alternatives=lambda: (
            Alternative(names, allowed, allowed) for names, allowed in alternatives
        ),
        lost=lambda: lost,
        member_roundings=lambda: roundings,
    )
