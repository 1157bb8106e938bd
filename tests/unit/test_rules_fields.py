"""Named fields: the same records as by position, and every mistake at its place."""

from __future__ import annotations

import pytest

from rulecheck.egraph.bindings import Parser
from rulecheck.records import Call, Change, Eq, Limits, Problem, Rule, Span, Var
from rulecheck.rules.parse import read_dialect
from rulecheck.rules.printer import print_action, print_declaration, print_fact
from tests.named_toy import NAMED_DIALECT, only_rule, read
from tests.toy import FILE, place


def shown(rule: Rule) -> list[str]:
    return [*map(print_fact, rule.body), *map(print_action, rule.head)]


def problem(text: str) -> Problem:
    (found,) = read(text).problems
    return found


def test_a_dialect_names_its_fields() -> None:
    assert NAMED_DIALECT.problems == ()
    fields = {known.name: known.fields for known in NAMED_DIALECT.declarations}
    assert fields["Cast"] == ("source", "size", "type")
    assert fields["dtype"] == ("of",)
    assert fields["narrow"] == ("type",)
    assert fields["Add"] == ()
    inputs = {known.name: known.inputs for known in NAMED_DIALECT.declarations}
    assert inputs["Cast"] == ("Buf", "Num", "Type")


@pytest.mark.parametrize(
    ("named", "by_position"),
    [
        ("(Cast :source ?a :size ?n :type ?t)", "(Cast ?a ?n ?t)"),
        ("(Cast :type ?t :source ?a :size ?n)", "(Cast ?a ?n ?t)"),
        ("(Cast ?a :type ?t :size ?n)", "(Cast ?a ?n ?t)"),
        ("(Cast ?a ?n :type ?t)", "(Cast ?a ?n ?t)"),
        ("(Cast ?a ...)", "(Cast ?a _ _)"),
        ("(Cast ...)", "(Cast _ _ _)"),
        ("(Cast :size ?n ...)", "(Cast _ ?n _)"),
        ("(Cast ?a ?n ?t ...)", "(Cast ?a ?n ?t)"),
        ("(Cast :type (F32) :size (N 1) ; why\n :source (Scale :by 2.0 ...))",
         "(Cast (Scale _ 2.0) (N 1) (F32))"),
        ("(narrow :type (dtype :of (Cast ?a ...)))", "(narrow (dtype (Cast ?a _ _)))"),
        ('(= ?x (Scale :by -1.5 :source (Named ?a "; :by ..." true)))',
         '(= ?x (Scale (Named ?a "; :by ..." true) -1.5))'),
    ],
)  # fmt: skip
def test_a_fact_with_named_fields(named: str, by_position: str) -> None:
    rule = only_rule(f"(rule ({named} (Add ?a ?a)) ())")
    assert print_fact(rule.body[0]) == by_position


def test_named_fields_in_heads() -> None:
    rule = only_rule(
        "(rule ((Cast :source ?a :type ?t :size ?n))"
        " ((let ?c (Cast :type ?t :size ?n :source ?a)) (set (dtype :of ?c) ?t)"
        " (delete (Scale :by 1.0 :source ?a)) (subsume (Scale :by 2.0 :source ?a))"
        " (narrow :type ?t) (union ?a (Scale ?c :by 1.0))))"
    )
    assert [print_action(action) for action in rule.head] == [
        "(let ?c (Cast ?a ?n ?t))",
        "(set (dtype ?c) ?t)",
        "(delete (Scale ?a 1.0))",
        "(subsume (Scale ?a 2.0))",
        "(narrow ?t)",
        "(union ?a (Scale ?c 1.0))",
    ]


def test_options_of_a_rewrite_are_no_fields() -> None:
    rule = only_rule(
        "(rewrite (Scale :by 1.0 :source ?a) ?a"
        " :when ((Cast :source ?a ...) (narrow ...)) :ruleset backend)"
    )
    assert rule.ruleset == "backend"
    assert shown(rule) == [
        "(= $rewrite (Scale ?a 1.0))",
        "(Cast ?a _ _)",
        "(narrow _)",
        "(union $rewrite ?a)",
    ]


