"""One rule on its instances, through the engine: firings become claims."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rulecheck.campaign.claims import Claim, directions, examine, stamped
from rulecheck.campaign.facts import Fact, facts, find_stamps, removed
from rulecheck.campaign.workshop import Workshop, signatures
from rulecheck.dialects.terms import TermReader
from rulecheck.egraph import rematch
from rulecheck.instantiate import Instance, Instances
from rulecheck.records import (
    Failure,
    FailureKind,
    Firing,
    InstanceBatch,
    MatchReply,
    Node,
    Rule,
    RuleFile,
    TermTable,
    Union,
)

# Some rules join every op of a batch with every other, so time grows faster than the batch.
BATCH = 30
# For the engine's part of one rule; a rule that joins everything with everything never ends.
ENGINE_BUDGET_S = 30.0

_OUT_OF_TIME = Failure(
    FailureKind.TIMEOUT, f"More than {ENGINE_BUDGET_S:g} s went into matching this rule."
)
# Elements of each input of an instance, by label.
Counts = Callable[[Instance], Mapping[str, int]]
Pairs = tuple[tuple[int, int], ...]


@dataclasses.dataclass(slots=True)
class Trial:
    """Everything that happened to one rule.

    ``fired`` counts matches, ``reached`` the instances that had one, ``silent`` those without,
    ``idle`` unions of a term with itself, ``astray`` matches that lie in no single instance and are
    not judged. ``failures`` are deaths of the engine, ``errors`` its own messages, ``flaws``
    matches that do not hold.
    """

    instances: Instances
    claims: list[Claim] = dataclasses.field(default_factory=list)
    fired: int = 0
    reached: int = 0
    silent: int = 0
    idle: int = 0
    astray: int = 0
    failures: list[Failure] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)
    flaws: list[str] = dataclasses.field(default_factory=list)
    deadline_s: float = dataclasses.field(
        default_factory=lambda: time.monotonic() + ENGINE_BUDGET_S
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Chunk:
    """Instances of one request: their terms in the request's table, and those in one class."""

    instances: Sequence[Instance]
    pairs: tuple[Pairs, ...]
    requested: int


