"""What each row of the vocabulary states: a true one, a false one of each kind, and the unknown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from rulecheck.dialects.luminal.meanings import MEANINGS
from rulecheck.dialects.meaning import Truth
from rulecheck.dialects.terms import TermReader
from rulecheck.records import DType
from tests.luminal_rules import dialect
from tests.luminal_terms import VOCABULARY, Graph, Value

Build = Callable[[Graph], tuple[int, ...]]


def truth(name: str, build: Build) -> Truth:
    graph = Graph()
    check = MEANINGS[name].check
    assert check is not None
    args = build(graph)
    return check(TermReader(graph.nodes, VOCABULARY.encoding), args)


def numbers(*values: int) -> Build:
    return lambda graph: tuple(graph.number(value) for value in values)


def symbol(graph: Graph) -> int:
    return graph.add("MVar", graph.literal("String", "s"))


def test_every_meaning_is_of_something_that_the_dialect_declares() -> None:
    declared = {item.name: item for item in dialect().declarations}
    assert VOCABULARY.meanings == MEANINGS
    for name, meaning in MEANINGS.items():
        assert declared[name].kind in {"relation", "function"}
        assert (meaning.check is None) is (meaning.graphs is not None)


@pytest.mark.parametrize(
    ("build", "said", "holds"),
    [
        (lambda graph: graph.stride(1), 1, True),
        (lambda graph: graph.stride(5), 5, True),
        (lambda graph: graph.number(5), 5, True),  # a size, or the leading dimension itself
        (lambda graph: graph.number(0), 0, True),
        (lambda graph: graph.add("MMul", graph.number(5), graph.stride(2)), 10, True),
        (lambda graph: graph.stride(5), 6, False),
        (lambda graph: graph.add("MAdd", graph.stride(5), graph.number(1)), 5, False),
        (lambda graph: graph.number(5), 4, False),
        (symbol, 5, None),
        (lambda graph: graph.add("MDiv", graph.stride(5), graph.number(2)), 2, None),
    ],
)
def test_a_coefficient(build: Callable[[Graph], int], said: int, holds: bool | None) -> None:
    found = truth(
        "cublaslt_stride_coefficient", lambda graph: (build(graph), graph.literal("i64", said))
    )
    assert found.holds is holds
    assert bool(found.why) is (holds is not True)


def test_a_leading_dimension_is_at_least_its_extent() -> None:
    name = "cublaslt_valid_leading_dimension"
    assert truth(name, numbers(7, 7)).holds
    assert truth(name, numbers(8, 7)).holds
    assert truth(name, lambda graph: (graph.stride(7), graph.number(7))).holds
    assert truth(name, numbers(6, 7)).holds is False
    assert truth(name, lambda graph: (graph.stride(6), graph.number(7))).holds is False
    assert truth(name, lambda graph: (symbol(graph), graph.number(7))).holds is None


def test_a_stride_is_exactly_one_matrix() -> None:
    name = "cublaslt_exact_matrix_stride"
    assert truth(name, numbers(35, 5, 7)).holds
    assert truth(name, lambda graph: (graph.stride(35), graph.number(5), graph.number(7))).holds
    assert truth(name, numbers(36, 5, 7)).holds is False
    assert truth(name, numbers(0, 5, 7)).holds is False
    assert truth(name, lambda graph: (symbol(graph), *numbers(5, 7)(graph))).holds is None


@pytest.mark.parametrize(
    ("name", "count"),
    [("cublaslt_leading_dimension_request", 2), ("cublaslt_matrix_stride_request", 3)],
)
def test_a_question_states_nothing(name: str, count: int) -> None:
    assert truth(name, numbers(*range(count))).holds
    assert truth(name, lambda graph: (symbol(graph),) * count).holds is None


# ---- a matmul whose D is dense -----------------------------------------------------------------

# m x n = 5 x 7 in column order: the row-major tensor [7, 5].
FLAT: dict[str, Value] = {
    "m": 5,
    "n": 7,
    "ldd": 5,
    "batch_count": 1,
    "stride_d": 0,
    "d_order": "COL",
}
BATCHED: dict[str, Value] = {**FLAT, "batch_count": 3, "stride_d": 35}
ROWS: dict[str, Value] = {**FLAT, "d_order": "ROW", "ldd": 7}


def dense_output(
    fields: dict[str, Value],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    count: int,
    **changed: int | str | tuple[int, ...],
) -> Truth:
    """The row for a call with these fields; ``changed`` are what it says instead."""

    def build(graph: Graph) -> tuple[int, ...]:
        said = {**fields, "d_dtype": DType.BF16, **changed}
        names = ("d_order", "m", "n", "ldd", "batch_count", "stride_d", "d_dtype")
        terms = []
        for name in names:
            value = said[name]
            assert not isinstance(value, tuple)
            terms.append(graph.field(value))
        zeros = said.get("zeros", (0,) * len(shape))
        assert isinstance(zeros, tuple)
        call = graph.gemm(graph.leaf("a"), graph.leaf("b"), **fields)
        lists = (graph.shape(*shape), graph.strides(*strides), graph.strides(*zeros))
        return (call, *terms, *lists, graph.number(count))

    return truth("cublaslt_exact_pointwise_output", build)


@pytest.mark.parametrize(
    ("fields", "shape", "strides", "count"),
    [
        (FLAT, (7, 5), (5, 1), 35),
        (ROWS, (5, 7), (7, 1), 35),
        (BATCHED, (3, 7, 5), (35, 5, 1), 105),
        ({**BATCHED, **ROWS, "batch_count": 3, "stride_d": 35}, (3, 5, 7), (35, 7, 1), 105),
        ({**FLAT, "stride_d": 35}, (1, 7, 5), (35, 5, 1), 35),
        ({**FLAT, "n": 1, "ldd": 9}, (1, 5), (9, 1), 5),  # one row: no stride leads to another
        ({**FLAT, "m": 1, "ldd": 1}, (7, 1), (1, 1), 7),
    ],
)
def test_a_dense_result(
    fields: dict[str, Value], shape: tuple[int, ...], strides: tuple[int, ...], count: int
) -> None:
    found = dense_output(fields, shape, strides, count)
    assert found.holds, found.why


@pytest.mark.parametrize(
    ("fields", "shape", "strides", "count", "changed", "why"),
    [
        (FLAT, (7, 5), (5, 1), 35, {"d_order": "ROW"}, "d_order"),
        (FLAT, (7, 5), (5, 1), 35, {"m": 7}, "m of the row"),
        (FLAT, (7, 5), (5, 1), 35, {"d_dtype": DType.F32}, "d_dtype"),
        (FLAT, (7, 5), (5, 1), 35, {"ldd": 6}, "ldd"),
        (FLAT, (5, 7), (7, 1), 35, {}, "row-major order"),
        (ROWS, (7, 5), (5, 1), 35, {}, "row-major order"),
        ({**FLAT, "ldd": 6}, (7, 5), (5, 1), 35, {}, "the matmul writes D with strides"),
        ({**FLAT, "ldd": 6}, (7, 5), (6, 1), 35, {}, "the matmul writes D with strides"),
        (FLAT, (7, 5), (1, 7), 35, {}, "the row says"),
        (BATCHED, (7, 5), (5, 1), 35, {}, "a batch of 3"),
        ({**BATCHED, "stride_d": 40}, (3, 7, 5), (35, 5, 1), 105, {}, "the matmul writes"),
        ({**BATCHED, "stride_d": 0}, (3, 7, 5), (35, 5, 1), 105, {}, "the matmul writes"),
        (FLAT, (7, 5), (5, 1), 34, {}, "the count is 34"),
        (FLAT, (7, 5), (5, 1), 35, {"zeros": (0, 1)}, "zero strides"),
        (FLAT, (7, 5), (5, 1), 35, {"zeros": (0,)}, "zero strides"),
        (FLAT, (7, 5), (5,), 35, {}, "rank 2"),
        (FLAT, (35,), (1,), 35, {}, "row-major order"),
    ],
)
def test_a_result_that_is_not_what_the_row_says(
    fields: dict[str, Value],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    count: int,
    *,
    changed: dict[str, int | str | tuple[int, ...]],
    why: str,
) -> None:
    found = dense_output(fields, shape, strides, count, **changed)
    assert found.holds is False
    assert why in found.why


def test_a_stride_that_begins_further_on_is_not_dense() -> None:
    """(MNum 5) is 5 at every index: it reads one row again and again, from the sixth element."""

    def build(graph: Graph) -> tuple[int, ...]:
        call = graph.gemm(graph.leaf("a"), graph.leaf("b"), **FLAT)
        fields = [graph.field(FLAT[name]) for name in ("d_order", "m", "n", "ldd")]
        fields += [graph.number(1), graph.number(0), graph.dtype(DType.BF16)]
        constant = graph.listing([graph.number(5), graph.stride(1)])
        return (call, *fields, graph.shape(7, 5), constant, graph.strides(0, 0), graph.number(35))

    assert truth("cublaslt_exact_pointwise_output", build).holds is False


def test_of_another_op_or_of_symbolic_sizes_nothing_is_known() -> None:
    def other(graph: Graph) -> tuple[int, ...]:
        return (graph.leaf("a"), *(graph.number(0) for _ in range(11)))

    assert truth("cublaslt_exact_pointwise_output", other).holds is None

    def symbolic(graph: Graph) -> tuple[int, ...]:
        call = graph.gemm(graph.leaf("a"), graph.leaf("b"), **FLAT)
        fields = [graph.field(FLAT[name]) for name in ("d_order", "m", "n", "ldd")]
        fields += [graph.number(1), graph.number(0), graph.dtype(DType.BF16)]
        return (
            call,
            *fields,
            graph.shape(7, 5),
            graph.strides(5, 1),
            graph.strides(0, 0),
            symbol(graph),
        )

    assert truth("cublaslt_exact_pointwise_output", symbolic).holds is None


# ---- quantised tensors ---------------------------------------------------------------------------


def activation(made_as: DType, said: DType, *, last: bool = True) -> Truth:
    def build(graph: Graph) -> tuple[int, ...]:
        scale, other = graph.leaf("s", DType.F32), graph.leaf("x")
        kind = graph.add("CustomOpKind", graph.literal("i64", 4), graph.dtype(made_as))
        op = graph.op(kind, *((other, scale) if last else (scale, other)))
        return op, scale, graph.dtype(said)

    return truth("cublaslt_fp8_scaled_activation", build)


def test_a_quantised_tensor_has_its_factor_as_its_last_input() -> None:
    assert activation(DType.E4M3, DType.E4M3).holds
    assert activation(DType.E5M2, DType.E5M2).holds
    assert activation(DType.E4M3, DType.E4M3, last=False).holds is False
    assert activation(DType.E4M3, DType.E5M2).holds is False
    assert activation(DType.BF16, DType.BF16).holds is False
    for make in (unmade, cast):
        assert truth("cublaslt_fp8_scaled_activation", make).holds is None


def unmade(graph: Graph) -> tuple[int, ...]:
    return graph.leaf("x"), graph.leaf("s", DType.F32), graph.dtype(DType.E4M3)


def cast(graph: Graph) -> tuple[int, ...]:
    made = graph.cast(graph.leaf("x"), 4, DType.E4M3)
    return made, graph.leaf("s", DType.F32), graph.dtype(DType.E4M3)


def test_a_product_of_scales_is_a_graph_that_multiplies_them() -> None:
    graph = Graph()
    left, right, product = (graph.leaf(name, DType.F32) for name in ("l", "r", "p"))
    meaning = MEANINGS["cublaslt_fp8_scale_product"].graphs
    assert meaning is not None
    reference, claimed = meaning(graph, (product, left, right))
    assert claimed == product
    assert reference == graph.pointwise("Mul", (), left, right)
    assert graph.plan(reference).values[graph.plan(reference).result].count == 1


# ---- lists and bounds --------------------------------------------------------------------------


def length_of(graph: Graph, said: int) -> tuple[int, ...]:
    return graph.shape(5, 7, 1), graph.literal("i64", said)


def test_a_length() -> None:
    for said, holds in ((3, True), (2, False), (4, False)):
        row = partial(length_of, said=said)
        assert truth("len", row).holds is holds
    rest = truth(
        "len", lambda graph: (graph.add("RowMajor", graph.shape(5)), graph.literal("i64", 1))
    )
    assert rest.holds is None


@pytest.mark.parametrize(
    ("index", "value", "holds"),
    [(0, 9, True), (2, 5, True), (1, 9, False), (3, 5, False), (-1, 9, False)],
)
def test_an_element_from_the_end(index: int, value: int, holds: bool) -> None:
    found = truth(
        "nth_from_end",
        lambda graph: (graph.shape(5, 7, 9), graph.literal("i64", index), graph.number(value)),
    )
    assert found.holds is holds


def test_how_many_elements() -> None:
    assert truth("n_elements", lambda graph: (graph.shape(5, 7), graph.number(35))).holds
    assert truth("n_elements", lambda graph: (graph.shape(), graph.number(1))).holds
    assert truth("n_elements", lambda graph: (graph.shape(5, 7), graph.number(12))).holds is False
    assert truth("n_elements", lambda graph: (graph.shape(5, 7), symbol(graph))).holds is None


@pytest.mark.parametrize(
    ("name", "said", "holds"),
    [("lower", 3, True), ("lower", 2, True), ("lower", 4, False), ("upper", 3, False)],
)
def test_bounds_hold_for_every_index(name: str, said: int, holds: bool) -> None:
    """3 + 2 · iterator is 3 at least, and has no upper bound."""

    def build(graph: Graph) -> tuple[int, ...]:
        grows = graph.add("MAdd", graph.number(3), graph.stride(2))
        return grows, graph.literal("i64", said)

    assert truth(name, build).holds is holds


def test_bounds_of_a_symbol_are_unknown() -> None:
    assert truth("lower", lambda graph: (symbol(graph), graph.literal("i64", 0))).holds is None
    assert truth("upper", lambda graph: (graph.number(4), graph.literal("i64", 4))).holds
    assert truth("upper", lambda graph: (graph.number(5), graph.literal("i64", 4))).holds is False
