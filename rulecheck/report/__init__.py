"""Reports: one module per format, all printed from the same records.

A format is a row of ``FORMATS``; the module is loaded when it is used, so that naming the formats
(on the command line) costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from rulecheck.records import Replay, Report

FORMATS = {
    "text": "rulecheck.report.text",
    "concise": "rulecheck.report.concise",
    "json": "rulecheck.report.json",
}
REPLAY_FORMATS = {
    "text": "rulecheck.report.replay_text",
    "json": "rulecheck.report.replay_json",
}


class Style(NamedTuple):
    """How a person wants to read it. Machine formats ignore it.

    ``width`` is in columns. ``quiet`` leaves out what is fine.
    """

    color: bool = False
    width: int = 100
    quiet: bool = False


class _Format(Protocol):
    def render(self, report: Report, style: Style) -> str: ...


class _ReplayFormat(Protocol):
    def render(self, replay: Replay, style: Style) -> str: ...


def render(name: str, report: Report, style: Style) -> str:
    """Return ``report`` in the format ``name`` (a key of ``FORMATS``), ending in a newline."""
    module: _Format = importlib.import_module(FORMATS[name])
    return module.render(report, style)


def render_replay(name: str, replay: Replay, style: Style) -> str:
    """Return ``replay`` in the format ``name`` (a key of ``REPLAY_FORMATS``)."""
    module: _ReplayFormat = importlib.import_module(REPLAY_FORMATS[name])
    return module.render(replay, style)
