"""Graph term → ``Plan``."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence

from rulecheck.dialects import Vocabulary
from rulecheck.dialects.terms import TermReader
from rulecheck.ops import OPS, OpSpec
from rulecheck.plan.fields import FieldReader, Unplannable
from rulecheck.records import (
    CastStep,
    DType,
    Failure,
    FailureKind,
    FillStep,
    GemmStep,
    InputSpec,
    MatmulStep,
    Node,
    Plan,
    PointwiseStep,
    ReduceStep,
    Step,
    TermTable,
    ValueSpec,
)


def build(
    nodes: Sequence[Node],
    root: int,
    vocabulary: Vocabulary,
    leaf_counts: Mapping[str, int] | None = None,
) -> Plan | Failure:
    """Lower the term ``root`` to steps.

    Args:
        nodes: the node table.
        root: id of a graph term.
        vocabulary: the dialect.
        leaf_counts: element count of each leaf by label. A leaf that is not named there is as
            large as this graph's own largest read of it, so the graph to compare with is
            planned first and its counts are given to the other.

    Returns:
        The plan; or a Failure: ``UNSUPPORTED`` for what the dialect does not know, ``ILLEGAL``
        for a node that the compiler could not run at all.
    """
    builder = _Builder(nodes, vocabulary)
    try:
        builder.lower(root)
    except Unplannable as stop:
        return stop.failure
    return builder.finish(root, leaf_counts or {})


class _Builder:
    def __init__(self, nodes: Sequence[Node], vocabulary: Vocabulary) -> None:
        self.nodes = nodes
        self.vocabulary = vocabulary
        self.reader = TermReader(nodes, vocabulary.encoding)
        self.values: list[ValueSpec] = []
        self.steps: list[Step] = []
        self.leaves: list[InputSpec] = []
        self.value_of: dict[int, int] = {}
        self.reads: dict[int, int] = {}  # leaf value -> largest extent read

    def lower(self, root: int) -> None:
        """Lower ``root`` and everything below it, inputs first."""
        names = self.vocabulary.encoding
        stack = [root]
        while stack:
            term = stack[-1]
            if term in self.value_of:
                stack.pop()
                continue
            node = self.nodes[term]
            if node.fn == names.leaf:
                self._leaf(term, node)
            elif node.fn == names.op:
                inputs = self.reader.inputs(node.args[1])
                if inputs is None:
                    raise Unplannable(FailureKind.UNSUPPORTED, "an input list is not spelled out")
                missing = [item for item in inputs if item not in self.value_of]
                if missing:
                    stack.extend(reversed(missing))  # A before B: leaves in reading order
                    continue
                self._op(term, self.nodes[node.args[0]], inputs)
            else:
                message = f"{node.fn} has no meaning in the dialect {self.vocabulary.name}"
                raise Unplannable(FailureKind.UNSUPPORTED, message)
            stack.pop()

    def finish(self, root: int, leaf_counts: Mapping[str, int]) -> Plan:
        """Size the leaves and freeze."""
        for leaf in self.leaves:
            count = leaf_counts.get(leaf.label, self.reads.get(leaf.value, 1))
            self.values[leaf.value] = ValueSpec(self.values[leaf.value].dtype, count)
        return Plan(tuple(self.values), tuple(self.leaves), tuple(self.steps), self.value_of[root])

    def _leaf(self, term: int, node: Node) -> None:
        identity, label, dtype = (self.nodes[arg] for arg in node.args)
        known = self.vocabulary.dtypes.get(dtype.fn)
        if known is None:
            raise Unplannable(FailureKind.UNSUPPORTED, f"the type {dtype.fn} is not modelled")
        value = self._value(term, known, 0)
        # Label and id together: two inputs of one label are two buffers.
        self.leaves.append(InputSpec(value, f"{label.value or 'input'}#{identity.value}"))

    def _value(self, term: int, dtype: DType, count: int) -> int:
        self.values.append(ValueSpec(dtype, count))
        self.value_of[term] = len(self.values) - 1
        return self.value_of[term]

    def _op(self, term: int, kind: Node, inputs: list[int]) -> None:
        binding = self.vocabulary.ops.get(kind.fn)
        if binding is None:
            message = f"the op {kind.fn} is not in the dialect {self.vocabulary.name}"
            raise Unplannable(FailureKind.UNSUPPORTED, message)
        spec = OPS[binding.spec]
        fields = FieldReader(kind, binding, self.reader, self.vocabulary)
        operands = [self.value_of[item] for item in inputs]
        if spec.inputs is not None and len(operands) != spec.inputs:
            message = f"{kind.fn} takes {spec.inputs} inputs, the list has {len(operands)}"
            raise Unplannable(FailureKind.ILLEGAL, message)
        _LOWER[spec.family](self, term, spec, fields, operands)

    def result(self, spec: OpSpec, fields: FieldReader, operands: list[int]) -> DType:
        """The type that the op writes."""
        if isinstance(spec.result, DType):
            return spec.result
        if spec.result == "input":
            return self.values[operands[0]].dtype
        return fields.dtype(spec.result)

    def read(self, value: int, extent: int) -> None:
        """Remember how far a leaf is read."""
        self.reads[value] = max(self.reads.get(value, 1), extent)

    def pointwise(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Lower an elementwise op; its buffer holds one element per point of the shape."""
        shape = fields.shape("shape")
        accesses = tuple(fields.access(f"strides.{i}", shape) for i in range(len(operands)))
        out_access = fields.access("out_strides", shape)
        for value, access in zip(operands, accesses, strict=True):
            self.read(value, access.extent)
        name = self._arithmetic(spec, fields)
        out = self._value(term, self.result(spec, fields, operands), math.prod(shape))
        self.steps.append(PointwiseStep(out, name, tuple(operands), accesses, out_access, term))

    def _arithmetic(self, spec: OpSpec, fields: FieldReader) -> str:
        """The row of the op table that says what is computed."""
        if spec.arithmetic is None:
            return spec.name
        named = OPS.get(fields.string(spec.arithmetic))
        wanted = (spec.family, spec.inputs, None)  # none that only names another itself
        if named is None or (named.family, named.inputs, named.arithmetic) != wanted:
            message = f"the elementwise op {fields.string(spec.arithmetic)!r} is not modelled"
            raise Unplannable(FailureKind.UNSUPPORTED, message)
        return named.name

    def marker(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Mark a buffer: no step, the value is the operand itself."""
        shape = fields.shape("shape")
        self.read(operands[0], fields.access("strides.0", shape).extent)
        said, held = self.result(spec, fields, operands), self.values[operands[0]].dtype
        if said.storage is not held.storage:
            message = f"a {spec.name.lower()} says {said.value} of a buffer that holds {held.value}"
            raise Unplannable(FailureKind.ILLEGAL, message)
        self.value_of[term] = operands[0]

    def opaque(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Take the result of an op that is not modelled for an input of the graph."""
        value = self._value(term, self.result(spec, fields, operands), 0)
        text = TermTable(tuple(self.nodes)).show(term, limit=1 << 16)
        self.leaves.append(InputSpec(value, f"custom#{zlib.crc32(text.encode()):08x}"))

    def reduce(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Lower a reduction over one axis."""
        shape = fields.shape("shape")
        base = fields.access("strides", shape)
        iters = fields.offsets("iter_stride", fields.number("iters"))
        fields.limit("iters", math.prod(shape) * len(iters))
        if spec.name == "Max" and not iters:
            raise Unplannable(FailureKind.ILLEGAL, "Max over no element has no value")
        self.read(operands[0], base.extent + max(iters, default=0))
        out = self._value(term, self.result(spec, fields, operands), math.prod(shape))
        self.steps.append(
            ReduceStep(
                out, spec.name, operands[0], base, iters, fields.access("out_strides", shape), term
            )
        )

    def cast(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Lower a conversion of the first ``size`` elements."""
        count = fields.number("size")
        if count < 0:
            raise Unplannable(FailureKind.ILLEGAL, f"Cast of {count} elements")
        fields.limit("size", count)
        self.read(operands[0], count)
        out = self._value(term, self.result(spec, fields, operands), count)
        self.steps.append(CastStep(out, operands[0], count, term))

    def fill(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Lower a scalar constant."""
        out = self._value(term, self.result(spec, fields, operands), 1)
        self.steps.append(FillStep(out, fields.scalar("value"), term))

    def matmul(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Lower a broadcast multiply and sum that the compiler treats as one op."""
        out_shape, mul_shape = fields.shape("out_shape"), fields.shape("mul_shape")
        base = fields.access("sum_input_strides", out_shape)
        iters = fields.offsets("sum_iter_stride", fields.number("k"))
        fields.limit("k", math.prod(out_shape) * len(iters))
        sides = [fields.access(f"{side}_strides", mul_shape) for side in ("lhs", "rhs")]
        # A sum over nothing is 0: it reads no product.
        last = base.extent + max(iters) if iters and base.size else 0
        held = math.prod(mul_shape)
        if last > held:
            message = (
                f"GenericMatmul reads {last} elements of a product that has {held} "
                f"(k is {len(iters)})"
            )
            raise Unplannable(FailureKind.ILLEGAL, message)
        for value, access in zip(operands, sides, strict=True):
            self.read(value, access.extent)
        out = self._value(term, self.result(spec, fields, operands), math.prod(out_shape))
        out_access = fields.access("out_strides", out_shape)
        self.steps.append(
            MatmulStep(
                out, operands[0], operands[1], base, iters, sides[0], sides[1], out_access, term
            )
        )

    def gemm(self, term: int, spec: OpSpec, fields: FieldReader, operands: list[int]) -> None:
        """Lower a library matmul to the exact call that the compiler issues."""
        launch = self.vocabulary.launch(fields.launch_fields(spec.name))
        if isinstance(launch, Failure):
            raise Unplannable(launch.kind, launch.message)
        call, roles, clamped = launch
        for layout in (call.a, call.b, call.c, call.d):
            fields.limit(
                "m, n, k, batch_count", abs(layout.rows * layout.cols * layout.batch_count)
            )
            fields.limit("the leading dimensions and strides", abs(layout.extent))
        if len(operands) < len(roles):
            message = (
                f"the call takes {len(roles)} inputs ({', '.join(roles)}), "
                f"the list has {len(operands)}"
            )
            raise Unplannable(FailureKind.ILLEGAL, message)
        given = dict(zip(roles, operands, strict=False))
        extents = {"A": call.a.extent, "B": call.b.extent, "C": call.c.extent, "bias": call.m}
        for role, value in given.items():
            self.read(value, extents.get(role, 1))
        count = call.d.batch_count * call.m * call.n
        out = self._value(term, self.result(spec, fields, operands), count)
        self.steps.append(
            GemmStep(
                out,
                call,
                given["A"],
                given["B"],
                given.get("C"),
                given.get("bias"),
                given.get("a_scale"),
                given.get("b_scale"),
                clamped,
                term,
            )
        )


_LOWER: dict[str, Callable[[_Builder, int, OpSpec, FieldReader, list[int]], None]] = {
    "pointwise": _Builder.pointwise,
    "reduce": _Builder.reduce,
    "cast": _Builder.cast,
    "fill": _Builder.fill,
    "matmul": _Builder.matmul,
    "gemm": _Builder.gemm,
    "marker": _Builder.marker,
    "opaque": _Builder.opaque,
}
