"""What the dialect's own rules derive about random graphs is true by the meanings of its rows."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rulecheck.dialects.luminal.meanings import MEANINGS
from rulecheck.dialects.terms import TermReader
from rulecheck.egraph.load import Program, read_header
from rulecheck.egraph.match import Session
from rulecheck.records import DType, InstanceBatch, Limits, MatchRequest, TermTable
from tests.luminal_rules import dialect, read
from tests.luminal_terms import VOCABULARY, Graph, Value

DECLARED = {item.name: item for item in dialect().declarations}
# Rows that state something of one graph by itself.
ROWS = [name for name, meaning in MEANINGS.items() if meaning.check is not None]
GRAPHS = [name for name, meaning in MEANINGS.items() if meaning.graphs is not None]


def asking(name: str) -> str:
    """A rule that matches every row of a relation, or every value of a function."""
    known = DECLARED[name]
    names = [f"?x{at}" for at in range(len(known.inputs))]
    row = f"({name} {' '.join(names)})"
    fact = row if known.kind == "relation" else f"(= ?value {row})"
    return f'(rule ({fact}) ((Constant 1.0)) :ruleset matmul_backend :name "{name}")\n'


@functools.cache
def session() -> Session:
    file = read("".join(map(asking, (*ROWS, *GRAPHS))))
    program = Program(
        dialect().commands,
        read_header(VOCABULARY.declarations()),
        file,
        len(dialect().declarations),
    )
    return Session(program)


def derived(
    graph: Graph, roots: tuple[int, ...], name: str
) -> tuple[TermTable, list[tuple[int, ...]]]:
    """The rows of a relation, with the function's value last, once the dialect has come to rest."""
    batch = InstanceBatch(tuple(graph.nodes), (roots,))
    request = MatchRequest((*ROWS, *GRAPHS).index(name), batch, Limits())
    reply = session().match(request)
    assert reply.error is None
    names = [name for name, _ in read(asking(name)).rules[0].variables]
    inputs = [names.index(f"?x{at}") for at in range(len(DECLARED[name].inputs))]
    places = inputs + [at for at, known in enumerate(names) if known == "?value"]
    rows = [[term for _, term in firing.bindings] for firing in reply.firings]
    return TermTable(reply.nodes), [tuple(row[at] for at in places) for row in rows]


SIZES = st.sampled_from([1, 2, 3, 4, 5, 8])
STRIDES = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 8, 12, 15, 20, 40])


@st.composite
def calls(draw: st.DrawFn) -> Mapping[str, Value]:
    """Fields of a library matmul: many of them dense, the others nearly."""
    m, n, batch = draw(SIZES), draw(SIZES), draw(st.sampled_from([1, 1, 2, 3]))
    order = draw(st.sampled_from(["COL", "ROW"]))
    rows = m if order == "COL" else n
    near = st.sampled_from([0, m * n, m * n, draw(STRIDES)])
    return {
        "m": m,
        "n": n,
        "k": draw(SIZES),
        "d_order": order,
        "c_order": order,
        "ldd": draw(st.sampled_from([rows, rows, draw(STRIDES)])),
        "ldc": rows,
        "batch_count": batch,
        "stride_d": draw(near),
        "d_dtype": draw(st.sampled_from([DType.BF16, DType.F32])),
    }


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, tuple[int, ...]]:
    """Matmuls, and sums, products and quantised tensors above one of them."""
    graph = Graph()
    leaf = graph.leaf("c", DType.F32, 3)
    sides = graph.leaf("a", identity=1), graph.leaf("b", identity=2)
    roots = [graph.gemm(*sides, **draw(calls())) for _ in range(6)]
    root = roots[0]
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["Add", "Mul", "scale", "fused", "quantise"]))
        if kind in ("Add", "Mul"):
            shape = [draw(SIZES) for _ in range(draw(st.integers(2, 3)))]
            lists = [graph.strides(*(draw(STRIDES) for _ in shape)) for _ in range(3)]
            root = graph.op(graph.add(kind, graph.shape(*shape), *lists), root, leaf)
        elif kind == "scale":
            root = graph.op(graph.add("Mul", *[graph.listing([])] * 4), leaf, root)
        elif kind == "fused":
            root = fused(graph, root, leaf)
        else:
            dtype = draw(st.sampled_from([DType.E4M3, DType.E5M2, DType.BF16]))
            op = graph.add("CustomOpKind", graph.literal("i64", 7), graph.dtype(dtype))
            more = [root] * draw(st.integers(1, 3))
            root = graph.op(op, *more, leaf)
    return graph, (root, *roots)


def fused(graph: Graph, left: int, right: int) -> int:
    """The product of two scalars inside a fused kernel."""
    nil, dtype = graph.listing([]), graph.dtype(DType.F32)
    start, end = (graph.add(name, nil, nil, dtype) for name in ("FusionStart", "FusionEnd"))
    name = graph.literal("String", "Mul")
    inner = graph.add("CudaBinaryElementwise", name, nil, nil, nil, nil, dtype)
    return graph.op(end, graph.op(inner, graph.op(start, left), graph.op(start, right)))


UNHURRIED = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("name", ROWS)
@UNHURRIED
@given(case=graphs())
def test_every_derived_row_is_true(name: str, case: tuple[Graph, tuple[int, ...]]) -> None:
    table, rows = derived(*case, name)
    check = MEANINGS[name].check
    assert check is not None
    for row in rows:
        shown = " ".join(table.show(term) for term in row)
        found = check(TermReader(table.nodes, VOCABULARY.encoding), row)
        assert found.holds is not False, f"({name} {shown}): {found.why}"


@UNHURRIED
@given(case=graphs())
def test_every_derived_product_of_scales_multiplies_what_it_says(
    case: tuple[Graph, tuple[int, ...]],
) -> None:
    """By the graph: a multiplication of the two, bare or inside a fused kernel."""
    (name,) = GRAPHS
    table, rows = derived(*case, name)
    for product, left, right in rows:
        text = table.show(product)
        assert "(Mul (ENil)" in text or 'CudaBinaryElementwise "Mul"' in text
        for factor in (left, right):
            assert table.show(factor) in text


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("cublaslt_stride_coefficient", 2),
        ("cublaslt_valid_leading_dimension", 1),
        ("cublaslt_exact_matrix_stride", 1),
        ("cublaslt_exact_pointwise_output", 1),
        ("cublaslt_fp8_scaled_activation", 1),
        ("cublaslt_fp8_scale_product", 2),
        ("len", 2),
        ("nth_from_end", 2),
        ("n_elements", 2),
        ("lower", 2),
        ("upper", 2),
    ],
)
def test_something_is_derived_of_each_kind(name: str, least: int) -> None:
    """A property of rows that never are says nothing."""
    graph = Graph()
    leaf = graph.leaf("c", DType.F32, 3)
    call = graph.gemm(graph.leaf("a"), graph.leaf("b"), batch_count=3, stride_d=35)
    root = graph.pointwise("Add", (3, 7, 5), call, leaf)
    root = fused(graph, graph.op(graph.add("Mul", *[graph.listing([])] * 4), leaf, root), leaf)
    kind = graph.add("CustomOpKind", graph.literal("i64", 7), graph.dtype(DType.E4M3))
    root = graph.op(kind, root, leaf)
    _, rows = derived(graph, (root,), name)
    assert len(rows) >= least
