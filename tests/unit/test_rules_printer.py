"""Parse, print, parse: the same records, for rules that Hypothesis makes up."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rulecheck.records import Call, Declaration, Lit, Rule, RuleFile, Span, Var
from rulecheck.rules.printer import print_declaration, print_expr, print_rule
from tests.toy import dialect, read

NOWHERE = Span("", 0, 0, 0, 0)

NAMES = st.sampled_from(["?a", "?b", "x", "y", "?é"])
SORTS = ["Num", "Type", "Buf", "i64", "f64", "String", "bool"]
TEXTS = st.text('a"\\\n\té;()', max_size=5)
LITERALS = {
    "i64": st.integers(-(2**63), 2**63 - 1).map(str),
    "f64": st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(["inf", "-inf", "NaN", ".5", "1e3"]),
    "String": TEXTS.map(lambda text: print_expr(Lit(text, "String", NOWHERE))),
    "bool": st.sampled_from(["true", "false"]),
}
CONSTRUCTORS = {
    sort: [
        known
        for known in dialect().declarations
        if known.kind == "constructor" and known.output == sort
    ]
    for sort in SORTS
}


@st.composite
def terms(draw: st.DrawFn, sort: str, depth: int = 3) -> str:
    """Text of a term of ``sort``; variables are named by their sort, so that they fit."""
    if sort in LITERALS and draw(st.booleans()):
        return draw(LITERALS[sort])
    known = CONSTRUCTORS[sort]
    if depth == 0 or not known or draw(st.booleans()):
        return f"{draw(NAMES)}.{sort}"
    constructor = draw(st.sampled_from(known))
    args = [draw(terms(arg, depth - 1)) for arg in constructor.inputs]
    return f"({' '.join([constructor.name, *args])})"


@st.composite
def bodies(draw: st.DrawFn) -> list[str]:
    """Facts over terms; every variable appears in a term of its own, so that it is grounded."""
    root = f"?r.{draw(st.sampled_from(['Num', 'Buf']))}"
    sort = root.split(".")[1]
    facts = [f"(= {root} {draw(terms(sort))})", f"(= {draw(terms('Type'))} (dtype ?q.Buf))"]
    more = [
        f"(!= {draw(terms('Num'))} {draw(terms('Num'))})",
        f"(< (+ {draw(terms('i64'))} 1) (lower {draw(terms('Num'))}))",
        f"(narrow {draw(terms('Type'))})",
    ]
    facts += draw(st.lists(st.sampled_from(more), unique=True))
    words = " ".join(facts).replace("(", " ").replace(")", " ").split()
    for name in sorted(set(words)):
        kind = name.rpartition(".")[2]
        if name.count(".") == 1 and kind in SORTS and not name.startswith('"'):
            facts.append(GROUNDING[kind].format(name))
    return facts


GROUNDING = {
    "Num": "(Times {0} _)",
    "Type": "(Leaf _ {0})",
    "Buf": "(Add {0} _)",
    "i64": "(N {0})",
    "f64": "(Scale _ {0})",
    "String": "(Named _ {0} _)",
    "bool": "(Named _ _ {0})",
}


@st.composite
def rules(draw: st.DrawFn) -> str:
    facts = draw(bodies())
    sort = facts[0].split()[1].split(".")[1]
    head = [
        f"(let new {facts[0].split()[1]})",
        f"(union {facts[0].split()[1]} new)",
        "(set (dtype ?q.Buf) (F32))",
        "(delete (Add ?q.Buf ?q.Buf))",
        f"(subsume ({'Times' if sort == 'Num' else 'Add'} new new))",
        "(narrow (F16))",
    ]
    kept = [draw(st.booleans()) or index == 0 for index in range(len(head))]
    actions = [action for action, keep in zip(head, kept, strict=True) if keep]
    option = draw(st.sampled_from(["", ":ruleset backend", ':name "a \\"b\\" é"']))
    return f"(rule ({' '.join(facts)}) ({' '.join(actions)}) {option})"


def without_places(text: str) -> tuple[RuleFile, tuple[Rule, ...]]:
    """Read a file; return it, and its rules with everything gone that layout decides."""
    file = read(text)
    assert file.problems == ()
    return file, tuple(normalise(rule) for rule in file.rules)


def normalise(rule: Rule) -> Rule:
    bare = msgspec.structs.replace(rule, kind="rule", form=0, text_hash="")
    plain = msgspec.to_builtins(bare)
    return msgspec.convert(erase(plain), Rule)


def erase(value: object) -> object:
    if isinstance(value, dict):
        kept = {key: erase(part) for key, part in value.items() if not key.endswith("span")}
        if any(key.endswith("span") for key in value):
            places = {key: msgspec.to_builtins(NOWHERE) for key in value if key.endswith("span")}
            return kept | places
        return kept
    if isinstance(value, list | tuple):
        return [erase(part) for part in value]
    return value


@given(rules())
@settings(deadline=None, max_examples=60)
def test_parse_print_parse_gives_the_same_rule(text: str) -> None:
    file, first = without_places(text)
    printed = "\n".join(print_rule(rule) for rule in file.rules)
    again, second = without_places(printed)
    assert len(second) == 1
    assert [repr(rule) for rule in second] == [repr(rule) for rule in first]
    assert "\n".join(print_rule(rule) for rule in again.rules) == printed


def test_every_kind_of_rule_prints_as_the_rule_it_stands_for() -> None:
    file, rules_read = without_places(
        "(rewrite (Add a b) (Add b a) :when ((!= a b)) :subsume)\n"
        "(birewrite (Times a b) (Times b a) :ruleset backend)\n"
        "(rule ((= ?x (Cast _ ?n _)) (= ?l (lower ?n)) (> ?l -1)) ())"
    )
    printed = "\n".join(print_rule(rule) for rule in file.rules)
    _, again = without_places(printed)
    assert again == rules_read
    assert len(again) == 4


def test_declarations_print_as_they_were_read() -> None:
    text = (
        "(sort A)\n(datatype B (b1 A) (b2 i64 :cost 2))\n(constructor c (B) A :unextractable)\n"
        "(function f (A B) i64 :merge (max old new))\n(function g (A) B :no-merge)\n"
        "(relation r (A String))\n(ruleset s)\n(unstable-combined-ruleset t s backend)\n"
    )
    inherited = len(dialect().declarations)

    def declared(text: str) -> list[Declaration]:
        file = read(text)
        assert file.problems == ()
        own = file.declarations[inherited:]
        return [msgspec.convert(erase(msgspec.to_builtins(known)), Declaration) for known in own]

    first = declared(text)
    printed = "\n".join(print_declaration(known) for known in first)
    assert declared(printed) == first
    assert len(first) == 10


def test_literals_print_as_the_engine_spells_them() -> None:
    values: dict[str, float | str | bool | None] = {
        "i64": -3,
        "f64": float("nan"),
        "String": 'a"\\\n\t',
        "bool": True,
        "Unit": None,
    }
    printed = [print_expr(Lit(value, sort, NOWHERE)) for sort, value in values.items()]
    assert printed == ["-3", "NaN", '"a\\"\\\\\\n\\t"', "true", "()"]
    assert print_expr(Lit(1e22, "f64", NOWHERE)) == "1e+22"
    assert print_expr(Lit(float("-inf"), "f64", NOWHERE)) == "-inf"
    assert print_expr(Call("f", (Var("?x", NOWHERE), Call("g", (), NOWHERE)), NOWHERE)) == (
        "(f ?x (g))"
    )
