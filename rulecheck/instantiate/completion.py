"""Completing a pattern: every free class of the left side gets a value by the role of its op.

The completion walks the ops of the pattern, library matmuls first (their extents decide the
rest), then the others from inputs to outputs. What a field may hold comes from its *role* in
the op, never from a variable's name or a rule's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from rulecheck.dialects import Vocabulary
from rulecheck.instantiate.binding import Binding, Rows
from rulecheck.instantiate.choices import Candidate, Chooser, DeadEnd
from rulecheck.instantiate.pattern import Contradiction, PatternGraph
from rulecheck.ops import OPS, OpSpec
from rulecheck.records import DType, Span, TermTable

NOWHERE = Span("", 1, 1, 1, 1)


@dataclasses.dataclass(frozen=True, slots=True)
class TypeTuple:
    """Types that the library combines in one matmul, and the compute types it allows for them."""

    a: DType
    b: DType
    c: DType
    d: DType
    compute: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """How a buffer can be read as a logical array: extents and element strides."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def count(self) -> int:
        """Elements in the logical array."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    def transposed(self) -> View:
        """The same elements with the last two axes swapped."""
        swap = (*range(len(self.shape) - 2), len(self.shape) - 1, len(self.shape) - 2)
        return View(
            tuple(self.shape[axis] for axis in swap), tuple(self.strides[axis] for axis in swap)
        )


def dense(shape: Sequence[int], pad: int = 0) -> View:
    """Row-major view; ``pad`` widens the distance between rows (the last axis but one)."""
    strides: list[int] = []
    step = 1
    for axis, extent in enumerate(reversed(shape)):
        strides.append(step)
        step *= extent
        if axis == 0:
            step += pad
    return View(tuple(shape), tuple(reversed(strides)))


@dataclasses.dataclass(slots=True)
class OpNode:
    """An op of the pattern: its graph class, its spec, its fields and its input list."""

    node: int
    key: str
    spec: OpSpec
    fields: Mapping[str, int]
    inputs: int


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """What all completions of one rule share."""

    vocabulary: Vocabulary
    table: TermTable
    rows: Rows
    types: tuple[TypeTuple, ...]
    # (label, types, their terms) of each combination; filled once, it is asked for in every run.
    type_terms: list[tuple[str, tuple[DType, ...], tuple[int, ...]]] = dataclasses.field(
        default_factory=list
    )


Role = Callable[["Completion", OpNode], None]


class Completion:
    """One run over a copy of the pattern with one chooser."""

    def __init__(self, graph: PatternGraph, setting: Setting, chooser: Chooser, tag: str) -> None:
        """Prepare a run; ``tag`` makes the labels of leaves unique among instances."""
        self.graph = graph
        self.setting = setting
        self.vocabulary = setting.vocabulary
        self.table = setting.table
        self.chooser = chooser
        self.tag = tag
        self.binding = Binding(graph, setting.table, setting.vocabulary.encoding, setting.rows)
        self.views: dict[int, list[View]] = {}
        self.hints: dict[int, View] = {}
        self.dtypes: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.leaves = 0
        self.blocked: str | None = None  # the guard that excluded the last candidate

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
            raise DeadEnd(f"the guard {self.blocked} excludes every value of {axis}") from end

    def _fits(self, candidate: Candidate) -> bool:
        mark = len(self.binding.trail)
        for node, term in candidate.bindings:
            if not self.binding.unify(node, term):
                self.binding.undo(mark)
                return False
        broken = self.binding.broken(mark)
        if broken is not None:
            self.blocked = broken.text
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
            raise DeadEnd(f"{what}: the guard {broken.text} does not hold")

    def number(self, node: int) -> int | None:
        """The number that a class holds, if it is known."""
        term = self.binding.ground(node)
        return None if term is None else self.binding.reader.number(term)

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
        return self.binding.listing([self.binding.number(extent) for extent in shape])

    def strides_term(self, strides: Iterable[int]) -> int:
        """The term of a list of strides."""
        return self.binding.listing([self.binding.stride(step) for step in strides])

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
            names = [self.table.nodes[term].fn for term in (ours, theirs)]
            raise DeadEnd(f"ill-typed left side: {what} would be {names[0]} and {names[1]}")
        try:
            if ours is not None:
                self.bind(second, ours, what)
            elif theirs is not None:
                self.bind(first, theirs, what)
            self.graph.union(first, second)
        except Contradiction as clash:
            raise DeadEnd(f"ill-typed left side: {what}: {clash}") from clash

    # ---- structure ----

    def input_nodes(self, op: OpNode, count: int) -> list[int]:
        """Graph classes of exactly ``count`` inputs, extending a list whose tail is free.

        Raises:
            DeadEnd: the pattern fixes another number of inputs.
        """
        names = self.vocabulary.encoding
        found: list[int] = []
        tail = op.inputs
        while True:
            calls = self.graph.calls_of(tail)
            if not calls:
                tail = self._extend(tail, closed=len(found) == count)
                continue
            if calls[0].fn == names.input_nil:
                break
            head, tail = calls[0].args
            found.append(head)
        if len(found) != count:
            raise DeadEnd(
                f"{op.spec.name} reads {count} inputs here, the left side lists {len(found)}"
            )
        return found

    def _extend(self, tail: int, *, closed: bool) -> int:
        names, graph = self.vocabulary.encoding, self.graph
        if closed:
            end = graph.add_call(names.input_nil, (), names.inputs_sort, NOWHERE)
        else:
            head = graph.fresh(names.graph_sort)
            rest = graph.fresh(names.inputs_sort)
            end = graph.add_call(names.input_cons, (head, rest), names.inputs_sort, NOWHERE)
        graph.union(tail, end)
        return tail

    def rank_of(self, node: int) -> int | None:
        """The length of an expression list, if what is bound or the pattern says it."""
        names, rank = self.vocabulary.encoding, 0
        while True:
            term = self.binding.ground(node)
            if term is not None:
                elements = self.binding.reader.expressions(term)
                return None if elements is None else rank + len(elements)
            calls = self.graph.calls_of(node)
            if not calls or calls[0].fn != names.list_cons:
                return None
            node, rank = calls[0].args[1], rank + 1

    def is_scalar(self, node: int) -> bool:
        """Whether a graph class is a one-element constant."""
        return any(op.spec.family == "fill" for op in self.ops_at(node))

    def is_leaf(self, node: int) -> bool:
        """Whether nothing in the pattern says how a graph class is computed."""
        return not self.graph.calls_of(node)

    def ops_at(self, node: int) -> list[OpNode]:
        """The ops that the pattern puts into a graph class."""
        names, found = self.vocabulary.encoding, []
        for call in self.graph.calls_of(node):
            if call.fn != names.op:
                continue
            for kind in self.graph.calls_of(call.args[0]):
                binding = self.vocabulary.ops.get(kind.fn)
                if binding is None:
                    raise DeadEnd(f"the op {kind.fn} has no role in this dialect")
                fields = dict(zip(binding.fields, kind.args, strict=True))
                root = self.graph.find(node)
                found.append(OpNode(root, kind.fn, OPS[binding.spec], fields, call.args[1]))
        return found

    def all_ops(self) -> list[OpNode]:
        """Every op, inputs before users, library matmuls and their like first.

        Raises:
            DeadEnd: the pattern is cyclic, or a class holds two ops.
        """
        order: list[OpNode] = []
        state: dict[int, int] = {}

        def visit(node: int) -> None:
            root = self.graph.find(node)
            if state.get(root) == 2:
                return
            if state.get(root) == 1:
                raise DeadEnd("the left side is cyclic")
            state[root] = 1
            for call in self.graph.calls_of(root):
                for arg in call.args:
                    visit(arg)
            state[root] = 2
            ops = self.ops_at(root)
            if len(ops) > 1:
                kinds = ", ".join(op.key for op in ops)
                raise DeadEnd(f"one class holds several ops ({kinds})")
            order.extend(ops)

        for root in self.graph.classes():
            visit(root)
        for position, op in enumerate(order):
            twins = [other for other in order[:position] if other.spec is op.spec]
            op.key = f"{op.key}{len(twins) + 1}" if twins else op.key
        core = ("gemm", "matmul")
        return sorted(order, key=lambda op: op.spec.family not in core)

    # ---- finishing ----

    def finish(self) -> list[int]:
        """Bind what no op has bound: leaves, and primitives that only guards mention.

        Returns:
            The term ids to insert: every term of the pattern that no other contains.

        Raises:
            DeadEnd: something stays undetermined, or a guard fails.
        """
        names = self.vocabulary.encoding
        for root in self.graph.classes():
            if self.graph.sort_of(root) == names.graph_sort and self.is_leaf(root):
                self._leaf(root)
        broken = self.binding.broken()
        if broken is not None:
            raise DeadEnd(f"the guard {broken.text} does not hold")
        roots: list[int] = []
        inner: set[int] = set()
        for root in self.graph.classes():
            for call in self.graph.calls_of(root):
                inner.update(self.graph.find(arg) for arg in call.args)
        for root in self.graph.classes():
            term = self.binding.ground(root)
            if term is None:
                self._undetermined(root)
            elif root not in inner and self.table.nodes[term].value is None:
                roots.append(term)
        return roots

    def _leaf(self, root: int) -> None:
        dtype_node = self.dtype_of(root)
        if self.binding.ground(dtype_node) is None:
            options = (DType.F32, DType.BF16, DType.F16, DType.F64)
            self.pick(
                f"leaf{self.leaves}.dtype",
                [
                    Candidate(dtype.value, ((dtype_node, self.dtype_term(dtype)),))
                    for dtype in options
                ],
            )
        dtype = self.binding.ground(dtype_node)
        assert dtype is not None
        identity = self.table.literal("i64", self.leaves)
        name = self.names.get(root, "x")
        label = self.table.literal("String", f"{self.tag}{name}{self.leaves}")
        self.leaves += 1
        leaf = self.table.add(self.vocabulary.encoding.leaf, identity, label, dtype)
        self.bind(root, leaf, "an input")

    def _undetermined(self, root: int) -> None:
        """Ignore what the engine computes itself; refuse what a graph would need.

        Results of functions (types, bounds) are for the engine; a class that is part of a graph
        term must be known.
        """
        sort = self.graph.sort_of(root)
        names = self.vocabulary.encoding
        if sort in (names.graph_sort, names.kind_sort, names.inputs_sort):
            raise DeadEnd("part of the graph stays undetermined")
