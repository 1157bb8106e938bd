"""Ways to lay out an array and to read one: the usual ones, and those that differ in one stride."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rulecheck.instantiate.choices import Candidate
from rulecheck.instantiate.completion import Completion
from rulecheck.instantiate.setting import OpNode, dense

PAD = 3
# Nothing moves, rows overlap, elements are skipped, rows lie far apart.
STEPS = (0, 1, 2, 3, 64)
# Where a whole list is free its usual layouts say most: one overlap and one skip go with them.
OVERLAP, SKIP = 1, 2

Layout = tuple[str, tuple[int, ...]]


def matmul_layouts(shape: tuple[int, ...], side: str) -> Iterator[Layout]:
    """Strides over [batch…, m, n, k] of an operand that lacks n (left) or m (right)."""
    batch, (m, n, k) = shape[:-3], shape[-3:]
    outer = m if side == "lhs" else n
    layouts = {
        "row-major": dense((*batch, outer, k)) if side == "lhs" else dense((*batch, k, outer)),
        "column-major": dense((*batch, k, outer)) if side == "lhs" else dense((*batch, outer, k)),
    }
    padded = {f"{name}, padded": dense(view.shape, pad=PAD) for name, view in layouts.items()}
    for name, view in (layouts | padded).items():
        *steps, first, second = view.strides
        row_major = name.startswith("row-major")
        along_outer, along_k = (first, second) if row_major == (side == "lhs") else (second, first)
        pair = (along_outer, 0) if side == "lhs" else (0, along_outer)
        yield name, (*steps, *pair, along_k)


def reads(run: Completion, node: int, shape: tuple[int, ...]) -> Iterator[Layout]:
    """Ways to read an operand over a shape: as it was written first."""
    zeros = (0,) * len(shape)
    if run.is_scalar(node):
        yield "scalar", zeros
        return
    for view in run.views.get(run.graph.find(node), ()):
        if len(view.shape) == len(shape) and all(map(int.__le__, shape, view.shape)):
            yield "as written", view.strides
        elif len(view.shape) >= 2 and view.transposed().shape == shape:
            yield "transposed", view.transposed().strides
    plain = dense(shape)
    yield "dense", plain.strides
    if len(shape) < 2:
        return
    yield "transposed", column_major(shape)
    if run.is_leaf(node):
        yield "padded", dense(shape, pad=PAD).strides
    yield "one row for all", (*plain.strides[:-2], 0, 1)
    yield "one column for all", (*zeros[:-2], 1, 0)
    if len(shape) > 2:
        yield "one matrix for all", (*zeros[:-2], *plain.strides[-2:])
        for side, word in (("lhs", "left"), ("rhs", "right")):
            for name, strides in matmul_layouts(shape, side):
                yield f"{word} matmul operand, {name}", strides


def writes(shape: tuple[int, ...]) -> Iterator[Layout]:
    """Ways to lay out a result without holes."""
    yield "dense", dense(shape).strides
    if len(shape) >= 2:
        yield "transposed", column_major(shape)


def column_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array whose last two axes are stored in the other order."""
    swapped = dense((*shape[:-2], shape[-1], shape[-2])).strides
    return (*swapped[:-2], swapped[-1], swapped[-2])


def pick_strides(
    run: Completion,
    op: OpNode,
    field: str,
    options: Sequence[Layout],
    rare: Sequence[Layout] = (),
) -> None:
    """Bind a list of strides, if the left side leaves it free: one of ``options``, or a rare one.

    What the left side says is taken as it is; whether it is legal is judged on the whole graph.
    """
    node = op.fields[field]
    if run.binding.ground(node) is not None:
        return
    seen: dict[tuple[int, ...], Candidate] = {}
    for known, listed in ((False, options), (True, rare)):
        for label, strides in listed:
            if strides not in seen:
                term = run.strides_term(strides)
                seen[strides] = Candidate(label, ((node, term),), known)
    run.pick(f"{op.key}.{field}", list(seen.values()), flip=True)


def deviations(
    run: Completion,
    node: int,
    usual: tuple[int, ...],
    shape: tuple[int, ...],
    held: int | None = None,
) -> Iterator[Layout]:
    """Strides that differ from the usual ones in one place that the left side leaves free.

    Args:
        run: what is known of the pattern.
        node: the class of the list.
        usual: strides to deviate from; where the left side says others, it is those.
        shape: what they run over.
        held: elements of what is read, where something else has written it.
    """
    elements = run.elements_of(node)
    said: list[int | None] = [None] * len(usual)
    if elements is not None:
        if len(elements) != len(usual):
            return
        said = [run.step(element) for element in elements]
    base = tuple(
        plain if known is None else known for plain, known in zip(usual, said, strict=True)
    )
    for axis, extent in enumerate(shape):
        if said[axis] is not None or extent < 2:  # a stride that nothing takes says nothing
            continue
        last = axis == len(shape) - 1
        for step in STEPS if elements is not None else (SKIP if last else OVERLAP,):
            strides = (*base[:axis], step, *base[axis + 1 :])
            if held is None or reach(strides, shape) < held:
                yield f"{step} along axis {axis}", strides


def reach(strides: Sequence[int], shape: Sequence[int]) -> int:
    """The largest offset that is taken."""
    return sum(step * max(0, extent - 1) for step, extent in zip(strides, shape, strict=True))


def parts(shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Shapes that take a part of an array, and all of it in another order."""
    for axis, word in ((-2, "rows"), (-1, "columns")):
        if len(shape) >= 2 and shape[axis] > 1:
            fewer = list(shape)
            fewer[axis] -= 1
            yield f"fewer {word}", tuple(fewer)
    if len(shape) >= 2 and shape[-1] != shape[-2]:
        yield "transposed", (*shape[:-2], shape[-1], shape[-2])


def orders(shape: tuple[int, ...]) -> Iterator[Layout]:
    """Strides of an array that is read in another order than it was written, inside of it."""
    plain = dense(shape).strides
    if len(shape) >= 3:
        swapped = dense((*shape[:-3], shape[-2], shape[-3], shape[-1])).strides
        yield "another order of rows", (*swapped[:-3], swapped[-2], swapped[-3], swapped[-1])
    if len(shape) >= 2:
        turned = dense((*shape[:-2], shape[-1], shape[-2])).strides
        if (moved := (*turned[:-2], turned[-1], turned[-2])) != plain:
            yield "across what was written", moved
