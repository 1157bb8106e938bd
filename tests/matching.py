"""One rule of the toy vocabulary on a batch, without a child."""

from __future__ import annotations

import functools

from rulecheck.egraph.load import Program, read_header
from rulecheck.egraph.match import Session
from rulecheck.records import (
    Firing,
    InstanceBatch,
    Limits,
    MatchReply,
    MatchRequest,
    RuleFile,
    TermTable,
)
from tests.toy import DIALECT, Terms, dialect, read

FUSE = """
(rule ((= ?outer (Cast (Cast ?x ?n ?t) ?n (F32))) (narrow ?t))
      ((let ?new (Cast ?x ?n (F32))) (union ?outer ?new) (set (dtype ?new) (F32)))
      :ruleset backend :name "fuse")
"""


def program(file: RuleFile) -> Program:
    assert file.problems == ()
    inherited = len(dialect().declarations)
    return Program(dialect().commands, read_header(DIALECT), file, inherited)


@functools.cache
def session(text: str) -> Session:
    return Session(program(read(text)))


def match(
    text: str, batch: InstanceBatch, rule: int = 0, limits: Limits | None = None
) -> MatchReply:
    return session(text).match(MatchRequest(rule, batch, limits or Limits()))


def shown(reply: MatchReply, firing: Firing) -> dict[str, str]:
    table = TermTable(reply.nodes)
    return {name: table.show(index) for name, index in firing.bindings}


def double_cast(terms: Terms, index: int) -> int:
    inner = terms.cast(terms.leaf(index), terms.number(6), "F16")
    return terms.cast(inner, terms.number(6), "F32")
