"""The role of a library matmul's fields: types, layout, extents, scalars, epilogue, inputs."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from rulecheck.instantiate.choices import Candidate, Cause, DeadEnd, spell
from rulecheck.instantiate.completion import Completion
from rulecheck.instantiate.guards import guard_values
from rulecheck.instantiate.layouts import PAD
from rulecheck.instantiate.setting import OpNode, View
from rulecheck.records import DType

ALPHAS = (1.0, 1 / 64, -1.0, 0.0, 1 / 3, 2.0)
BETAS = (0.0, 1.0, 0.5, -1.0, 2.0, 1 / 3)
EPILOGUES = ("DEFAULT", "BIAS", "RELU", "RELU_BIAS", "GELU", "GELU_BIAS")
# Coprime extents keep axes apart; equal ones hide nothing that a fixed stride would show; an
# extent of 1 is where leading dimensions degenerate; 17 and 9 cross the small tiles (M > 8).
EXTENTS = ((5, 7, 11), (8, 8, 8), (1, 7, 11), (5, 1, 11), (5, 7, 1), (17, 9, 2))
# An op that writes nothing is well-formed; the library refuses such a call. It refuses k = 0 too,
# but the public rules leave it to the frontend that nothing is summed over no terms.
EMPTY_EXTENTS = ((0, 7, 11), (5, 0, 11))
# fp8 wants k and m in 16-byte units (CUBLASLT.md section 3).
FP8_EXTENTS = ((16, 32, 48), (32, 32, 32))
# Where little else is free: further sizes, many with an extent of 1, which some rules fix.
FURTHER_EXTENTS = (
    *((2, 3, 5), (9, 17, 3), (4, 6, 8), (1, 9, 4), (6, 1, 5), (3, 4, 1), (16, 8, 5), (1, 1, 7)),
    *((1, 16, 3), (1, 3, 8), (1, 5, 2), (1, 8, 16), (1, 17, 7), (1, 2, 9), (1, 4, 6), (1, 6, 3)),
    *(
        (13, 2, 4),
        (2, 13, 6),
        (11, 5, 3),
        (3, 11, 4),
        (15, 3, 2),
        (9, 9, 9),
        (1, 13, 5),
        (1, 10, 3),
    ),
)
FURTHER_FP8_EXTENTS = (
    *((16, 16, 16), (48, 16, 32), (64, 32, 16), (16, 48, 64), (80, 16, 16), (32, 64, 16)),
    *((16, 80, 32), (48, 48, 16), (64, 16, 48), (96, 16, 16), (16, 16, 96), (32, 48, 64)),
)
FURTHER_SCALARS = (3.0, 0.75, -0.5, 10.0, 1e-3, 7.5, 100.0, -2.0, 0.1, 1.5)
FP8_PAD = 16


def _axis(op: OpNode, name: str) -> str:
    return f"{op.key}.{name}"


def _dtype(run: Completion, op: OpNode, field: str) -> DType:
    term = run.binding.ground(op.fields[field])
    assert term is not None, "types are bound first"
    found = run.vocabulary.dtypes.get(run.table.nodes[term].fn)
    if found is None:
        raise DeadEnd(f"{field} is a type that is not modelled")
    return found


def _text(run: Completion, op: OpNode, field: str) -> str:
    term = run.binding.ground(op.fields[field])
    assert term is not None, f"{field} is bound before it is read"
    return str(run.table.nodes[term].value)


TYPE_FIELDS = ("a_dtype", "b_dtype", "c_dtype", "d_dtype")


def _types(run: Completion, op: OpNode) -> None:
    """Types that the library combines, then the compute and scale types that go with them."""
    nodes = tuple(op.fields[field] for field in TYPE_FIELDS)
    candidates = [
        Candidate(label, tuple(zip(nodes, terms, strict=True)))
        for label, dtypes, terms in _type_terms(run)
        if dtypes[0].is_fp8 or op.spec.name != "ScaledGemm"  # scales are for narrow operands only
    ]
    run.pick(_axis(op, "types"), candidates)
    run.same_dtype(run.dtype_of(op.node), op.fields["d_dtype"], f"the type of {op.key}")
    chosen = tuple(_dtype(run, op, field) for field in TYPE_FIELDS)
    allowed = _compute_types(run, chosen)
    names = [name for name in run.vocabulary.compute_names if name == "default" or name in allowed]
    explicit = "F64" if chosen[0] is DType.F64 else "F32"
    for field, labels in (("compute_type", names), ("scale_dtype", ["default", explicit])):
        node = op.fields[field]
        texts = [Candidate(name, ((node, run.string(name)),)) for name in labels]
        run.pick(_axis(op, field), texts, _axis(op, "types"))


def _type_terms(run: Completion) -> list[tuple[str, tuple[DType, ...], tuple[int, ...]]]:
    """Labelled type combinations; TF32 names are F32 in memory, so they join F32's row."""
    found = run.setting.type_terms
    if not found:
        rows = [(row.a, row.b, row.c, row.d) for row in run.setting.types]
        if (DType.F32,) * 4 in rows:
            rows.append((DType.TF32,) * 4)
        for dtypes in dict.fromkeys(rows):
            names = [dtype.value for dtype in dtypes]
            label = names[0] if len(set(names)) == 1 else ",".join(names)
            found.append((label, dtypes, tuple(run.dtype_term(dtype) for dtype in dtypes)))
    return found


