"""Cases become one finding: what decides, what is said, and what is only noted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from rulecheck.campaign.findings import judge_rule
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.workshop import Workshop
from rulecheck.explain import ENTRIES
from rulecheck.records import Settings, Severity, Verdict
from tests.rule_bench import Bench
from tests.rule_texts import RESIDUAL, fields, rename, swap

CASTS = "(= ?x (Op (Cast ?n ?t) (ICons ?y (INil))))"
RULES = {
    "agrees": RESIDUAL,
    "doubles": fields(beta="2.0")(RESIDUAL),
    "two unions": swap(("(union ?sum (Op", "(union ?sum ?sum) (union ?sum (Op"))(RESIDUAL),
    "either side": swap(
        ("(union ?sum (Op", "(let ?new (Op"),
        (" ; new inputs\n  ))", " ; new inputs\n  )) (union ?new ?sum)"),
    )(RESIDUAL),
    "partly wrong": swap(('"DEFAULT"', "?epilogue"))(RESIDUAL),
    "undoes itself": f"""(rule ({CASTS} (= ?t (F32)) (= ?t (dtype ?y)))
        ((union ?x ?y)) :ruleset matmul_backend :name "undoes itself")""",
    "facts only": f'(rule ({CASTS}) ((set (dtype ?x) ?t)) :ruleset matmul_backend :name "f")',
    "row without meaning": f"""(relation marked (IR))
      (rule ({CASTS}) ((marked ?x)) :ruleset matmul_backend :name "m")""",
    "false row": f"""(rule ({CASTS}) ((cublaslt_stride_coefficient ?n 7))
        :ruleset matmul_backend :name "f")""",
    "false type": f'(rule ({CASTS}) ((set (dtype ?y) ?t)) :ruleset matmul_backend :name "f")',
    "idle": f'(rule ({CASTS}) ((union ?x ?x)) :ruleset matmul_backend :name "i")',
    "no graphs": f'(rule ({CASTS}) ((union ?n (MAdd ?n (MNum 0)))) :ruleset expr :name "n")',
    "contradiction": f"""(rule ({CASTS} (= ?t (F32)) (= ?t (F16)))
        ((union ?x ?y)) :ruleset matmul_backend :name "c")""",
    "guarded away": """(rule ((= ?x (Op (Constant ?v) ?i)) (> ?v 2.0) (< ?v 1.0))
        ((union ?x (Op (Constant 3.0) ?i))) :ruleset matmul_backend :name "g")""",
    "impossible guard": """(rule ((= ?x (Op (Constant ?v) ?i)) (= ?one 1.0) (> ?one 2.0))
        ((union ?x (Op (Constant 3.0) ?i))) :ruleset matmul_backend :name "p")""",
    "ill-typed": """(rule ((= ?x (Op (Add ?s ?a ?b ?o) (ICons ?y (ICons ?z (INil)))))
         (= (F32) (dtype ?y)) (= (Bf16) (dtype ?z)))
        ((union ?x ?y)) :ruleset matmul_backend :name "t")""",
    "underived": f"""(relation blessed (IR))
      (rule ({CASTS} (blessed ?y)) ((union ?x ?y)) :ruleset matmul_backend :name "u")""",
    "no op": '(rule ((= ?e (MAdd ?a ?b))) ((union ?e ?a)) :ruleset expr :name "o")',
    "new op": """(constructor Silu (EList) OpKind)
      (rule ((= ?x (Op (Silu ?s) (ICons ?y (INil))))) ((union ?x ?y))
        :ruleset matmul_backend :name "s")""",
    "new op on the right": f"""(constructor Swish (EList) OpKind)
      (rule ({CASTS} (= ?t (F32)))
        ((union ?x (Op (Swish (ENil)) (ICons ?y (INil))))) :ruleset matmul_backend :name "w")""",
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Workshop(Settings(paths=())) as shop:
        yield Bench(shop, tmp_path_factory.mktemp("findings"), RULES)


EXPECTED = {
    "agrees": (Verdict.AGREES, "RC000", ""),
    "doubles": (Verdict.MISMATCH, "RC301", "even without any rounding"),
    "two unions": (Verdict.AGREES, "RC000", ""),
    "either side": (Verdict.AGREES, "RC000", ""),
    "partly wrong": (Verdict.MISMATCH, "RC301", ""),
    "undoes itself": (Verdict.AGREES, "RC000", ""),
    "facts only": (Verdict.AGREES, "RC000", ""),
    "row without meaning": (Verdict.UNSUPPORTED, "RC404", "claims nothing"),
    "false row": (Verdict.MISMATCH, "RC306", "a false row of cublaslt_stride_coefficient"),
    "false type": (Verdict.MISREAD, "RC304", "the rule says that the buffer is"),
    "idle": (Verdict.VACUOUS, "RC305", "only ever unites a term with itself"),
    "no graphs": (Verdict.AGREES, "RC000", ""),
    "contradiction": (Verdict.VACUOUS, "RC401", "(F32 …) = (F16 …)"),
    "impossible guard": (Verdict.VACUOUS, "RC401", "the guard (> ?one 2.0)"),
    "guarded away": (Verdict.VACUOUS, "RC401", "the guard (> ?v 2.0) excludes every value"),
    "ill-typed": (Verdict.VACUOUS, "RC403", "an input of Add would be Bf16 and F32"),
    "underived": (Verdict.UNSUPPORTED, "RC413", "makes blessed hold"),
    "no op": (Verdict.MISMATCH, "RC301", "the expressions differ"),
    "new op": (Verdict.UNSUPPORTED, "RC411", "the op Silu has no role"),
    "new op on the right": (Verdict.UNSUPPORTED, "RC411", "the op Swish is not in the dialect"),
}


@pytest.mark.parametrize("name", RULES)
def test_each_outcome_has_a_verdict_a_code_and_a_reason(bench: Bench, name: str) -> None:
    finding = bench.judge(name)
    verdict, code, words = EXPECTED[name]
    assert (finding.verdict, finding.code) == (verdict, code), finding.message
    assert words in finding.message
    assert finding.code == "RC000" or finding.code in ENTRIES
    assert finding.rule == name
    assert finding.hint or finding.severity is Severity.OK


@pytest.mark.parametrize("name", RULES)
def test_nothing_passes_without_a_comparison(bench: Bench, name: str) -> None:
    finding = bench.judge(name)
    if finding.severity in (Severity.OK, Severity.WARNING):
        assert finding.compared > 0
        assert finding.fired > 0
        # Facts and sizes are exact: nothing about them would go unseen.
        assert finding.detectable is not None or name in ("facts only", "no graphs")
    if finding.cases == 0:
        assert finding.severity is Severity.INCONCLUSIVE


def test_an_agreeing_rule_says_how_much_was_tried(bench: Bench) -> None:
    finding = bench.judge("agrees")
    assert dict(finding.verdicts) == {"agrees": finding.cases}
    assert finding.counterexample is None
    assert finding.field_span is None
    tried = dict(finding.tried)
    assert tried["cublaslt.alpha"] == ("1", "1/64", "-1", "0", "1/3", "2")
    assert any("possible pairs of choices were judged" in note for note in finding.notes)
    assert 0 < (finding.error_over_bound or 0) <= 1


def test_the_simplest_failing_case_is_the_counterexample(bench: Bench) -> None:
    found = bench.judge("doubles").counterexample
    assert found is not None
    assert found.case.choices == ()
    assert found.evidence.worst is not None
    assert found.evidence.compared == 2 * 35
    assert found.evidence.member_call is not None
    assert found.evidence.member_call.beta == 2.0
    assert found.evidence.original_call is not None
    assert found.evidence.original_call.beta == 0.0
    assert found.original.startswith("(Op (Add")
    assert found.member.startswith("(Op (cublaslt")


def test_a_missing_guard_is_learned_from_the_cases(bench: Bench) -> None:
    finding = bench.judge("partly wrong")
    assert finding.guard == ('(= ?epilogue "DEFAULT")',)
    assert "no case fails" not in finding.hint  # which would say it again
    assert len(dict(finding.verdicts)) == 2


def test_a_union_is_judged_whatever_side_is_new(bench: Bench) -> None:
    agrees, other = bench.judge("agrees"), bench.judge("either side")
    assert (agrees.cases, agrees.compared) == (other.cases, other.compared)


def test_unions_of_a_term_with_itself_are_passed_over(bench: Bench) -> None:
    both, one = bench.judge("two unions"), bench.judge("agrees")
    assert both.cases == one.cases


def test_a_member_inside_its_own_graph_is_noted(bench: Bench) -> None:
    notes = bench.judge("undoes itself").notes
    assert any("RC305" in note and "contains itself" in note for note in notes)


def test_strict_rounding_makes_a_warning_an_error(bench: Bench) -> None:
    run = bench.run("agrees")
    elided = rename(swap(("(F32)", "(Bf16)"))(RESIDUAL), "16 bits")
    run = RuleRun(bench.shop, bench.load("16 bits", elided), 0)
    lenient = judge_rule(run)
    assert (lenient.verdict, lenient.severity) == (Verdict.ROUNDING_ELIDED, Severity.WARNING)
    assert lenient.blame == ()
    settings = bench.shop.settings
    bench.shop.settings = replace(settings, strict_rounding=True)
    try:
        strict = judge_rule(RuleRun(bench.shop, run.file, 0))
    finally:
        bench.shop.settings = settings
    assert (strict.verdict, strict.severity) == (Verdict.ROUNDING_ELIDED, Severity.ERROR)
    assert strict.blame == ("16 bits",)