def test_a_rewrite_may_have_a_name() -> None:
    """As later engines allow; the parser of this one does not."""
    file = read(
        '(rewrite (Add a b)\n (Add b a) :name "é swap" :ruleset backend)\n'
        "(birewrite :name (Add a b)) (birewrite (Add ?a ?b) (Add ?b ?a) :when ((narrow ...))"
        ' :name "s")'
    )
    (found,) = file.problems
    assert (found.kind, place(found)[:2]) == ("field", (3, 12))
    names = [(rule.name, rule.ruleset, rule.name_span) for rule in file.rules]
    assert names == [
        ("é swap", "backend", Span(FILE, 2, 18, 2, 26)),
        ("s =>", "", Span(FILE, 3, 91, 3, 94)),
        ("s <=", "", Span(FILE, 3, 91, 3, 94)),
    ]
    assert shown(file.rules[0])[1] == "(union $rewrite (Add b a))"
    assert file.rules[0].head[0].span == Span(FILE, 2, 2, 2, 11)


def test_a_rewrite_may_subsume_what_leaves_fields_open() -> None:
    rule = only_rule("(rewrite (Scale (Add _ (Cast ...)) 1.0) (Leaf 1 (F32)) :subsume)")
    pattern = "(Scale (Add $rewrite.1 (Cast $rewrite.2 $rewrite.3 $rewrite.4)) 1.0)"
    assert shown(rule) == [
        f"(= $rewrite {pattern})",
        "(union $rewrite (Leaf 1 (F32)))",
        f"(subsume {pattern})",
    ]
    assert [name for name, _ in rule.variables] == [
        "$rewrite",
        *(f"$rewrite.{n}" for n in range(1, 5)),
    ]


def test_options_of_rules_and_fields_may_share_names() -> None:
    text = (
        "(constructor Pair (:name Buf :when Buf :ruleset Num :subsume Type) Buf)\n"
        "(rule ((= ?p (Pair :when ?a :name ?b ...))) ((union ?p ?a)) :ruleset backend"
        ' :name "n")\n'
        "(rewrite (Pair :ruleset ?n :subsume ?t :when ?a :name ?b) ?a :subsume"
        " :when ((Add ?a ?b)))"
    )
    file = read(text)
    assert file.problems == ()
    first, second = file.rules
    assert (first.name, first.name_span, first.ruleset) == (
        "n",
        Span(FILE, 2, 84, 2, 87),
        "backend",
    )
    assert shown(first) == ["(= ?p (Pair ?b ?a _ _))", "(union ?p ?a)"]
    assert isinstance(second.head[1], Change)
    assert shown(second)[0] == "(= $rewrite (Pair ?b ?a ?n ?t))"


def test_rows_of_relations() -> None:
    file = read("(relation pair (:of Type :size Num))\n(pair :size (N 3) :of (F16))")
    assert file.problems == ()
    (row,) = file.facts
    assert (row.args[0], row.span) == (
        Call("F16", (), Span(FILE, 2, 23, 2, 28)),
        Span(FILE, 2, 1, 2, 29),
    )


def test_a_birewrite_names_both_sides() -> None:
    file = read("(birewrite (Scale :by 1.0 :source ?a) (Cast :size (N 1) :type (F32) :source ?a))")
    assert file.problems == ()
    assert [shown(rule)[0] for rule in file.rules] == [
        "(= $rewrite (Scale ?a 1.0))",
        "(= $rewrite (Cast ?a (N 1) (F32)))",
    ]


def test_declarations_of_a_file_name_fields() -> None:
    file = read(
        "(rule ((C ?x :b 1)) ())\n"
        "(datatype D (A :cost 3 :x i64) (B i64 :cost 2) (E :unextractable))\n"
        "(datatype* (F (G :f i64 :g F)) (H (I)))\n"
        "(constructor C (:a D :b i64) D :cost 7)\n"
        "(function f (:d D) i64 :merge (min old new))"
    )
    assert file.problems == ()
    own = {known.name: known for known in file.declarations[len(NAMED_DIALECT.declarations) :]}
    assert {name: known.fields for name, known in own.items() if known.fields} == {
        "A": ("x",),
        "G": ("f", "g"),
        "C": ("a", "b"),
        "f": ("d",),
    }
    assert (own["A"].inputs, own["A"].cost, own["E"].unextractable) == (("i64",), 3, True)
    assert (own["B"].inputs, own["B"].cost) == (("i64",), 2)
    assert own["A"].span == Span(FILE, 2, 13, 2, 31)
    assert own["C"].span == Span(FILE, 4, 1, 4, 40)
    assert print_declaration(own["C"]) == "(constructor C (:a D :b i64) D :cost 7)"


