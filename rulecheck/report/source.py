"""The source line of a finding, with a caret under what it is about."""

from __future__ import annotations

from pathlib import Path

from rulecheck.records import Span
from rulecheck.report.plain import TAB_WIDTH, display_width, visible

_MAX_BYTES = 4 << 20  # a file that large has been refused; its report needs no snippet
_MAX_CHARACTERS = 100  # of one line that are shown


class Sources:
    """Rule files read back for their lines. A file that has gone simply has no snippet."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._lines: dict[str, list[str]] = {}

    def line(self, file: str, number: int) -> str | None:
        """Return line ``number`` (from 1) of ``file``, or None if there is no such line."""
        if file not in self._lines:
            self._lines[file] = _read(file)
        lines = self._lines[file]
        return lines[number - 1] if 1 <= number <= len(lines) else None

    def snippet(self, span: Span) -> list[str]:
        """Return the line where ``span`` starts and a line of carets; empty if unreadable."""
        text = self.line(span.file, span.line)
        if text is None:
            return []
        start = min(max(span.column - 1, 0), len(text))
        stop = len(text)
        if span.end_line == span.line:
            stop = min(max(span.end_column - 1, start + 1), max(len(text), start + 1))
        shown, before, marked = _window(text, start, stop)
        gutter = f"{span.line:>5} | "
        empty = " " * (len(gutter) - 2) + "| "
        return [(gutter + shown).rstrip(), empty + " " * before + "^" * marked]


def _read(file: str) -> list[str]:
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return []
        data = path.read_bytes()
    except (OSError, ValueError):
        return []
    # Spans count "\n" only; str.splitlines would also break at form feeds and U+2028.
    return [line.removesuffix("\r") for line in data.decode("utf-8", "replace").split("\n")]


def _window(text: str, start: int, stop: int) -> tuple[str, int, int]:
    """Return the part of a line to show, the columns before the mark, and the mark's columns."""
    first = 0 if stop <= _MAX_CHARACTERS else max(0, start - _MAX_CHARACTERS // 3)
    last = min(len(text), first + _MAX_CHARACTERS)
    shown = "…" if first else ""
    column = len(shown)
    before = marked = 0
    for index in range(first, last):
        if index == start:
            before = column
        piece = _cell(text[index], column)
        shown += piece
        width = sum(display_width(character) for character in piece)
        column += width
        if start <= index < stop:
            marked += width
    if start >= last:
        before = column
    return shown + ("…" if last < len(text) else ""), before, max(marked, 1)


def _cell(character: str, column: int) -> str:
    if character == "\t":
        return " " * (TAB_WIDTH - column % TAB_WIDTH)
    return visible(character)
