"""Rule files in the luminal vocabulary, read without a child process."""

from __future__ import annotations

import functools

from rulecheck import contract, plan
from rulecheck.campaign.workshop import signatures, supported_types, table_rows
from rulecheck.egraph.bindings import Parser
from rulecheck.instantiate import Instances, Setting, instantiate
from rulecheck.records import Failure, Limits, Rule, RuleFile, TermTable
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
    """Instances of one rule, as a campaign makes them."""

    def __init__(self, text: str) -> None:
        self.file = read(text)
        (self.rule,) = self.file.rules
        self.table = TermTable()
        self.setting = Setting(
            vocabulary=VOCABULARY,
            table=self.table,
            rows=table_rows(self.file, self.table),
            types=supported_types(),
        )

    def flaw(self, roots: tuple[int, ...]) -> str | None:
        """Why a left side is not well-formed."""
        names = VOCABULARY.encoding
        for root in roots:
            if self.table.nodes[root].fn not in (names.op, names.leaf):
                continue
            built = plan.build(self.table.nodes, root, VOCABULARY)
            if isinstance(built, Failure):
                return built.message
            violations = contract.check_plan(built)
            if violations:
                return violations[0].message
        return None

    def make(self, preferences: dict[str, str] | None = None, *, only: bool = False) -> Instances:
        return instantiate(
            self.rule, signatures(self.file), self.setting, self.flaw, preferences, only=only
        )

    def show(self, roots: tuple[int, ...]) -> str:
        """The graphs as text, without the tag of the instance."""
        return "\n".join(self.table.show(root) for root in roots)
