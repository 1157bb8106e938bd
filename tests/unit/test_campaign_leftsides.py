"""Left sides through other rules: which there are, and that their names lead back to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rulecheck.campaign import token
from rulecheck.campaign.leftsides import (
    MADE_BY,
    MAX_LEFT_SIDES,
    LeftSide,
    derivations,
    find_left_side,
    joined,
    labelled,
    left_sides,
    pair_sides,
    surroundings,
)
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.rerun import replay
from rulecheck.campaign.workshop import Workshop
from rulecheck.errors import UserError
from rulecheck.instantiate import Cause, Coverage, Instance, Instances
from rulecheck.records import Case, RuleFile, Settings, Verdict
from tests import toy
from tests.luminal_rules import read
from tests.luminal_terms import VOCABULARY
from tests.rule_texts import dtypes, inputs, old_call, rule

NO_TABLES: frozenset[str] = frozenset()
DECLARED = "(relation small (Num)) (relation dense (Buf)) (relation nothing (Buf))"
USER = '(rule ((= ?b (Cast ?a ?n (F32))) (small ?n) (dense ?a)) ((union ?b ?a)) :name "user")'
SMALL = '(rule ((= ?b (Leaf ?i ?t)) (= ?n (N 1))) ((small ?n)) :name "makes small")'
DENSE = '(rule ((= ?b (Add ?x ?y))) ((dense ?b)) :name "makes dense")'


def load(*rules: str) -> RuleFile:
    file = toy.read(DECLARED + "".join(rules))
    assert file.problems == ()
    return file


def names(file: RuleFile, tables: frozenset[str] = NO_TABLES) -> list[str]:
    return [left.by for left in derivations(file.rules[0], file, tables)]


def test_each_fact_is_derived_by_each_rule_that_adds_it_and_then_the_rest() -> None:
    found = names(load(USER, SMALL, DENSE))
    assert found == [
        "makes small",
        "makes dense",
        "makes small, makes dense",
        "makes dense, makes small",
    ]


def test_a_rule_without_such_facts_has_no_derivation() -> None:
    assert names(load('(rule ((= ?b (Cast ?a ?n ?t))) ((union ?b ?a)) :name "u")', SMALL)) == []
    assert names(load(USER)) == []


def test_rows_of_a_table_need_no_derivation() -> None:
    assert names(load(USER, SMALL, DENSE), frozenset({"small"})) == ["makes dense"]


@pytest.mark.parametrize(
    "action", ["(union ?b ?b)", "(delete (Add ?x ?y))", "(subsume (Add ?x ?y))"]
)
def test_a_rule_that_does_more_than_derive_is_no_derivation(action: str) -> None:
    """It is not applied by itself, so its rows would not be there."""
    other = f'(rule ((= ?b (Add ?x ?y))) ((dense ?b) {action}) :name "does more")'
    assert names(load(USER, other)) == []


def test_a_rule_is_not_its_own_neighbour() -> None:
    own = '(rule ((dense ?a) (= ?b (Add ?a ?a))) ((dense ?b)) :name "grows")'
    file = load(own)
    assert names(file) == []
    assert list(surroundings(file.rules[0], file)) == []


def test_chains_are_followed_three_deep() -> None:
    links = [
        f'(rule ((= ?b (Cast ?a ?n ?t)) (r{at} ?a)) ((r{at + 1} ?b)) :name "to {at + 1}")'
        for at in range(5)
    ]
    declared = "".join(f"(relation r{at} (Buf))" for at in range(6))
    user = '(rule ((r5 ?a) (= ?b (Add ?a ?a))) ((union ?b ?a)) :name "user")'
    found = names(load(declared, user, *links))
    assert found == ["to 5", "to 5, to 4", "to 5, to 4, to 3"]


def test_many_derivations_are_cut() -> None:
    many = [SMALL.replace("makes small", f"small {at}") for at in range(40)]
    assert len(names(load(USER, *many))) == MAX_LEFT_SIDES


def test_what_uses_a_rules_rows_surrounds_it() -> None:
    file = load(SMALL, USER, '(rule ((small ?n) (dense ?b)) ((dense ?b)) :name "another")')
    found = list(surroundings(file.rules[0], file))
    assert [left.by for left in found] == ["used by user", "used by another"]
    assert all(left.before == () for left in found)
    assert [left.rule.name for left in found] == ["user", "another"]


def test_left_sides_have_names_of_their_own_and_are_found_again_by_them() -> None:
    """One rule may derive a fact by two rows, and two facts; a replay names the one it was."""
    both = '(rule ((= ?b (Add ?x ?y))) ((dense ?b) (dense ?x)) :name "both")'
    user = '(rule ((= ?b (Add ?a ?c)) (dense ?a) (dense ?c)) ((union ?b ?a)) :name "user")'
    file = load(user, both)
    found = list(left_sides(file.rules[0], file, NO_TABLES))
    assert len(found) > 4
    assert len({left.by for left in found}) == len(found)
    assert len({left.rule.body for left in found}) > 2
    for left in found:
        again = find_left_side(file.rules[0], left.by, file, NO_TABLES)
        assert again is not None
        assert again.rule.body == left.rule.body


def test_the_own_left_side_is_nameless_and_an_unknown_name_is_none() -> None:
    file = load(USER, SMALL)
    assert find_left_side(file.rules[0], "", file, NO_TABLES) == LeftSide(file.rules[0])
    assert find_left_side(file.rules[0], "gone", file, NO_TABLES) is None


# ---- instances -------------------------------------------------------------------------------


def instance(root: int, **choices: str) -> Instance:
    chosen = tuple(choices.items())
    return Instance((root,), chosen, chosen)


def instances(*items: Instance, **axes: tuple[str, ...]) -> Instances:
    return Instances(items, Coverage(frozenset(), tuple(axes.items())))


def test_a_label_is_a_choice_of_every_instance_and_a_deviation() -> None:
    file = load(USER)
    found = labelled(instances(instance(1, n="5"), n=("5",)), LeftSide(file.rules[0], "p"))
    (item,) = found.instances
    assert item.choices == item.deviations == ((MADE_BY, "p"), ("n", "5"))
    assert found.coverage.axes == ((MADE_BY, ("p",)), ("n", ("5",)))


def test_the_own_left_side_gets_no_label() -> None:
    own = instances(instance(1, n="5"), n=("5",))
    assert labelled(own, LeftSide(load(USER).rules[0])) is own


def test_joined_instances_are_all_of_them_once_with_all_labels() -> None:
    one, other = instance(1, n="5"), instance(2, n="7")
    found = joined(instances(one, n=("5",)), instances(one, other, n=("7", "5"), t=("F16",)))
    assert found.instances == (one, other)
    assert found.coverage.axes == (("n", ("5", "7")), ("t", ("F16",)))


def test_joining_with_nothing_keeps_what_is_there() -> None:
    some, none = instances(instance(1)), Instances((), Coverage(frozenset(), ()), "why", Cause.GAP)
    assert joined(some, none).instances == some.instances
    assert joined(none, some) == some


def test_where_no_left_side_has_an_instance_the_own_reason_is_told() -> None:
    """That two rules together contradict each other does not mean that one never fires."""
    nothing = Coverage(frozenset(), ())
    start = Instances((), nothing)
    own = Instances((), nothing, "no value was found", Cause.GAP)
    composed = Instances((), nothing, "F32 is F16", Cause.CONTRADICTION)
    found = joined(joined(start, own), composed)
    assert (found.reason, found.cause) == ("no value was found", Cause.GAP)


# ---- pairs -----------------------------------------------------------------------------------

F32 = {**dtypes("F32"), "beta": "0.0"}
MAKER = rule(
    "maker",
    f"(= ?old {old_call({**F32, 'epilogue': chr(34) + 'RELU' + chr(34)}, '?list')})",
    f"(let ?new {old_call({**F32, 'epilogue': chr(34) + 'DEFAULT' + chr(34)}, '?list')})"
    "(union ?old ?new) (shown ?new)",
)
EATER = rule(
    "eater",
    "(= ?cast (Op (Cast ?size (F16)) (ICons ?mm (INil)))) (shown ?mm)"
    f"(= ?mm {old_call({**F32, 'epilogue': chr(34) + 'DEFAULT' + chr(34)}, inputs('?a', '?b'))})",
    "(union ?cast ?cast)",
)


def test_a_pair_meets_through_an_op_and_through_a_row() -> None:
    file = read("(relation shown (IR))" + MAKER + EATER)
    maker, eater = file.rules
    found = list(pair_sides(eater, maker, 0, VOCABULARY))
    assert [left.by for left in found] == ["maker#0", "maker#1"]
    assert all(left.before == (0,) for left in found)
    assert all(left.rule.head == eater.head for left in found)
    assert list(pair_sides(maker, eater, 1, VOCABULARY)) == []


def test_names_of_a_pairs_left_sides_do_not_depend_on_the_order_of_files() -> None:
    """A replay loads the file of the second rule first."""
    file = read("(relation shown (IR))" + MAKER + EATER)
    maker, eater = file.rules
    by = [[left.by for left in pair_sides(eater, maker, at, VOCABULARY)] for at in (0, 7)]
    assert by[0] == by[1]


# ---- a case is built again from its name ---------------------------------------------------------

# Only what another rule has marked is doubled, and both of its rows mark something else.
MARKS = rule(
    "marks",
    "(= ?x (Op (Cast ?n (F32)) (ICons ?y (INil)))) (= (F32) (dtype ?y))",
    "(shown ?x) (shown ?y)",
)
DOUBLES = rule(
    "doubles",
    "(shown ?z) (= ?z (Op (Cast ?k (F32)) (ICons ?w (INil)))) (= (F32) (dtype ?w))",
    "(union ?z (Op (Cast ?k (F32)) (ICons (Op (Cast ?k (Bf16)) (ICons ?w (INil))) (INil))))",
)


def test_a_case_that_another_rule_made_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "a.egg"
    path.write_text("(relation shown (IR))" + MARKS + DOUBLES, encoding="utf-8")
    with Workshop(Settings(paths=())) as shop:
        file = shop.load(str(path))
        assert isinstance(file, RuleFile)
        run = RuleRun(shop, file, 1)
        trial = run.explore()
        results = run.judge(trial)
    labels = {dict(item.case.choices).get(MADE_BY): item for item in results}
    assert {"marks", "marks #2"} <= set(labels)
    for result in labels.values():
        again = replay(token.encode(result.case), Settings(paths=()))
        assert again.evidence.verdict is result.evidence.verdict is Verdict.ROUNDING_ADDED
        assert again.tried == result.tried
        assert again.case == result.case


def test_a_case_of_a_rule_that_is_gone_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "a.egg"
    path.write_text("(relation shown (IR))" + DOUBLES, encoding="utf-8")
    case = Case("luminal", str(path), "doubles", "", ((MADE_BY, "marks"),), 0, "cpu")
    with pytest.raises(UserError, match="no rule makes what the case was built with"):
        replay(token.encode(case), Settings(paths=()))
