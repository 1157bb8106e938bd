"""Rules as the lints see them in a run: with the rows that the dialect adds to its relations."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from rulecheck.egraph.bindings import Parser
from rulecheck.lint import lint
from rulecheck.records import Limits, Lint, RuleFile
from rulecheck.rules.parse import Dialect, read_dialect, read_file
from tests.luminal_terms import VOCABULARY

PATH = Path("rules/file.egg")


@functools.cache
def dialect() -> Dialect:
    return read_dialect(VOCABULARY.declarations_path, VOCABULARY.declarations(), Parser(), Limits())


def load(data: bytes, path: Path = PATH) -> RuleFile:
    known = dialect()
    file = read_file(str(path), data, known, Parser(), Limits())
    assert file.problems == ()
    return msgspec.structs.replace(file, facts=(*known.facts, *file.facts))


def lints(text: str) -> list[Lint]:
    """The lints of a file of one rule."""
    file = load(text.encode())
    (rule,) = file.rules
    return list(lint(rule, file, VOCABULARY))


def of_code(text: str, code: str) -> list[Lint]:
    return [item for item in lints(text) if item.code == code]


def line(text: str, item: Lint) -> str:
    """The line that a lint points at, from its place on."""
    return text.split("\n")[item.span.line - 1][item.span.column - 1 :]
