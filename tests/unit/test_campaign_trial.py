"""Removals, classes with several ops, and rules that are applied before others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rulecheck.campaign.leftsides import LeftSide
from rulecheck.campaign.members import NO_INSTANCES, RuleRun
from rulecheck.campaign.trial import Trial, _mates
from rulecheck.campaign.workshop import Workshop
from rulecheck.egraph.match import Session
from rulecheck.instantiate import Instance
from rulecheck.records import (
    CaseResult,
    DType,
    InstanceBatch,
    Limits,
    MatchReply,
    MatchRequest,
    RuleFile,
    Settings,
    Verdict,
)
from tests.luminal_terms import Graph
from tests.matching import program, shown
from tests.rule_texts import rule
from tests.toy import Terms, read

CAST = "(Op (Cast ?n (F32)) (ICons ?y (INil)))"
FROM_F32 = f"(= ?x {CAST}) (= (F32) (dtype ?y))"
FROM_BF16 = f"(= ?x {CAST}) (= (Bf16) (dtype ?y))"


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with Workshop(Settings(paths=())) as running:
        yield running


class Scene:
    """One rule, and a graph to apply it to."""

    def __init__(self, shop: Workshop, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        shop._loaded = None
        shop._sources.clear()
        file = shop.load(str(path))
        assert isinstance(file, RuleFile)
        assert file.problems == ()
        self.run = RuleRun(shop, file, 0)
        self.graph = self.run.table = Graph()
        self.y = self.graph.leaf("y", DType.F32)

    def judge(self, *unions: tuple[int, int]) -> list[CaseResult]:
        """What the rule claims on a class that holds all of these terms."""
        terms = tuple(dict.fromkeys(term for pair in unions for term in pair))
        trial = Trial(NO_INSTANCES)
        instance = Instance(terms, (), (), unions)
        self.run.application(LeftSide(self.run.rule)).run([instance], trial)
        assert trial.failures == []
        assert trial.errors == []
        assert trial.flaws == []
        assert trial.reached == 1
        return self.run.judge(trial)

    def cast(self, source: int, dtype: DType = DType.F32) -> int:
        return self.graph.cast(source, 35, dtype)

    def times(self, factor: float) -> int:
        """y · factor, as a pointwise op."""
        number = self.graph.op(self.graph.add("Constant", self.graph.literal("f64", factor)))
        dense, one = self.graph.strides(7, 1), self.graph.strides(0, 0)
        kind = self.graph.add("Mul", self.graph.shape(5, 7), dense, one, dense)
        return self.graph.op(kind, self.y, number)


def removal(kind: str, body: str = FROM_F32) -> str:
    return rule("removal", body, f"({kind} {CAST})")


KINDS = pytest.mark.parametrize("kind", ["delete", "subsume"])


@KINDS
def test_a_removal_leaves_something_equal(shop: Workshop, tmp_path: Path, kind: str) -> None:
    scene = Scene(shop, tmp_path / "a.egg", removal(kind))
    (result,) = scene.judge((scene.cast(scene.y), scene.times(1.0)))
    assert result.evidence.verdict is Verdict.AGREES
    assert result.evidence.compared >= 35


@KINDS
def test_a_removal_leaves_something_wrong(shop: Workshop, tmp_path: Path, kind: str) -> None:
    scene = Scene(shop, tmp_path / "a.egg", removal(kind))
    (result,) = scene.judge((scene.cast(scene.y), scene.times(2.0)))
    assert result.evidence.verdict is Verdict.MISMATCH


def test_a_removal_that_leaves_a_rounding_is_told_and_is_no_error(
    shop: Workshop, tmp_path: Path
) -> None:
    """Another rule put both into the class and answers for it."""
    scene = Scene(shop, tmp_path / "a.egg", removal("delete"))
    rounded = scene.cast(scene.cast(scene.y, DType.BF16))
    (result,) = scene.judge((scene.cast(scene.y), rounded))
    assert result.evidence.verdict is Verdict.ROUNDING_ELIDED
    assert "what is removed skips a rounding of what stays" in result.evidence.message


def test_a_removal_of_what_rounds_is_a_rounding_that_is_skipped(
    shop: Workshop, tmp_path: Path
) -> None:
    scene = Scene(shop, tmp_path / "a.egg", removal("delete", FROM_BF16))
    rounded = scene.cast(scene.cast(scene.y, DType.BF16))
    (result,) = scene.judge((rounded, scene.times(1.0)))
    assert result.evidence.verdict is Verdict.ROUNDING_ELIDED


def test_everything_that_stays_is_held_against_what_goes(shop: Workshop, tmp_path: Path) -> None:
    """Three ops in a class: the wrong one is met although no pair names it with the removed one."""
    scene = Scene(shop, tmp_path / "a.egg", removal("delete"))
    cast, right, wrong = scene.cast(scene.y), scene.times(1.0), scene.times(3.0)
    found = scene.judge((cast, right), (right, wrong))
    assert [item.evidence.verdict for item in found] == [Verdict.AGREES, Verdict.MISMATCH]


def test_a_removal_of_the_only_op_claims_nothing(shop: Workshop, tmp_path: Path) -> None:
    scene = Scene(shop, tmp_path / "a.egg", removal("delete"))
    other = scene.graph.leaf("z", DType.F32, 1)
    assert scene.judge((scene.cast(scene.y), scene.cast(scene.y))) == []
    assert scene.judge((scene.times(1.0), other), (scene.cast(scene.y), scene.cast(scene.y))) == []


def test_a_left_side_that_wants_two_ops_in_one_class(shop: Workshop, tmp_path: Path) -> None:
    """It only fires where they are one class; so it is an instance that says so."""
    both = f"{FROM_F32} (= ?x (Op (Mul ?s ?d ?z ?o) (ICons ?y (ICons ?c (INil)))))"
    scene = Scene(shop, tmp_path / "a.egg", rule("both", both, f"(union ?x {CAST})"))
    cast, product = scene.cast(scene.y), scene.times(1.0)
    trial = Trial(NO_INSTANCES)
    apart = Instance((cast, product), (), ())
    scene.run.application(None).run([apart], trial)
    assert (trial.fired, trial.silent, trial.claims) == (0, 1, [])
    scene.run.application(None).run([Instance((cast, product), (), (), ((cast, product),))], trial)
    assert trial.reached == 1
    assert trial.flaws == []


def test_mates_are_the_whole_class_whatever_the_pairs() -> None:
    assert _mates(1, ()) == []
    assert _mates(1, ((2, 3),)) == []
    assert sorted(_mates(1, ((1, 2), (3, 2), (4, 3), (5, 6)))) == [2, 3, 4]
    assert sorted(_mates(3, ((1, 2), (2, 3)))) == [1, 2]


def test_ops_of_one_class_have_to_be_one_buffer(shop: Workshop, tmp_path: Path) -> None:
    scene = Scene(shop, tmp_path / "a.egg", removal("delete"))
    run, cast = scene.run, scene.cast(scene.y)
    rounded = scene.cast(scene.cast(scene.y, DType.BF16))
    assert run.flaw((cast,), ((cast, scene.times(1.0)),)) is None
    assert run.flaw((cast,), ((rounded, cast),)) is None, "a rounding may have been skipped"
    assert run.flaw((cast,), ((cast, scene.times(2.0)),)) is not None


# ---- rules that are applied before ---------------------------------------------------------------

CHAIN = """
(relation ready (Buf))
(rule ((= ?b (Cast ?a ?n (F16))))
      ((let ?new (Scale ?a 1.0)) (union ?b ?new) (ready ?new)) :name "first")
