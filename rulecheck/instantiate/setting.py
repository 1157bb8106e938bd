"""What completions of one rule share, and the small records they pass around."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rulecheck.dialects import Vocabulary
from rulecheck.instantiate.binding import Rows
from rulecheck.instantiate.spelling import Spelling
from rulecheck.ops import OpSpec
from rulecheck.records import DType, TermTable


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
    """What all completions of one rule share.

    ``lenient``: build graphs whose types do not go together, to see whether the rule would fire.
    """

    vocabulary: Vocabulary
    table: TermTable
    rows: Rows
    types: tuple[TypeTuple, ...]
    lenient: bool = False
    # (label, types, their terms) of each combination; filled once, it is asked for in every run.
    type_terms: list[tuple[str, tuple[DType, ...], tuple[int, ...]]] = dataclasses.field(
        default_factory=list
    )
    spelling: Spelling = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        """Share what is spelled among all completions."""
        object.__setattr__(self, "spelling", Spelling(self.table, self.vocabulary.encoding))
