"""Places of one form: the engine's byte offsets as lines and columns of the file."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from rulecheck.records import Span
from rulecheck.rules.scanner import Form, Places, Token, tokenize

_ESCAPE = re.compile(r"\\.")
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


class Piece(NamedTuple):
    """Some text of an expanded form: copied from ``start`` to ``end``, or standing for that."""

    text: str
    start: int
    end: int
    copied: bool


class Expansion:
    """The text of a form with its named fields resolved, which knows where each piece was."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        """Join the pieces."""
        self.text = "".join(piece.text for piece in pieces)
        self._pieces = [piece for piece in pieces if piece.text]
        self._starts: list[int] = []
        at = 0
        for piece in self._pieces:
            self._starts.append(at)
            at += len(piece.text)

    def start(self, offset: int) -> int:
        """Return where the character at ``offset`` stands in the author's form."""
        at = bisect.bisect_right(self._starts, offset) - 1
        piece = self._pieces[at]
        return piece.start + (offset - self._starts[at] if piece.copied else 0)

    def end(self, offset: int) -> int:
        """Return where what ends just before ``offset`` ends in the author's form."""
        at = bisect.bisect_left(self._starts, offset) - 1
        piece = self._pieces[at]
        return piece.start + offset - self._starts[at] if piece.copied else piece.end


class FormPlaces:
    """Places of one form: of itself, its keyword, its ``:name``, and the engine's byte offsets.

    ``form`` is what the engine parses, with named fields resolved; all places are the author's.
    """

    def __init__(
        self,
        places: Places,
        form: Form,
        expansion: Expansion | None = None,
        *,
        shares_line: bool = False,
    ) -> None:
        """Prepare the translation; linear in the form.

        ``shares_line`` says that another form starts on the same line before this one, so that
        the line alone does not name a rule.
        """
        self._places = places
        self._shares_line = shares_line
        self._expansion = expansion
        self._author = form
        text = form.text if expansion is None else expansion.text
        self.form = msgspec.structs.replace(form, text=text)
        self._characters = _character_offsets(text)
        self.name = ""
        self._name_at: tuple[int, int] | None = None
        self._repeated: tuple[int, int] | None = None
        self._read_options()

    def _read_options(self) -> None:
        """Find the name, and an option that is given twice."""
        seen: set[str] = set()
        for option, value in _options(self._author.text):
            start, end = option.start, option.start + len(option.text)
            if option.text in seen and self._repeated is None:
                self._repeated = start, end
            seen.add(option.text)
            if option.text == ":name" and value.kind == "string":
                self.name = unquote(value.text)
                self._name_at = value.start, value.start + len(value.text)

    @property
    def repeated(self) -> tuple[str, Span] | None:
        """The first option that is given again, and where."""
        if self._repeated is None:
            return None
        start, end = self._repeated
        return self._author.text[start:end], self._at(start, end)

    @property
    def file(self) -> str:
        """The path as the user wrote it."""
        return self._places.file

    @property
    def whole(self) -> Span:
        """The form."""
        return self._at(0, len(self._author.text))

    @property
    def keyword(self) -> Span:
        """Its first word, where a caret says most."""
        start = self._author.keyword_start
        return self._at(start, start + max(len(self._author.keyword), 1))

    @property
    def name_span(self) -> Span:
        """The text of its ``:name``, else its keyword."""
        return self._at(*self._name_at) if self._name_at else self.keyword

    @property
    def rule_name(self) -> str:
        """The author's name for the rule, else ``file.egg:LINE``."""
        start = self.whole
        column = f":{start.column}" if self._shares_line else ""
        return self.name or f"{PurePath(self.file).name}:{start.line}{column}"

    def span(self, start_byte: int, end_byte: int) -> Span:
        """Turn byte offsets in the form into a place in the file."""
        start, end = start_byte, end_byte
        if self._characters is not None:
            start, end = self._characters[start_byte], self._characters[end_byte]
        return self._source(start, end)

    def at(self, line: int, column: int) -> Span:
        """Return the place of the engine's (line, column), which count from the form's start."""
        before = self.form.text.split("\n")[: line - 1]
        offset = sum(len(text) + 1 for text in before) + column - 1
        offset = min(max(offset, 0), len(self.form.text) - 1)
        return self._source(offset, offset + 1)

    def text(self, place: Any) -> str:
        """Return the source text at a span of the engine."""
        return self.form.text.encode()[place.i : place.j].decode()

    def _source(self, start: int, end: int) -> Span:
        if self._expansion is not None:
            start, end = self._expansion.start(start), self._expansion.end(end)
        return self._at(start, end)

    def _at(self, start: int, end: int) -> Span:
        return self._places.span(self.form.start + start, self.form.start + end)


def _character_offsets(text: str) -> list[int] | None:
    """Map byte offsets to character offsets; None where they are the same."""
    if text.isascii():
        return None
    offsets: list[int] = []
    for index, character in enumerate(text):
        offsets += [index] * len(character.encode())
    offsets.append(len(text))
    return offsets


def _options(text: str) -> Iterator[tuple[Token, Token]]:
    """Yield each ``:word`` among the form's own words, and what follows it."""
    depth = 0
    previous: Token | None = None
    for token in tokenize(text):
        if token.kind == "comment":
            continue
        if depth == 1 and previous is not None and previous.text[0] == ":":
            yield previous, token
        depth += {"open": 1, "close": -1}.get(token.kind, 0)
        previous = token


def unquote(text: str) -> str:
    """Read a string literal as the engine does: it knows four escapes."""
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match.group(), match.group()), text[1:-1])