(rule ((= ?b (Scale ?a ?v)) (ready ?b)) ((union ?b (Add ?a ?a))) :name "second")
(rule ((= ?b (Add ?a ?a))) ((union ?b (Named ?a "x" true))) :name "third")
"""


def apply(rule_index: int, before: tuple[int, ...]) -> tuple[Terms, MatchReply]:
    terms = Terms()
    root = terms.cast(terms.leaf(0), terms.number(3), "F16")
    reply = Session(program(read(CHAIN))).match(
        MatchRequest(rule_index, terms.batch(root), Limits(), before)
    )
    assert reply.error is None
    return terms, reply


def test_a_rule_sees_what_those_before_it_made() -> None:
    assert apply(1, ())[1].firings == ()
    _, reply = apply(1, (0,))
    (firing,) = reply.firings
    assert firing.instance == 0, "what was made lies in the instance that it was made of"
    assert shown(reply, firing)["?b"] == "(Cast (Leaf 0 (F16)) (N 3) (F16))"
    (member,) = firing.members
    assert member.right >= 4, "a new term"
    assert reply.united == (True,)


def test_rules_before_are_applied_in_the_order_given() -> None:
    assert len(apply(2, (0, 1))[1].firings) == 1
    assert apply(2, (1, 0))[1].firings == ()


def test_what_was_made_before_is_gone_with_the_next_batch() -> None:
    session = Session(program(read(CHAIN)))
    terms = Terms()
    batch = terms.batch(terms.cast(terms.leaf(0), terms.number(3), "F16"))
    first = session.match(MatchRequest(1, batch, Limits(), (0,)))
    again = session.match(MatchRequest(1, batch, Limits()))
    assert len(first.firings) == 1
    assert again.firings == ()


def test_united_terms_are_one_class_in_the_batch() -> None:
    text = '(rule ((= ?b (Scale ?a ?v)) (= ?b (Add ?c ?c))) ((union ?b ?a)) :name "both")'
    session = Session(program(read(text)))
    terms = Terms()
    leaf = terms.leaf(0)
    one, other = terms.add("Scale", leaf, terms.literal("f64", 2.0)), terms.add("Add", leaf, leaf)
    nodes = tuple(terms.nodes)
    apart = session.match(MatchRequest(0, InstanceBatch(nodes, ((one, other),)), Limits()))
    joined = InstanceBatch(nodes, ((one, other),), ((one, other),))
    together = session.match(MatchRequest(0, joined, Limits()))
    assert apart.firings == ()
    assert len(together.firings) == 1
    assert (
        session.match(MatchRequest(0, InstanceBatch(nodes, ((one, other),)), Limits())).firings
        == ()
    )
