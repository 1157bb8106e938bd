"""Runs that find the answers of earlier ones, and answers that are told not to be kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from rulecheck import __version__, campaign
from rulecheck.campaign.bench import LocalBench, PairTask, RemoteBench, RuleTask, Task, WatchedShop
from rulecheck.campaign.crew import Crew
from rulecheck.campaign.workshop import Workshop
from rulecheck.records import Failure, FailureKind, MatchReply, Report, Settings, Verdict
from tests.rule_texts import LAYOUT, SCALE, fields


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "rules.egg"
    file.write_text(LAYOUT + SCALE, encoding="utf-8")
    return str(file)


def tasks(path: str) -> tuple[Task, Task]:
    return RuleTask(path, 1, "scale", ()), PairTask((path,), path, "scale", ())


@pytest.mark.parametrize("which", [0, 1], ids=["rule", "pairs"])
@pytest.mark.parametrize("trouble", ["load", "engine", "engine error", "numerics", "slow"])
def test_an_answer_on_whose_way_something_failed_is_not_complete(
    path: str, monkeypatch: pytest.MonkeyPatch, which: int, trouble: str
) -> None:
    task = tasks(path)[which]
    gone = Failure(FailureKind.CRASH, "gone")
    with WatchedShop(Settings(paths=())) as shop:
        bench = LocalBench(shop)
        if trouble == "load":
            monkeypatch.setattr(Workshop, "load", lambda *_args, **_options: gone)
        elif trouble == "engine":
            monkeypatch.setattr(shop.engine, "match", lambda *_args: gone)
        elif trouble == "engine error":
            match = shop.engine.match
            monkeypatch.setattr(shop.engine, "match", lambda *args: erring(match(*args)))
        elif trouble == "numerics":
            monkeypatch.setattr(Workshop, "_ask", lambda *_args: gone)
        else:
            monkeypatch.setattr("rulecheck.campaign.bench.ENGINE_BUDGET_S", 0.0)
        assert not bench.judge(task).complete
        monkeypatch.undo()
        assert bench.judge(task).complete  # the next one is none the worse for it


def erring(reply: MatchReply | Failure) -> MatchReply | Failure:
    return replace(reply, error="limit: more than 10 s") if isinstance(reply, MatchReply) else reply


def test_what_a_backend_cannot_do_lasts(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    never = Failure(FailureKind.UNSUPPORTED, "no such type")
    monkeypatch.setattr(Workshop, "judge", lambda _shop, items, *_args, **_o: [never] * len(items))
    with WatchedShop(Settings(paths=())) as shop:
        assert LocalBench(shop).judge(tasks(path)[0]).complete


def test_a_process_that_died_leaves_nothing_to_keep(path: str) -> None:
    for task in tasks(path):
        remote = RemoteBench(Settings(paths=()), {})
        answer = remote._trouble(task, Failure(FailureKind.TIMEOUT, "gone"))
        assert not answer.complete


def check(tmp_path: Path, *paths: str, jobs: int = 1) -> Report:
    settings = Settings(paths, jobs=jobs, cache=str(tmp_path / ".rulecheck_cache"))
    return campaign.check(settings, lambda _text: None)


def told(report: Report) -> Report:
    return replace(report, elapsed_s=0.0, cached=0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_second_run_judges_nothing_and_says_the_same(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    first = check(tmp_path, path, jobs=jobs)
    assert (first.cached, first.pairs.tried > 0) == (0, True)
    monkeypatch.setattr(Crew, "_hire", None)
    second = check(tmp_path, path, jobs=jobs)
    assert second.cached == 4
    assert told(second) == told(first)


def test_only_what_has_changed_is_judged_again(tmp_path: Path, path: str) -> None:
    first = check(tmp_path, path)
    Path(path).write_text(LAYOUT + fields(alpha="2.0")(SCALE), encoding="utf-8")
    second = check(tmp_path, path)
    assert second.cached == 1
    assert second.findings[0] == first.findings[0]
    assert second.findings[1].verdict is Verdict.MISMATCH


def test_a_crash_is_judged_again(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Failure(FailureKind.CRASH, "gone")
    with monkeypatch.context() as broken:
        broken.setattr(Workshop, "_ask", lambda *_args: gone)
        assert {item.verdict for item in check(tmp_path, path).findings} == {Verdict.CRASH}
    report = check(tmp_path, path)
    assert report.cached == 0
    assert {item.verdict for item in report.findings} == {Verdict.AGREES}


def start(tmp_path: Path, *args: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    environment.pop("RULECHECK_NO_CACHE", None)
    command = [sys.executable, "-m", "rulecheck", "check", "--jobs", "1", *args]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe)


def test_the_command_line_uses_it_unless_told_not_to(tmp_path: Path, path: str) -> None:
    reports = []
    for args in ((), (), ("--no-cache",)):
        said, complaints = start(tmp_path, path, "--format", "json", *args).communicate(timeout=100)
        assert complaints == b""
        reports.append(json.loads(said))
    summaries = [report["summary"] for report in reports]
    assert [summary.pop("cached") for summary in summaries] == [0, 4, 0]
    for report in reports:
        del report["summary"]["elapsed_s"], report["argv"]
    assert reports[0] == reports[1] == reports[2]
    said, _ = start(tmp_path, path).communicate(timeout=100)
    assert said.endswith(b" s (4 cached)\n")


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path: Path, path: str) -> None:
    runs = [start(tmp_path, "-q", path) for _ in range(2)]
    assert [run.communicate(timeout=100) for run in runs] == [(b"", b"")] * 2
    assert [run.returncode for run in runs] == [0, 0]
    kept = [item.name for item in (tmp_path / ".rulecheck_cache" / __version__).iterdir()]
    assert len(kept) == 4
    assert all(len(name) == 64 for name in kept)


def test_the_suite_itself_keeps_nothing() -> None:
    assert os.environ["RULECHECK_NO_CACHE"] == "1"
    assert Settings(paths=()).cache == ""
