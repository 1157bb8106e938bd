from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rulecheck import __version__
from rulecheck.cli import main
from rulecheck.errors import InternalError, UserError
from rulecheck.records import Replay, Report, Settings
from tests import samples

LIGHT = (["--version"], ["--help"], ["check", "--help"], ["explain", "RC201"], ["explain"])
HEAVY = ("egglog", "numpy", "ml_dtypes", "torch", "msgspec", "rich", "jinja2")


class Campaign(types.ModuleType):
    """A campaign that reports what the test wants, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__("rulecheck.campaign")
        self.report: Report | Callable[[], Report] = samples.report(samples.finding())
        self.replayed = samples.replay()
        self.probes: tuple[tuple[str, bool, str], ...] = (("engine canary", True, "fine"),)
        self.settings: list[Settings] = []
        self.subjects: list[str] = []

    def check(self, settings: Settings, progress: Callable[[str], None]) -> Report:
        self.settings.append(settings)
        progress("one \x1b[31mrule")
        return self.report if isinstance(self.report, Report) else self.report()

    def replay(self, subject: str, settings: Settings) -> Replay:
        self.settings.append(settings)
        self.subjects.append(subject)
        return self.replayed

    def probe(self) -> tuple[tuple[str, bool, str], ...]:
        return self.probes


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> Campaign:
    module = Campaign()
    monkeypatch.setitem(sys.modules, "rulecheck.campaign", module)
    return module


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a small project, away from the settings of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("RULECHECK_") or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "widen.egg").write_text(samples.SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": root, **(env or {})},
    )


@pytest.mark.parametrize("args", LIGHT, ids=" ".join)
def test_light_commands_load_nothing_heavy(args: list[str]) -> None:
    code = (
        "import sys; from rulecheck.cli import main; code = main(sys.argv[1:]);"
        f"loaded = [name for name in {HEAVY} if name in sys.modules];"
        "print(loaded, file=sys.stderr); sys.exit(code)"
    )
    ran = run_python("-c", code, *args)
    assert ran.returncode == 0
    assert ran.stdout
    assert ran.stderr == "[]\n"


@pytest.mark.parametrize("args", LIGHT[:2], ids=" ".join)
def test_light_commands_answer_soon(args: list[str]) -> None:
    """The bar is 0.2 s on a quiet machine; the best of five here leaves room for a busy one."""
    best_s = float("inf")
    for _ in range(5):
        start_s = time.perf_counter()
        assert run_python("-m", "rulecheck", *args).returncode == 0
        best_s = min(best_s, time.perf_counter() - start_s)
    assert best_s < 0.5


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rulecheck {__version__}\n"


def test_without_a_command_it_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_check_prints_results_to_stdout_only(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--no-cache"]) == 0
    out, err = capsys.readouterr()
    assert "ok  widen-deep  agrees  (54 cases, 1,234 elements" in out
    assert err == ""  # no terminal: no progress
    assert campaign.settings == [Settings(paths=("rules/widen.egg",))]


def test_answers_are_kept_unless_someone_says_no(
    campaign: Campaign, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["check"])
    main(["check", "--no-cache"])
    monkeypatch.setenv("RULECHECK_NO_CACHE", "1")
    main(["check"])
    folders = [settings.cache for settings in campaign.settings]
    assert folders == [str(project / ".rulecheck_cache"), "", ""]


def test_the_command_line_reaches_the_campaign(campaign: Campaign) -> None:
    line = "check rules/widen.egg --rule widen --dialect other --rounding strict --jobs 3"
    assert main([*line.split(), "--backend", "cpu"]) == 0
    settings = Settings(("rules/widen.egg",), "widen", "other", "cpu", strict_rounding=True, jobs=3)
    kept = str(Path.cwd() / ".rulecheck_cache")
    assert campaign.settings == [msgspec.structs.replace(settings, cache=kept)]


def test_a_backend_that_is_not_there_leads_to_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--backend", "cublaslt"]) == 2
    told = capsys.readouterr().err
    assert "'cublaslt' is not 'cpu'" in told
    assert "rulecheck doctor" in told


def test_options_may_stand_between_paths(campaign: Campaign, project: Path) -> None:
    (project / "b.egg").touch()
    assert main(["check", "b.egg", "--jobs", "2", "rules"]) == 0
    assert campaign.settings[0].paths == ("b.egg", "rules/widen.egg")


def test_command_line_over_environment_over_file(
    campaign: Campaign, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "rulecheck.toml").write_text("jobs = 2\nrounding = 'strict'\npaths = ['rules']\n")
    main(["check"])
    monkeypatch.setenv("RULECHECK_JOBS", "3")
    main(["check"])
    main(["check", "--jobs", "4", "--rounding", "lenient"])
    main(["check", "--isolated"])
    seen = [(settings.jobs, settings.strict_rounding) for settings in campaign.settings]
    assert seen == [(2, True), (3, True), (4, False), (3, False)]


def test_a_bad_environment_is_a_usage_error(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RULECHECK_JOBS", "many")
    assert main(["check"]) == 2
    assert "RULECHECK_JOBS" in capsys.readouterr().err
    assert campaign.settings == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["check", "--bogus"], "No such option"),
        (["chek"], "No such command"),
        (["check", "--jobs", "0"], "--jobs"),
        (["check", "--format", "xml"], "--format"),
        (["check", "nowhere.egg"], "no such file or folder"),
        (["check", "--config", "nowhere.toml"], "no such file"),
        (["check", "--config", "x", "--isolated"], "exclude each other"),
        (["check", "--output", "json"], "FORMAT=PATH"),
        (["check", "--output", "xml=report"], "FORMAT=PATH"),
        (["check", "--output", "json=no/such/report"], "folder that does not exist"),
        (["check", "--output", "json=rules"], "is a folder"),
        (["check", "--output", "json=r", "--output", "text=r"], "named twice"),
        (["explain", "RC999"], "neither a diagnostic code nor a verdict"),
        (["replay"], "TOKEN|FILE"),
    ],
)
def test_usage_errors(
    campaign: Campaign, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    assert main(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert campaign.settings == []


def test_no_path_and_no_default_folder_is_a_usage_error(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["check", "--isolated"]) == 2
    assert campaign.settings == []


RUNS = {
    "agrees": (samples.report(samples.finding()), 0),
    "warning": (samples.report(samples.elided(), samples.finding()), 0),
    "error": (samples.report(samples.misread(), samples.vacuous()), 1),
    "unreadable": (samples.report(samples.unreadable()), 1),
    "inconclusive": (samples.report(samples.vacuous(), samples.finding()), 4),
    "nothing": (samples.report(), 4),
}


@pytest.mark.parametrize("form", ["text", "concise", "json"])
@pytest.mark.parametrize("run", RUNS)
def test_the_format_never_changes_the_exit_code(campaign: Campaign, run: str, form: str) -> None:
    campaign.report, expected = RUNS[run]
    assert main(["check", "--format", form]) == expected
    assert main(["check", "--format", form, "-q", "--color", "always"]) == expected
    assert main(["check", "--format", form, "--exit-zero"]) == 0


def test_allow_empty(campaign: Campaign) -> None:
    campaign.report = samples.report()
    assert main(["check", "--allow-empty"]) == 0
    campaign.report = samples.report(samples.vacuous())
    assert main(["check", "--allow-empty"]) == 4


def test_one_run_writes_every_report(
    campaign: Campaign, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign.report = samples.report(samples.misread())
    line = "check --format concise --output json=a.json --output text=b.txt --color always"
    assert main(line.split()) == 1
    assert len(campaign.settings) == 1
    assert json.loads((project / "a.json").read_text())["summary"]["errors"] == 1
    text = (project / "b.txt").read_text(encoding="utf-8")
    assert "replay: rulecheck replay" in text
    assert "\x1b" not in text
    assert "misread[RC201]" in capsys.readouterr().out


def test_the_report_holds_the_command_line(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign.report = samples.report(samples.finding(), argv=())
    main(["check", "rules", "--format", "json"])
    argv = json.loads(capsys.readouterr().out)["argv"]
    assert argv == ["rulecheck", "check", "rules", "--format", "json"]


def test_a_report_that_cannot_be_written_is_exit_2(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--output", "json=/dev/full"]) == 2
    assert "/dev/full: No space left" in capsys.readouterr().err
    assert len(campaign.settings) == 1


def test_quiet_says_nothing_if_all_is_fine(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert campaign.settings


def test_replay(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "rc1.abc"]) == 1
    assert campaign.subjects == ["rc1.abc"]
    assert "graph as written" in capsys.readouterr().out
    assert main(["replay", "case.json", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["case"]["rule"] == "widen"


def test_explain_lists_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    listed = capsys.readouterr().out
    assert "RC201  " in listed
    assert main(["explain", "--all"]) == 0
    assert capsys.readouterr().out.count("Why it matters:") == len(listed.splitlines())
    assert main(["explain", "rc201"]) == 0
    assert capsys.readouterr().out.startswith("RC201: ")


def test_doctor(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "engine canary" in capsys.readouterr().out
    campaign.probes = (("engine canary", False, "false match"),)
    assert main(["doctor"]) == 4


def raising(error: BaseException) -> Callable[[], Report]:
    def fail() -> Report:
        raise error

    return fail


def test_a_user_error_is_one_message(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign.report = raising(UserError("no rule is called x", "did you mean y?"))
    assert main(["check"]) == 2
    expected = "rulecheck: error: no rule is called x\n  hint: did you mean y?\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize("error", [InternalError("broken"), ValueError("broken"), RecursionError()])
def test_anything_else_is_our_bug_without_a_traceback(
    campaign: Campaign, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    campaign.report = raising(error)
    assert main(["check"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert f"internal error: {type(error).__name__}: {error}" in err
    assert "rulecheck/cli.py:" in err
    assert "rulecheck doctor" in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(
    campaign: Campaign, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULECHECK_DEBUG", "1")
    campaign.report = raising(ValueError("broken"))
    assert main(["check"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_an_agreement_without_comparison_is_never_success(campaign: Campaign) -> None:
    campaign.report = samples.report(samples.finding(compared=0))
    assert main(["check"]) == 3


def test_help_whose_reader_has_gone_is_no_finding() -> None:
    code = (
        "import os, sys; from rulecheck.cli import main;"
        "read, write = os.pipe(); os.close(read); os.dup2(write, 1); sys.exit(main(['--help']))"
    )
    ran = run_python("-c", code)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_full_disk_is_no_bug_of_ours() -> None:
    code = (
        "import os, sys; from rulecheck.cli import main;"
        "os.dup2(os.open('/dev/full', os.O_WRONLY), 1); sys.exit(main(['--version']))"
    )
    ran = run_python("-c", code)
    assert ran.returncode == 2
    assert ran.stderr.startswith("rulecheck: error: standard output: No space left on device\n")
    assert "Exception ignored" not in ran.stderr


def test_a_broken_pipe_elsewhere_is_our_bug(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign.report = raising(BrokenPipeError(32, "Broken pipe"))
    assert main(["check"]) == 3
    assert "BrokenPipeError" in capsys.readouterr().err


def test_shells_get_completions() -> None:
    code = "from rulecheck.cli import main; main([])"
    ran = run_python("-c", code, env={"_RULECHECK_COMPLETE": "bash_source"})
    assert ran.returncode == 0
    assert "_RULECHECK_COMPLETE=bash_complete" in ran.stdout


def test_interrupted(campaign: Campaign, capsys: pytest.CaptureFixture[str]) -> None:
    campaign.report = raising(KeyboardInterrupt())
    assert main(["check"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert "interrupted" in err
