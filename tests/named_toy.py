"""The toy vocabulary with names for some of its fields."""

from __future__ import annotations

from rulecheck.egraph.bindings import Parser
from rulecheck.records import Limits, Rule, RuleFile
from rulecheck.rules.parse import read_dialect, read_file
from tests.toy import DIALECT, FILE, PATH

NAMED_DIALECT = read_dialect(
    PATH,
    DIALECT.replace("(Cast Buf Num Type)", "(Cast :source Buf :size Num :type Type)")
    .replace("(Scale Buf f64)", "(Scale :source Buf :by f64)")
    .replace("(function dtype (Buf)", "(function dtype (:of Buf)")
    .replace("(relation narrow (Type))", "(relation narrow (:type Type))"),
    Parser(),
    Limits(),
)


def read(text: str) -> RuleFile:
    return read_file(FILE, text.encode(), NAMED_DIALECT, Parser(), Limits())


def only_rule(text: str) -> Rule:
    file = read(text)
    assert file.problems == ()
    (rule,) = file.rules
    return rule
