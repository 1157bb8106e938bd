"""Rules after their neighbours: what is blamed on the pair, what on one of them, what on nobody."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from rulecheck.campaign import pairs
from rulecheck.campaign.crew import merge
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.pairs import PairResult, judge_pairs
from rulecheck.campaign.rerun import replay
from rulecheck.campaign.workshop import Workshop
from rulecheck.records import Finding, RuleFile, Settings, Severity, Span, Verdict
from tests.luminal_rules import read
from tests.luminal_terms import VOCABULARY
from tests.rule_texts import COLUMN, ONE, dtypes, inputs, new_call, old_call, rule

# Few fields are free, so there are few cases.
SHAPE = {
    **COLUMN,
    **ONE,
    **dict.fromkeys(("a_layout", "b_layout"), '"N"'),
    **dict.fromkeys(("lda", "ldc", "ldd"), "?m"),
    "ldb": "?k",
    **dict.fromkeys(("compute_type", "scale_dtype"), '"default"'),
    "epilogue": '"DEFAULT"',
    "alpha": "1.0",
    "beta": "0.0",
}
F32 = {**SHAPE, **dtypes("F32")}
BF16 = {**SHAPE, **dtypes("Bf16")}
DENSE = "(ECons (MMul (MIter) ?m) (ECons (MIter) (ENil)))"
SUM = f"""(= ?sum (Op (Add ?shape ?s ?s ?s) {inputs("?mm", "?c")}))
  (= ?shape (ECons ?n (ECons ?m (ENil)))) (= ?s {DENSE})"""
DECLARED = "(relation no_c (IR))\n"

# Adds C to a matmul, and marks the result as one that reads no C: a lie that harms nobody alone.
ADD_C = rule(
    "add c",
    f"(= ?mm {old_call(F32, inputs('?a', '?b'))})\n  {SUM}\n  (= (F32) (dtype ?c))",
    f"(let ?new {new_call({**F32, 'beta': '1.0'}, inputs('?a', '?b', '?c'))})\n"
    "(union ?sum ?new) (no_c ?new)",
)
# Twice a product; forgets C, which is right where the row says that there is none.
DOUBLE = rule(
    "double",
    f"(= ?mm {old_call({**F32, 'beta': '?beta'}, '?in')}) (no_c ?mm)\n"
    f"  (= ?sum (Op (Add ?shape ?s ?s ?s) {inputs('?mm', '?mm')}))\n"
    f"  (= ?shape (ECons ?n (ECons ?m (ENil)))) (= ?s {DENSE})",
    f"(union ?sum {new_call({**F32, 'alpha': '2.0', 'beta': '?beta'}, '?in')})",
)
RIGHT = rule(
    "double all",
    f"(= ?mm {old_call({**F32, 'beta': '?beta'}, '?in')}) (no_c ?mm)\n"
    f"  (= ?sum (Op (Add ?shape ?s ?s ?s) {inputs('?mm', '?mm')}))\n"
    f"  (= ?shape (ECons ?n (ECons ?m (ENil)))) (= ?s {DENSE}) (= ?twice (* 2.0 ?beta))",
    f"(union ?sum {new_call({**F32, 'alpha': '2.0', 'beta': '?twice'}, '?in')})",
)


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with Workshop(Settings(paths=())) as running:
        yield running


def load(shop: Workshop, folder: Path, *texts: str) -> RuleFile:
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"{chr(ord('a') + number)}.egg"
        path.write_text(text, encoding="latin-1")
        paths.append(str(path))
    file = shop.load(paths[0], tuple(paths[1:]), whole=True)
    assert isinstance(file, RuleFile)
    assert file.problems == ()
    return file


def judge(
    shop: Workshop, file: RuleFile, name: str, wrong: frozenset[tuple[str, str]] = frozenset()
) -> PairResult:
    rules = (*file.rules, *file.neighbours)
    (index,) = [at for at, known in enumerate(rules) if known.name == name]
    others = tuple(str(path) for path in sorted(Path(file.path).parent.iterdir()))[1:]
    return judge_pairs(RuleRun(shop, file, index, others), wrong)


def test_what_two_rules_do_wrong_together_is_the_pairs(shop: Workshop, tmp_path: Path) -> None:
    file = load(shop, tmp_path, DECLARED + ADD_C + DOUBLE)
    result = judge(shop, file, "double")
    (finding,) = result.findings
    assert finding.verdict is Verdict.MISMATCH
    assert (finding.rule, finding.after) == ("double", "add c")
    assert finding.blame == ("add c", "double")
    assert finding.message.startswith(f"after add c ({file.path}:")
    assert result.tried >= 1
    assert result.cases >= 1
    assert result.whole is None, "a rule of which a pair is wrong has no verdict of its own"
    assert judge(shop, file, "add c").findings == []


def test_two_rules_that_are_right_together_are_a_verdict(shop: Workshop, tmp_path: Path) -> None:
    result = judge(shop, load(shop, tmp_path, DECLARED + ADD_C + RIGHT), "double all")
    assert result.findings == []
    assert result.whole is not None
    assert result.whole.verdict is Verdict.AGREES
    assert "by itself it never fires; it was applied after add c" in result.whole.notes


def test_rules_that_are_wrong_alone_are_no_neighbours(shop: Workshop, tmp_path: Path) -> None:
    file = load(shop, tmp_path, DECLARED + ADD_C + DOUBLE)
    result = judge(shop, file, "double", frozenset({(file.path, "add c")}))
    assert result == PairResult()
    other = judge(shop, file, "double", frozenset({("elsewhere.egg", "add c")}))
    assert len(other.findings) == 1


def test_what_a_producer_does_wrong_alone_is_not_the_pairs(shop: Workshop, tmp_path: Path) -> None:
    """Its own wrong numbers are told as its own, although its verdict was not known."""
    wrong = ADD_C.replace("1.0 ; new beta", "3.0 ; new beta")
    assert wrong != ADD_C
    (finding,) = judge(shop, load(shop, tmp_path, DECLARED + wrong + RIGHT), "double all").findings
    assert finding.blame == ("add c",)
    assert finding.hint.startswith("add c is wrong on this graph without the other rule")


def test_what_a_consumer_does_wrong_alone_is_not_the_pairs(shop: Workshop, tmp_path: Path) -> None:
    """It fires on a part of the producer's own left side, before that is applied."""
    halve = rule(
        "halve",
        f"(= ?mm {old_call({**F32, 'beta': '?beta'}, '?in')})",
        f"(union ?mm {new_call({**F32, 'alpha': '0.5', 'beta': '?beta'}, '?in')})",
    )
    result = judge(shop, load(shop, tmp_path, DECLARED + ADD_C + halve), "halve")
    assert [item.blame for item in result.findings] == [("halve",)]


