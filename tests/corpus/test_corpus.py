"""Every corpus file and every shipped rule has the verdict that its header states.

One test a rule, named ``folder/file.egg::rule``. The folder's name is the verdict.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from rulecheck.campaign import check
from rulecheck.records import Finding, Settings, Severity, Verdict
from rulecheck.severity import ExitCode, exit_code

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
SHIPPED = ROOT / "rules"
EXAMPLES = [ROOT / "docs" / f"{name}.egg" for name in ("mixed_dtype", "mixed_dtype_residual")]
MAX_LINES = 60
KEYS = {"EXPECT", "MESSAGE", "REQUIRES", "ARGS", "XFAIL"}
STRICT = {"": False, "--rounding lenient": False, "--rounding strict": True}


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.egg"))


@functools.cache
def directives(path: Path) -> dict[str, str]:
    pairs = re.findall(r"^; RULECHECK-([A-Z]+): *(.*)$", path.read_text("utf-8"), re.MULTILINE)
    assert len(dict(pairs)) == len(pairs), f"{path}: a directive stands twice"
    return dict(pairs)


@functools.cache
def findings(path: Path) -> tuple[Finding, ...]:
    strict = STRICT[directives(path).get("ARGS", "")]
    settings = Settings(paths=(str(path),), strict_rounding=strict, jobs=1)
    return check(settings, lambda _line: None).findings


def rules(path: Path) -> list[str | None]:
    """Names of a file's rules; one entry without a name for a file that cannot be read."""
    if path.parent.name == "invalid":
        return [None]
    return list(re.findall(r':name "([^"]+)"', path.read_text("utf-8")))


def cases() -> list[tuple[Path, str | None]]:
    paths = files(CORPUS) + files(SHIPPED) + EXAMPLES
    return [(path, rule) for path in paths for rule in rules(path)]


def name(case: tuple[Path, str | None]) -> str:
    path, rule = case
    return f"{path.parent.name}/{path.name}::{rule or '(file)'}"


@pytest.mark.parametrize("case", cases(), ids=name)
def test_verdict(case: tuple[Path, str | None], request: pytest.FixtureRequest) -> None:
    path, rule = case
    told = directives(path)
    if "XFAIL" in told:  # a known defect of the tool; strict, so mending it must drop the line
        request.applymarker(pytest.mark.xfail(reason=told["XFAIL"]))
    if told.get("REQUIRES") == "gpu":
        request.applymarker(pytest.mark.gpu)
    found = [item for item in findings(path) if item.rule == rule]
    if rule is None:  # the file's own fault; rules that it does not touch are judged as ever
        found = [item for item in findings(path) if item.verdict is Verdict.INVALID]
    assert found, "nothing was said of the rule"
    assert {item.verdict.value for item in found} == {told["EXPECT"]}
    for item in found:
        assert item.file == str(path)
        assert item.span.line >= 1
        if item.severity in {Severity.OK, Severity.WARNING}:
            assert item.fired >= 20
            assert item.compared > 0
        elif item.severity is Severity.ERROR:
            assert item.hint, "an error says what to do"
        if item.verdict in {Verdict.MISREAD, Verdict.MISMATCH, Verdict.ILLEGAL}:
            assert item.counterexample is not None
            assert item.field_span is not None
    if "MESSAGE" in told:
        said = [" ".join((item.message, item.hint, *item.notes)) for item in found]
        some = any if rule is None else all
        assert some(told["MESSAGE"] in text for text in said), said


@pytest.mark.parametrize("path", files(CORPUS), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_header(path: Path) -> None:
    told = directives(path)
    assert set(told) <= KEYS
    assert told["EXPECT"] in {verdict.value for verdict in Verdict}
    assert path.parent.name in {told["EXPECT"], "regressions"}
    assert len(path.read_text("utf-8").splitlines()) <= MAX_LINES, "one idea a file"


def test_a_third_of_the_corpus_is_negative() -> None:
    fine = {"agrees", "rounding-elided", "near-tie"}
    negative = [path for path in files(CORPUS) if directives(path)["EXPECT"] not in fine]
    assert 3 * len(negative) >= len(files(CORPUS))


@pytest.mark.timeout(300)
def test_every_shipped_rule_passes_by_itself_and_with_the_others() -> None:
    paths = tuple(str(path) for path in files(SHIPPED))
    report = check(Settings(paths=paths), lambda _line: None)
    assert len(report.findings) == sum(len(rules(path)) for path in files(SHIPPED))
    assert {item.verdict for item in report.findings} == {Verdict.AGREES}
    assert report.pairs.tried > 100
    assert report.pairs.wrong == 0


@pytest.mark.timeout(300)
def test_a_rounding_skipped_by_one_rule_is_added_by_another() -> None:
    paths = (str(EXAMPLES[0]), str(SHIPPED / "narrow_result.egg"))
    report = check(Settings(paths=paths), lambda _line: None)
    found = [item for item in report.findings if item.after is not None]
    assert {item.verdict for item in found} == {Verdict.ROUNDING_ADDED}
    assert {item.after for item in found} == {"narrow result: matmul"}
    assert exit_code(report) is ExitCode.ERROR


def test_strict_rounding_turns_the_warning_into_an_error() -> None:
    path = CORPUS / "rounding-elided" / "cast_over_plain_matmul.egg"
    lenient = check(Settings(paths=(str(path),)), lambda _line: None)
    strict = check(Settings(paths=(str(path),), strict_rounding=True), lambda _line: None)
    assert exit_code(lenient) is ExitCode.OK
    assert exit_code(strict) is ExitCode.ERROR
