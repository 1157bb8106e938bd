"""Completing a pattern: every free class of the left side gets a value by the role of its op.

The completion walks the ops of the pattern, library matmuls first (their extents decide the
rest), then the others from inputs to outputs. What a field may hold comes from its *role* in
the op, never from a variable's name or a rule's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rulecheck.instantiate.binding import Binding
from rulecheck.instantiate.choices import Candidate, Cause, Chooser, DeadEnd
from rulecheck.instantiate.pattern import Constraint, Contradiction, PatternGraph
from rulecheck.instantiate.setting import OpNode, Setting, View
from rulecheck.ops import OPS
from rulecheck.records import DType, Span

NOWHERE = Span("", 1, 1, 1, 1)


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
        self.blocked: Constraint | None = None  # the guard that excluded the last candidate

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
            raise DeadEnd(f"{op.key} reads {count} inputs here, the left side lists {len(found)}")
        return found

    def listed_inputs(self, op: OpNode) -> list[int]:
        """The inputs that the pattern lists, as far as it does."""
        cons, found, tail = self.vocabulary.encoding.input_cons, [], op.inputs
        while calls := [call for call in self.graph.calls_of(tail) if call.fn == cons]:
            head, tail = calls[0].args
            found.append(head)
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

    def hint(self, node: int, view: View) -> None:
        """Say how a class is read, so that what makes it can be sized; casts pass it on."""
        root = self.graph.find(node)
        if root in self.hints:
            return
        self.hints[root] = view
        for op in self.ops_at(root):
            if op.spec.family in {"cast", "pointwise"}:
                for inner in self.listed_inputs(op):
                    if not self.is_scalar(inner):
                        self.hint(inner, view)

    def is_leaf(self, node: int) -> bool:
        """Whether nothing in the pattern says how a graph class is computed."""
        leaf = self.vocabulary.encoding.leaf
        return all(call.fn == leaf for call in self.graph.calls_of(node))

    def ops_at(self, node: int) -> list[OpNode]:
        """The ops that the pattern puts into a graph class."""
        names, found = self.vocabulary.encoding, []
        for call in self.graph.calls_of(node):
            if self.graph.sort_of(node) != names.graph_sort or call.fn == names.leaf:
                continue
            if call.fn != names.op:
                message = f"{call.fn} has no meaning in the dialect {self.vocabulary.name}"
                raise DeadEnd(message, Cause.UNKNOWN_OP)
            for kind in self.graph.calls_of(call.args[0]):
                binding = self.vocabulary.ops.get(kind.fn)
                if binding is None:
                    message = f"the op {kind.fn} has no role in this dialect"
                    raise DeadEnd(message, Cause.UNKNOWN_OP)
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
                raise DeadEnd("the left side is cyclic", Cause.CONTRADICTION)
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
            if self.graph.sort_of(root) == self.vocabulary.encoding.graph_sort:
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
            raise DeadEnd(f"the guard {broken.text} does not hold", Cause.CONTRADICTION)
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
            options = (DType.F32, DType.BF16, DType.F16, DType.F64)
            candidates = [
                Candidate(dtype.value, ((dtype_node, self.dtype_term(dtype)),)) for dtype in options
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

    def _undetermined(self, root: int) -> None:
        """Ignore what the engine computes itself; refuse what a graph would need.

        Results of functions (types, bounds) are for the engine; a class that is part of a graph
        term must be known.
        """
        sort = self.graph.sort_of(root)
        names = self.vocabulary.encoding
        if sort in (names.graph_sort, names.kind_sort, names.inputs_sort):
            raise DeadEnd("part of the graph stays undetermined")
