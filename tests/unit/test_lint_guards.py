"""RC503: guards on terms that may not exist."""

from __future__ import annotations

import pytest

from rulecheck.lint.guards import seeds
from tests.linting import line, lints, of_code
from tests.luminal_terms import VOCABULARY
from tests.rule_texts import inputs, rule

BODY = f"""(= ?top (Op (Sum ?shape ?k ?s ?step ?o) {inputs("?x")}))
  (= ?dt (dtype ?x))"""
HEAD = f"(union ?top (Op (Max ?shape ?k ?s ?step ?o) {inputs('?x')}))"


def guarded(facts: str) -> str:
    return rule("guarded", f"{BODY}\n{facts}", HEAD)


def test_the_dialect_makes_zero_and_one() -> None:
    assert seeds(VOCABULARY.declarations()) == {"(MNum 0)", "(MNum 1)"}


def test_a_number_that_nothing_makes() -> None:
    text = guarded("(!= ?k (MNum 3))")
    (found,) = lints(text)
    assert found.code == "RC503"
    assert found.message == (
        "the guard (!= ?k (MNum 3)) never holds unless (MNum 3) exists as a term, and nothing in "
        "the rule or the dialect makes it"
    )
    assert found.hint == "compare numbers: (= … (MNum ?n)) (!= ?n 3)"
    assert line(text, found) == "(MNum 3))"


def test_a_type_that_nothing_makes() -> None:
    (found,) = lints(guarded("(!= (I4) ?dt)"))
    assert "(I4) exists as a term" in found.message
    assert found.hint == "require a relation of those that are meant"


def test_a_term_with_variables_that_nothing_makes() -> None:
    (found,) = lints(guarded("(!= ?step (MMul (MIter) ?k))"))
    assert "unless (MMul (MIter) ?k) exists" in found.message
    assert found.hint.startswith("compare the parts")


@pytest.mark.parametrize(
    "facts",
    [
        "(!= ?k (MNum 0)) (!= ?k (MNum 1))",  # made by the dialect
        "(!= ?dt (F16)) (!= (F8E5M2) ?dt)",  # rows of its relations
        "(= ?shape (ECons (MNum 3) (ENil))) (!= ?k (MNum 3))",  # matched as a part of a list
        "(= ?step (MMul (MIter) ?k)) (!= ?o ?s) (!= (MMul (MIter) ?k) (MIter))",
        "(= (MNum 3) (nth_from_end ?shape 0)) (!= ?k (MNum 3))",  # a value of a function
        "(= ?three (nth_from_end ?shape 0)) (= ?three (MNum 3)) (!= ?k ?three)",
        "(>= (lower (MNum 3)) 2) (!= ?k (MNum 3))",  # a bound is known of what exists only
        "(= ?step (MNum 3)) (!= ?k ?step)",  # the op's own field
        "(cublaslt_base_dtype ?dt) (!= ?k ?step)",
        "(= ?n 3) (= ?k (MNum ?n)) (!= ?n 3)",  # numbers need no term
        "(!= ?top ?x) (!= ?dt ?other) (cublaslt_base_dtype ?other)",
    ],
)
def test_a_term_that_exists(facts: str) -> None:
    assert lints(guarded(facts)) == []


def test_a_row_of_the_file_makes_its_terms() -> None:
    text = "(relation lucky (Expression))\n(lucky (MAdd (MNum 3) (MIter)))\n"
    assert lints(text + guarded("(!= ?k (MNum 3)) (!= ?k (MAdd (MNum 3) (MIter)))")) == []
    assert len(lints(text + guarded("(!= ?k (MNum 4))"))) == 1


def test_a_name_for_the_term_does_not_make_it() -> None:
    (found,) = lints(guarded("(= ?three (MNum 3)) (!= ?k ?three)"))
    assert "the guard (!= ?k ?three) never holds unless (MNum 3) exists" in found.message


def test_another_guard_does_not_make_it() -> None:
    assert len(lints(guarded("(!= ?k (MNum 3)) (!= ?step (MNum 3))"))) == 2


def test_the_root_of_a_rewrite_exists() -> None:
    text = """(rewrite (MMul ?x (MNum 7)) (MMul (MNum 7) ?x)
      :when ((!= ?x (MNum 7)) (!= ?x (MNum 8))) :ruleset expr)"""
    (found,) = of_code(text, "RC503")
    assert "(MNum 8) exists" in found.message
