"""What a rule file may use of the engine's language. Everything that is not here is refused.

An unchecked rule file can read and write any file and run Python, from a command, from a rule's
body or head, from a merge expression, or from a name hidden in a string. So these are allow-lists;
the tables of refused names only make the messages better.
"""

from __future__ import annotations

import re

# keyword of a top-level form: classes of the commands that the engine's parser may make of it
COMMANDS: dict[str, frozenset[str]] = {
    "datatype": frozenset({"Datatype"}),
    "datatype*": frozenset({"Datatypes"}),
    "sort": frozenset({"Sort"}),
    "function": frozenset({"FunctionCommand"}),
    "relation": frozenset({"Relation"}),
    "constructor": frozenset({"Constructor"}),
    "ruleset": frozenset({"AddRuleset"}),
    "unstable-combined-ruleset": frozenset({"UnstableCombinedRuleset"}),
    "rule": frozenset({"RuleCommand"}),
    "rewrite": frozenset({"RewriteCommand"}),
    "birewrite": frozenset({"BiRewriteCommand"}),
}
RULE_COMMANDS = frozenset({"rule", "rewrite", "birewrite"})

_RUNS = "it runs rules; rulecheck does that itself, one rule at a time"
_WRITES = "it writes files"
_TERMS = "it changes the graph outside any rule; rulecheck adds the terms itself"
_SCOPE = "it opens or closes a scope of the engine"
_ASKS = "it only inspects; use rulecheck's verdicts instead"
_EXPANDS = "it expands into other commands while it is parsed"
REFUSED_COMMANDS: dict[str, str] = {
    "include": "it reads another file",
    "input": "it reads a file",
    "output": _WRITES,
    "print-function": _WRITES,
    "print-stats": _WRITES,
    "print-size": _ASKS,
    "extract": _ASKS,
    "multi-extract": _ASKS,
    "query-extract": _ASKS,
    "check": _ASKS,
    "prove": _ASKS,
    "prove-exists": _ASKS,
    "fail": "it runs the command it wraps",
    "push": _SCOPE,
    "pop": _SCOPE,
    "run": _RUNS,
    "run-schedule": _RUNS,
    "simplify": _RUNS,
    "let": _TERMS,
    "set": _TERMS,
    "union": _TERMS,
    "delete": _TERMS,
    "subsume": _TERMS,
    "panic": "it stops the engine",
    "for": _EXPANDS,
    "with-ruleset": _EXPANDS,
    "set-cost": _EXPANDS,
    "with-dynamic-cost": _EXPANDS,
    "let-scheduler": _RUNS,
    "declare": _TERMS,
}

BASE_SORTS = frozenset({"i64", "f64", "String", "bool", "Unit"})
_ENGINE_SORTS = frozenset({"PyObject", "Rational", "BigInt", "BigRat"})
REFUSED_SORTS = _ENGINE_SORTS | {"UnstableFn", "Vec", "Set", "Map", "MultiSet"}

# name: overloads, each (argument sorts, result sort)
_Overloads = tuple[tuple[tuple[str, ...], str], ...]
_INT2 = (("i64", "i64"), "i64")
_FLOAT2 = (("f64", "f64"), "f64")
_ORDER: _Overloads = ((("i64", "i64"), "Unit"), (("f64", "f64"), "Unit"))
_COMPARE: _Overloads = ((("i64", "i64"), "bool"),)
_LOGIC: _Overloads = ((("bool", "bool"), "bool"),)
PRIMITIVES: dict[str, _Overloads] = {
    "+": (_INT2, _FLOAT2),
    "-": (_INT2, _FLOAT2),
    "*": (_INT2, _FLOAT2),
    "/": (_INT2, _FLOAT2),
    "%": (_INT2, _FLOAT2),
    "min": (_INT2, _FLOAT2),
    "max": (_INT2, _FLOAT2),
    "abs": ((("i64",), "i64"), (("f64",), "f64")),
    "neg": ((("f64",), "f64"),),
    "to-f64": ((("i64",), "f64"),),
    "<": _ORDER,
    "<=": _ORDER,
    ">": _ORDER,
    ">=": _ORDER,
    "bool-=": _COMPARE,
    "bool-<": _COMPARE,
    "bool-<=": _COMPARE,
    "bool->": _COMPARE,
    "bool->=": _COMPARE,
    "and": _LOGIC,
    "or": _LOGIC,
    "xor": _LOGIC,
    "=>": _LOGIC,
    "not": ((("bool",), "bool"),),
}
# Primitives that take two values of any one sort and return Unit.
POLYMORPHIC = frozenset({"!="})

_PYTHON = re.compile(r"py-.*")
_FUNCTION_VALUES = re.compile(r"unstable-.*")
# Not dangerous by itself, each: but none is needed in a rule, and some hang or abort (`<<`, `pow`).
_OTHER_NAMES = """
    & | ^ << >> not-i64 log2 to-i64 to-string pow sqrt cbrt log count-matches replace
    ordering-max ordering-min value-eq get-size! numer denom rational bigint bigrat round
    floor ceil vec-of vec-empty vec-push vec-pop vec-append vec-get vec-set vec-length vec-range
    vec-contains vec-not-contains vec-remove vec-union set-of set-empty set-insert
    set-remove set-length set-contains set-not-contains set-union set-diff set-intersect set-get
    map-empty map-insert map-get map-remove map-length map-contains map-not-contains multiset-of
    multiset-insert multiset-remove multiset-length multiset-contains multiset-not-contains
    multiset-sum
"""
_OTHER_PRIMITIVES = frozenset(_OTHER_NAMES.split())


def refused_primitive(name: str) -> str | None:
    """Say why ``name``, a primitive of the engine, may not be used; None if it is no such name."""
    if _PYTHON.fullmatch(name):
        return "it runs Python code"
    if _FUNCTION_VALUES.fullmatch(name):
        return "it calls a function whose name is hidden in a string"
    if name in _OTHER_PRIMITIVES:
        return "it is not among the primitives that rules may use"
    return None


def is_reserved(name: str) -> bool:
    """Whether ``name`` already means something to the engine, so that no file may declare it."""
    return (
        name in PRIMITIVES
        or name in POLYMORPHIC
        or name in BASE_SORTS
        or name in _ENGINE_SORTS
        or name in REFUSED_COMMANDS
        or name in COMMANDS
        or name == "="
        or refused_primitive(name) is not None
    )
