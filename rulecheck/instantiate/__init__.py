"""A rule's left side becomes well-formed ground graphs on which the rule fires."""

from rulecheck.instantiate.choices import Cause, DeadEnd
from rulecheck.instantiate.cover import Coverage, Instance, Instances, instantiate
from rulecheck.instantiate.setting import Setting, TypeTuple

__all__ = [
    "Cause",
    "Coverage",
    "DeadEnd",
    "Instance",
    "Instances",
    "Setting",
    "TypeTuple",
    "instantiate",
]
