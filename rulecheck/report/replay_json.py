"""A replayed case as JSON."""

from __future__ import annotations

import msgspec

from rulecheck.records import Replay
from rulecheck.report import Style
from rulecheck.report.json import SCHEMA, dump


def render(replay: Replay, style: Style) -> str:  # noqa: ARG001 -- machines have no style
    """Return everything that the replay showed as one JSON object."""
    fields = [
        {"field": name, "before": before, "after": after} for name, before, after in replay.fields
    ]
    data = msgspec.structs.asdict(replay)
    data |= {"tried": dict(replay.tried), "operands": dict(replay.operands), "fields": fields}
    return dump({"schema": SCHEMA, **data})
