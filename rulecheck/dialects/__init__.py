"""Vocabularies: what the constructors of a rule language mean."""

from rulecheck.dialects.encoding import Encoding
from rulecheck.dialects.meaning import Meaning, Truth
from rulecheck.dialects.registry import load
from rulecheck.dialects.vocabulary import LaunchFields, OpBinding, Vocabulary

__all__ = ["Encoding", "LaunchFields", "Meaning", "OpBinding", "Truth", "Vocabulary", "load"]
