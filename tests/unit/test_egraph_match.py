"""What a rule did to a batch, as it is read back from the engine."""

from __future__ import annotations

import pytest

from rulecheck.egraph import instrument
from rulecheck.egraph.load import read_header
from rulecheck.egraph.match import Session
from rulecheck.records import InstanceBatch, Limits, MatchRequest, Rule, TermTable
from tests.matching import FUSE, double_cast, match, program, shown
from tests.toy import DIALECT, Terms, read


def test_the_header_of_a_dialect() -> None:
    header = read_header(DIALECT)
    assert header.schedule == ("algebra", "types")
    assert header.facts == ("dtype",)
    assert read_header("(sort A)").schedule == ()


def test_a_firing_tells_bindings_and_both_sides() -> None:
    terms = Terms()
    roots = [double_cast(terms, index) for index in range(3)]
    batch = terms.batch(*roots)
    reply = match(FUSE, batch)
    assert reply.error is None
    assert reply.nodes[: len(batch.nodes)] == batch.nodes
    assert [firing.instance for firing in reply.firings] == [0, 1, 2]
    assert reply.united == (True, True, True)
    assert reply.matches_reported == 3
    table = TermTable(reply.nodes)
    for index, firing in enumerate(reply.firings):
        assert shown(reply, firing)["?x"] == f"(Leaf {index} (F16))"
        (member,) = firing.members
        assert member.left == roots[index] == dict(firing.bindings)["?outer"]
        assert table.show(member.right) == f"(Cast (Leaf {index} (F16)) (N 6) (F32))"
        assert member.right >= len(batch.nodes)
        claimed = [(name, table.show(value)) for name, value in member.claimed]
        assert claimed == [("dtype", "(F32)")]


def test_a_guard_that_does_not_hold_does_not_fire() -> None:
    terms = Terms()
    inner = terms.cast(terms.leaf(0), terms.number(6), "F32")
    reply = match(FUSE, terms.batch(terms.cast(inner, terms.number(6), "F32")))
    assert (reply.firings, reply.united, reply.matches_reported) == ((), (), 0)


def test_each_batch_starts_clean() -> None:
    terms = Terms()
    first = match(FUSE, terms.batch(double_cast(terms, 0)))
    again = match(FUSE, terms.batch(double_cast(terms, 0)))
    other = Terms()
    nothing = match(FUSE, other.batch(other.leaf(0)))
    assert first == again
    assert len(first.firings) == 1
    assert nothing.firings == ()


def test_bindings_are_those_before_the_rule_acted() -> None:
    """The union makes ?a and ?b one class; the report still tells them apart."""
    text = "(rule ((= ?s (Add ?a ?b))) ((union ?a ?b) (union ?s ?a)))"
    terms = Terms()
    left, right = terms.leaf(0), terms.leaf(1)
    root = terms.add("Add", left, right)
    reply = match(text, terms.batch(root))
    (firing,) = reply.firings
    assert dict(firing.bindings) == {"?s": root, "?a": left, "?b": right}
    assert [(one.union, one.left, one.right) for one in firing.members] == [
        (0, left, right),
        (1, root, left),
    ]
    assert reply.united == (True,)


def test_facts_of_the_dialect_and_of_the_file_are_derived_first() -> None:
    """``size`` is witnessed by a rule without unions, from a product that algebra folds."""
    text = """
    (relation size (Buf i64))
    (rule ((= ?b (Cast ?a (N ?n) ?t))) ((size ?b ?n)) :name "producer")
    (rule ((size ?b 6) (= ?b (Cast ?a ?n (F32))) (= (dtype ?a) (F16)))
          ((union ?b (Cast ?a (N 6) (F16)))) :name "user")
    """
    terms = Terms()
    product = terms.add("Times", terms.number(2), terms.number(3))
    root = terms.cast(terms.leaf(0), product, "F32")
    reply = match(text, terms.batch(root), rule=1)
    (firing,) = reply.firings
    assert dict(firing.bindings)["?n"] == product, "a term decodes as it was inserted"
    assert dict(firing.bindings)["?b"] == root
    producer = match(text, terms.batch(root), rule=0)
    assert [firing.members for firing in producer.firings] == [()]
    assert producer.united == (True,)


