"""Bytes to top-level forms, before any other parser sees a rule file.

Rule files are untrusted: the engine's parser overruns its stack on 10,000 parentheses and copies
the text into every node. So size, encoding and nesting are checked here, in linear time, and the
engine only ever sees one balanced form.
"""

from __future__ import annotations

import bisect
import codecs
import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from rulecheck.records import Limits, Problem, Span

DIRECTIVES = ("EXPECT", "MESSAGE", "REQUIRES", "ARGS", "XFAIL", "ROUNDING")

# The engine's own idea of white space (Rust's), which is not quite Python's: no \x1c-\x1f.
_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_TOKEN = re.compile(
    rf"""(?P<open>\() | (?P<close>\))
       | (?P<comment>;[^\n]*+)
       | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
       | (?P<unterminated>")
       | (?P<atom>[^{_SPACE}();"][^{_SPACE}();]*+)""",
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r";+\s*RULECHECK-(?P<key>[^\s:]*)(?P<rest>.*)", re.DOTALL)

# Every node of a form costs the engine's parser a copy of that form.
PARSE_BUDGET_BYTES = 256 << 20


class Token(NamedTuple):
    """A piece of text; ``kind`` is ``open``, ``close``, ``string``, ``atom`` or ``comment``."""

    kind: str
    text: str
    start: int


class Form(msgspec.Struct, frozen=True):
    """One top-level parenthesised form. ``start`` is its offset in characters."""

    index: int
    text: str
    start: int
    tokens: int

    @property
    def keyword(self) -> str:
        """The first word after the parenthesis, or an empty string."""
        return next((token.text for token in self.words(1)), "")

    @property
    def keyword_start(self) -> int:
        """Offset of that word in the form (of the parenthesis, if there is none)."""
        return next((token.start for token in self.words(1)), 0)

    @property
    def text_hash(self) -> str:
        """Hash of the form with comments dropped and white space normalised."""
        words = (token.text for token in tokenize(self.text) if token.kind != "comment")
        return hashlib.sha256(" ".join(words).encode()).hexdigest()

    def words(self, count: int) -> list[Token]:
        """Return at most ``count`` words that directly follow the parenthesis."""
        tokens = (token for token in tokenize(self.text) if token.kind != "comment")
        return list(
            itertools.takewhile(
                lambda token: token.kind == "atom", itertools.islice(tokens, 1, count + 1)
            )
        )


class Places:
    """Offsets of a text as lines and columns that count characters from 1."""

    def __init__(self, file: str, text: str) -> None:
        """Index the line starts of ``text``."""
        self.file = file
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def point(self, offset: int) -> tuple[int, int]:
        """Return (line, column) of a character offset."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from ``start`` to just before ``end``."""
        return Span(self.file, *self.point(start), *self.point(max(start, end)))


class Scan(msgspec.Struct, frozen=True):
    """The forms of a file. ``fatal`` is what makes all of it unreadable, if anything does."""

    text: str
    forms: tuple[Form, ...] = ()
    directives: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    fatal: Problem | None = None


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of ``text``; white space separates them and is dropped."""
    for match in _TOKEN.finditer(text):
        yield Token(match.lastgroup or "", match.group(), match.start())


def scan(path: str, data: bytes, limits: Limits) -> Scan:
    """Split a file into balanced top-level forms, or say why it cannot be read."""
    if len(data) > limits.file_bytes:
        size = f"The file has more than {limits.file_bytes} bytes."
        hint = "Split it: rule files are read whole."
        return Scan("", fatal=Problem("too-large", size, hint, Span(path, 1, 1, 1, 1)))
    text, problem = decode(path, data)
    if problem is not None:
        return Scan("", fatal=problem)
    return _Scanner(path, text, limits).run()


def decode(path: str, data: bytes) -> tuple[str, Problem | None]:
    """Decode strictly: no byte-order mark, no surrogates, no NUL."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        byte = data[error.start]
        line, column = Places(path, before).point(len(before))
        message = f"Byte 0x{byte:02x} at offset {error.start} is not UTF-8 ({error.reason})."
        place = Span(path, line, column, line, column + 1)
        return "", Problem("encoding", message, "Save the file as UTF-8.", place)
    for mark, what, hint in (
        ("\x00", "a NUL byte", "Remove it: this is a binary file, or a damaged one."),
        (codecs.BOM_UTF8.decode(), "a byte-order mark", "Save the file as UTF-8 without a mark."),
    ):
        at = text.find(mark)
        if at >= 0 and (mark == "\x00" or at == 0):
            place = Places(path, text).span(at, at + 1)
            return "", Problem("encoding", f"The file contains {what}.", hint, place)
    return text, None


