"""Roles of the fields of all other ops, and the table of roles by op family."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rulecheck.instantiate.choices import Candidate, spell
from rulecheck.instantiate.completion import Completion, Role
from rulecheck.instantiate.guards import guard_values
from rulecheck.instantiate.layouts import (
    Layout,
    deviations,
    matmul_layouts,
    orders,
    parts,
    pick_strides,
    reach,
    reads,
    writes,
)
from rulecheck.instantiate.roles_fused import complete_opaque, prepare_marker, prepare_opaque
from rulecheck.instantiate.roles_gemm import (
    EXTENTS,
    FP8_EXTENTS,
    FURTHER_SCALARS,
    GEMM_STEPS,
    batches,
    empty,
    extents,
)
from rulecheck.instantiate.setting import OpNode, View, dense
from rulecheck.ops import OPS
from rulecheck.records import DType

CASTS = (
    *(DType.F32, DType.BF16, DType.F16, DType.F64, DType.E4M3, DType.E5M2),
    *(DType.BOOL, DType.I32),
)
MATMULS = (
    *(DType.F32, DType.BF16, DType.F16, DType.F64, DType.TF32),
    *(DType.E4M3, DType.E5M2),
)
DEFAULT_SHAPES = ((5, 7), (8, 8), (3, 5, 7))
FURTHER_SHAPES = (
    *((2, 3), (4, 6), (9, 2), (1, 7), (5, 1), (16, 3), (3, 16), (2, 3, 4), (4, 1, 6), (1, 5, 3)),
    *((12,), (7,), (2, 17), (17, 2), (6, 6), (11, 5), (5, 11), (2, 2, 9), (9, 9), (1, 1)),
)
CONSTANTS = (2.0, 1 / 64, -1.0, 0.0, 1 / 3, 1.0)


def complete_matmul(run: Completion, op: OpNode) -> None:
    """GenericMatmul: a broadcast product over [batch…, m, n, k] summed over k."""
    fields = op.fields
    operands = run.input_nodes(op, 2)
    for side, node in zip(("lhs", "rhs"), operands, strict=True):
        # The kernel reads its operands as the type that it writes.
        run.same_dtype(run.dtype_of(node), fields["dtype"], f"the {side} of {op.key}")
    run.pick(
        f"{op.key}.dtype",
        [Candidate(dtype.value, ((fields["dtype"], run.dtype_term(dtype)),)) for dtype in MATMULS],
    )
    run.same_dtype(run.dtype_of(op.node), fields["dtype"], f"the type of {op.key}")
    candidates: dict[str, Candidate] = {}
    for out, k in _matmul_sizes(run, op):
        bindings = (
            (fields["out_shape"], run.shape_term(out)),
            (fields["mul_shape"], run.shape_term((*out, k))),
            (fields["k"], run.binding.number(k)),
        )
        label = "x".join(map(str, (*out, k)))
        candidates.setdefault(label, Candidate(label, bindings, 0 in (*out, k)))
    run.pick(f"{op.key}.shape", list(candidates.values()))
    out = _shape(run, fields["out_shape"])
    k = run.known(fields["k"])
    for side, node in zip(("lhs", "rhs"), operands, strict=True):
        _matmul_operand(run, op, side, node, (*out, k))
    _pick_summed(run, op, out, k)
    pick_strides(run, op, "out_strides", list(writes(out)))
    run.views[run.graph.find(op.node)] = [View(out, _strides(run, fields["out_strides"], out))]


def _matmul_sizes(run: Completion, op: OpNode) -> Iterator[tuple[tuple[int, ...], int]]:
    """(shape of the result, k) to try: what another op has decided, else any."""
    known = run.binding.ground(op.fields["out_shape"])
    depth = run.number(op.fields["k"])
    if known is not None and depth is not None:
        yield _shape(run, op.fields["out_shape"]), depth
        return
    outer, whole = (run.elements_of(op.fields[name]) or [] for name in ("out_shape", "mul_shape"))
    # The classes that say m, n and k; what the left side says of one of them holds for all sizes.
    classes = (outer[-2:-1] + whole[-3:-2], outer[-1:] + whole[-2:-1], whole[-1:])
    said = [run.pinned(*nodes) for nodes in classes]
    said[2] = depth if said[2] is None else said[2]
    sizes = dict.fromkeys((*EXTENTS, FP8_EXTENTS[0], *extents(run)))
    for batch in ((), *((count,) for count in batches(run) if count > 1)):
        for size in (*sizes, *empty(run)):
            m, n, k = (
                plain if known is None else known for plain, known in zip(size, said, strict=True)
            )
            yield (*batch, m, n), k


def _pick_summed(run: Completion, op: OpNode, out: tuple[int, ...], k: int) -> None:
    """How the sum goes through the products: as they lie, or in another order inside of them."""
    shape, held = (*out, k), math.prod((*out, k))
    product, permuted = dense(shape).strides, dict(orders(shape))["another order of rows"]
    options = [("dense", product[:-1]), ("permuted", permuted[:-1])]
    node = op.fields["sum_input_strides"]
    rare = deviations(run, node, product[:-1], out, held - max(0, k - 1))
    pick_strides(run, op, "sum_input_strides", options, list(rare))
    node = op.fields["sum_iter_stride"]
    taken = reach(_strides(run, op.fields["sum_input_strides"], out), out)
    steps = (1, *(step for step in (0, 2, 3) if step != 1 and taken + step * (k - 1) < held))
    run.pick(
        f"{op.key}.sum_iter_stride",
        [Candidate(str(step), ((node, run.binding.stride(step)),), step != 1) for step in steps],
    )


def _matmul_operand(
    run: Completion, op: OpNode, side: str, node: int, shape: tuple[int, ...]
) -> None:
    """An operand lacks one output axis: n for the left one, m for the right one."""
    field = f"{side}_strides"
    layouts = list(matmul_layouts(shape, side))
    rare = deviations(run, op.fields[field], layouts[0][1], shape, _held(run, node))
    pick_strides(run, op, field, layouts, list(rare))
    batch, (m, n, k) = shape[:-3], shape[-3:]
    root = run.graph.find(node)
    run.names.setdefault(root, "A" if side == "lhs" else "B")
    run.hint(node, dense((*batch, m, k) if side == "lhs" else (*batch, k, n)))


def _held(run: Completion, node: int) -> int | None:
    """The elements of an operand; None for a leaf, which is as large as what is read of it."""
    views = run.views.get(run.graph.find(node))
    return views[0].count if views else None


def complete_pointwise(run: Completion, op: OpNode) -> None:
    """Elementwise: inputs of one type (constants exempt) read over one shape."""
    inputs = run.input_nodes(op, op.spec.inputs or 0)
    typed = [node for node in inputs if not run.is_scalar(node)]
    shared = op.node if op.spec.result == "input" else next(iter(typed), op.node)
    for node in typed:
        run.same_dtype(run.dtype_of(node), run.dtype_of(shared), f"an input of {op.key}")
    if isinstance(op.spec.result, DType):
        result = run.dtype_term(op.spec.result)
        run.bind(run.dtype_of(op.node), result, f"the type of {op.key}")
    if op.spec.arithmetic is not None:
        _complete_arithmetic(run, op, shared)
    shape = _pick_shape(run, op, inputs)
    for position, node in enumerate(inputs):
        options, field = list(reads(run, node, shape)), f"strides.{position}"
        rare: list[Layout] = []
        if not run.is_scalar(node):
            held = _held(run, node)
            rare = list(deviations(run, op.fields[field], options[0][1], shape, held))
        pick_strides(run, op, field, options, rare)
    pick_strides(run, op, "out_strides", list(writes(shape)))
    run.views[run.graph.find(op.node)] = [
        View(shape, _strides(run, op.fields["out_strides"], shape))
    ]


def _complete_arithmetic(run: Completion, op: OpNode, shared: int) -> None:
    """An elementwise op that is named by a field, and says the type of its result."""
    assert op.spec.arithmetic is not None
    run.same_dtype(run.dtype_of(op.node), op.fields["dtype"], f"the type of {op.key}")
    run.same_dtype(run.dtype_of(shared), op.fields["dtype"], f"an input of {op.key}")
    node = op.fields[op.spec.arithmetic]
    known = (
        spec.name
        for spec in OPS.values()
        if (spec.family, spec.inputs, spec.result) == (op.spec.family, op.spec.inputs, "input")
    )
    run.pick(
        f"{op.key}.{op.spec.arithmetic}",
        [Candidate(name, ((node, run.string(name)),)) for name in known],
    )


def _pick_shape(run: Completion, op: OpNode, inputs: list[int]) -> tuple[int, ...]:
    """The shape that an op works on: that of what it reads, or of what reads it."""
    if run.binding.ground(op.fields["shape"]) is None:
        strides = (f"strides.{position}" for position in range(len(inputs)))
        fields = [name for name in ("shape", "out_strides", *strides) if name in op.fields]
        ranks = {run.rank_of(op.fields[field]) for field in fields} - {None}
        candidates = [
            Candidate(label, ((op.fields["shape"], run.shape_term(shape)),), rare)
            for rare, shapes in ((False, _known_shapes), (True, _further_shapes))
            for label, shape in shapes(run, op, inputs)
            if ranks <= {len(shape)}
        ]
        run.pick(f"{op.key}.shape", candidates, flip=True)
    return _shape(run, op.fields["shape"])


def complete_marker(run: Completion, op: OpNode) -> None:
    """The mark around a fused kernel: it reads what it marks, and changes nothing of it."""
    inputs = run.input_nodes(op, 1)
    shape = _pick_shape(run, op, inputs)
    pick_strides(run, op, "strides.0", list(reads(run, inputs[0], shape)))
    seen = run.views.get(run.graph.find(inputs[0]))
    read = View(shape, _strides(run, op.fields["strides.0"], shape))
    run.views[run.graph.find(op.node)] = [read] if seen is None else seen


def _known_shapes(
    run: Completion, op: OpNode, inputs: list[int]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Shapes of what is read, then of what a consumer reads, then any; labelled by their source."""
    for position, node in enumerate(inputs):
        for number, view in enumerate(run.views.get(run.graph.find(node), ())):
            batched = ", with a batch of one" if number else ""
            yield f"of input {position}{batched}", view.shape
    hint = run.hints.get(run.graph.find(op.node))
    if hint is not None:
        yield "as read", hint.shape
    else:
        shapes = (*DEFAULT_SHAPES, *FURTHER_SHAPES) if run.wide else DEFAULT_SHAPES
        yield from (("x".join(map(str, shape)), shape) for shape in shapes)


