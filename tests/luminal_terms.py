"""Graphs in the luminal vocabulary, built by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rulecheck import plan
from rulecheck.dialects import LaunchFields, load
from rulecheck.records import DType, Failure, GemmStep, Plan, TermTable

VOCABULARY = load("luminal")
GEMM_FIELDS = VOCABULARY.ops["cublaslt"].fields
Value = int | float | str | DType

# A bf16 call of 5 x 7 x 11 that reads no C.
GEMM: Mapping[str, Value] = {
    **dict(zip("mnk", (5, 7, 11), strict=True)),
    **dict.fromkeys(("a_layout", "b_layout"), "N"),
    **{f"{operand}_order": "COL" for operand in "abcd"},
    **dict(zip(("lda", "ldb", "ldc", "ldd"), (5, 11, 5, 5), strict=True)),
    "batch_count": 1,
    **{f"stride_{operand}": 0 for operand in "abcd"},
    **{f"{operand}_dtype": DType.BF16 for operand in "abcd"},
    **dict.fromkeys(("compute_type", "scale_dtype"), "default"),
    "alpha": 1.0,
    "beta": 0.0,
    "epilogue": "DEFAULT",
}


def launch_fields(**changes: Value) -> LaunchFields:
    """The fields of ``GEMM`` with some changed, as the launch takes them."""
    fields = {**GEMM, **changes}
    return LaunchFields(
        op="Gemm",
        numbers={name: value for name, value in fields.items() if type(value) is int},
        strings={name: value for name, value in fields.items() if isinstance(value, str)},
        scalars={name: value for name, value in fields.items() if isinstance(value, float)},
        dtypes={name: value for name, value in fields.items() if isinstance(value, DType)},
    )


class Graph(TermTable):
    """A term table that knows the vocabulary's spelling."""

    def number(self, value: int) -> int:
        return self.add("MNum", self.literal("i64", value))

    def stride(self, step: int) -> int:
        if step == 0:
            return self.number(0)
        iterator = self.add("MIter")
        return iterator if step == 1 else self.add("MMul", iterator, self.number(step))

    def listing(self, items: Sequence[int]) -> int:
        term = self.add("ENil")
        for item in reversed(items):
            term = self.add("ECons", item, term)
        return term

    def shape(self, *extents: int) -> int:
        return self.listing([self.number(extent) for extent in extents])

    def strides(self, *steps: int) -> int:
        return self.listing([self.stride(step) for step in steps])

    def dtype(self, dtype: DType) -> int:
        return self.add(VOCABULARY.dtype_constructor(dtype))

    def leaf(self, label: str, dtype: DType = DType.BF16, identity: int = 0) -> int:
        return self.add(
            "Input",
            self.literal("i64", identity),
            self.literal("String", label),
            self.dtype(dtype),
        )

    def op(self, kind: int, *inputs: int) -> int:
        items = self.add("INil")
        for item in reversed(inputs):
            items = self.add("ICons", item, items)
        return self.add("Op", kind, items)

    def field(self, value: Value) -> int:
        if isinstance(value, DType):
            return self.dtype(value)
        if isinstance(value, str):
            return self.literal("String", value)
        return self.literal("f64", value) if isinstance(value, float) else self.number(value)

    def gemm(self, *inputs: int, **changes: Value) -> int:
        fields = {**GEMM, **changes}
        kind = self.add("cublaslt", *(self.field(fields[name]) for name in GEMM_FIELDS))
        return self.op(kind, *inputs)

    def cast(self, source: int, size: int, dtype: DType) -> int:
        return self.op(self.add("Cast", self.number(size), self.dtype(dtype)), source)

    def pointwise(self, name: str, shape: Sequence[int], *inputs: int) -> int:
        """An op that reads every input and writes its result densely."""
        steps, step = [], 1
        for extent in reversed(shape):
            steps.append(step)
            step *= extent
        dense = self.strides(*reversed(steps))
        kind = self.add(name, self.shape(*shape), *[dense] * (len(inputs) + 1))
        return self.op(kind, *inputs)

    def build(self, root: int, counts: Mapping[str, int] | None = None) -> Plan | Failure:
        return plan.build(self.nodes, root, VOCABULARY, counts)

    def plan(self, root: int, counts: Mapping[str, int] | None = None) -> Plan:
        built = self.build(root, counts)
        assert isinstance(built, Plan), built
        return built

    def failure(self, root: int) -> Failure:
        built = self.build(root)
        assert isinstance(built, Failure), built
        return built


def gemm_step(built: Plan) -> GemmStep:
    """The only library call of a plan."""
    (step,) = [step for step in built.steps if isinstance(step, GemmStep)]
    return step
