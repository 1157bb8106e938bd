"""A replayed case as text: the graphs, the call, the operands, and where the results part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rulecheck.records import Replay, WorstElement
from rulecheck.report import Style
from rulecheck.report.plain import field, number, safe
from rulecheck.report.text import evidence_lines

_COLUMNS = ("element", "got", "as written", "float64", "allowed")


def render(replay: Replay, style: Style) -> str:
    """Return everything that the replay showed."""
    case, evidence = replay.case, replay.evidence
    lines = [
        f"{case.file}: {case.rule}: {evidence.verdict.value}[{evidence.code}]: {evidence.message}"
    ]
    lines = [safe(line) for line in lines]
    if replay.rule_changed:
        lines += field("note", "the rule's text has changed since the token was made", style.width)
    lines += field("stage", evidence.stage.value, style.width)
    lines += field("backend", f"{case.backend}, input seed {case.input_seed}", style.width)
    lines += field(
        "choices",
        "; ".join(f"{axis} {label}" for axis, label in replay.tried) or "none",
        style.width,
    )
    lines += ["", "graph as written", *_block(replay.original)]
    lines += ["", "member that the rule added", *_block(replay.member)]
    if replay.fields:
        lines += ["", "call", *_table(("field", "before", "after", ""), _marked(replay.fields))]
    if replay.operands:
        lines += ["", "operands", *_table(("name", "content"), replay.operands)]
    if replay.elements:
        lines += ["", "elements, worst first", *_table(_COLUMNS, map(_element, replay.elements))]
    measured = evidence_lines(evidence, style.width)
    if measured:
        lines += ["", "evidence", *measured]
    if evidence.hint:
        lines += ["", *field("hint", evidence.hint, style.width)]
    return "".join(line + "\n" for line in lines)


def _block(text: str) -> list[str]:
    return ["   " + safe(line) for line in text.split("\n")]


def _marked(fields: Sequence[tuple[str, str, str]]) -> list[tuple[str, ...]]:
    return [
        (name, before, after, "changed" if before != after else "")
        for name, before, after in fields
    ]


def _element(worst: WorstElement) -> tuple[str, ...]:
    return (
        str(worst.offset),
        number(worst.got),
        number(worst.as_written),
        number(worst.float64),
        f"[{number(worst.low)}, {number(worst.high)}]",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [tuple(head), *(tuple(safe(cell) for cell in row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(head))]
    return [
        "   "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
