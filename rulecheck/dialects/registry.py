"""Name → dialect. A dialect is a module with a ``VOCABULARY``; importing it has no side effect."""

from __future__ import annotations

import importlib

from rulecheck.dialects.vocabulary import Vocabulary
from rulecheck.errors import UserError

DIALECTS = {"luminal": "rulecheck.dialects.luminal"}


def load(name: str) -> Vocabulary:
    """Return the vocabulary called ``name``.

    Raises:
        UserError: no dialect has this name.
    """
    module = DIALECTS.get(name)
    if module is None:
        known = ", ".join(sorted(DIALECTS))
        raise UserError(f"unknown dialect {name!r}", f"known dialects: {known}")
    vocabulary = importlib.import_module(module).VOCABULARY
    assert isinstance(vocabulary, Vocabulary)
    return vocabulary
