"""What rows of the vocabulary's relations and functions state.

By this a rule that adds a row is judged by itself. Each check reads the terms of a row as numbers,
strides and ops, and answers with a ``Truth``.
"""

from __future__ import annotations

import math

from rulecheck.dialects.meaning import Meaning, Truth
from rulecheck.dialects.terms import TermReader
from rulecheck.records import TermTable

TRUE = Truth(holds=True, why="")
_GEMM_FIELDS = {"m": 0, "n": 1, "d_order": 8, "ldd": 12, "batch": 13, "stride_d": 17, "d_dtype": 21}
_FP8 = ("F8E4M3", "F8E5M2")

Args = tuple[int, ...]


def _unknown(why: str) -> Truth:
    return Truth(holds=None, why=why)


def _false(why: str) -> Truth:
    return Truth(holds=False, why=why)


def _numbers(reader: TermReader, *terms: int) -> list[int] | None:
    """Sizes and strides as numbers of elements; None if one is symbolic."""
    found = [reader.number(term) for term in terms]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def _list(reader: TermReader, term: int) -> tuple[int, ...] | None:
    """A list of sizes or strides as numbers."""
    elements = reader.expressions(term)
    found = None if elements is None else _numbers(reader, *elements)
    return None if found is None else tuple(found)


def _plain(reader: TermReader, term: int) -> int | None:
    value = reader.nodes[term].value
    return value if isinstance(value, int) else None


def _symbolic() -> Truth:
    return _unknown("a size or stride of the row has no number")


def stride_coefficient(reader: TermReader, args: Args) -> Truth:
    """(expression, c): the expression is c · iterator, or the number c."""
    linear, said = reader.linear(args[0]), _plain(reader, args[1])
    if said is None or linear is None:
        return _unknown("the expression is not linear in the iterator")
    if linear in {(0, said), (said, 0)}:
        return TRUE
    start, step = linear
    return _false(f"the expression is {start} + {step} · iterator, the row says {said}")


def valid_leading_dimension(reader: TermReader, args: Args) -> Truth:
    """(ld, extent): the leading dimension is at least the extent it strides over."""
    numbers = _numbers(reader, *args)
    if numbers is None:
        return _symbolic()
    ld, extent = numbers
    if ld >= extent:
        return TRUE
    return _false(f"the leading dimension is {ld}, the extent {extent}; the launch would raise it")


def exact_matrix_stride(reader: TermReader, args: Args) -> Truth:
    """(stride, rows, columns): the stride is one whole matrix."""
    numbers = _numbers(reader, *args)
    if numbers is None:
        return _symbolic()
    stride, rows, columns = numbers
    if stride == rows * columns:
        return TRUE
    return _false(f"the stride is {stride}, a matrix of {rows} × {columns} has {rows * columns}")


def request(reader: TermReader, args: Args) -> Truth:
    """A question to other rules states nothing; its terms have to be sizes or strides."""
    return _symbolic() if _numbers(reader, *args) is None else TRUE


def exact_pointwise_output(reader: TermReader, args: Args) -> Truth:
    """D of a library matmul is the dense row-major tensor that the row describes."""
    call, order, m, n, ldd, batch, stride_d, dtype, shape, strides, zeros, count = args
    fields = _gemm(reader, call)
    if fields is None:
        return _unknown("the first term is no cublaslt op")
    said = {
        "d_order": order,
        "m": m,
        "n": n,
        "ldd": ldd,
        "batch": batch,
        "stride_d": stride_d,
        "d_dtype": dtype,
    }
    for name, term in said.items():
        if not reader.equal(fields[name], term):
            return _false(f"{name} of the row is not that of the matmul")
    numbers = _numbers(reader, m, n, ldd, batch, stride_d, count)
    lists = [_list(reader, term) for term in (shape, strides, zeros)]
    if numbers is None or None in lists:
        return _symbolic()
    for term in (*(reader.expressions(strides) or ()), *(reader.expressions(zeros) or ())):
        if (reader.linear(term) or (0, 0))[0] != 0:
            return _false("a stride of the row does not begin at the first element")
    return _is_dense(str(reader.nodes[order].value), numbers, [item or () for item in lists])


def _is_dense(order: str, numbers: list[int], lists: list[tuple[int, ...]]) -> Truth:
    m, n, ldd, batch, stride_d, count = numbers
    shape, strides, zeros = lists
    inner, outer = (m, n) if order == "COL" else (n, m)
    logical = (outer, inner) if len(shape) == 2 else (batch, outer, inner)
    if shape != logical:
        return _false(f"D is {logical} in row-major order, the row says {shape}")
    if len(shape) == 2 and batch != 1:
        return _false(f"D has a batch of {batch}, the row describes one matrix")
    dense = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    written = (ldd, 1) if len(shape) == 2 else (stride_d if batch > 1 else dense[0], ldd, 1)
    for what, found in (("the matmul writes D with strides", written), ("the row says", strides)):
        if any(a != b for a, b, extent in zip(found, dense, shape, strict=False) if extent > 1):
            return _false(f"{what} {found}; dense are {dense}")
    if zeros != (0,) * len(shape) or len(strides) != len(shape):
        return _false(f"the zero strides are {zeros}, for rank {len(shape)}")
    if count != math.prod(shape):
        return _false(f"the count is {count}, the tensor has {math.prod(shape)} elements")
    return TRUE


