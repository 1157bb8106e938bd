"""One rule on a batch of instances: insert, saturate, match, read, apply, read again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from rulecheck.egraph.bindings import OWN_SPAN, EngineError, attempt, egg
from rulecheck.egraph.build import run_once
from rulecheck.egraph.decode import Decoder, Key, Snapshot, UndecodableError, find_classes
from rulecheck.egraph.insert import INSERT_RULESET, Places, insertion, reached
from rulecheck.egraph.instrument import CONTEXT_RULESET, columns, names
from rulecheck.egraph.load import Program, build_egraph
from rulecheck.records import (
    Declaration,
    Firing,
    MatchReply,
    MatchRequest,
    Member,
    Rule,
    calls_in,
)

# A ruleset that still changes something after so many iterations will not come to rest.
_MAX_ITERATIONS = 256
_MAX_ROUNDS = 64

Row = tuple[Key, ...]


class LimitError(Exception):
    """A friendly stop, between two iterations."""


class Session:
    """A loaded program that answers match requests, each from a clean state."""

    def __init__(self, program: Program) -> None:
        """Build the EGraph. Raises ``RejectedError`` if the engine does not take an item."""
        self._program = program
        self._egraph: Any = build_egraph(program)

    def match(self, request: MatchRequest) -> MatchReply:
        """Apply one rule to a batch; what went wrong is in the reply's ``error``."""
        match = self._run(request, apart=False)
        if match.told and not match.sound:
            # The rule may have met what its telling copy had added: once more, without that.
            match = self._run(request, apart=True)
        return match.reply()

    def _run(self, request: MatchRequest, *, apart: bool) -> _Match:
        egraph, self._egraph = self._egraph, None
        if egraph is None:
            egraph = build_egraph(self._program)
        match = _Match(egraph, self._program, request)
        match.run(apart=apart)
        if match.error is None:  # after any error an EGraph may silently miss matches
            self._egraph = egraph
        return match