def test_a_new_term_decodes_as_the_head_wrote_it() -> None:
    text = "(rule ((= ?b (Cast ?a (N ?n) ?t))) ((union ?b (Cast ?a (Times (N ?n) (N 2)) ?t))))"
    terms = Terms()
    reply = match(text, terms.batch(terms.cast(terms.leaf(0), terms.number(3), "F16")))
    (member,) = reply.firings[0].members
    shown_term = TermTable(reply.nodes).show(member.right)
    assert shown_term == "(Cast (Leaf 0 (F16)) (Times (N 3) (N 2)) (F16))"


def test_a_derived_class_decodes_to_its_number() -> None:
    """``half`` derives 2 * 5 in a context rule; algebra folds it; no instance spells it."""
    text = """
    (relation half (Num Num))
    (rule ((= ?n (N ?i))) ((half ?n (Times (N 2) (Times ?n (N 1))))) :name "derive")
    (rule ((half ?n ?h) (= ?n (N 5))) ((union ?h (Plus ?n ?n))) :name "use")
    """
    terms = Terms()
    five = terms.number(5)
    limits = Limits(nodes=2000)
    reply = match(
        text.replace("(= ?n (N ?i))", "(= ?n (N ?i)) (< ?i 6) (> ?i 4)"),
        terms.batch(five),
        rule=1,
        limits=limits,
    )
    assert reply.error is None
    (member,) = reply.firings[0].members
    table = TermTable(reply.nodes)
    assert (table.show(member.left), table.show(member.right)) == ("(N 10)", "(Plus (N 5) (N 5))")


def test_cyclic_classes_are_read_back() -> None:
    """Scaling by one is united with its operand: the class contains itself."""
    text = """
    (relation seen (Buf))
    (rule ((= ?s (Scale ?a 1.0))) ((union ?s ?a)) :ruleset algebra :name "one")
    (rule ((= ?c (Cast ?a ?n ?t))) ((seen (Scale ?c 1.0)) (seen (Add ?c ?c))) :name "derive")
    (rule ((seen ?s)) ((union ?s (Add ?s ?s))) :name "grow")
    """
    terms = Terms()
    scaled = terms.add("Scale", terms.leaf(0), terms.literal("f64", 1.0))
    root = terms.cast(scaled, terms.number(1), "F32")
    for rule in (0, 2):
        reply = match(text, terms.batch(root), rule=rule)
        assert reply.error is None
        assert reply.firings
        assert all(reply.united)


def test_a_match_of_shared_terms_alone_lies_in_every_instance_that_has_them() -> None:
    text = '(rule ((= ?n (N ?i))) ((union ?n (Plus ?n (Z)))) :name "numbers")'
    terms = Terms()
    batch = terms.batch(
        terms.cast(terms.leaf(0), terms.number(7), "F16"),
        terms.cast(terms.leaf(1), terms.number(7), "F16"),
        terms.cast(terms.leaf(2), terms.number(8), "F16"),
    )
    reply = match(text, batch)
    owners = [(shown(reply, firing)["?i"], firing.instance) for firing in reply.firings]
    assert sorted(owners) == [("7", 0), ("7", 1), ("8", 2)]


def test_terms_that_instances_share_do_not_count_where_others_tell() -> None:
    text = '(rule ((= ?c (Cast ?x ?n ?t)) (= ?n (N ?i))) ((union ?c ?c)) :name "casts")'
    terms = Terms()
    batch = terms.batch(
        terms.cast(terms.leaf(0), terms.number(7), "F16"),
        terms.cast(terms.leaf(1), terms.number(7), "F16"),
    )
    owners = [firing.instance for firing in match(text, batch).firings]
    assert sorted(owners, key=str) == [0, 1]


def test_a_rule_without_union_has_no_members() -> None:
    text = '(rule ((= ?s (Add ?a ?b))) ((delete (Add ?a ?b))) :name "clean")'
    terms = Terms()
    reply = match(text, terms.batch(terms.add("Add", terms.leaf(0), terms.leaf(1))))
    (firing,) = reply.firings
    assert (firing.instance, firing.members, reply.error) == (0, (), None)


