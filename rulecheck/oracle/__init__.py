"""What a graph means: rounded as written, in float64, and how far a legal run may depart."""

from rulecheck.oracle.alternatives import alternatives, name_narrowings, name_roundings
from rulecheck.oracle.correspondence import Side, common_accumulator, lost_roundings
from rulecheck.oracle.evaluate import evaluate, roundings
from rulecheck.oracle.inputs import InputKind, draw_inputs
from rulecheck.oracle.intervals import Range
from rulecheck.oracle.products import Accumulator

__all__ = [
    "Accumulator",
    "InputKind",
    "Range",
    "Side",
    "alternatives",
    "common_accumulator",
    "draw_inputs",
    "evaluate",
    "lost_roundings",
    "name_narrowings",
    "name_roundings",
    "roundings",
]