def _compute_types(run: Completion, dtypes: tuple[DType, ...]) -> frozenset[str]:
    stored = tuple(dtype.storage for dtype in dtypes)
    rows = (row for row in run.setting.types if (row.a, row.b, row.c, row.d) == stored)
    return frozenset(name for row in rows for name in row.compute)


def _is_fp8(run: Completion, op: OpNode) -> bool:
    return _dtype(run, op, "a_dtype").is_fp8


def _layouts(run: Completion, op: OpNode) -> None:
    """Matrix orders and transposes; the library wants C and D in one order, fp8 only TN."""
    fp8 = _is_fp8(run, op)
    outputs = ("COL",) if fp8 else ("COL", "ROW")
    c_order, d_order = op.fields["c_order"], op.fields["d_order"]
    run.pick(
        _axis(op, "order of C, D"),
        [
            Candidate(order, ((c_order, run.string(order)), (d_order, run.string(order))))
            for order in outputs
        ],
        _axis(op, "types"),
    )
    same = _text(run, op, "d_order")
    other = "ROW" if same == "COL" else "COL"
    pairs = [(same, same), (other, other), (other, same), (same, other)]
    _pair(run, op, "order of A, B", ("a_order", "b_order"), pairs[:1] if fp8 else pairs)
    transposes = [("T", "N")] if fp8 else [("N", "N"), ("N", "T"), ("T", "N"), ("T", "T")]
    _pair(run, op, "transpose of A, B", ("a_layout", "b_layout"), transposes)


def _pair(
    run: Completion, op: OpNode, name: str, fields: tuple[str, str], pairs: list[tuple[str, str]]
) -> None:
    first, second = (op.fields[field] for field in fields)
    run.pick(
        _axis(op, name),
        [
            Candidate(
                "".join(part if len(part) == 1 else part + " " for part in pair).strip(),
                ((first, run.string(pair[0])), (second, run.string(pair[1]))),
            )
            for pair in pairs
        ],
        _axis(op, "types"),
    )


def _extents(run: Completion, op: OpNode) -> None:
    fp8 = _is_fp8(run, op)
    batch = op.fields["batch_count"]
    run.pick(
        _axis(op, "batch_count"),
        [Candidate(str(count), ((batch, run.binding.number(count)),)) for count in batches(run)],
    )
    fixed = _fixed_extents(run, op)
    candidates = []
    unit = _unit(run, op) if fp8 else FP8_PAD
    # n is free, and how m is aligned depends on the types of C and D (CUBLASLT.md section 3).
    rare = [(16 + unit, 7, 48)] if unit < FP8_PAD else []
    for sizes in (*extents(run, fp8=fp8), *rare):
        merged = [fixed.get(name, size) for name, size in zip("mnk", sizes, strict=True)]
        bindings = tuple(
            (op.fields[name], run.binding.number(size))
            for name, size in zip("mnk", merged, strict=True)
            if run.number(op.fields[name]) is None
        )
        candidates.append(Candidate("x".join(map(str, merged)), bindings, sizes in rare))
    if any(candidate.bindings for candidate in candidates):
        unique = {candidate.label: candidate for candidate in candidates}
        run.pick(_axis(op, "m x n x k"), list(unique.values()), _axis(op, "types"))


def _unit(run: Completion, op: OpNode) -> int:
    """Elements in 16 bytes of C and of D."""
    return 16 // min(_dtype(run, op, name).bytes for name in ("c_dtype", "d_dtype"))


