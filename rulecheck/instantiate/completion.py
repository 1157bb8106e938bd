"""Completing a pattern: every free class of the left side gets a value by the role of its op.

The completion walks the ops of the pattern, library matmuls first (their extents decide the
rest), then the others from inputs to outputs. What a field may hold comes from its *role* in
the op, never from a variable's name or a rule's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence

from rulecheck.instantiate.binding import Binding
from rulecheck.instantiate.choices import Candidate, Cause, Chooser, DeadEnd
from rulecheck.instantiate.pattern import Constraint, Contradiction, PatternGraph
from rulecheck.instantiate.setting import OpNode, Setting, View
from rulecheck.instantiate.structure import NOWHERE, Structure
from rulecheck.records import DType

Role = Callable[["Completion", OpNode], None]


class Completion(Structure):
    """One run over a copy of the pattern with one chooser."""

    def __init__(self, graph: PatternGraph, setting: Setting) -> None:
        """Start over a pattern, which the run extends."""
        self.wide = False
        self.graph = graph
        self.setting = setting
        self.vocabulary = setting.vocabulary
        self.table = setting.table
        self.chooser = Chooser({})
        self.tag = ""
        self.binding = Binding(graph, setting.table, setting.vocabulary.encoding, setting.rows)
        self.binding.spelling = setting.spelling
        self.views: dict[int, list[View]] = {}
        self.hints: dict[int, View] = {}
        self.dtypes: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.leaves = 0
        self.blocked: Constraint | None = None  # the guard that excluded the last candidate

    def branch(self, chooser: Chooser, tag: str, *, wide: bool) -> Completion:
        """A run of its own from what is known here.

        Args:
            chooser: what to take where something is free.
            tag: makes the labels of leaves unique among instances.
            wide: offer further values behind the usual ones.
        """
        twin = copy.copy(self)
        twin.chooser, twin.tag, twin.wide = chooser, tag, wide
        twin.graph = self.graph.copy()
        twin.binding = self.binding.branch(twin.graph)
        twin.views, twin.hints = self.views.copy(), self.hints.copy()
        twin.dtypes, twin.names = self.dtypes.copy(), self.names.copy()
        return twin

    # ---- choosing ----

    def pick(
        self,
        axis: str,
        candidates: Sequence[Candidate],
        given: str | None = None,
        *,
        flip: bool = False,
    ) -> None:
        """Bind one candidate of ``axis``.

        Raises:
            DeadEnd: none fits, or a guard excludes those that do.
        """
        self.blocked = None
        mark = len(self.binding.trail)
        nodes = {node for candidate in candidates for node, _ in candidate.bindings}
        if nodes and all(self.binding.ground(node) is not None for node in nodes):
            # The left side says it, be it on our list or not; whether it is legal is judged on
            # the whole graph.
            fixed = [candidate for candidate in candidates if self._fits(candidate)]
            self.binding.undo(mark)
            candidates = fixed[:1] or [Candidate("as the rule says", ())]
        try:
            self.chooser.pick(
                axis,
                candidates,
                self._fits,
                lambda: self.binding.undo(mark),
                given=given,
                flip=flip,
            )
        except DeadEnd as end:
            if self.blocked is None:
                raise
            raise self._excluded(axis, nodes, self.blocked) from end

    def _excluded(self, axis: str, nodes: set[int], guard: Constraint) -> DeadEnd:
        """What to say of a guard that no candidate passes.

        Candidates include numbers on every side of the guard's own literals; so a guard that
        compares the field itself with literals holds for no value at all.
        """
        roots = {self.graph.find(node) for node in nodes}
        plain = all(
            self.graph.find(arg) in roots or self.graph.find(arg) in self.graph.literals
            for arg in guard.args
        )
        if plain:
            message = f"the guard {guard.text} excludes every value of {axis}"
            return DeadEnd(message, Cause.CONTRADICTION)
        return DeadEnd(f"the guard {guard.text} excludes every value of {axis} that was tried")

    def _fits(self, candidate: Candidate) -> bool:
        mark = len(self.binding.trail)
        for node, term in candidate.bindings:
            if not self.binding.unify(node, term):
                self.binding.undo(mark)
                return False
        broken = self.binding.broken(mark)
        if broken is not None:
            self.blocked = broken
            self.binding.undo(mark)
            return False
        return True

    def bind(self, node: int, term: int, what: str) -> None:
        """Bind without a choice.

        Raises:
            DeadEnd: the class holds another value.
        """
        mark = len(self.binding.trail)
        if not self.binding.unify(node, term):
            raise DeadEnd(f"{what}: the left side asks for another value")
        broken = self.binding.broken(mark)
        if broken is not None:
            raise DeadEnd(f"{what}: the guard {broken.text} does not hold", Cause.CONTRADICTION)

    def number(self, node: int) -> int | None:
        """The number that a class holds, if it is known."""
        term = self.binding.ground(node)
        return None if term is None else self.binding.reader.number(term)

    def pinned(self, *nodes: int) -> int | None:
        """The number that the left side says of one of several classes that have to be equal."""
        return next((value for node in nodes if (value := self.number(node)) is not None), None)

    def step(self, node: int) -> int | None:
        """The stride that a class holds, if it is known: between the first two indices."""
        term = self.binding.ground(node)
        offsets = None if term is None else self.binding.reader.offsets(term, 2)
        return None if offsets is None else offsets[1] - offsets[0]

    def known(self, node: int) -> int:
        """The number of a class that a role has bound before."""
        value = self.number(node)
        if value is None:
            raise DeadEnd("a size has no number (symbolic dimensions are not instantiated)")
        return value

    # ---- terms ----

    def dtype_term(self, dtype: DType) -> int:
        """The term of a storage type."""
        return self.table.add(self.vocabulary.dtype_constructor(dtype))

    def string(self, value: str) -> int:
        """The term of a string literal."""
        return self.table.literal("String", value)

    def scalar(self, value: float) -> int:
        """The term of a float literal."""
        return self.table.literal("f64", float(value))

    def shape_term(self, shape: Iterable[int]) -> int:
        """The term of a list of extents."""
        return self.binding.spelling.shape(shape)

    def strides_term(self, strides: Iterable[int]) -> int:
        """The term of a list of strides."""
        return self.binding.spelling.strides(strides)

    def dtype_of(self, node: int) -> int:
        """The pattern class of a graph class's type."""
        root = self.graph.find(node)
        if root not in self.dtypes:
            names = self.vocabulary.encoding
            self.dtypes[root] = self.graph.add_function(
                names.dtype_function, (root,), names.dtype_sort, NOWHERE
            )
        return self.dtypes[root]

    def same_dtype(self, first: int, second: int, what: str) -> None:
        """Require one type for two type classes.

        Raises:
            DeadEnd: the left side requires different types, so it is ill-typed.
        """
        ours, theirs = (self.binding.ground(node) for node in (first, second))
        if ours is not None and theirs is not None and ours != theirs:
            if self.setting.lenient:
                return
            names = [self.table.nodes[term].fn for term in (ours, theirs)]
            message = f"{what} would be {names[0]} and {names[1]}"
            raise DeadEnd(message, Cause.ILL_TYPED)
        try:
            if ours is not None:
                self.bind(second, ours, what)
            elif theirs is not None:
                self.bind(first, theirs, what)
            self.graph.union(first, second)
        except Contradiction as clash:
            raise DeadEnd(f"{what}: {clash}", Cause.ILL_TYPED) from clash

    # ---- finishing ----

    def finish(self) -> tuple[list[int], list[tuple[int, int]]]:
        """Bind what no op has bound: leaves, and primitives that only guards mention.

        Returns:
            The term ids to insert (every term of the pattern that no other contains), and pairs of
            them that the pattern wants in one class.

        Raises:
            DeadEnd: something stays undetermined, or a guard fails.
        """
        names = self.vocabulary.encoding
        for root in self.graph.classes():
            if self.graph.sort_of(root) == names.graph_sort and self.is_leaf(root):
                self._leaf(root)
        inner, given = set[int](), self.graph.given()
        for root in given:
            for call in self.graph.calls_of(root):
                inner.update(self.graph.find(arg) for arg in call.args)
        broken = self.binding.broken()
        if broken is not None:
            raise DeadEnd(f"the guard {broken.text} does not hold", Cause.CONTRADICTION)
        roots: list[int] = []
        for root in self.graph.classes():
            if root not in given:
                continue
            term = self.binding.ground(root)
            if term is None:
                self._undetermined(root)
            elif root not in inner and self.table.nodes[term].value is None:
                roots.append(term)
        united = [pair for root in self.graph.classes() for pair in self._united(root)]
        return list(dict.fromkeys([*roots, *(other for _, other in united)])), united

    def _united(self, root: int) -> Iterator[tuple[int, int]]:
        """The ops of a class that holds several: the first, and each of the others."""
        names = self.vocabulary.encoding
        calls = [call for call in self.graph.calls_of(root) if call.fn == names.op]
        if len(calls) < 2 or self.graph.sort_of(root) != names.graph_sort:
            return
        first = self.binding.ground(root)
        for call in calls:
            args = [self.binding.ground(arg) for arg in call.args]
            if first is None or None in args:
                raise DeadEnd("one of several ops in a class stays undetermined")
            term = self.table.add(call.fn, *(arg for arg in args if arg is not None))
            if term != first:
                yield first, term

    def type_leaves(self) -> None:
        """Tie the type field of every input that the pattern spells out to the class's type."""
        leaf = self.vocabulary.encoding.leaf
        for root in self.graph.classes():
            for call in self.graph.calls_of(root):
                if call.fn == leaf:
                    self.same_dtype(self.dtype_of(root), call.args[2], "an input")

    def _leaf(self, root: int) -> None:
        """An input of its own label, unless the pattern says one."""
        dtype_node = self.dtype_of(root)
        if self.binding.ground(dtype_node) is None:
            options = (DType.F32, DType.BF16, DType.F16, DType.F64, *self._listed_types(dtype_node))
            candidates = [
                Candidate(dtype.value, ((dtype_node, self.dtype_term(dtype)),))
                for dtype in dict.fromkeys(options)
            ]
            self.pick(f"leaf{self.leaves}.dtype", candidates)
        dtype = self.binding.ground(dtype_node)
        assert dtype is not None
        identity = self.table.literal("i64", self.leaves)
        label = self.table.literal("String", f"{self.tag}{self.names.get(root, 'x')}{self.leaves}")
        self.leaves += 1
        for call in self.graph.calls_of(root):
            said = [self.binding.ground(arg) for arg in call.args[:2]]
            identity = identity if said[0] is None else said[0]
            label = label if said[1] is None else said[1]
        leaf = self.table.add(self.vocabulary.encoding.leaf, identity, label, dtype)
        self.bind(root, leaf, "an input")

    def _listed_types(self, dtype_node: int) -> Iterator[DType]:
        """Types that a table of the rule's facts has in the place of a type class."""
        root = self.graph.find(dtype_node)
        for constraint in self.graph.constraints:
            for place, arg in enumerate(constraint.args):
                if self.graph.find(arg) == root:
                    for row in sorted(self.setting.rows.get(constraint.fn, ())):
                        known = self.vocabulary.dtypes.get(self.table.nodes[row[place]].fn)
                        if known is not None:
                            yield known

    def _undetermined(self, root: int) -> None:
        """Ignore what the engine computes itself; refuse what a graph would need.

        Results of functions (types, bounds) are for the engine; a class that is part of a graph
        term must be known.
        """
        sort = self.graph.sort_of(root)
        names = self.vocabulary.encoding
        if sort in (names.graph_sort, names.kind_sort, names.inputs_sort):
            raise DeadEnd("part of the graph stays undetermined")
