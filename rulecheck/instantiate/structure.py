"""What a pattern says of a graph: which ops it holds, what they read, what is a leaf."""

from __future__ import annotations

from rulecheck.dialects import Vocabulary
from rulecheck.instantiate.binding import Binding
from rulecheck.instantiate.choices import Cause, DeadEnd
from rulecheck.instantiate.pattern import PatternGraph
from rulecheck.instantiate.setting import OpNode, View
from rulecheck.ops import OPS
from rulecheck.records import Span

# Patterns are walked from users to inputs; one that nests deeper than rules do is not.
MAX_CLASSES = 600
NOWHERE = Span("", 1, 1, 1, 1)


class Structure:
    """A pattern that is being completed, read as a graph of ops."""

    graph: PatternGraph
    vocabulary: Vocabulary
    binding: Binding
    hints: dict[int, View]

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

    def makes_call(self) -> bool:
        """Whether the rule builds a library call."""
        kinds = (self.vocabulary.ops.get(name) for name in self.graph.made)
        return any(OPS[kind.spec].family == "gemm" for kind in kinds if kind is not None)

    def elements_of(self, node: int) -> list[int] | None:
        """The classes of a list's elements; None if the pattern does not list them to its end."""
        names, found = self.vocabulary.encoding, list[int]()
        while calls := self.graph.calls_of(node):
            if calls[0].fn != names.list_cons:
                return found
            head, node = calls[0].args
            found.append(head)
        return None

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
            if op.spec.family in {"cast", "pointwise", "marker"}:
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
            DeadEnd: the pattern is cyclic, or larger than any rule is.
        """
        ops = [root for root in self.graph.classes() if self.graph.calls_of(root)]
        if len(ops) > MAX_CLASSES:
            raise DeadEnd(f"the left side has more than {MAX_CLASSES} terms; they are not built")
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
            order.extend(self.ops_at(root))

        for root in self.graph.classes():
            if self.graph.sort_of(root) == self.vocabulary.encoding.graph_sort:
                visit(root)
        for position, op in enumerate(order):
            twins = [other for other in order[:position] if other.spec is op.spec]
            op.key = f"{op.key}{len(twins) + 1}" if twins else op.key
        core = ("gemm", "matmul")
        return sorted(order, key=lambda op: op.spec.family not in core)
