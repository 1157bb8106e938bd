"""A rule's left side becomes well-formed ground graphs on which the rule fires."""

from rulecheck.instantiate.completion import Setting, TypeTuple
from rulecheck.instantiate.cover import Coverage, Instance, Instances, instantiate

__all__ = ["Coverage", "Instance", "Instances", "Setting", "TypeTuple", "instantiate"]
