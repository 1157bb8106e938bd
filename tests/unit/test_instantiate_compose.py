"""Two rules as one left side: what is renamed, what is tied to what, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rulecheck.instantiate import compose, show
from rulecheck.instantiate.compose import Product, products, renamed, rows, with_fact, with_op
from rulecheck.records import Call, Change, Do, Eq, Expr, Fact, Holds, Let, Rule, Set, Union, Var
from tests import toy
from tests.luminal_rules import first_rule, read
from tests.luminal_terms import VOCABULARY
from tests.rule_texts import dtypes, inputs, old_call, rule


def two(text: str) -> tuple[Rule, Rule]:
    """(consumer, producer): the rules of a file in the toy vocabulary."""
    file = toy.read("(relation marked (Buf Num))\n" + text)
    assert file.problems == ()
    first, second = file.rules
    return first, second


def text_of(fact: Fact) -> str:
    if isinstance(fact, Eq):
        return f"(= {show(fact.left)} {show(fact.right)})"
    return show(fact.expr)


def body(made: Rule) -> list[str]:
    return [text_of(fact) for fact in made.body]


def variables(expr: Expr) -> Iterator[str]:
    if isinstance(expr, Var):
        yield expr.name
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from variables(arg)


def only_fact(consumer: Rule) -> Holds:
    (fact,) = [fact for fact in consumer.body if isinstance(fact, Holds)]
    return fact


CONSUMER = '(rule ((marked ?b ?n) (= ?b (Cast ?a ?n (F32)))) ((union ?b ?a)) :name "consumer")'


def test_every_variable_is_renamed_wherever_it_stands() -> None:
    known = toy.only_rule("""
      (rule ((= ?b (Cast ?a ?n _)) (narrow ?t))
            ((let new (Add ?b ?a)) (union ?b new) (set (dtype new) ?t) (narrow ?t)
             (delete (Cast ?a ?n ?t)))
            :name "all kinds")""")
    twin = renamed(known, "9")
    assert body(twin) == ["(= ?b~9 (Cast ?a~9 ?n~9 _))", "(narrow ?t~9)"]
    assert [name for name, _ in twin.variables] == [f"{name}~9" for name, _ in known.variables]
    assert [sort for _, sort in twin.variables] == [sort for _, sort in known.variables]
    names = {name for name, _ in twin.variables} | {"new~9"}
    let, union, stamp, row, gone = twin.head
    assert isinstance(let, Let)
    assert isinstance(union, Union)
    assert isinstance(stamp, Set)
    assert isinstance(row, Do)
    assert isinstance(gone, Change)
    assert set(variables(let.expr)) <= names
    assert let.name == "new~9"
    assert [show(union.left), show(union.right)] == ["?b~9", "new~9"]
    assert [show(arg) for arg in (*stamp.args, stamp.value)] == ["new~9", "?t~9"]
    assert show(row.expr) == "(narrow ?t~9)"
    assert [show(arg) for arg in gone.args] == ["?a~9", "?n~9", "?t~9"]
    assert known.name == twin.name


def test_rows_are_written_out_and_unions_are_none() -> None:
    known = toy.only_rule("""
      (relation marked (Buf Num))
      (rule ((= ?b (Cast ?a ?n (F32))))
            ((let twice (Times ?n (N 2))) (let more (Times twice twice)) (marked ?b more)
             (union ?a ?b) (narrow (F32)) (set (dtype ?b) (F32))) :name "r")""")
    twice = "(Times ?n (N 2))"
    assert [show(row) for row in rows(known)] == [
        f"(marked ?b (Times {twice} {twice}))",
        "(narrow (F32))",
    ]


def test_a_fact_is_replaced_by_what_derives_it() -> None:
    consumer, producer = two(
        CONSUMER + '(rule ((= ?b (Add ?x ?x)) (= ?n (N 3))) ((marked ?b (Times ?n ?n))) :name "p")'
    )
    (made,) = with_fact(consumer, only_fact(consumer), producer, "0")
    assert body(made) == [
        "(= ?b~0 (Add ?x~0 ?x~0))",
        "(= ?n~0 (N 3))",
        "(= ?b ?b~0)",
        "(= ?n (Times ?n~0 ?n~0))",
        "(= ?b (Cast ?a ?n (F32)))",
    ]
    assert made.head == consumer.head
    assert made.name == consumer.name
    assert set(consumer.variables) <= set(made.variables)
    assert ("?n~0", "Num") in made.variables


def test_each_row_gives_a_left_side_and_other_relations_none() -> None:
    consumer, producer = two(
        CONSUMER
        + '(rule ((= ?b (Cast ?a ?n ?t))) ((marked ?b ?n) (narrow ?t) (marked ?a ?n)) :name "p")'
    )
    made = list(with_fact(consumer, only_fact(consumer), producer, "0"))
    assert [[line for line in body(one) if line.startswith("(= ?b ?")] for one in made] == [
        ["(= ?b ?b~0)"],
        ["(= ?b ?a~0)"],
    ]


def test_of_two_equal_facts_only_the_one_that_is_meant_goes() -> None:
    """Facts are told apart by identity: the other has to be derived too."""
    consumer, producer = two(
        '(rule ((marked ?b ?n) (marked ?b ?n)) ((union ?b ?b)) :name "c")'
        '(rule ((= ?b (Cast ?a ?n ?t))) ((marked ?b ?n)) :name "p")'
    )
    first = consumer.body[0]
    assert isinstance(first, Holds)
    (made,) = with_fact(consumer, first, producer, "0")
    assert body(made).count("(marked ?b ?n)") == 1


def doubling(steps: int) -> str:
    lets = ["(let x0 (Add ?b ?b))"]
    lets += [f"(let x{at + 1} (Add x{at} x{at}))" for at in range(steps)]
    return f'(rule ((= ?b (Leaf ?i ?t))) ({" ".join(lets)} (marked x{steps} (N 1))) :name "p")'


@pytest.mark.parametrize(("steps", "found"), [(3, 1), (9, 1), (11, 0), (60, 0), (150, 0)])
def test_what_doubles_at_every_step_is_not_written_out(steps: int, found: int) -> None:
    """After n steps x is 2^(n+2) − 1 nodes; 4000 are the limit."""
    _, producer = two(CONSUMER + doubling(steps))
    assert len(list(rows(producer))) == found


def test_what_nests_at_every_step_is_not_written_out() -> None:
    steps = compose.MAX_DEPTH + 20
    lets = ["(let x0 (Add ?b ?b))"]
    lets += [f"(let x{at + 1} (Add x{at} ?b))" for at in range(steps)]
    text = f'(rule ((= ?b (Leaf ?i ?t))) ({" ".join(lets)} (marked x{steps} (N 1))) :name "p")'
    _, producer = two(CONSUMER + text)
    assert list(rows(producer)) == []


# ---- ops -------------------------------------------------------------------------------------

WIDE = {**dtypes("F32"), "alpha": "1.0", "beta": "0.0", "epilogue": '"DEFAULT"'}


def maker(**fields: str) -> Rule:
    """A rule that unites a matmul with itself under other fields."""
    matched = {**WIDE, "epilogue": '"RELU"'}
    new = {**WIDE, **fields}
    made = old_call(new, "?list")
    return first_rule(
        rule("maker", f"(= ?old {old_call(matched, '?list')})", f"(union {made} ?old)")
    )


def eater(**fields: str) -> Rule:
    found = old_call({**WIDE, **fields}, inputs("?a", "?b"))
    return first_rule(
        rule("eater", f"(= ?cast (Op (Cast ?size (F16)) {inputs(found)}))", "(union ?cast ?cast)")
    )


def test_products_are_found_on_either_side_of_a_union_and_behind_lets() -> None:
    text = rule(
        "r",
        f"(= ?old {old_call(WIDE, '?list')})",
        "(let ?kind (Cast (MNum 3) (F16)))\n"
        "(let ?new (Op ?kind (ICons ?old (INil)))) (union ?new ?old)",
    )
    (found,) = products(first_rule(text), VOCABULARY)
    assert isinstance(found, Product)
    assert show(found.of) == "?old"
    assert show(found.kind) == "(Cast (MNum 3) (F16))"
    assert show(found.inputs) == "(ICons ?old (INil))"


@pytest.mark.parametrize(
    "head",
    [
        "(union ?old ?x)",  # nothing new
        "(union (Op (Cast (MNum 3) (F16)) ?list) (Op (Cast (MNum 3) (F32)) ?list))",  # nothing old
        "(set (dtype ?old) (F32))",
        "(union ?size (MMul ?size (MNum 1)))",  # no graph
    ],
)
def test_what_is_no_op_for_something_matched_is_no_product(head: str) -> None:
    text = rule("r", "(= ?old (Op (Cast ?size (F32)) ?list)) (= ?list (ICons ?x (INil)))", head)
    assert list(products(first_rule(text), VOCABULARY)) == []


def test_an_op_is_replaced_by_what_makes_it() -> None:
    (made,) = with_op(eater(alpha="?alpha"), maker(alpha="2.0"), VOCABULARY, "p0")
    lines = body(made)
    (matched,) = [line for line in lines if line.startswith("(= ?old~p0 (Op (cublaslt")]
    assert '"RELU"' in matched, "the producer's own left side stands in the place of the op"
    assert "(= ?alpha 2.0)" in lines, "fields of the pattern are tied to what the producer writes"
    assert "(= (ICons ?a (ICons ?b (INil))) ?list~p0)" in lines
    assert sum("cublaslt" in line for line in lines) == 1, "the op itself is not asked for"
    (cast,) = [line for line in lines if "Cast" in line]
    (tie,) = [line for line in lines if line.endswith(" ?old~p0)")]
    fresh = tie.split()[1]
    assert fresh in cast, "what the pattern names is what the producer matched"


@pytest.mark.parametrize(
    ("made", "wanted", "count"),
    [
        ({"alpha": "2.0"}, {"alpha": "2.0"}, 1),
        ({"alpha": "2.0"}, {"alpha": "3.0"}, 0),
        ({"alpha": "2.0"}, {"alpha": "?x"}, 1),
        ({"alpha": "(* 2.0 1.5)"}, {"alpha": "3.0"}, 1),  # computed: it may be
        ({"d_dtype": "(F16)"}, {"d_dtype": "(F32)"}, 0),
        ({"d_dtype": "?a_dtype"}, {}, 1),
        ({"lda": "(MNum 4)"}, {"lda": "(MMul (MNum 2) (MNum 2))"}, 1),  # spellings of one number
        ({"lda": "(MIter)"}, {"lda": "(MNum 1)"}, 1),
        ({"epilogue": '"BIAS"'}, {}, 0),
    ],
)
def test_only_what_may_be_the_op_is_put_in_its_place(
    made: dict[str, str], wanted: dict[str, str], count: int
) -> None:
    producer = maker(**{name: text.replace("?a_dtype", "(F32)") for name, text in made.items()})
    assert len(list(with_op(eater(**wanted), producer, VOCABULARY, "p0"))) == count


def test_every_op_of_a_left_side_has_its_turn() -> None:
    """A matmul under two casts beside another matmul: both can be the producer's."""
    one, other = (
        old_call({**WIDE, "alpha": alpha}, inputs(*names))
        for alpha, names in (("?x", ("?a", "?b")), ("?y", ("?c", "?d")))
    )
    pattern = f"""(= ?sum (Op (Add ?s ?t ?t ?t) {inputs(one, "?second")}))
      (= {other} ?second)
      (= (F32) (dtype {one}))"""
    consumer = first_rule(rule("c", pattern, "(union ?sum ?sum)"))
    made = list(with_op(consumer, maker(alpha="2.0"), VOCABULARY, "p0"))
    tied = [[line for line in body(item) if line.endswith(" 2.0)")] for item in made]
    assert tied == [["(= ?x 2.0)"], ["(= ?y 2.0)"], ["(= ?x 2.0)"]]
    for item in made:
        assert sum("cublaslt" in line for line in body(item)) == 3, "one of three is replaced"


def test_a_rule_after_itself_keeps_its_variables_apart() -> None:
    text = rule(
        "r", f"(= ?old {old_call(WIDE, '?list')})", f"(union ?old {old_call(WIDE, '?list')})"
    )
    known = first_rule(text)
    (made,) = with_op(known, known, VOCABULARY, "p0")
    own = {name for name, _ in known.variables}
    assert own.isdisjoint(name for name, _ in renamed(known, "p0").variables)
    assert len(made.variables) == 2 * len(known.variables)
    assert "(= ?list ?list~p0)" in body(made)


def test_actions_that_are_no_rows_are_no_rows() -> None:
    file = read(
        rule("r", "(= ?c (Op (Constant ?v) (INil)))", "(union ?c (Op (Constant ?v) (INil)))")
    )
    assert list(rows(file.rules[0])) == []
    assert not any(isinstance(action, Do) for action in file.rules[0].head)
