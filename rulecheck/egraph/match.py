"""One rule on a batch of instances: insert, saturate, match, read, apply, read again."""

from __future__ import annotations

import time
from typing import Any

from rulecheck.egraph.bindings import OWN_SPAN, EngineError, attempt, egg
from rulecheck.egraph.build import run_once
from rulecheck.egraph.decode import BASE_SORTS, Decoder, Key, Snapshot, UndecodableError
from rulecheck.egraph.insert import INSERT_RULESET, insertion, reached
from rulecheck.egraph.instrument import CONTEXT_RULESET, columns, names, unions
from rulecheck.egraph.load import Program, build_egraph
from rulecheck.records import Declaration, Firing, MatchReply, MatchRequest, Member, Rule

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
        egraph, self._egraph = self._egraph, None
        if egraph is None:
            egraph = build_egraph(self._program)
        reply = _Match(egraph, self._program, request).run()
        if reply.error is None:  # after any error an EGraph may silently miss matches
            self._egraph = egraph
        return reply


class _Match:
    """The state of one request."""

    def __init__(self, egraph: Any, program: Program, request: MatchRequest) -> None:
        self._egraph = egraph
        self._header = program.header
        self._tables = {known.name: known for known in program.file.declarations}
        self._batch = request.batch
        self._members = reached(request.batch)
        self._limits = request.limits
        self._deadline_s = time.monotonic() + request.limits.seconds
        self._rule: Rule = program.file.rules[request.rule]
        self._names = names(request.rule)
        self._nodes = request.batch.nodes
        self._firings: tuple[Firing, ...] = ()

    def run(self) -> MatchReply:
        error = None
        united: tuple[bool, ...] = ()
        matches = 0
        try:
            self._prepare()
            self._run(self._names.match)
            rows = self._read_firings()
            matches = self._run(self._names.apply)
            united = self._united(rows)
            self._do(egg.Pop(OWN_SPAN, 1))
        except LimitError as stop:
            error = f"limit: {stop}"
        except EngineError as refusal:
            error = str(refusal)
        except UndecodableError as gap:
            error = f"unreadable: {gap}"
        return MatchReply(self._nodes, self._firings, united, matches, error)

    def _do(self, *commands: Any) -> list[Any]:
        return attempt(lambda: list(self._egraph.run_program(*commands)))

    def _prepare(self) -> None:
        """Insert the batch and saturate what the dialect and the file derive by themselves."""
        self._do(egg.Push(1), *insertion(self._batch, self._members, self._tables))
        self._run(INSERT_RULESET)
        rulesets = (*self._header.schedule, CONTEXT_RULESET)
        for _ in range(_MAX_ROUNDS):
            changes = [self._saturate(ruleset) for ruleset in rulesets]
            if not any(changes):
                return
        raise LimitError(f"the facts do not come to rest in {_MAX_ROUNDS} rounds")

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

    def _decoder(self, snapshot: Snapshot) -> Decoder:
        return Decoder(snapshot, self._nodes, self._tables, self._members)

    def _read_rows(self, snapshot: Snapshot) -> list[Row]:
        """Return one row of keys for each match that the telling copy has reported."""
        sorts = columns(self._rule)
        return [
            tuple(zip(sorts, row.inputs, strict=True)) for row in snapshot.rows(self._names.fired)
        ]

    def _read_firings(self) -> list[Row]:
        """Decode every match; return the rows in the order of the firings."""
        snapshot = Snapshot(self._egraph)
        decoder = self._decoder(snapshot)
        claims = _Claims(snapshot, self._tables, self._header.facts)
        found = [(self._firing(row, decoder, claims), row) for row in self._read_rows(snapshot)]
        found.sort(key=lambda pair: _order(pair[0]))
        self._firings = tuple(firing for firing, _ in found)
        self._nodes = tuple(decoder.table.nodes)
        return [row for _, row in found]

    def _firing(self, row: Row, decoder: Decoder, claims: _Claims) -> Firing:
        variables = self._rule.variables
        bound, sides = row[: len(variables)], row[len(variables) :]
        instance = decoder.instance(sides[:1] or bound)
        bindings = tuple(
            (name, decoder.decode(key, instance))
            for (name, _), key in zip(variables, bound, strict=True)
        )
        members = tuple(
            Member(
                number,
                decoder.decode(left, instance),
                decoder.decode(right, instance),
                tuple((fn, decoder.decode(key, instance)) for fn, key in claims.about(right)),
            )
            for number, (left, right) in enumerate(zip(sides[::2], sides[1::2], strict=True))
        )
        return Firing(instance, bindings, members)

    def _united(self, rows: list[Row]) -> tuple[bool, ...]:
        """Say for each firing whether both sides of its unions are one class by now."""
        count = len(unions(self._rule))
        snapshot = Snapshot(self._egraph)
        start = len(self._rule.variables)
        apart = [
            row
            for row in self._read_rows(snapshot)
            if any(row[start + 2 * k] != row[start + 2 * k + 1] for k in range(count))
        ]
        if not apart:
            return (True,) * len(rows)
        return self._united_one_by_one(rows, apart, snapshot)

    def _united_one_by_one(
        self, rows: list[Row], apart: list[Row], snapshot: Snapshot
    ) -> tuple[bool, ...]:
        """Find the old rows among those whose sides are still apart.

        Classes have new names after merging: the columns that the request's own terms (and plain
        values) identify decide.
        """
        decoder = self._decoder(snapshot)
        return tuple(
            not any(self._same_match(firing, row, other, decoder) for other in apart)
            for firing, row in zip(self._firings, rows, strict=True)
        )

    def _same_match(self, firing: Firing, before: Row, after: Row, decoder: Decoder) -> bool:
        """Whether a row read after merging can be the row that ``firing`` was read from."""
        requested = len(self._batch.nodes)
        for (_, index), old, new in zip(firing.bindings, before, after, strict=False):
            if old[0] in BASE_SORTS:
                if old != new:
                    return False
            elif index < requested and index not in decoder.own_ids(new):
                return False
        return True


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