def _gemm(reader: TermReader, term: int) -> dict[str, int] | None:
    node = reader.nodes[term]
    if node.fn != reader.encoding.op:
        return None
    kind = reader.nodes[node.args[0]]
    if kind.fn not in ("cublaslt", "cublaslt_scaled"):
        return None
    return {name: kind.args[place] for name, place in _GEMM_FIELDS.items()}


def scaled_activation(reader: TermReader, args: Args) -> Truth:
    """(tensor, scale, type): a quantised tensor, whose op has its factor as its last input."""
    tensor, scale, dtype = args
    node = reader.nodes[tensor]
    if reader.nodes[dtype].fn not in _FP8:
        return _false(f"{reader.nodes[dtype].fn} is no quantised type")
    if node.fn != reader.encoding.op:
        return _unknown("the tensor is no op")
    kind, inputs = reader.nodes[node.args[0]], reader.inputs(node.args[1])
    if kind.fn != "CustomOpKind" or not inputs:
        return _unknown("the tensor is not made by an op of the host program")
    if reader.nodes[kind.args[1]].fn != reader.nodes[dtype].fn:
        return _false("the tensor is of another type")
    return TRUE if inputs[-1] == scale else _false("the factor is not the op's last input")


def scale_product(table: TermTable, args: Args) -> tuple[int, int]:
    """(product, left, right): the first is the product of the scalars."""
    product, left, right = args
    nil = table.add("ENil")
    inputs = table.add("ICons", left, table.add("ICons", right, table.add("INil")))
    return table.add("Op", table.add("Mul", nil, nil, nil, nil), inputs), product


def length(reader: TermReader, args: Args) -> Truth:
    """(list) → how many elements it has."""
    elements, said = reader.expressions(args[0]), _plain(reader, args[1])
    if elements is None:
        return _unknown("the list is not spelled out")
    return TRUE if said == len(elements) else _false(f"it has {len(elements)} elements, not {said}")


def nth_from_end(reader: TermReader, args: Args) -> Truth:
    """(list, i) → the element with i others behind it."""
    elements, index = reader.expressions(args[0]), _plain(reader, args[1])
    if elements is None or index is None:
        return _unknown("the list is not spelled out")
    if not 0 <= index < len(elements):
        return _false(f"the list has {len(elements)} elements, none has {index} behind it")
    same = reader.equal(elements[-1 - index], args[2])
    return TRUE if same else _false("the list has another element there")


def n_elements(reader: TermReader, args: Args) -> Truth:
    """(list) → the product of its extents."""
    shape, count = _list(reader, args[0]), reader.number(args[1])
    if shape is None or count is None:
        return _symbolic()
    product = math.prod(shape)
    return TRUE if count == product else _false(f"the product is {product}, not {count}")


def lower(reader: TermReader, args: Args) -> Truth:
    """(expression) → a number that it never falls below."""
    return _bound(reader, args, is_lower=True)


def upper(reader: TermReader, args: Args) -> Truth:
    """(expression) → a number that it never exceeds."""
    return _bound(reader, args, is_lower=False)


def _bound(reader: TermReader, args: Args, *, is_lower: bool) -> Truth:
    said = _plain(reader, args[1])
    values = [reader.number(args[0], step) for step in (0, 1, 2, 7, 1021)]
    if said is None or None in values:
        return _symbolic()
    for value in values:
        assert value is not None
        if (value < said) if is_lower else (value > said):
            return _false(f"the expression takes the value {value}, the bound is {said}")
    return TRUE


MEANINGS = {
    "cublaslt_stride_coefficient": Meaning(stride_coefficient),
    "cublaslt_leading_dimension_request": Meaning(request),
    "cublaslt_valid_leading_dimension": Meaning(valid_leading_dimension),
    "cublaslt_matrix_stride_request": Meaning(request),
    "cublaslt_exact_matrix_stride": Meaning(exact_matrix_stride),
    "cublaslt_exact_pointwise_output": Meaning(exact_pointwise_output),
    "cublaslt_fp8_scaled_activation": Meaning(scaled_activation),
    "cublaslt_fp8_scale_product": Meaning(graphs=scale_product),
    "len": Meaning(length),
    "nth_from_end": Meaning(nth_from_end),
    "n_elements": Meaning(n_elements),
    "lower": Meaning(lower),
    "upper": Meaning(upper),
}