def extents(run: Completion, *, fp8: bool = False) -> tuple[tuple[int, int, int], ...]:
    """(m, n, k) to try, the default first."""
    usual, further = (FP8_EXTENTS, FURTHER_FP8_EXTENTS) if fp8 else (EXTENTS, FURTHER_EXTENTS)
    return (*usual, *further) if run.wide else usual


def empty(run: Completion) -> tuple[tuple[int, int, int], ...]:
    """(m, n, k) without an element or a term, for rules that make a library call of them."""
    return EMPTY_EXTENTS if run.makes_call() else ()


def batches(run: Completion) -> tuple[int, ...]:
    """Batch counts to try."""
    return (1, 3, 2, 4) if run.wide else (1, 3)


def _fixed_extents(run: Completion, op: OpNode) -> dict[str, int]:
    """Extents that the pattern says, or that the result of another op brings as A or B."""
    fixed: dict[str, int] = {}
    for operand, node in zip("ab", run.listed_inputs(op), strict=False):
        for view in run.views.get(run.graph.find(node), ()):
            if len(view.shape) < 2:
                continue
            outer, inner = view.shape[-2:]
            column = _text(run, op, f"{operand}_order") == "COL"
            plain = _text(run, op, f"{operand}_layout") == "N"
            names = ("mk" if plain else "km") if operand == "a" else ("kn" if plain else "nk")
            fixed.update(zip(names, (inner, outer) if column else (outer, inner), strict=True))
            break
    for name in "mnk":
        known = run.number(op.fields[name])
        if known is not None:
            fixed[name] = known
    return fixed


def _scalars(run: Completion, op: OpNode) -> None:
    for name, values in (("beta", BETAS), ("alpha", ALPHAS)):
        node = op.fields[name]
        further = FURTHER_SCALARS if run.wide else ()
        tried = dict.fromkeys((*values, *guard_values(run.graph, node), *further))
        run.pick(
            _axis(op, name),
            [Candidate(spell(value), ((node, run.scalar(value)),)) for value in tried],
        )
    epilogue = op.fields["epilogue"]
    # A bias is a vector over the rows of a column-order D (CUBLASLT.md section 3).
    column = _text(run, op, "d_order") == "COL"
    names = [name for name in EPILOGUES if column or not name.endswith("BIAS")]
    run.pick(
        _axis(op, "epilogue"),
        [Candidate(name, ((epilogue, run.string(name)),)) for name in names],
        _axis(op, "order of C, D"),
    )
    run.input_nodes(op, len(_roles(run, op)))  # a dead end here turns back to the epilogue


def _roles(run: Completion, op: OpNode) -> list[str]:
    """What the call reads, in the order of the input list."""
    roles = ["A", "B"]
    if _reads_c(run, op):
        roles.append("C")
    if _text(run, op, "epilogue").endswith("BIAS"):
        roles.append("bias")
    if op.spec.name == "ScaledGemm":
        roles += ["a_scale", "b_scale"]
    return roles


def _matrix(run: Completion, op: OpNode, operand: str) -> tuple[int, int]:
    """(inner, outer) extents of a stored matrix: elements along a column (or row), and how many."""
    m, n, k = (run.known(op.fields[name]) for name in "mnk")
    rows, cols = {
        "a": (m, k) if _text(run, op, "a_layout") == "N" else (k, m),
        "b": (k, n) if _text(run, op, "b_layout") == "N" else (n, k),
        "c": (m, n),
        "d": (m, n),
    }[operand]
    return (rows, cols) if _text(run, op, f"{operand}_order") == "COL" else (cols, rows)


def _leading_dimensions(run: Completion, op: OpNode, operands: str) -> None:
    """Minimal or padded; D is dense, since its buffer holds exactly m times n elements."""
    fp8 = _is_fp8(run, op)
    pad = FP8_PAD if fp8 else PAD
    for operand in operands:
        node = op.fields[f"ld{operand}"]
        least = _matrix(run, op, operand)[0]
        said = run.number(node)
        if said is not None:
            if said < least and (operand != "c" or _reads_c(run, op)):
                message = f"ld{operand} is {said}, the stored matrix needs {least}"
                raise DeadEnd(message, Cause.ILL_TYPED)
            continue
        sizes = [("minimal", least)]
        if operand != "d":
            sizes.append(("padded", least + pad))
        candidates = _spelled(run, node, sizes)
        if operand == "c" and fp8 and (unit := _unit(run, op)) < FP8_PAD:
            rare = ("padded by 16 bytes", least + unit)
            candidates += _spelled(run, node, [rare], rare=True)
        elif operand == "c" and not _reads_c(run, op):
            candidates += _spelled(run, node, [("1", 1)], rare=True)
        run.pick(_axis(op, f"ld{operand}"), candidates)