def test_subsuming_after_uniting_keeps_the_report() -> None:
    text = "(rule ((= ?s (Add ?a ?b))) ((union ?s (Add ?b ?a)) (subsume (Add ?a ?b))))"
    terms = Terms()
    reply = match(text, terms.batch(terms.add("Add", terms.leaf(0), terms.leaf(1))))
    assert len(reply.firings) == 1
    assert reply.united == (True,)


def test_a_rule_that_takes_its_own_condition_away_still_unites() -> None:
    text = """
    (rule ((= ?b (Leaf ?i ?t)) (= (F16) (dtype ?b)))
          ((union ?b (Cast (Scale ?b 0.5) (N ?i) (F32))) (set (dtype ?b) (F32))))
    """
    terms = Terms()
    reply = match(text, terms.batch(terms.leaf(1), terms.leaf(2), terms.leaf(3, "F32")))
    assert reply.error is None
    assert [firing.instance for firing in reply.firings] == [0, 1]
    assert reply.united == (True, True)


def test_a_rule_that_does_not_unite_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate an engine that drops the union: the copy that acts is given an empty head."""
    copy = instrument._copy

    def drop(rule: Rule, ruleset: str, head: list[object], name: str | None = None) -> object:
        return copy(rule, ruleset, [] if ruleset.startswith("@rc_apply") else head, name)

    monkeypatch.setattr(instrument, "_copy", drop)
    broken = Session(program(read(FUSE)))
    terms = Terms()
    request = MatchRequest(0, terms.batch(double_cast(terms, 0)), Limits())
    reply = broken.match(request)
    assert len(reply.firings) == 1
    assert reply.united == (False,)


def test_literals_of_every_sort_come_back() -> None:
    text = "(rule ((= ?b (Named ?a ?s ?f)) (= ?a (Scale ?l ?x))) ((union ?b ?l)))"
    terms = Terms()
    scaled = terms.add("Scale", terms.leaf(-3), terms.literal("f64", -0.5))
    root = terms.add(
        "Named", scaled, terms.literal("String", 'a"\né'), terms.literal("bool", value=True)
    )
    reply = match(text, terms.batch(root))
    values = {name: reply.nodes[index].value for name, index in reply.firings[0].bindings}
    assert (values["?s"], values["?f"], values["?x"]) == ('a"\né', True, -0.5)
    assert shown(reply, reply.firings[0])["?l"] == "(Leaf -3 (F16))"


def test_relations_may_be_part_of_an_instance() -> None:
    text = "(relation hint (Buf i64))\n(rule ((hint ?b ?i)) ((union ?b (Scale ?b 2.0))))"
    terms = Terms()
    leaf = terms.leaf(0)
    hint = terms.add("hint", leaf, terms.literal("i64", 4))
    reply = match(text, InstanceBatch(tuple(terms.nodes), ((leaf, hint),)))
    assert dict(reply.firings[0].bindings)["?b"] == leaf


def test_an_empty_batch_matches_nothing() -> None:
    reply = match(FUSE, InstanceBatch((), ()))
    assert (reply.error, reply.firings) == (None, ())


def test_batches_larger_than_one_insertion_rule() -> None:
    terms = Terms()
    roots = []
    for index in range(60):
        root = double_cast(terms, index)
        for step in range(8):
            root = terms.add("Scale", root, terms.literal("f64", float(step)))
        roots.append(root)
    reply = match(FUSE, terms.batch(*roots))
    assert [firing.instance for firing in reply.firings] == list(range(60))


def test_a_term_as_deep_as_a_file_may_nest() -> None:
    pattern = "?x"
    for _ in range(190):
        pattern = f"(Scale {pattern} 2.0)"
    text = f"(rule ((= ?s {pattern})) ((union ?s (Scale ?x 1.0))))"
    terms = Terms()
    root = terms.leaf(0)
    for _ in range(190):
        root = terms.add("Scale", root, terms.literal("f64", 2.0))
    reply = match(text, terms.batch(root))
    assert [dict(firing.bindings)["?s"] for firing in reply.firings] == [root]
