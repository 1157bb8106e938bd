"""Vocabularies: what the constructors of a rule language mean."""

from rulecheck.dialects.registry import load
from rulecheck.dialects.vocabulary import Encoding, LaunchFields, OpBinding, Vocabulary

__all__ = ["Encoding", "LaunchFields", "OpBinding", "Vocabulary", "load"]
