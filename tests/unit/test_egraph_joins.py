"""The engine's joins against brute force: cyclic queries, on which egglog 13.2.0 was wrong."""

from __future__ import annotations

import itertools
import random

from rulecheck.egraph.bindings import egg
from rulecheck.egraph.canary import ask_canary

QUERIES = 400
Atom = tuple[str, str]
Edge = tuple[int, int]


def ask_engine(edges: set[Edge], atoms: list[Atom], variables: list[str]) -> set[tuple[int, ...]]:
    columns = " ".join("i64" for _ in variables)
    body = " ".join(f"(E {left} {right})" for left, right in atoms)
    program = f"(relation E (i64 i64)) (relation Out ({columns}))"
    program += " ".join(f"(E {left} {right})" for left, right in sorted(edges))
    program += f"(rule ({body}) ((Out {' '.join(variables)}))) (run 1)"
    egraph = egg.EGraph()
    egraph.run_program(*egraph.parse_program(program))
    rows = egraph.freeze().functions["Out"].rows
    return {tuple(egraph.value_to_i64(value) for value in row.inputs) for row in rows}


def brute_force(edges: set[Edge], atoms: list[Atom], variables: list[str]) -> set[tuple[int, ...]]:
    found = set()
    for values in itertools.product(range(4), repeat=len(variables)):
        bound = dict(zip(variables, values, strict=True))
        if all((bound[left], bound[right]) in edges for left, right in atoms):
            found.add(values)
    return found


def make_query(random_: random.Random) -> tuple[set[Edge], list[Atom], list[str]]:
    pool = "abcdef"[: random_.randint(3, 6)]
    ring = list(zip(pool, pool[1:] + pool[0], strict=True))
    chords = [(random_.choice(pool), random_.choice(pool)) for _ in range(random_.randint(1, 3))]
    atoms = [*ring, *chords]
    random_.shuffle(atoms)
    count = random_.randint(3, 8)
    edges = {(random_.randrange(4), random_.randrange(4)) for _ in range(count)}
    return edges, atoms, sorted(pool)


def test_cyclic_joins_agree_with_brute_force() -> None:
    random_ = random.Random(2)
    matched = 0
    for _ in range(QUERIES):
        edges, atoms, variables = make_query(random_)
        expected = brute_force(edges, atoms, variables)
        assert ask_engine(edges, atoms, variables) == expected, (edges, atoms)
        matched += bool(expected)
    assert matched > QUERIES // 10, "queries without matches would show nothing"


def test_the_canary_answers_one() -> None:
    reply = ask_canary("13.1.0")
    assert (reply.version, reply.ok, reply.answer) == ("13.1.0", True, (1,))
