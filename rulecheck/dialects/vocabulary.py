"""The record that a dialect is: encodings of terms, ops with named fields, launch conventions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rulecheck.dialects.encoding import Encoding
from rulecheck.dialects.meaning import Meaning
from rulecheck.records import DType, Failure, GemmCall


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
    they make a rule ``unsupported``. ``meanings`` say what rows of its relations state, by name; of
    other relations nothing is known but how rules use them.
    """

    name: str
    declarations_path: str
    declarations: Callable[[], str]
    encoding: Encoding
    dtypes: Mapping[str, DType]
    ops: Mapping[str, OpBinding]
    launch: Callable[[LaunchFields], Launch | Failure]
    compute_names: tuple[str, ...]
    meanings: Mapping[str, Meaning] = dataclasses.field(default_factory=dict)

    def dtype_constructor(self, dtype: DType) -> str:
        """The constructor that spells ``dtype``."""
        return next(name for name, known in self.dtypes.items() if known is dtype)
