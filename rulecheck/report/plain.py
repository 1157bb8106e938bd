"""Plain terminal text: safe to print whatever a rule file says, and aligned."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata

from rulecheck.records import Severity

TAB_WIDTH = 4
_COLORS = {
    Severity.OK: "32",
    Severity.WARNING: "33",
    Severity.ERROR: "31",
    Severity.INCONCLUSIVE: "35",
}
_ESCAPED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # controls, bidi marks, lone surrogates
_PLAIN = re.compile(r"[ -~]*")
_ZERO_WIDTH_JOINER = "\u200d"  # inside emoji; harmless


def visible(character: str) -> str:
    """Return ``character``, or its escape if a terminal would act on it or show nothing."""
    if character == _ZERO_WIDTH_JOINER or unicodedata.category(character) not in _ESCAPED:
        return character
    return character.encode("unicode_escape").decode("ascii")


def safe(text: str) -> str:
    """Return ``text`` on one line, with everything escaped that is not plain printable text."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(visible(character) for character in text)


def display_width(character: str) -> int:
    """Return how many columns one printable character takes."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def paint(text: str, severity: Severity, *, color: bool) -> str:
    """Return ``text`` in the colour of ``severity``."""
    return f"\x1b[1;{_COLORS[severity]}m{text}\x1b[0m" if color else text


def field(label: str, text: str, width: int) -> list[str]:
    """Return ``label: text`` as indented lines of at most ``width`` columns, made safe."""
    return textwrap.wrap(
        safe(text),
        max(width, 40),
        initial_indent=f"   {label}: ",
        subsequent_indent="      ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [f"   {label}:"]


def number(value: float) -> str:
    """Spell a number so that it reads back as the same double, and whole ones without ``.0``."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return "-0" if value == 0 and math.copysign(1, value) < 0 else str(int(value))
    return repr(value)


def power_of_two(value: float) -> str:
    """Spell a positive effect as the power of two at or above it (``2^-9``)."""
    if value <= 0 or not math.isfinite(value):
        return number(value)
    mantissa, exponent = math.frexp(value)
    return f"2^{exponent - 1 if mantissa == 0.5 else exponent}"


def count(amount: int, noun: str) -> str:
    """Spell an amount with its noun: ``1 rule``, ``1,234 rules``."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"
