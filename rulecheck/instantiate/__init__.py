"""A rule's left side becomes well-formed ground graphs on which the rule fires."""

from rulecheck.instantiate.choices import Cause, DeadEnd
from rulecheck.instantiate.compose import products, rows, with_fact, with_op
from rulecheck.instantiate.instances import (
    ENOUGH,
    MAX_INSTANCES,
    Coverage,
    Instance,
    Instances,
)
from rulecheck.instantiate.instantiation import Instantiation
from rulecheck.instantiate.pattern import show
from rulecheck.instantiate.setting import Setting, TypeTuple

__all__ = [
    "ENOUGH",
    "MAX_INSTANCES",
    "Cause",
    "Coverage",
    "DeadEnd",
    "Instance",
    "Instances",
    "Instantiation",
    "Setting",
    "TypeTuple",
    "products",
    "rows",
    "show",
    "with_fact",
    "with_op",
]
