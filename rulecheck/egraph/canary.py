"""Whether the engine joins rightly: a query on which egglog 13.2.0 returned a false match."""

from __future__ import annotations

from rulecheck.egraph.bindings import attempt, egg
from rulecheck.records import CanaryReply

_ANSWER = (1,)
_PROGRAM = """
(relation Edge (i64 i64))
(relation Found (i64))
(Edge 1 1) (Edge 1 2) (Edge 2 0)
(rule ((Edge b c) (Edge d e) (Edge f e) (Edge a f) (Edge b e) (Edge a b) (Edge c d)) ((Found d)))
(run 1)
"""


def ask_canary(version: str) -> CanaryReply:
    """Run the query; ``version`` is the engine's, which a sealed process can no longer look up."""
    egraph = egg.EGraph()
    attempt(lambda: egraph.run_program(*egraph.parse_program(_PROGRAM)))
    rows = egraph.freeze().functions["Found"].rows
    answer = tuple(sorted(egraph.value_to_i64(row.inputs[0]) for row in rows))
    return CanaryReply(version, answer == _ANSWER, answer)
