"""Rule files in the luminal vocabulary, read without a child process."""

from __future__ import annotations

import functools

from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.workshop import Workshop
from rulecheck.egraph.bindings import Parser
from rulecheck.instantiate import Instances
from rulecheck.records import Limits, Rule, RuleFile, Settings
from rulecheck.rules.parse import Dialect, read_dialect, read_file
from tests.luminal_terms import VOCABULARY

PATH = "rules/file.egg"


@functools.cache
def dialect() -> Dialect:
    return read_dialect(VOCABULARY.declarations_path, VOCABULARY.declarations(), Parser(), Limits())


def read(text: str) -> RuleFile:
    file = read_file(PATH, text.encode(), dialect(), Parser(), Limits())
    assert file.problems == ()
    return file


def first_rule(text: str) -> Rule:
    return read(text).rules[0]


class Maker:
    """Instances of one rule, as a campaign makes them; its workshop is never started."""

    def __init__(self, text: str) -> None:
        self.run = RuleRun(Workshop(Settings(paths=())), read(text), 0)
        self.table = self.run.table

    def flaw(self, roots: tuple[int, ...]) -> str | None:
        """Why a left side is not well-formed."""
        end = self.run.flaw(roots)
        return None if end is None else str(end)

    def make(self, preferences: dict[str, str] | None = None, *, only: bool = False) -> Instances:
        return self.run.instances(preferences, only=only)

    def show(self, roots: tuple[int, ...]) -> str:
        """The graphs as text."""
        return "\n".join(self.table.show(root) for root in roots)