class _Scanner:
    """One pass over the tokens of one text."""

    def __init__(self, path: str, text: str, limits: Limits) -> None:
        self._text = text
        self._places = Places(path, text)
        self._limits = limits
        self._forms: list[Form] = []
        self._directives: list[tuple[str, str]] = []
        self._problems: list[Problem] = []
        self._open: list[int] = []
        self._started_at = 0
        self._count = 0

    def run(self) -> Scan:
        """Scan to the end or to the first fatal problem."""
        fatal: Problem | None = None
        for count, token in enumerate(tokenize(self._text)):
            fatal = self._take(token, count)
            if fatal is not None:
                break
        if fatal is None and self._open:
            fatal = self._unclosed()
        return Scan(
            self._text,
            tuple(self._forms) if fatal is None else (),
            tuple(self._directives),
            tuple(self._problems),
            fatal,
        )

    def _take(self, token: Token, count: int) -> Problem | None:
        if token.kind == "comment":
            self._comment(token)
        elif token.kind == "open":
            if not self._open:
                self._started_at = count
            self._open.append(token.start)
            if len(self._open) > self._limits.depth:
                return self._problem(
                    "too-deep",
                    f"Parentheses nest more than {self._limits.depth} deep here.",
                    "Name the parts with `let`; no real rule nests that deep.",
                    token,
                )
        elif token.kind == "close":
            return self._close(token, count)
        elif token.kind == "unterminated":
            return self._problem("syntax", "This string never ends.", 'Close it with `"`.', token)
        elif not self._open:
            return self._problem(
                "syntax",
                f"`{shorten(token.text)}` stands outside any form.",
                "At top level a file holds only (…) forms; is a parenthesis missing or too many?",
                token,
            )
        return None

    def _close(self, token: Token, count: int) -> Problem | None:
        if not self._open:
            hint = "Remove it, or add the `(` that it should close."
            return self._problem("syntax", "This `)` closes nothing.", hint, token)
        start = self._open.pop()
        if not self._open:
            self._finish(start, token.start + 1, count - self._started_at + 1)
        return None

    def _finish(self, start: int, end: int, tokens: int) -> None:
        form = Form(self._count, self._text[start:end], start, tokens)
        self._count += 1
        if tokens * (end - start) > PARSE_BUDGET_BYTES:
            self._problems.append(
                Problem(
                    "too-large",
                    f"This form is too large to parse: {tokens} tokens, {end - start} characters.",
                    "Split it into smaller forms.",
                    self._places.span(start, start + 1),
                )
            )
        else:
            self._forms.append(form)

    def _unclosed(self) -> Problem:
        """Name the opener, and the place where its end was probably forgotten."""
        start = self._open[0]
        hint = "Add the missing `)`."
        suspect = next(
            (at for at in self._open_line_starts() if at > start),
            None,
        )
        if suspect is not None:
            line, _ = self._places.point(suspect)
            hint = f"Add the missing `)`, probably before the form that starts on line {line}."
        place = self._places.span(start, start + 1)
        return Problem("syntax", "This `(` is never closed.", hint, place)

    def _open_line_starts(self) -> Iterator[int]:
        """Yield the parentheses in the first column: they look like the start of a form."""
        for token in tokenize(self._text):
            if token.kind == "open" and self._places.point(token.start)[1] == 1:
                yield token.start

    def _comment(self, token: Token) -> None:
        match = _DIRECTIVE.match(token.text)
        if match is None:
            return
        key, rest = match["key"], match["rest"]
        if key not in DIRECTIVES:
            what = f"`RULECHECK-{shorten(key)}` is no directive."
            hint = f"Directives are {', '.join(f'RULECHECK-{name}' for name in DIRECTIVES)}."
        elif not rest.startswith(":"):
            what = f"`RULECHECK-{key}` has no colon."
            hint = f"Write `; RULECHECK-{key}: value`."
        elif self._forms or self._open:
            what = f"`RULECHECK-{key}` stands after the first form."
            hint = "Directives belong into the header of the file."
        else:
            self._directives.append((key, rest[1:].strip()))
            return
        self._problems.append(self._problem("syntax", what, hint, token))

    def _problem(self, kind: str, message: str, hint: str, token: Token) -> Problem:
        place = self._places.span(token.start, token.start + len(token.text.rstrip("\r")))
        return Problem(kind, message, hint, place)


def shorten(text: str, length: int = 40) -> str:
    """Keep a message readable when the offending text is not."""
    return text if len(text) <= length else text[: length - 1] + "…"
