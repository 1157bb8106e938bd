"""All lints over all rules: silent on the right ones, and on record for the wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from rulecheck.campaign import check
from rulecheck.lint import lint
from rulecheck.records import Settings, Severity, Verdict
from rulecheck.report import Style, render
from rulecheck.severity import exit_code
from tests.linting import load
from tests.luminal_terms import VOCABULARY

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
RIGHT = sorted([*(ROOT / "rules").glob("*.egg"), *(CORPUS / "agrees").glob("*.egg")])

# Hits on right rules, each with the reason why it is one all the same.
ALLOWED = {
    # With alpha = 0 and beta = 1 the call copies C, however many columns that has.
    ("alpha_zero_leaves_c.egg", "RC502"),
    # A call on 8-bit operands computes in F32, by whatever name its compute type goes.
    ("fp8_call_as_product_of_casts_after.egg", "RC502"),
}
# What the lints find in the corpus of wrong rules; one line a file that they are there for.
EXPECTED = {
    "misread/cast_over_any_beta.egg": "RC501",
    "misread/cast_over_any_epilogue.egg": "RC501",
    "misread/operand_of_another_16_bit_type.egg": "RC501",
    "misread/residual_of_free_strides.egg": "RC502",
    "misread/batched_result_on_one_place.egg": "RC502",
    "mismatch/product_of_free_strides_before.egg": "RC502",
    "mismatch/result_of_free_strides.egg": "RC502",
    "mismatch/alpha_lost_in_bias.egg": "RC502",
    "misread/result_of_another_type.egg": "RC504",
    "misread/wrong_claim.egg": "RC504",
}


def hits(path: Path) -> list[tuple[str, str, str]]:
    """File, rule and code of each lint."""
    file = load(path.read_bytes(), path)
    assert file.rules
    return [
        (path.name, rule.name, item.code)
        for rule in file.rules
        for item in lint(rule, file, VOCABULARY)
    ]


def test_the_right_rules_are_found() -> None:
    assert len(RIGHT) > 25


def test_right_rules_have_no_lint_but_those_with_a_reason() -> None:
    found = {(name, code) for path in RIGHT for name, _, code in hits(path)}
    assert found == ALLOWED


@pytest.mark.parametrize("name", EXPECTED)
def test_wrong_rules_that_show_it_in_their_text(name: str) -> None:
    found = hits(CORPUS / name)
    assert {code for _, _, code in found} == {EXPECTED[name]}
    names = re.findall(r':name "([^"]+)"', (CORPUS / name).read_text("utf-8"))
    assert {rule for _, rule, _ in found} == set(names)


def test_the_founding_bug() -> None:
    assert [code for _, _, code in hits(ROOT / "docs" / "founding_bug.egg")] == ["RC501"]


def test_lints_stand_in_the_order_of_the_text() -> None:
    path = CORPUS / "misread" / "cast_over_any_beta.egg"
    file = load(path.read_bytes(), path)
    for rule in file.rules:
        spans = [item.span for item in lint(rule, file, VOCABULARY)]
        assert len(spans) == 2
        assert spans == sorted(spans)


@pytest.mark.parametrize(
    ("path", "verdict", "severity", "code"),
    [
        (ROOT / "docs" / "founding_bug.egg", Verdict.MISREAD, Severity.ERROR, "RC501"),
        (CORPUS / "agrees" / "alpha_zero_leaves_c.egg", Verdict.AGREES, Severity.OK, "RC502"),
    ],
)
def test_a_run_reports_lints_beside_the_verdict(
    path: Path, verdict: Verdict, severity: Severity, code: str
) -> None:
    report = check(Settings(paths=(str(path),), jobs=1), lambda _line: None)
    (found,) = report.findings
    assert (found.verdict, found.severity) == (verdict, severity)
    assert [item.code for item in found.lints] == [code]
    assert found.lints[0].span.file == str(path)
    silent = msgspec.structs.replace(found, lints=())
    without = msgspec.structs.replace(report, findings=(silent,))
    assert exit_code(report) is exit_code(without)
    assert f"lint {code} at " in render("text", report, Style())
