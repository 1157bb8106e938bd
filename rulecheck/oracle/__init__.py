"""What a graph means: rounded as written, in float64, and how far a legal run may depart."""

from rulecheck.oracle.alternatives import alternatives, name_narrowings
from rulecheck.oracle.evaluate import evaluate, roundings
from rulecheck.oracle.inputs import InputKind, draw_inputs
from rulecheck.oracle.intervals import Range
from rulecheck.oracle.products import Accumulator

__all__ = [
    "Accumulator",
    "InputKind",
    "Range",
    "alternatives",
    "draw_inputs",
    "evaluate",
    "name_narrowings",
    "roundings",
]
