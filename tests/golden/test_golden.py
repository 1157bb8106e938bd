"""What people and scripts see, byte for byte. `make golden` rewrites the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rulecheck import __version__
from rulecheck.records import Lint
from rulecheck.report import FORMATS, REPLAY_FORMATS, Style, render, render_replay
from tests import samples

FOLDER = Path(__file__).parent
LINT = Lint(
    code="RC501",
    message="C is copied as it is, but c_dtype changes from Bf16 to F32",
    hint="guard beta = 0.0 (then C is not read)",
    span=samples.FIELD_SPAN,
)
SUFFIXES = {"text": "txt", "concise": "txt", "json": "json"}


def redact(text: str, folder: Path) -> str:
    """Hide what differs from machine to machine and from release to release."""
    text = text.replace(str(folder), "<folder>")
    text = re.sub(rf"\b{re.escape(__version__)}\b", "<version>", text)
    return re.sub(r"\b\d+\.\d\d s\b|(?<=\"elapsed_s\": )[\d.]+", "<seconds>", text)


def compare(name: str, text: str, request: pytest.FixtureRequest, folder: Path) -> None:
    path = FOLDER / name
    shown = redact(text, folder)
    if request.config.getoption("--update-golden"):
        path.write_text(shown, encoding="utf-8")
    assert path.is_file(), f"{name} is missing: make golden"
    assert shown == path.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / samples.FILE).write_text(samples.SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("form", FORMATS)
def test_report(form: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    report = samples.report(
        samples.unreadable(),
        samples.misread(),
        samples.mismatch(),
        samples.elided(),
        samples.vacuous(),
        samples.finding(),
        samples.finding(rule="linted", lints=(LINT,)),
        tool=f"rulecheck {__version__}",
    )
    text = render(form, report, Style())
    compare(f"report-{form}.{SUFFIXES[form]}", text, request, tmp_path)


@pytest.mark.parametrize("form", REPLAY_FORMATS)
def test_replay(form: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    text = render_replay(form, samples.replay(), Style())
    compare(f"replay-{form}.{SUFFIXES[form]}", text, request, tmp_path)


def test_no_golden_file_is_left_over() -> None:
    expected = {f"report-{form}.{SUFFIXES[form]}" for form in FORMATS}
    expected |= {f"replay-{form}.{SUFFIXES[form]}" for form in REPLAY_FORMATS}
    assert {path.name for path in FOLDER.iterdir() if path.suffix in (".txt", ".json")} == expected


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"rulecheck {__version__}", "rulecheck <version>"),
        ("54 cases in 1.25 s", "54 cases in <seconds>"),
        ('"elapsed_s": 0.5,', '"elapsed_s": <seconds>,'),
        ("alpha 1.25, 13.1.0", "alpha 1.25, 13.1.0"),
    ],
)
def test_redaction_hides_what_varies_and_nothing_else(text: str, redacted: str) -> None:
    assert redact(text, Path("/nowhere")) == redacted
