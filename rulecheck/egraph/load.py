"""An EGraph that holds a dialect and one rule file, rebuilt from records whenever it is needed."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from rulecheck.egraph.bindings import OWN_SPAN, EngineError, attempt, egg
from rulecheck.egraph.build import RuleBuilder, build_declaration
from rulecheck.egraph.instrument import CONTEXT_RULESET, instrument
from rulecheck.errors import InternalError
from rulecheck.records import Call, Declaration, Rule, RuleFile

_HEADER = re.compile(r"^;\s*rulecheck-(?P<key>schedule|facts|graphs):(?P<names>.*)$", re.MULTILINE)

# A sort before the tables that use it, whatever the order in the file.
_ORDER = {"sort": 0, "constructor": 1, "function": 1, "relation": 1, "ruleset": 2}

# Classes in one row of the relations that keep them: a row costs as much as a term.
AT_COLUMNS = 8

Item = Declaration | Call | Rule


class RejectedError(Exception):
    """The engine did not take one item of a rule file, which had passed our own checks."""

    def __init__(self, item: Item, message: str) -> None:
        """Keep the item and the engine's message."""
        super().__init__(message)
        self.item = item


class Header(NamedTuple):
    """What a dialect's comments tell: rulesets to saturate, and functions that make claims.

    ``graphs`` are the sorts whose terms lie in one instance, whatever they are made of.
    """

    schedule: tuple[str, ...]
    facts: tuple[str, ...]
    graphs: tuple[str, ...] = ()


class Program(NamedTuple):
    """All that an EGraph is built from. ``dialect`` are the engine's own commands."""

    dialect: tuple[Any, ...]
    header: Header
    file: RuleFile
    inherited: int  # the file's first declarations are the dialect's, which it has made itself


def read_header(text: str) -> Header:
    """Read ``; rulecheck-schedule: …`` and ``; rulecheck-facts: …`` from a dialect's text."""
    found: dict[str, tuple[str, ...]] = {"schedule": (), "facts": (), "graphs": ()}
    for match in _HEADER.finditer(text):
        found[match["key"]] += tuple(match["names"].split())
    return Header(**found)


def at_name(sort: str) -> str:
    """Return the relation whose rows keep the classes of a request's terms of ``sort``."""
    return f"@rc_at_{sort}"


def build_egraph(program: Program) -> Any:
    """Build a fresh EGraph. Raises ``RejectedError`` for an item that the engine does not take."""
    egraph = egg.EGraph()
    try:
        attempt(lambda: egraph.run_program(*program.dialect))
    except EngineError as error:
        said = " ".join(str(error).split())
        raise InternalError(f"the engine does not take the dialect: {said}") from None
    own = program.file.declarations[program.inherited :]
    for declaration in sorted(own, key=lambda item: _ORDER[item.kind]):
        _add(egraph, declaration, [build_declaration(declaration)])
    for row in program.file.facts:
        expr = RuleBuilder().expr(row)
        _add(egraph, row, [egg.ActionCommand(egg.Expr_(OWN_SPAN, expr))])
    _run(egraph, _harness(program.file))
    for index, rule in enumerate(program.file.rules):
        _add(egraph, rule, instrument(rule, index))
    return egraph


def _harness(file: RuleFile) -> list[Any]:
    sorts = (declaration.name for declaration in file.declarations if declaration.kind == "sort")
    return [
        egg.AddRuleset(OWN_SPAN, CONTEXT_RULESET),
        *(egg.Relation(OWN_SPAN, at_name(sort), ["i64", *[sort] * AT_COLUMNS]) for sort in sorts),
    ]


def _add(egraph: Any, item: Item, commands: list[Any | None]) -> None:
    try:
        _run(egraph, [command for command in commands if command is not None])
    except EngineError as error:
        raise RejectedError(item, str(error)) from None


def _run(egraph: Any, commands: list[Any]) -> None:
    attempt(lambda: egraph.run_program(*commands))
