"""The record that a dialect is: encodings of terms, ops with named fields, launch conventions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rulecheck.records import DType, Failure, GemmCall


@dataclasses.dataclass(frozen=True, slots=True)
class Encoding:
    """Constructor names by which the dialect spells graphs, lists, sizes and strides.

    ``op`` applies an op kind to an input list; ``leaf`` is (id, label, dtype). ``iterator`` is
    the free variable of a stride expression. ``arithmetic`` maps a constructor of two
    expressions to the operator it denotes. The sorts name what each of them builds.
    """

    op: str
    leaf: str
    input_cons: str
    input_nil: str
    list_cons: str
    list_nil: str
    number: str
    iterator: str
    product: str
    symbol: str
    arithmetic: Mapping[str, str]
    graph_sort: str
    kind_sort: str
    inputs_sort: str
    list_sort: str
    expression_sort: str
    dtype_sort: str
    dtype_function: str
    nth_function: str
    length_function: str


@dataclasses.dataclass(frozen=True, slots=True)
class OpBinding:
    """A constructor of the dialect: which op of the table it is, and its fields in order."""

    spec: str
    fields: tuple[str, ...]


class LaunchFields(NamedTuple):
    """A matmul op's fields as plain values: sizes and strides are numbers already.

    ``op`` is its row in the op table.
    """

    op: str
    numbers: Mapping[str, int]
    strings: Mapping[str, str]
    scalars: Mapping[str, float]
    dtypes: Mapping[str, DType]


class Launch(NamedTuple):
    """What the compiler does with a matmul op: the call, and which inputs it takes in which role.

    ``roles`` name the inputs in order (``A``, ``B``, ``C``, ``bias``, ``a_scale``, ``b_scale``);
    further inputs are ignored by the launch. ``clamped`` as in ``GemmStep``.
    """

    call: GemmCall
    roles: tuple[str, ...]
    clamped: tuple[tuple[str, int, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Vocabulary:
    """A rule language: its declarations and the meaning of its constructors.

    ``launch`` turns a matmul op's fields into the call that the compiler issues, or a Failure
    if the compiler would refuse. ``compute_names`` are the compute types that a rule may name,
    the dialect's default first. Unknown constructors are never guessed:
    they make a rule ``unsupported``.
    """

    name: str
    declarations_path: str
    declarations: Callable[[], str]
    encoding: Encoding
    dtypes: Mapping[str, DType]
    ops: Mapping[str, OpBinding]
    launch: Callable[[LaunchFields], Launch | Failure]
    compute_names: tuple[str, ...]

    def dtype_constructor(self, dtype: DType) -> str:
        """The constructor that spells ``dtype``."""
        return next(name for name, known in self.dtypes.items() if known is dtype)