def _further_shapes(
    run: Completion, _op: OpNode, inputs: list[int]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Parts of what is read, and its axes in another order."""
    for position, node in enumerate(inputs):
        for view in run.views.get(run.graph.find(node), ())[:1]:
            for label, shape in parts(view.shape):
                yield f"{label} of input {position}", shape


def prepare_reduce(run: Completion, op: OpNode) -> None:
    """Size what feeds a reduction from the reduction: its shape and the axis that it sums."""
    (node,) = run.input_nodes(op, 1)
    makers = run.ops_at(node)
    fields = op.fields
    free = [item for item in makers if item.spec.family == "pointwise"]
    if not free or run.binding.ground(free[0].fields["shape"]) is not None:
        return
    ranks = {run.rank_of(fields[name]) for name in ("shape", "strides", "out_strides")}
    inner = {run.rank_of(free[0].fields[name]) for name in ("shape", "strides.0", "out_strides")}
    known = (ranks - {None}) | {rank - 1 for rank in inner if rank is not None}
    candidates = []
    matrices = [((*batch, m, n), k) for batch in ((), (3,)) for m, n, k in extents(run)]
    vectors = [((m,), k) for m, _, k in extents(run)]
    nothing = [((*batch, m, n), k) for batch in ((), (3,)) for m, n, k in empty(run)]
    for shape, k in (*matrices, *vectors, *nothing):
        if known <= {len(shape)}:
            sizes = (
                (fields["shape"], run.shape_term(shape)),
                (fields["iters"], run.binding.number(k)),
                (free[0].fields["shape"], run.shape_term((*shape, k))),
            )
            label = "x".join(map(str, (*shape, k)))
            candidates.append(Candidate(label, sizes, 0 in (*shape, k)))
    run.hint(node, dense((5, 7, 11)))
    if candidates:
        run.pick(f"{op.key}.sizes", candidates)


def complete_reduce(run: Completion, op: OpNode) -> None:
    """Sum or Max over the last axis of what is read."""
    (node,) = run.input_nodes(op, 1)
    run.same_dtype(run.dtype_of(node), run.dtype_of(op.node), f"the input of {op.key}")
    root, fields = run.graph.find(node), op.fields
    views = [view for view in run.views.get(root, ()) if len(view.shape) >= 2]
    if not views:
        views = [dense(shape) for shape in EXTENTS]
        run.hint(node, views[0])
    ways = [("x".join(map(str, view.shape)), view.shape, view.strides) for view in views]
    usual, held = views[0], _held(run, node)
    rare = list(orders(usual.shape)) if held is not None else []
    inside = None if held is None else held - max(0, usual.shape[-1] - 1) * usual.strides[-1]
    flipped = deviations(run, fields["strides"], usual.strides[:-1], usual.shape[:-1], inside)
    rare += [(label, (*strides, usual.strides[-1])) for label, strides in flipped]
    ways += [(label, usual.shape, strides) for label, strides in rare]
    candidates = []
    for position, (label, shape, strides) in enumerate(ways):
        bindings = (
            (fields["shape"], run.shape_term(shape[:-1])),
            (fields["iters"], run.binding.number(shape[-1])),
            (fields["strides"], run.strides_term(strides[:-1])),
            (fields["iter_stride"], run.binding.stride(strides[-1])),
        )
        candidates.append(Candidate(label, bindings, position >= len(views)))
    run.pick(f"{op.key}.reduce", candidates)
    shape = _shape(run, fields["shape"])
    pick_strides(run, op, "out_strides", list(writes(shape)))
    run.views[run.graph.find(op.node)] = [View(shape, _strides(run, fields["out_strides"], shape))]


def prepare_cast(run: Completion, op: OpNode) -> None:
    """Tie the type of the result to the field that says it."""
    run.same_dtype(run.dtype_of(op.node), op.fields["dtype"], f"the type of {op.key}")


def complete_cast(run: Completion, op: OpNode) -> None:
    """A cast keeps order and count, so its result has the views of its input."""
    (node,) = run.input_nodes(op, 1)
    root, own = run.graph.find(node), run.graph.find(op.node)
    views = run.views.get(root) or [run.hints.get(own, dense((5, 7)))]
    run.hint(node, views[0])
    if run.number(op.fields["size"]) is None:
        counts = dict.fromkeys(view.count for view in views)
        size = op.fields["size"]
        candidates = [Candidate("whole", ((size, run.binding.number(count)),)) for count in counts]
        run.pick(f"{op.key}.size", candidates)
    run.pick(
        f"{op.key}.dtype",
        [Candidate(dtype.value, ((op.fields["dtype"], run.dtype_term(dtype)),)) for dtype in CASTS],
    )
    run.views[own] = views


def complete_fill(run: Completion, op: OpNode) -> None:
    """A constant: usual scalars, and values that the rule's own guards mention."""
    run.input_nodes(op, 0)
    node = op.fields["value"]
    if run.binding.ground(node) is None:
        further = FURTHER_SCALARS if run.wide else ()
        values = dict.fromkeys((*CONSTANTS, *guard_values(run.graph, node), *further))
        run.pick(
            f"{op.key}.value",
            [Candidate(spell(value), ((node, run.scalar(value)),)) for value in values],
        )
    assert isinstance(op.spec.result, DType), "a constant has a fixed type"
    result = run.dtype_term(op.spec.result)
    run.bind(run.dtype_of(op.node), result, f"the type of {op.key}")
    run.views[run.graph.find(op.node)] = []


def _shape(run: Completion, node: int) -> tuple[int, ...]:
    term = run.binding.ground(node)
    assert term is not None, "shapes are bound before they are read"
    elements = run.binding.reader.expressions(term) or []
    return tuple(run.binding.reader.number(element) or 0 for element in elements)


def _strides(run: Completion, node: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides of a bound list, taken between the first two indices of each axis."""
    term = run.binding.ground(node)
    assert term is not None, "strides are bound before they are read"
    steps = []
    for element in run.binding.reader.expressions(term) or []:
        offsets = run.binding.reader.offsets(element, 2) or (0, 0)
        steps.append(offsets[1] - offsets[0])
    return tuple(steps) if len(steps) == len(shape) else dense(shape).strides


# Before any op is completed, for ops that decide the size or the type of others.
PREPARE: dict[str, Role] = {
    "reduce": prepare_reduce,
    "cast": prepare_cast,
    "marker": prepare_marker,
    "opaque": prepare_opaque,
}

# What completes an op of each family, step by step.
ROLES: dict[str, tuple[Role, ...]] = {
    "gemm": GEMM_STEPS,
    "matmul": (complete_matmul,),
    "pointwise": (complete_pointwise,),
    "reduce": (complete_reduce,),
    "cast": (complete_cast,),
    "fill": (complete_fill,),
    "marker": (complete_marker,),
    "opaque": (complete_opaque,),
}