@pytest.mark.parametrize(
    "text",
    [
        "(relation narrow (Type))",
        "(relation narrow (:type Type))",
        "(datatype Buf (Cast Buf Num Type) (Scale :source Buf :by f64))",
    ],
)
def test_repeating_a_declaration_may_leave_the_names_out(text: str) -> None:
    file = read(f"{text}\n(rule ((narrow :type ?t) (Cast :type ?t ...)) ())")
    assert file.problems == ()
    assert file.declarations == NAMED_DIALECT.declarations


def test_repeating_a_declaration_under_other_names_is_a_clash() -> None:
    found = problem("(constructor Scale (:by Buf :source f64) Buf)")
    assert (found.kind, place(found)) == ("duplicate", (1, 1, 1, 46))
    assert found.message == (
        "`Scale` is declared as `(constructor Scale (:by Buf :source f64) Buf)` here, "
        "and as `(constructor Scale (:source Buf :by f64) Buf)` at toy.egg:10:3."
    )


DIAGNOSTICS = [
    ("(rule ((Cast :sorce ?a ...)) ())", "field", (1, 14, 1, 20), "sorce",
     "`Cast` has no field `sorce`.", "Did you mean `source`?"),
    ("(rule ((Cast :xyz ?a ...)) ())", "field", (1, 14, 1, 18), "xyz",
     "`Cast` has no field `xyz`.", "Its fields are source size type."),
    ("(rule ((Cast :size ?n\n  :size ?n ...)) ())", "field", (2, 3, 2, 8), "size",
     "The field `size` is given twice.", "Remove one"),
    ("(rule ((Cast ?a :source ?a ...)) ())", "field", (1, 17, 1, 24), "source",
     "The field `source` is given twice, first by position.", "Remove one"),
    ("(rule ((Cast :source ?a ?é ...)) ())", "field", (1, 25, 1, 27), None,
     "An argument without a name stands after a named one.", "Name it"),
    ("(rule ((Cast :source ?a)) ())", "field", (1, 8, 1, 25), "size",
     "`Cast` is not given size type.", "`...`"),
    ("(rule ((Add ?a ?a)) ((Cast :source ?a)))", "field", (1, 22, 1, 39), "size",
     "`Cast` is not given size type.", "what is built needs every field"),
    ("(rule ((Cast ... ?a)) ())", "field", (1, 14, 1, 17), None,
     "`...` is not the last argument.", "end of the call"),
    ("(rule ((Cast ... :size ?a)) ())", "field", (1, 14, 1, 17), None,
     "`...` is not the last argument.", "end of the call"),
    ("(rule ((Cast ?a ... ...)) ())", "field", (1, 17, 1, 20), None,
     "`...` is not the last argument.", "end of the call"),
    ("(rule ((Cast ?a ?n ?t ?x ...)) ())", "arity", (1, 23, 1, 25), "Cast",
     "`Cast` takes 3 arguments; this is one more.", "Remove"),
    ("(rule ((Cast ?a :size)) ())", "field", (1, 17, 1, 22), "size",
     "The field `size` is given no value.", "`:field value`"),
    ("(rule ((Cast ?a :size ...)) ())", "field", (1, 17, 1, 22), "size",
     "The field `size` is given no value.", "`:field value`"),
    ("(rule ((Cast ?a :size :type ?t)) ())", "field", (1, 17, 1, 22), "size",
     "The field `size` is given no value.", "`:field value`"),
    ("(rule ((Add :left ?a ?b)) ())", "field", (1, 13, 1, 18), "Add",
     "`Add` has no field names, so `:left` means nothing.", "by position"),
    ("(rule ((Add ?a ...)) ())", "field", (1, 16, 1, 19), "Add",
     "`Add` has no field names, so `...` means nothing.", "by position"),
    ("(rule ((< :x 1)) ())", "field", (1, 11, 1, 13), "<",
     "`<` has no field names", "by position"),
    ("(rule ((= ?x :y)) ())", "field", (1, 14, 1, 16), "=",
     "`=` has no field names", "by position"),
    ("(rule ((Add ?a ?b)) ((let :x ?a)))", "field", (1, 27, 1, 29), "let",
     "`let` has no field names", "by position"),
    ("(rule ((Casd :size ?a)) ())", "unknown-name", (1, 8, 1, 23), "Casd",
     "Nothing declares `Casd`.", "Did you mean `Cast`?"),
    ("(rule ((Qqqqq :size ?a)) ())", "unknown-name", (1, 8, 1, 24), "Qqqqq",
     "Nothing declares `Qqqqq`.", "Declare it in the file if it is a helper"),
    ("(rule ((Add ?a ?b)) ((union ?a (Cast ?a ...))))", "field", (1, 41, 1, 44), None,
     "`...` allows any value, but what is built needs one in every field.", "Give size type."),
    ("(rule ((Add ?a ?b)) ((union ?a (Scale ?a 1.0 ...))))", "field", (1, 46, 1, 49), None,
     "`...` allows any value, but what is built needs one in every field.", "Remove it"),
    ("(rewrite (Add a b) (Scale b ...))", "field", (1, 29, 1, 32), None,
     "`...` allows any value", "Give by."),
    ("(birewrite (Scale ...) (Cast ?a (N 1) (F32)))", "field", (1, 19, 1, 22), None,
     "`...` allows any value", "Give source by."),
    ("(rewrite ... (Add a b))", "field", (1, 10, 1, 13), None,
     "`...` stands outside any call.", "arguments of a call"),
    ("(narrow ...)", "field", (1, 9, 1, 12), None, "`...` allows any value", "Give type."),
    ("(rule ((narrow ?t) ((F32) :size ?n)) ())", "field", (1, 27, 1, 32), None,
     "`:size` stands in no call.", "starts with a name"),
    ("(function g () i64 :merge (dtype ...))", "field", (1, 34, 1, 37), None,
     "`...` allows any value", "Give of."),
    # Declarations
    ("(constructor C (:a Num Num) Buf)", "field", (1, 24, 1, 27), "C",
     "`C` names some of its fields, but not this one.", "all fields or none"),
    ("(constructor C (Num :a Num) Buf)", "field", (1, 17, 1, 20), "C",
     "`C` names some of its fields, but not this one.", "all fields or none"),
    ("(relation r (:a Num\n :a Num))", "field", (2, 2, 2, 4), "a",
     "`r` has two fields called `a`.", "Rename"),
    ("(relation r (:a))", "field", (1, 14, 1, 16), "a", "The field `a` of `r` has no sort.",
     "`:field Sort`"),
    ("(datatype D (C :a :b Num))", "field", (1, 16, 1, 18), "a",
     "The field `a` of `C` has no sort.", "`:field Sort`"),
    # The engine's and our own other messages, at the author's text
    ("(rule ((Cast :type (F32) :size (Plus ?a)\n :source ?b)) ())", "arity", (1, 32, 1, 41), "Plus",
     "`Plus` takes 2 arguments, not 1.", "Add or remove"),
    ("(rule ((Scale :by 1\n :source ?é)) ())", "type", (1, 19, 1, 20), None,
     "This is of sort i64, where f64 is needed.", "1.0 is an f64"),
    ("(rule ((Cast :size (F32)\n :source ?é ...)) ())", "type", (1, 20, 1, 25), None,
     "This is of sort Type, where Num is needed.", "Change one"),
    ("(rule ((Cast :size ?x :source ?x ...)) ())", "type", (1, 20, 1, 22), None,
     "This is of sort Buf, where Num is needed.", "Change one"),
    ("(rule ((Cast :source ?a\n :size (= 1 2 3) ...)) ())", "unknown-name", (2, 8, 2, 17), "=",
     "Nothing declares `=`.", ""),
    ("(rule ((Cast :type ?t\n :source (Leaf 99999999999999999999 ?t) ...)) ())", "type",
     (2, 16, 2, 36), None, "The integer 99999999999999999999 does not fit 64 bits.", "smaller"),
    ("(rule ((Cast :type @é\n :source ?a ...)) ())", "syntax", (1, 20, 1, 21), None,
     "reserved for egglog internals", "engine's own"),
    ("(rule ((Cast :source ?a\n :type ?t :size (py-eval ?a))) ())", "refused", (2, 17, 2, 29),
     "py-eval", "it runs Python code", "Allowed are"),
]  # fmt: skip


