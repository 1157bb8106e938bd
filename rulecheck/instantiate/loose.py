"""Values for what a pattern mentions outside every op: sizes, strides, lists, plain numbers."""

from __future__ import annotations

from collections.abc import Iterator

from rulecheck.instantiate.choices import Candidate
from rulecheck.instantiate.completion import Completion
from rulecheck.instantiate.setting import dense

NUMBERS = (
    7,
    5,
    1,
    0,
    3,
    35,
    2,
    8,
    11,
    64,
    4,
    6,
    9,
    13,
    16,
    17,
    32,
    48,
    63,
    65,
    127,
    128,
    255,
    1024,
)
SHAPES = ((5, 7), (3, 5, 7), (7,), (8, 8), (1, 7), (2, 3, 4, 5), (17, 9), (6, 1))


def complete_loose(run: Completion) -> None:
    """Pick a value for each class that a term needs and no op has decided.

    Raises:
        DeadEnd: a guard excludes every value.
    """
    graph = run.graph
    parts = {arg for root in graph.classes() for call in graph.calls_of(root) for arg in call.args}
    for number, root in enumerate(sorted({graph.find(part) for part in parts})):
        if run.binding.ground(root) is None:
            candidates = [Candidate(label, ((root, term),)) for label, term in _values(run, root)]
            if candidates:
                run.pick(f"value{number}", candidates)


def _values(run: Completion, root: int) -> Iterator[tuple[str, int]]:
    """Labelled terms of a class's sort; none for parts of graphs, which have roles."""
    if run.graph.calls_of(root):
        return  # it is made of parts, which are picked by themselves
    names, sort = run.vocabulary.encoding, run.graph.sort_of(root)
    if sort == names.expression_sort:
        yield from _expressions(run)
    elif sort == "i64":
        yield from ((str(value), run.table.literal("i64", value)) for value in NUMBERS)
    elif sort == "f64":
        yield from ((str(value), run.scalar(value)) for value in NUMBERS)
    elif sort == names.list_sort:
        yield from _lists(run)
    elif sort == names.dtype_sort:
        known = run.vocabulary.dtypes.values()
        yield from ((dtype.value, run.dtype_term(dtype)) for dtype in known)


def _expressions(run: Completion) -> Iterator[tuple[str, int]]:
    for value in NUMBERS:
        yield str(value), run.binding.number(value)
        if value:
            yield f"stride {value}", run.binding.stride(value)


def _lists(run: Completion) -> Iterator[tuple[str, int]]:
    for shape in SHAPES:
        spelled = "x".join(map(str, shape))
        yield spelled, run.shape_term(shape)
        yield f"strides of {spelled}", run.strides_term(dense(shape).strides)
