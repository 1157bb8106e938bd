"""One workshop in which rules are judged by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rulecheck.campaign.findings import judge_rule
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.workshop import Workshop
from rulecheck.records import Finding, RuleFile
from tests.rule_texts import rename


class Bench:
    """Rules by name; findings are made once."""

    def __init__(self, shop: Workshop, path: Path, rules: Mapping[str, str]) -> None:
        self.shop = shop
        self.path = path
        self.rules = rules
        self.known: dict[str, Finding] = {}

    def load(self, name: str, text: str | None = None) -> RuleFile:
        file = self.path / f"{name.replace(' ', '_')}.egg"
        file.write_text(rename(text or self.rules[name], name), encoding="utf-8")
        loaded = self.shop.load(str(file))
        assert isinstance(loaded, RuleFile)
        assert loaded.problems == ()
        return loaded

    def run(self, name: str) -> RuleRun:
        return RuleRun(self.shop, self.load(name), 0)

    def judge(self, name: str) -> Finding:
        if name not in self.known:
            self.known[name] = judge_rule(self.run(name))
        return self.known[name]