@pytest.mark.parametrize("row", DIAGNOSTICS, ids=lambda row: row[0])
def test_a_diagnostic_names_its_place(
    row: tuple[str, str, tuple[int, int, int, int], str | None, str, str],
) -> None:
    text, kind, span, subject, message, hint = row
    good = '(rule ((narrow ?t)) ((narrow ?t)) :name "good")'
    file = read(f"{text}\n{good}")
    (found,) = file.problems
    assert (found.kind, place(found), found.subject) == (kind, span, subject)
    assert message in found.message
    assert found.message.endswith(".")
    assert hint in found.hint
    assert [rule.name for rule in file.rules] == ["good"]
    assert (found.rule is not None) == text.startswith(("(rule", "(rewrite", "(birewrite"))


def test_all_mistakes_of_a_form_are_told_in_order() -> None:
    file = read("(rule ((Cast :a 1 :b 2 ...)\n (Add ?x ...)) ((Scale ...)))")
    assert [(found.subject, place(found)[:2]) for found in file.problems] == [
        ("a", (1, 14)),
        ("b", (1, 19)),
        ("Add", (2, 10)),
        (None, (2, 24)),
    ]


def test_all_unknown_names_of_a_rule_are_told_with_and_without_fields() -> None:
    """A run looks for other files that declare them."""
    file = read("(rule ((Foo :a (Cast :size ?n ...) ...) (bar ?n)) ((Baz :b ?n)))")
    assert [(found.kind, found.subject) for found in file.problems] == [
        ("unknown-name", "Foo"),
        ("unknown-name", "bar"),
        ("unknown-name", "Baz"),
    ]