class Application:
    """Applies one rule of a loaded file, after the rules ``before`` (by position)."""

    def __init__(
        self,
        shop: Workshop,
        file: RuleFile,
        index: int,
        *,
        table: TermTable,
        counts: Counts,
        before: tuple[int, ...] = (),
    ) -> None:
        """Prepare; ``table`` holds the terms of the instances."""
        self.shop = shop
        self.file = file
        self.index = index
        self.rule: Rule = (*file.rules, *file.neighbours)[index]
        self.table = table
        self.before = before
        self.declared = signatures(file)
        self.fired: list[Instance] = []
        self.silent: list[Instance] = []
        self._counts = counts

    def run(self, instances: Sequence[Instance], trial: Trial) -> None:
        """Let the engine apply the rule to every instance; plan and check each member."""
        for start in range(0, len(instances), BATCH):
            self._apply(instances[start : start + BATCH], trial)

    def _apply(self, chunk: Sequence[Instance], trial: Trial) -> None:
        """Apply the rule to a batch; if the engine fails on it, find the instance that it is."""
        if time.monotonic() > trial.deadline_s:
            if not trial.failures or trial.failures[-1] != _OUT_OF_TIME:
                trial.failures.append(_OUT_OF_TIME)
            return
        table, known = TermTable(), self.table.freeze()
        roots = tuple(
            tuple(table.copy_from(known, root) for root in instance.roots) for instance in chunk
        )
        pairs = tuple(
            tuple(
                (table.copy_from(known, left), table.copy_from(known, right))
                for left, right in instance.unions
            )
            for instance in chunk
        )
        united = tuple(pair for own in pairs for pair in own)
        batch = InstanceBatch(table.freeze(), roots, united)
        reply = self.shop.match(self.index, batch, self.before)
        failed = isinstance(reply, Failure) or reply.error is not None
        if failed and len(chunk) > 1:
            middle = len(chunk) // 2
            self._apply(chunk[:middle], trial)
            self._apply(chunk[middle:], trial)
        elif isinstance(reply, Failure):
            trial.failures.append(reply)
        else:
            self._take(_Chunk(chunk, pairs, len(table.nodes)), reply, trial)

    def _take(self, chunk: _Chunk, reply: MatchReply, trial: Trial) -> None:
        """Turn a reply into claims."""
        if reply.error is not None:
            trial.errors.append(reply.error)
        elif not all(reply.united):
            trial.flaws.append("the engine matched, but did not unite the two sides")
        fired = {firing.instance for firing in reply.firings}
        hit = [item for place, item in enumerate(chunk.instances) if place in fired]
        self.fired += hit
        self.silent += [item for place, item in enumerate(chunk.instances) if place not in fired]
        trial.reached += len(hit)
        trial.silent += len(chunk.instances) - len(hit)
        trial.fired += len(reply.firings)
        table = TermTable(reply.nodes)
        reader = TermReader(table.nodes, self.shop.vocabulary.encoding)
        ordinals: Counter[int] = Counter()
        for firing in reply.firings:
            if firing.instance is None:
                trial.astray += 1
                continue
            united = bool(chunk.pairs[firing.instance])
            flaw = self._rematch(table, reader, firing, united=united)
            if flaw is not None:
                trial.flaws.append(flaw)
                continue
            claims = self._claims(chunk, table, firing)
            trial.idle += len(firing.members) if not claims else 0
            for claim in claims:
                claim.ordinal = ordinals[firing.instance]
                ordinals[firing.instance] += 1
            trial.claims.extend(claims)

    def _rematch(
        self, table: TermTable, reader: TermReader, firing: Firing, *, united: bool
    ) -> str | None:
        """The place of a fact that does not hold for what the engine bound, or None.

        Where other rules were applied before, or the graph has several ops in one class, a graph
        has more than one spelling; then any op of the reply will do.
        """
        loose = bool(self.before) or united
        graphs = self.shop.vocabulary.encoding.graph_sort

        def equal(sort: str, left: int, right: int) -> bool:
            return (loose and sort == graphs) or reader.equal(left, right)

        declared = self.file.declarations
        fact = rematch.rematch(self.rule, firing, table.nodes, declared, equal, build=table.intern)
        if fact is None:
            return None
        return f"the fact at line {fact.span.line}, column {fact.span.column}"

    def _claims(self, chunk: _Chunk, table: TermTable, firing: Firing) -> list[Claim]:
        """The claims of one firing, held against the contract; its terms are in ``table``."""
        assert firing.instance is not None
        instance = chunk.instances[firing.instance]
        bindings = dict(firing.bindings)
        function = self.shop.vocabulary.encoding.dtype_function
        stamps = find_stamps(self.rule, bindings, table, function, self.declared)
        found = list(facts(self.rule, bindings, table, self.shop.vocabulary, self.declared))
        gone = list(removed(self.rule, bindings, table, self.declared))
        nodes, claims = table.freeze(), list[Claim]()
        for member in firing.members:
            # What the engine itself holds of the two sides, also where terms are computed.
            stamps += [(member.left, value) for name, value in member.claimed if name == function]
        for member in firing.members:
            if member.left == member.right:
                continue
            for original, new in directions(member, chunk.requested):
                claims.append(Claim(instance, member.union, 0, nodes, original, new))
        for span, term in gone:
            claims += [
                Claim(instance, 0, 0, nodes, term, other, span=span, removal=True)
                for other in _mates(term, chunk.pairs[firing.instance])
            ]
        for claim in claims:
            examine(claim, self.shop.vocabulary, self._counts(instance), stamps)
        claims += self._stated(instance, nodes, found, stamps)
        for claim in claims:
            claim.bindings = bindings
        return claims

    def _stated(
        self,
        instance: Instance,
        nodes: tuple[Node, ...],
        found: Sequence[Fact],
        stamps: Sequence[tuple[int, int]],
    ) -> Iterator[Claim]:
        """What a firing states without uniting anything: rows, and types if that is all it does."""
        for fact in found:
            graphs = fact.graphs or (fact.term, fact.term)
            claim = Claim(instance, 0, 0, nodes, *graphs, evidence=fact.evidence, span=fact.span)
            if fact.graphs is not None:
                examine(claim, self.shop.vocabulary, self._counts(instance), ())
            yield claim
        if stamps and not any(isinstance(action, Union) for action in self.rule.head):
            claim = Claim(instance, 0, 0, nodes, stamps[0][0], stamps[0][0])
            claim.evidence = stamped(claim, self.shop.vocabulary, stamps)
            yield claim


def _mates(term: int, pairs: Pairs) -> list[int]:
    """What shares the class of a term, from the pairs that were united."""
    found, size = {term: None}, 0
    while len(found) > size:
        size = len(found)
        for left, right in pairs:
            if left in found or right in found:
                found |= {left: None, right: None}
    return list(found)[1:]