CAST = rule(
    "write f32",
    f"(= ?mm {old_call(BF16, inputs('?a', '?b'))}) (plain ?mm)\n"
    f"  (= ?wide (Op (Cast ?size (F32)) {inputs('?mm')}))",
    "(union ?wide "
    + new_call({**BF16, "c_dtype": "(F32)", "d_dtype": "(F32)"}, inputs("?a", "?b"))
    + ")",
)
KNOW = rule(
    "no relu of what is one",
    f"(= ?mm {old_call(BF16, inputs('?a', '?b'))}) (= ?same (Op (Mul ?shape ?s ?none ?s) "
    f"{inputs('?mm', '?one')}))\n"
    f"  (= ?shape (ECons ?n (ECons ?m (ENil)))) (= ?s {DENSE}) (= ?none (ECons (MNum 0) "
    "(ECons (MNum 0) (ENil))))\n  (= ?one (Op (Cast (MNum 1) (Bf16)) (ICons ?number (INil))))\n"
    "  (= ?number (Op (Constant 1.0) (INil)))",
    f"(let ?new {new_call(BF16, inputs('?a', '?b'))}) (union ?same ?new) (plain ?new)",
)
PLAIN = "(relation plain (IR))\n"


def test_a_warning_of_a_rule_that_needs_another_can_be_replayed(
    shop: Workshop, tmp_path: Path
) -> None:
    result = judge(shop, load(shop, tmp_path, PLAIN + KNOW + CAST), "write f32")
    assert result.findings == []
    whole = result.whole
    assert whole is not None
    assert whole.verdict is Verdict.ROUNDING_ELIDED
    assert whole.counterexample is not None
    again = replay(whole.counterexample.token, Settings(paths=()))
    assert again.evidence.verdict is Verdict.ROUNDING_ELIDED
    assert again.case.rule == "write f32"


def test_a_pair_is_replayed_wherever_its_rules_and_relations_stand(
    shop: Workshop, tmp_path: Path
) -> None:
    """The relation in a file without rules, the second rule in a file before the first's."""
    file = load(shop, tmp_path, DOUBLE, ADD_C, DECLARED)
    (finding,) = judge(shop, file, "double").findings
    assert finding.counterexample is not None
    again = replay(finding.counterexample.token, Settings(paths=()))
    assert again.evidence.verdict is Verdict.MISMATCH
    assert again.evidence.message == finding.counterexample.evidence.message
    assert (again.original, again.member) == (
        finding.counterexample.original,
        finding.counterexample.member,
    )


FILES = {"declares": DECLARED, "first": ADD_C, "second": DOUBLE}


@pytest.mark.parametrize("order", [*itertools.permutations(FILES)], ids="-".join)
def test_files_are_one_program_in_any_order(
    shop: Workshop, tmp_path: Path, order: tuple[str, ...]
) -> None:
    """What declares is read first, wherever it stands."""
    file = load(shop, tmp_path, *(FILES[name] for name in order))
    assert {known.name for known in (*file.rules, *file.neighbours)} == {"add c", "double"}
    assert len(judge(shop, file, "double").findings) == 1