def test_a_call_of_what_is_declared_wrongly_says_where() -> None:
    file = read(
        "(rule ((C :a ?n)) ())\n(rule ((D ?n)) ())\n"
        "(datatype E (C :a Num :a Num) (D Num))\n(rule ((= ?x (E ...))) ())"
    )
    first, second, third, fourth = file.problems
    assert (third.kind, place(third)) == ("field", (3, 23, 3, 25))
    for found, name in ((first, "C"), (second, "D")):
        assert (found.kind, found.subject) == ("unknown-name", name)
        assert found.message == f"The declaration of `{name}` was left out."
        assert found.hint == "First mend the problem on line 3."
    assert (fourth.kind, fourth.message) == ("unknown-name", "Nothing declares `E`.")


def test_long_calls_name_only_some_of_what_is_missing() -> None:
    fields = " ".join(f":f{at} Num" for at in range(9))
    found = problem(f"(constructor Long ({fields}) Buf)\n(rule ((Long :f2 ?n)) ())")
    assert found.message == "`Long` is not given f0 f1 f3 f4 f5 and 3 more."


def test_places_of_reordered_arguments() -> None:
    rule = only_rule("(rule ((= ?é (Cast :type\n ?t :size ?n ...)) ; ü\n) ())")
    (fact,) = rule.body
    assert isinstance(fact, Eq)
    assert fact.span == Span(FILE, 1, 8, 2, 19)
    call = fact.right
    assert isinstance(call, Call)
    assert call.span == Span(FILE, 1, 14, 2, 18)
    assert call.args == (
        Var("_", Span(FILE, 2, 14, 2, 17)),
        Var("?n", Span(FILE, 2, 11, 2, 13)),
        Var("?t", Span(FILE, 2, 2, 2, 4)),
    )
    assert rule.span == Span(FILE, 1, 1, 3, 6)
    assert rule.variables == (("?é", "Buf"), ("?n", "Num"), ("?t", "Type"))


def test_the_engine_binds_fields_left_open_apart() -> None:
    rule = only_rule("(rule ((= ?c (Cast :source ?a ...)) (= ?d (Cast ?c ...))) ((union ?c ?d)))")
    assert dict(rule.variables).keys() == {"?c", "?a", "?d"}


def test_a_wrong_dialect_is_reported() -> None:
    broken = read_dialect("d.egg", "(sort A)\n(constructor B (:a A A) A)", Parser(), Limits())
    assert [found.span for found in broken.problems] == [Span("d.egg", 2, 22, 2, 23)]
