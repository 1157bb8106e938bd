"""What every diagnostic code means: the one source for ``explain``, and for help in reports."""

from __future__ import annotations

import difflib
import shlex
import textwrap
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rulecheck.errors import UserError
from rulecheck.explain import calls, files, lints, numbers, unknowns
from rulecheck.explain.entry import LINT, Entry

__all__ = ["ENTRIES", "Entry", "find", "show", "with_verdict"]


def _table(groups: Iterable[tuple[Entry, ...]]) -> Mapping[str, Entry]:
    table: dict[str, Entry] = {}
    for entry in (entry for group in groups for entry in group):
        if entry.code in table:
            msg = f"{entry.code} is explained twice"
            raise ValueError(msg)
        table[entry.code] = entry
    return MappingProxyType(table)


ENTRIES = _table((files.ENTRIES, calls.ENTRIES, numbers.ENTRIES, unknowns.ENTRIES, lints.ENTRIES))


def with_verdict(word: str) -> list[Entry]:
    """Return the codes that come with the verdict ``word`` (or are a ``lint``), in order."""
    return [entry for entry in ENTRIES.values() if word in entry.verdicts]


def show(entry: Entry, width: int) -> str:
    """Return one explanation as text of at most ``width`` columns."""
    words = ", ".join(entry.verdicts)
    words = f"verdict: {words}" if words != LINT else f"{LINT}: beside any verdict; it changes none"
    lines = [f"{entry.code}: {entry.title}", "", words]
    for label, text in (("", entry.meaning), ("Why it matters: ", entry.why)):
        lines += ["", *textwrap.wrap(label + text, width)]
    lines += ["", *textwrap.wrap("How to repair it: " + entry.repair, width)]
    lines += ["", "Example:", f"    {entry.example}"]
    return "".join(line + "\n" for line in lines)


def find(subject: str) -> list[Entry]:
    """Return the explanations of a code, or of every code that comes with a verdict.

    Raises:
        UserError: ``subject`` is neither.
    """
    entry = ENTRIES.get(subject.upper())
    if entry is not None:
        return [entry]
    found = with_verdict(subject.lower())
    if found:
        return found
    words = sorted({word for entry in ENTRIES.values() for word in entry.verdicts})
    close = difflib.get_close_matches(subject.upper(), ENTRIES, 1, 0.75)
    close += difflib.get_close_matches(subject.lower(), words, 1, 0.75)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = f"if it is a rule, see its verdict: rulecheck check --rule {shlex.quote(subject)}"
    raise UserError(f"{subject!r} is neither a diagnostic code nor a verdict", hint)