class _Match:
    """The state of one request."""

    def __init__(self, egraph: Any, program: Program, request: MatchRequest) -> None:
        self._egraph = egraph
        self._header = program.header
        self._tables = {known.name: known for known in program.file.declarations}
        self._batch = request.batch
        self._members = reached(request.batch)
        self._places: Places = {}
        self._limits = request.limits
        self._deadline_s = time.monotonic() + request.limits.seconds
        self._rule: Rule = program.file.rules[request.rule]
        self._before = request.before
        self._names = names(request.rule)
        self._nodes = request.batch.nodes
        self._firings: tuple[Firing, ...] = ()
        self._united: tuple[bool, ...] = ()
        self._matches = 0
        self.told = False  # whether the firings have been read
        self.error: str | None = None

    def run(self, *, apart: bool) -> None:
        """Match, tell, apply.

        Where not ``apart``, the rule is applied with what its telling copy has added in place, as
        copying an EGraph costs more than the rest. Then a rule that makes what it matches is
        applied to that too; the sides of each firing are united all the same.
        """
        try:
            self._prepare()
            if apart:
                self._do(egg.Push(1))
            self._matches = self._run(self._names.match)
            self._spell_out()
            self._read_firings()
            self.told = True
            if apart:
                self._do(egg.Pop(OWN_SPAN, 1))
            self._run(self._names.apply)
            self._united = self._find_united()
            self._do(egg.Pop(OWN_SPAN, 1))
        except LimitError as stop:
            self.error = f"limit: {stop}"
        except EngineError as refusal:
            self.error = str(refusal)
        except UndecodableError as gap:
            self.error = f"unreadable: {gap}"

    @property
    def sound(self) -> bool:
        """Whether nothing failed, and what was matched has been united."""
        return self.error is None and all(self._united)

    def reply(self) -> MatchReply:
        """What came of it."""
        return MatchReply(self._nodes, self._firings, self._united, self._matches, self.error)

    def _do(self, *commands: Any) -> list[Any]:
        return attempt(lambda: list(self._egraph.run_program(*commands)))

    def _prepare(self) -> None:
        """Insert the batch and saturate what the dialect and the file derive by themselves."""
        commands, self._places = insertion(self._batch, self._members, self._tables)
        self._do(egg.Push(1), *commands)
        self._run(INSERT_RULESET)
        rulesets = (*self._header.schedule, CONTEXT_RULESET)
        self._settle(rulesets)
        for index in self._before:
            self._run(names(index).apply)
            self._settle(rulesets)

    def _settle(self, rulesets: tuple[str, ...]) -> None:
        """Saturate rulesets in turn until none of them changes anything."""
        at_rest = 0
        for ruleset in rulesets * _MAX_ROUNDS:
            at_rest = 1 if self._saturate(ruleset) else at_rest + 1
            if at_rest >= len(rulesets):
                return
        raise LimitError(f"the facts do not come to rest in {_MAX_ROUNDS} rounds")

    def _spell_out(self) -> None:
        """Let the dialect compute what the head only names, such as the strides of a shape."""
        named = {call.fn for call in calls_in(*self._rule.head)}
        if any(self._tables[fn].unextractable for fn in named & self._tables.keys()):
            for ruleset in self._header.schedule:
                self._saturate(ruleset)

    def _saturate(self, ruleset: str) -> bool:
        """Run a ruleset until it changes nothing; say whether it ever did."""
        for iteration in range(_MAX_ITERATIONS):
            report = self._do(run_once(ruleset))[0].report
            if not report.updated:
                return iteration > 0
            self._check_limits()
        raise LimitError(f"{ruleset} does not come to rest in {_MAX_ITERATIONS} iterations")

    def _run(self, ruleset: str) -> int:
        """Run a ruleset once; return the matches of the rule that is named like it."""
        report = self._do(run_once(ruleset))[0].report
        self._check_limits()
        return int(report.num_matches_per_rule.get(ruleset, 0))

    def _check_limits(self) -> None:
        if time.monotonic() > self._deadline_s:
            raise LimitError(f"more than {self._limits.seconds:g} s")
        sizes = self._do(egg.PrintSize(OWN_SPAN, None))[0].sizes
        if sum(size for _, size in sizes) > self._limits.nodes:
            raise LimitError(f"more than {self._limits.nodes} nodes")

    def _read_rows(self, snapshot: Snapshot) -> list[Row]:
        """Return one row of keys for each match that the telling copy has reported."""
        sorts = columns(self._rule)
        return [
            tuple(zip(sorts, row.inputs, strict=True)) for row in snapshot.rows(self._names.fired)
        ]

    def _read_firings(self) -> None:
        """Decode every match."""
        snapshot = Snapshot(self._egraph, self._places)
        decoder = Decoder(snapshot, self._nodes, self._tables, self._members)
        claims = _Claims(snapshot, self._tables, self._header.facts)
        found = [
            firing
            for row in self._read_rows(snapshot)
            for firing in self._firings_of(row, decoder, claims)
        ]
        self._firings = tuple(sorted(found, key=_order))
        self._nodes = tuple(decoder.table.nodes)

    def _firings_of(self, row: Row, decoder: Decoder, claims: _Claims) -> Iterator[Firing]:
        """The firing of one match; once for each instance that it lies in."""
        found: list[int | None] = [*decoder.instances(self._telling(row))]
        for instance in found or [None]:
            yield self._firing(row, instance, decoder, claims)

    def _telling(self, row: Row) -> list[Key]:
        """Return the values of a match that tell in which instance it lies.

        Sizes and strides do not where the match has graphs: two instances share the numbers that
        the algebra derives for one of them.
        """
        graphs = [key for key in row if key[0] in self._header.graphs]
        return graphs or list(row)

    def _firing(self, row: Row, instance: int | None, decoder: Decoder, claims: _Claims) -> Firing:
        variables = self._rule.variables
        bound, sides = row[: len(variables)], row[len(variables) :]
        bindings = tuple(
            (name, decoder.decode(key, instance))
            for (name, _), key in zip(variables, bound, strict=True)
        )
        members = tuple(
            Member(
                number,
                decoder.decode(left, instance),
                decoder.decode(right, instance),
                tuple(
                    (fn, decoder.decode(key, instance))
                    for fn, key in dict.fromkeys((*claims.about(left), *claims.about(right)))
                ),
            )
            for number, (left, right) in enumerate(zip(sides[::2], sides[1::2], strict=True))
        )
        return Firing(instance, bindings, members)

    def _find_united(self) -> tuple[bool, ...]:
        """Say for each firing whether both sides of its unions are one class by now."""
        if not any(firing.members for firing in self._firings):
            return (True,) * len(self._firings)
        classes = find_classes(Snapshot(self._egraph, self._places), self._nodes, self._tables)
        return tuple(
            all(
                one.left in classes and classes[one.left] == classes.get(one.right)
                for one in firing.members
            )
            for firing in self._firings
        )


class _Claims:
    """What the functions of the dialect's ``rulecheck-facts`` say about a class."""

    def __init__(
        self, snapshot: Snapshot, tables: dict[str, Declaration], functions: tuple[str, ...]
    ) -> None:
        self._values: dict[Key, list[tuple[str, Key]]] = {}
        for name in functions:
            known = tables[name]
            for row in snapshot.rows(name):
                key = (known.inputs[0], row.inputs[0])
                claim = (name, (known.output or "", row.output))
                self._values.setdefault(key, []).append(claim)

    def about(self, key: Key) -> list[tuple[str, Key]]:
        """Return (function, value) for each claim about a class."""
        return self._values.get(key, [])


def _order(firing: Firing) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Sort firings by instance and bindings: the engine's own order is not ours to rely on."""
    return (-1 if firing.instance is None else firing.instance, firing.bindings)
