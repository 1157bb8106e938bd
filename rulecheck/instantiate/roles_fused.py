"""Roles of what surrounds a fused kernel: markers of its buffers, and ops that are not modelled."""

from __future__ import annotations

from rulecheck.instantiate.choices import Candidate
from rulecheck.instantiate.completion import Completion
from rulecheck.instantiate.setting import OpNode
from rulecheck.records import DType

OPAQUE_TYPES = (DType.F32, DType.BF16, DType.F16, DType.E4M3, DType.E5M2)


def prepare_marker(run: Completion, op: OpNode) -> None:
    """A marker is the buffer that it marks: one type before and after, one way to be read."""
    (node,) = run.input_nodes(op, 1)
    run.same_dtype(run.dtype_of(op.node), op.fields["dtype"], f"the type of {op.key}")
    run.same_dtype(run.dtype_of(node), op.fields["dtype"], f"the input of {op.key}")


def prepare_opaque(run: Completion, op: OpNode) -> None:
    """Tie the type of the result to the field that says it."""
    run.same_dtype(run.dtype_of(op.node), op.fields["dtype"], f"the type of {op.key}")


def complete_opaque(run: Completion, op: OpNode) -> None:
    """An op that is not modelled: any id, any type, the inputs that the pattern lists."""
    identity = run.table.literal("i64", 1)
    run.pick(f"{op.key}.id", [Candidate("1", ((op.fields["id"], identity),))])
    dtype = op.fields["dtype"]
    run.pick(
        f"{op.key}.dtype",
        [Candidate(known.value, ((dtype, run.dtype_term(known)),)) for known in OPAQUE_TYPES],
    )
    run.input_nodes(op, len(run.listed_inputs(op)))
    run.views[run.graph.find(op.node)] = []
