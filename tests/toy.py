"""A vocabulary small enough to see through, and ways to read files in it without a child."""

from __future__ import annotations

import functools

from rulecheck.egraph.bindings import Parser
from rulecheck.records import InstanceBatch, Limits, Problem, Rule, RuleFile, TermTable
from rulecheck.rules.parse import Dialect, read_dialect, read_file

PATH = "toy.egg"
FILE = "rules/file.egg"
DIALECT = """
; rulecheck-schedule: algebra types
; rulecheck-facts: dtype
(datatype Num (N i64) (Times Num Num) (Plus Num Num) (Z))
(datatype Type (F32) (F16))
(datatype Buf
  (Leaf i64 Type)
  (Cast Buf Num Type)
  (Add Buf Buf)
  (Scale Buf f64)
  (Named Buf String bool))
(function dtype (Buf) Type :merge new)
(function lower (Num) i64 :merge (max old new))
(relation narrow (Type))
(narrow (F16))
(ruleset algebra)
(ruleset types)
(ruleset backend)
(rewrite (Times (N a) (N b)) (N (* a b)) :ruleset algebra)
(rule ((= ?b (Leaf ?i ?t))) ((set (dtype ?b) ?t)) :ruleset types)
(rule ((= ?b (Cast ?a ?n ?t))) ((set (dtype ?b) ?t)) :ruleset types)
(rule ((= ?b (Add ?x ?y)) (= ?t (dtype ?x))) ((set (dtype ?b) ?t)) :ruleset types)
"""

RULE = (
    '(rule ((= ?b (Cast ?a ?n (F32))) (narrow ?t) (= ?t (dtype ?a)))\n  ((union ?b ?a)) :name "r")'
)


@functools.cache
def dialect() -> Dialect:
    return read_dialect(PATH, DIALECT, Parser(), Limits())


def read(text: str | bytes, limits: Limits | None = None) -> RuleFile:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return read_file(FILE, data, dialect(), Parser(), limits or Limits())


def only_rule(text: str) -> Rule:
    file = read(text)
    assert file.problems == ()
    (rule,) = file.rules
    return rule


def problem(text: str | bytes, limits: Limits | None = None) -> Problem:
    """Return the only problem of a file."""
    (only,) = read(text, limits).problems
    return only


def place(found: Problem) -> tuple[int, int, int, int]:
    span = found.span
    assert span.file == FILE
    return span.line, span.column, span.end_line, span.end_column


class Terms(TermTable):
    """Builds instances in the toy vocabulary."""

    def number(self, value: int) -> int:
        return self.add("N", self.literal("i64", value))

    def leaf(self, index: int, type_name: str = "F16") -> int:
        return self.add("Leaf", self.literal("i64", index), self.add(type_name))

    def cast(self, source: int, size: int, type_name: str) -> int:
        return self.add("Cast", source, size, self.add(type_name))

    def batch(self, *roots: int) -> InstanceBatch:
        return InstanceBatch(tuple(self.nodes), tuple((root,) for root in roots))
