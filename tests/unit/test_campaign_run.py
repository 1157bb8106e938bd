"""A run over files: broken ones, missing ones, one rule of many; and the pieces of findings."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

import pytest

from rulecheck import campaign
from rulecheck.campaign.crew import usable_cores
from rulecheck.campaign.findings import problem_finding, problem_findings
from rulecheck.campaign.run import environment
from rulecheck.campaign.workshop import Workshop, supported_types
from rulecheck.errors import UserError
from rulecheck.explain import ENTRIES
from rulecheck.records import (
    DType,
    Failure,
    FailureKind,
    Problem,
    RuleFile,
    Settings,
    Span,
    Verdict,
)
from tests.rule_texts import LAYOUT, SCALE

PLACE = Span("a.egg", 3, 5, 3, 9)


def problem(kind: str, message: str = "wrong", rule: str | None = "r") -> Problem:
    return Problem(kind, message, "repair it", PLACE, rule)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("syntax", "RC101"),
        ("encoding", "RC102"),
        ("too-large", "RC103"),
        ("too-deep", "RC103"),
        ("refused", "RC104"),
        ("unknown-sort", "RC105"),
        ("arity", "RC106"),
        ("type", "RC107"),
        ("duplicate", "RC108"),
        ("engine", "RC109"),
        ("field", "RC111"),
        ("something new", "RC110"),
    ],
)
def test_problems_are_invalid_and_have_codes(kind: str, code: str) -> None:
    finding = problem_finding("a.egg", [problem(kind)], strict=False)
    assert (finding.verdict, finding.code) == (Verdict.INVALID, code)
    assert (finding.span, finding.hint, finding.rule) == (PLACE, "repair it", "r")
    assert code in ENTRIES


def test_an_unknown_name_in_a_rule_is_unsupported_and_elsewhere_invalid() -> None:
    inside = problem_finding("a.egg", [problem("unknown-name")], strict=False)
    assert (inside.verdict, inside.code) == (Verdict.UNSUPPORTED, "RC411")
    outside = problem_finding("a.egg", [problem("unknown-name", rule=None)], strict=False)
    assert outside.verdict is Verdict.INVALID


def test_a_fault_outweighs_an_unknown_name() -> None:
    both = [problem("unknown-name", "no Silu"), problem("arity", "two, not three")]
    finding = problem_finding("a.egg", both, strict=False)
    assert (finding.verdict, finding.message) == (Verdict.INVALID, "two, not three")
    assert finding.notes == ("also at 3:5: no Silu",)


def test_a_rule_has_one_finding_and_faults_of_the_file_one_each() -> None:
    problems = (
        problem("type", "first"),
        problem("type", "second"),
        problem("type", "second"),
        problem("syntax", "file one", None),
        problem("syntax", "file two", None),
    )
    file = RuleFile("a.egg", (), (), (), (), problems, "0")
    findings = problem_findings(file, strict=False)
    assert [item.message for item in findings] == ["first", "file one", "file two"]
    assert findings[0].notes == ("also at 3:5: second",)


def quiet(_text: str) -> None:
    """No progress."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    good, bad = tmp_path / "good.egg", tmp_path / "bad.egg"
    good.write_text(LAYOUT + SCALE, encoding="utf-8")
    bad.write_text("(rule", encoding="utf-8")
    return str(good), str(bad)


def test_a_broken_file_leaves_the_others_judged_in_order(files: tuple[str, str]) -> None:
    for paths in (files, files[::-1]):
        report = campaign.check(Settings(paths=paths), quiet)
        assert [item.file for item in report.findings] == (
            [files[0], files[0], files[1]] if paths == files else [files[1], files[0], files[0]]
        )
        assert [item.rule for item in report.findings if item.rule] == ["layout", "scale"]
        assert report.files == 2


def test_the_report_does_not_depend_on_the_number_of_jobs(files: tuple[str, str]) -> None:
    one, two = (
        campaign.check(Settings(paths=files[:1], jobs=jobs), quiet).findings for jobs in (1, 2)
    )
    assert one == two


def test_one_rule_can_be_asked_for(files: tuple[str, str]) -> None:
    seen: list[str] = []
    report = campaign.check(Settings(paths=files, rule="scale"), seen.append)
    assert [item.rule for item in report.findings] == ["scale"]
    assert any("scale" in text for text in seen)
    with pytest.raises(UserError, match="no rule is called 'nothing'"):
        campaign.check(Settings(paths=files, rule="nothing"), quiet)


def test_a_missing_file_is_a_finding_of_its_own(files: tuple[str, str]) -> None:
    gone = files[0] + ".gone"
    report = campaign.check(Settings(paths=(gone,)), quiet)
    (finding,) = report.findings
    assert (finding.verdict, finding.code, finding.file) == (Verdict.INVALID, "RC102", gone)
    assert "cannot be read" in finding.message


def test_a_file_that_the_engine_dies_of_is_invalid_or_times_out(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, verdict in (
        (FailureKind.CRASH, Verdict.INVALID),
        (FailureKind.TIMEOUT, Verdict.TIMEOUT),
    ):
        monkeypatch.setattr(Workshop, "load", lambda _shop, _path, k=kind: Failure(k, "gone"))
        (finding,) = campaign.check(Settings(paths=files[:1]), quiet).findings
        assert finding.verdict is verdict
        assert "did not survive reading the file: gone" in finding.message


def test_a_file_that_is_lost_between_reading_and_judging_is_told(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, reads = Workshop.load, []

    def load(shop: Workshop, path: str, context: tuple[str, ...] = ()) -> RuleFile | Failure:
        reads.append(path)
        gone = Failure(FailureKind.CRASH, "gone")
        return original(shop, path, context) if len(reads) == 1 else gone

    monkeypatch.setattr(Workshop, "load", load)
    findings = campaign.check(Settings(paths=files[:1], jobs=1), quiet).findings
    assert {item.code for item in findings} == {"RC109"}


def test_an_interruption_ends_the_run_at_once(files: tuple[str, str]) -> None:
    def interrupt(text: str) -> None:
        if "layout" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign.check(Settings(paths=files[:1], jobs=2), interrupt)


def test_cores_are_counted_where_the_system_knows_no_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


def test_a_package_that_is_missing_is_told_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert dict(environment(Settings(paths=())))["egglog"] == "not installed"


def test_the_environment_names_what_a_result_depends_on() -> None:
    found = dict(environment(Settings(paths=())))
    assert {"python", "platform", "egglog", "numpy", "ml_dtypes", "dialect", "backend"} == set(
        found
    )
    assert usable_cores() >= 1


def test_types_come_from_the_table_uniform_ones_first() -> None:
    types = supported_types()
    uniform = [len({item.a, item.b, item.c, item.d}) == 1 for item in types]
    assert uniform == sorted(uniform, reverse=True)
    assert types[0].d is DType.F32
    assert len({(item.a, item.b, item.c, item.d) for item in types}) == len(types)
    assert all(item.compute for item in types)
