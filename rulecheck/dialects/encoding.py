"""How a dialect spells graphs, lists, sizes and strides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Encoding:
    """Constructor names by which the dialect spells graphs, lists, sizes and strides.

    ``op`` applies an op kind to an input list; ``leaf`` is (id, label, dtype). ``iterator`` is
    the free variable of a stride expression. ``arithmetic`` maps a constructor of two
    expressions to the operator it denotes. ``row_major`` names the dense strides of a shape without
    spelling them out. The sorts name what each of them builds.
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
    row_major: str = ""