@pytest.mark.parametrize("flip", [False, True])
def test_one_of_two_files_may_declare_what_the_other_uses(
    shop: Workshop, tmp_path: Path, *, flip: bool
) -> None:
    texts = [DECLARED + ADD_C, DOUBLE]
    file = load(shop, tmp_path, *(texts[::-1] if flip else texts))
    assert len(judge(shop, file, "double").findings) == 1


def test_a_file_that_cannot_be_read_takes_no_other_with_it(shop: Workshop, tmp_path: Path) -> None:
    file = load(shop, tmp_path, DOUBLE, "(rule (", "\xff", DECLARED + ADD_C)
    assert len(judge(shop, file, "double").findings) == 1


# ---- which producers look alike ---------------------------------------------------------------


def looks(consumer: str, producer: str) -> list[tuple[object, ...]]:
    file = read(DECLARED + producer + consumer)
    first, second = file.rules
    return list(pairs._looks(second, first, VOCABULARY))


def test_fields_that_are_only_copied_do_not_make_a_producer_new() -> None:
    consumer = rule("c", f"(= ?mm {old_call(dtypes('F32'), '?in')})", "(union ?mm ?mm)")
    assert len(set(looks(consumer, ADD_C))) == 1
    copied = ADD_C.replace("1.0 ; new alpha", "?alpha ; new alpha").replace(
        "(= ?mm", "(= ?alpha 3.0) (= ?mm", 1
    )
    assert looks(consumer, ADD_C) == looks(consumer, copied)


def test_fields_that_the_consumer_asks_for_do() -> None:
    consumer = rule(
        "c", f"(= ?mm {old_call({**dtypes('F32'), 'alpha': '1.0'}, '?in')})", "(union ?mm ?mm)"
    )
    doubled = ADD_C.replace("1.0 ; new alpha", "2.0 ; new alpha")
    assert looks(consumer, ADD_C) != looks(consumer, doubled)
    more = ADD_C.replace("?c (INil)))) ; new inputs", "?c (ICons ?c (INil))))) ; new inputs")
    assert more != ADD_C
    assert looks(consumer, ADD_C) != looks(consumer, more)


def test_a_row_beside_an_op_counts_a_row_alone_does_not() -> None:
    """Rows without ops are derived before, with every rule by itself."""
    alone = rule("facts", f"(= ?mm {old_call(F32, '?in')})", "(no_c ?mm)")
    assert looks(DOUBLE, alone) == []
    assert ("no_c", (("Op", None, None),)) not in looks(DOUBLE, ADD_C)
    assert any(look[0] == "no_c" for look in looks(DOUBLE, ADD_C))


def test_a_producer_that_cannot_meet_the_rule_does_not_stand_for_others(
    shop: Workshop, tmp_path: Path
) -> None:
    """Both write the same op; the first only where k is 1, which the second rule excludes."""
    never = ADD_C.replace('"add c"', '"add c, k of 1"').replace(
        "(= ?mm", "(= ?k (MNum 1)) (= ?mm", 1
    )
    other = DOUBLE.replace("(no_c ?mm)", "(no_c ?mm) (!= ?k (MNum 1))")
    (finding,) = judge(
        shop, load(shop, tmp_path, DECLARED + never + ADD_C + other), "double"
    ).findings
    assert finding.blame == ("add c", "double")


# ---- findings on rules and on pairs as one list ------------------------------------------------


def finding(rule_name: str, verdict: Verdict, level: Severity, code: str) -> Finding:
    span = Span("f.egg", 1, 1, 1, 1)
    return Finding(rule_name, "f.egg", span, verdict, level, code, "m", lints=())


NEVER = finding("r", Verdict.VACUOUS, Severity.INCONCLUSIVE, "RC402")
FINE = finding("r", Verdict.AGREES, Severity.OK, "RC000")
BAD = finding("r", Verdict.MISMATCH, Severity.ERROR, "RC301")


@pytest.mark.parametrize(
    ("own", "whole", "found", "merged"),
    [
        (NEVER, FINE, [], [FINE]),
        (NEVER, None, [], [NEVER]),
        (NEVER, None, [BAD], [NEVER, BAD]),
        (NEVER, BAD, [BAD], [NEVER, BAD]),
        (FINE, BAD, [BAD], [FINE, BAD]),  # the rule by itself is right
        (FINE, finding("r", Verdict.ROUNDING_ELIDED, Severity.WARNING, "RC303"), [], [FINE]),
    ],
)
def test_a_rule_that_never_fires_alone_has_the_verdict_of_its_pairs(
    own: Finding, whole: Finding | None, found: list[Finding], merged: list[Finding]
) -> None:
    assert merge([own], [PairResult(findings=found, whole=whole)]) == merged


def test_the_pairs_of_one_rule_say_nothing_of_another() -> None:
    other = finding("s", Verdict.VACUOUS, Severity.INCONCLUSIVE, "RC413")
    assert merge([NEVER, other], [PairResult(whole=FINE)]) == [FINE, other]
