"""Standard output and standard error: colour, width, progress, and pipes that close early."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from rulecheck.errors import UserError

COLORS = ("auto", "always", "never")
_PIPED_WIDTH = 100
_MAX_WIDTH = 120  # longer lines are hard to read


def wants_color(choice: str, stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Decide on colour: ``--color``, then NO_COLOR, then FORCE_COLOR, then whether it is a TTY."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream is not None and stream.isatty() and environ.get("TERM") != "dumb"


def output_width() -> int:
    """Return the columns to fill; fixed where nobody looks, so that logs compare."""
    if sys.stdout is None or not sys.stdout.isatty():
        return _PIPED_WIDTH
    return min(shutil.get_terminal_size().columns, _MAX_WIDTH)


def write(text: str) -> None:
    """Write ``text`` to standard output and flush it.

    A reader that has gone is no error: ``rulecheck check | head`` keeps its exit code.

    Raises:
        UserError: the output cannot be written, for instance because the disk is full.
    """
    stream = sys.stdout
    if stream is None:  # started with standard output closed
        return
    if isinstance(stream, io.TextIOWrapper):
        # An ASCII terminal gets escapes instead of a UnicodeEncodeError.
        stream.reconfigure(errors="backslashreplace")
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        discard(stream)
    except OSError as error:
        discard(stream)
        raise UserError(
            f"standard output: {error.strerror}", "make room, or redirect it"
        ) from error


def discard(stream: TextIO) -> None:
    """Point ``stream`` at nothing, or the interpreter fails again when it flushes at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def complain(text: str) -> None:
    """Write a message to standard error, if there is one."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text.rstrip("\n") + "\n")
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


class Progress:
    """One line on standard error that overwrites itself; silent unless a person looks at it."""

    def __init__(self, *, quiet: bool) -> None:
        """Decide once whether to show anything."""
        self._shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._columns = shutil.get_terminal_size().columns - 1

    def __call__(self, message: str) -> None:
        """Show ``message`` (plain text from the campaign, which may hold a rule's name)."""
        if self._shown:
            text = "".join(char if char.isprintable() else "?" for char in message)
            sys.stderr.write(f"\r\x1b[K{text[: self._columns]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