def _spelled(
    run: Completion, node: int, sizes: list[tuple[str, int]], *, rare: bool = False
) -> list[Candidate]:
    """Each size as a number and, for patterns that want a stride expression, as a stride."""
    binding = run.binding
    return [
        Candidate(label, ((node, spell(size)),), rare)
        for label, size in sizes
        for spell in (binding.number, binding.stride)
    ]


def _reads_c(run: Completion, op: OpNode) -> bool:
    term = run.binding.ground(op.fields["beta"])
    assert term is not None, "scalars are bound first"
    return run.table.nodes[term].value != 0.0


def _batch_strides(run: Completion, op: OpNode, operands: str) -> None:
    """One matrix apart, or 0 (one matrix for the whole batch) where the library allows it."""
    batch = run.known(op.fields["batch_count"])
    for operand in operands:
        node = op.fields[f"stride_{operand}"]
        if run.number(node) is not None:
            continue
        matrix = run.known(op.fields[f"ld{operand}"]) * _matrix(run, op, operand)[1]
        sizes = [("0", 0), ("one matrix", matrix)]  # ignored by the launch if there is no batch
        if batch > 1:
            sizes = [("one matrix", matrix)] if operand == "d" else sizes[::-1]
        run.pick(
            _axis(op, f"stride_{operand}"), _spelled(run, node, sizes), _axis(op, "batch_count")
        )


def _inputs(run: Completion, op: OpNode) -> None:
    """A, B, then C if β ≠ 0, then the bias: typed and with the view that the call takes.

    D's view is the logical array that consumers read.
    """
    roles = _roles(run, op)
    for role, node in zip(roles, run.input_nodes(op, len(roles)), strict=True):
        root = run.graph.find(node)
        run.names.setdefault(root, role)
        if role == "bias":
            _bias(run, op, node)
            continue
        if role.endswith("_scale"):
            run.bind(run.dtype_of(node), run.dtype_term(DType.F32), f"the type of {op.key}'s scale")
            run.hint(node, View((1,), (1,)))
            continue
        low = role.lower()
        run.same_dtype(run.dtype_of(node), op.fields[f"{low}_dtype"], f"{role} of {op.key}")
        run.hint(node, _operand_view(run, op, low))
    run.views[run.graph.find(op.node)] = list(_result_views(run, op))


def _bias(run: Completion, op: OpNode, node: int) -> None:
    """The library's default bias type follows D, except for fp8 operands (then Bf16 or F16)."""
    a_dtype, c_dtype, d_dtype = (_dtype(run, op, f"{name}_dtype") for name in "acd")
    dtype = d_dtype
    if a_dtype.is_fp8:
        dtype = c_dtype if c_dtype in (DType.BF16, DType.F16) else DType.BF16
    run.bind(run.dtype_of(node), run.dtype_term(dtype), f"the type of {op.key}'s bias")
    m = run.known(op.fields["m"])
    run.hint(node, View((m,), (1,)))


def _operand_view(run: Completion, op: OpNode, operand: str) -> View:
    """An operand as a logical array: outer axis, then the contiguous one; batch in front."""
    inner, outer = _matrix(run, op, operand)
    ld = run.known(op.fields[f"ld{operand}"])
    batch = run.known(op.fields["batch_count"])
    if batch == 1:
        return View((outer, inner), (ld, 1))
    return View((batch, outer, inner), (run.known(op.fields[f"stride_{operand}"]), ld, 1))


def _result_views(run: Completion, op: OpNode) -> Iterator[View]:
    view = _operand_view(run, op, "d")
    yield view
    if len(view.shape) == 2:  # some rules see an unbatched result with a batch axis of one
        yield View((1, *view.shape), (view.count, *view.strides))


# What sizes depend on comes before what they do not, so that a dead end turns back to it.
GEMM_STEPS = (
    _types,
    _layouts,
    _extents,
    functools.partial(_leading_dimensions, operands="dab"),
    functools.partial(_batch_strides, operands="dab"),
    _scalars,
    functools.partial(_leading_dimensions, operands="c"),
    functools.partial(_batch_strides, operands="c"),
    _inputs,
)
