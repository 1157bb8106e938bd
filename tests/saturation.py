"""Terms in an EGraph that holds only the luminal dialect, saturated until nothing changes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from rulecheck.egraph.bindings import OWN_SPAN, EngineError, Parser, attempt, egg
from rulecheck.egraph.build import run_once
from rulecheck.egraph.load import Program, build_egraph, read_header
from rulecheck.records import RuleFile
from tests.luminal_rules import dialect
from tests.luminal_terms import VOCABULARY

MAX_NODES = 6_000
MAX_ROUNDS = 200


@functools.cache
def engine() -> Any:
    known = dialect()
    assert known.problems == ()
    file = RuleFile("none.egg", (), known.declarations, (), (), (), "")
    header = read_header(VOCABULARY.declarations())
    return build_egraph(Program(known.commands, header, file, len(known.declarations)))


@contextlib.contextmanager
def saturated(*texts: str) -> Iterator[Any]:
    """Add terms, as `$t0` and so on, and run the dialect's rulesets until nothing changes."""
    egraph = engine()
    program, error = Parser()("\n".join(f"(let $t{at} {text})" for at, text in enumerate(texts)))
    assert error is None
    attempt(lambda: egraph.run_program(egg.Push(1), *program))
    try:
        _run(egraph)
        yield egraph
    finally:
        attempt(lambda: egraph.run_program(egg.Pop(OWN_SPAN, 1)))


def meet(one: str, other: str) -> bool:
    """Whether two terms end in one class."""
    with saturated(one, other) as egraph:
        return are_one(egraph)


def are_one(egraph: Any) -> bool:
    """Whether the first two terms are in one class."""
    check, _ = Parser()("(check (= $t0 $t1))")
    try:
        attempt(lambda: egraph.run_program(*check))
    except EngineError:
        return False
    return True


def _run(egraph: Any) -> None:
    schedule = read_header(VOCABULARY.declarations()).schedule
    rounds = 0
    changed = True
    while changed:
        changed = False
        for ruleset in schedule:
            while egraph.run_program(run_once(ruleset))[0].report.updated:
                changed = True
                rounds += 1
                sizes = egraph.run_program(egg.PrintSize(OWN_SPAN, None))[0].sizes
                size = sum(count for _, count in sizes)
                assert size <= MAX_NODES, f"{size} rows"
                assert rounds <= MAX_ROUNDS, "it does not come to rest"
