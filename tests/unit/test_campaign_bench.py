"""Rules judged in a process of their own: the same findings, and its death or defect is told."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rulecheck.campaign.bench import (
    Broken,
    Found,
    LocalBench,
    Paired,
    PairTask,
    RemoteBench,
    RuleTask,
    WatchedShop,
)
from rulecheck.campaign.pairs import PairResult
from rulecheck.errors import InternalError
from rulecheck.records import Failure, FailureKind, Settings, Severity, Verdict
from tests.rule_texts import rule

CAST = "(Op (Cast ?n {}) (ICons {} (INil)))"
DECLARED = "(relation marked (IR))\n"
# A cast of F32 to F32 is dropped: right. It is marked as what holds no more than Bf16: wrong.
DROPS = rule(
    "drops",
    f"(= ?x {CAST.format('(F32)', '?y')}) (= (F32) (dtype ?y))",
    f"(let ?new {CAST.format('(F32)', CAST.format('(F32)', '?y'))}) (union ?x ?new) (marked ?new)",
)
ROUNDS = rule(
    "rounds",
    f"(= ?x {CAST.format('(F32)', '?y')}) (marked ?x) (= (F32) (dtype ?y))",
    f"(union ?x {CAST.format('(F32)', CAST.format('(Bf16)', '?y'))})",
)
WRONG = rule(
    "halves",
    "(= ?c (Op (Constant ?v) (INil))) (= ?half (/ ?v 2.0))",
    "(union ?c (Op (Constant ?half) (INil)))",
)
SETTINGS = Settings(paths=())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bench")
    texts = {"pair": DECLARED + DROPS + ROUNDS, "wrong": WRONG, "broken": "(rule ("}
    paths = {name: folder / f"{name}.egg" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name], encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def sources(files: dict[str, Path]) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in files.values()}


@pytest.fixture(scope="module")
def local(sources: dict[str, bytes]) -> Iterator[LocalBench]:
    with WatchedShop(SETTINGS, sources) as shop:
        yield LocalBench(shop)


@pytest.fixture(scope="module")
def remote(sources: dict[str, bytes]) -> Iterator[RemoteBench]:
    with RemoteBench(SETTINGS, sources) as bench:
        yield bench


def by_itself(path: Path, index: int, name: str) -> RuleTask:
    return RuleTask(str(path), index, name, ())


def in_pairs(path: Path, name: str) -> PairTask:
    return PairTask((str(path),), str(path), name, ())


def test_a_process_finds_what_is_found_here(
    local: LocalBench, remote: RemoteBench, files: dict[str, Path]
) -> None:
    tasks: list[RuleTask | PairTask] = [
        by_itself(files["pair"], 0, "drops"),
        by_itself(files["pair"], 1, "rounds"),
        by_itself(files["wrong"], 0, "halves"),
        in_pairs(files["pair"], "drops"),
        in_pairs(files["pair"], "rounds"),
    ]
    answers = [(local.judge(task), remote.judge(task)) for task in tasks]
    for here, there in answers:
        assert here == there
    (drops, _), (rounds, _), (halves, _), _, (pairs, _) = answers
    assert isinstance(drops, Found)
    assert isinstance(rounds, Found)
    assert isinstance(halves, Found)
    assert isinstance(pairs, Paired)
    assert drops.finding.verdict is Verdict.AGREES
    assert rounds.finding.severity is Severity.INCONCLUSIVE
    assert halves.finding.verdict is Verdict.MISMATCH
    assert [item.blame for item in pairs.result.findings] == [("drops", "rounds")]


def test_all_processes_judge_the_text_that_was_read(
    sources: dict[str, bytes], files: dict[str, Path], tmp_path: Path
) -> None:
    """The file is not looked at again: what is reported is one state of it."""
    path = tmp_path / "changed.egg"
    path.write_text("(this is no rule file", encoding="utf-8")
    known = {**sources, str(path): files["wrong"].read_bytes()}
    with RemoteBench(SETTINGS, known) as bench:
        answer = bench.judge(by_itself(path, 0, "halves"))
    assert isinstance(answer, Found)
    assert answer.finding.verdict is Verdict.MISMATCH


def test_a_rule_that_is_not_in_the_program_has_no_pairs(
    local: LocalBench, remote: RemoteBench, files: dict[str, Path]
) -> None:
    for bench in (local, remote):
        for task in (in_pairs(files["pair"], "gone"), in_pairs(files["broken"], "any")):
            assert bench.judge(task) == Paired(PairResult())


def test_a_defect_in_the_process_is_raised_here_with_its_place(
    remote: RemoteBench, files: dict[str, Path]
) -> None:
    with pytest.raises(InternalError, match=r"IndexError: .* \(at \w+\.py:\d+ in \w+\)"):
        remote.judge(by_itself(files["wrong"], 7, "no such rule"))
    again = remote.judge(by_itself(files["wrong"], 0, "halves"))
    assert isinstance(again, Found), "the process goes on"


def kill(bench: RemoteBench, after_s: float) -> threading.Timer:
    """Let the process die while it is at work."""

    def strike() -> None:
        process = bench._worker._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)

    timer = threading.Timer(after_s, strike)
    timer.start()
    return timer


@pytest.mark.parametrize("warm", [True, False], ids=["at the rule", "while it starts"])
def test_a_process_that_dies_is_a_crash_of_that_rule_alone(
    sources: dict[str, bytes], files: dict[str, Path], *, warm: bool
) -> None:
    with RemoteBench(SETTINGS, sources) as bench:
        if warm:
            bench.judge(by_itself(files["pair"], 1, "rounds"))
        timer = kill(bench, 0.02)
        answer = bench.judge(by_itself(files["wrong"], 0, "halves"))
        timer.join()
        assert isinstance(answer, Found)
        assert answer.complete is False, "next time it may live"
        assert answer.finding.rule == "halves"
        assert answer.finding.file == str(files["wrong"])
        assert answer.finding.code == "RC441"
        assert answer.finding.severity is Severity.ERROR
        again = bench.judge(by_itself(files["wrong"], 0, "halves"))
    assert isinstance(again, Found)
    assert again.finding.verdict is Verdict.MISMATCH, "a new process is told everything again"


def test_a_process_that_dies_of_pairs_is_told(
    sources: dict[str, bytes], files: dict[str, Path]
) -> None:
    with RemoteBench(SETTINGS, sources) as bench:
        timer = kill(bench, 0.02)
        answer = bench.judge(in_pairs(files["pair"], "rounds"))
        timer.join()
    assert isinstance(answer, Paired)
    assert not answer.complete
    assert answer.result.tried == 0
    (finding,) = answer.result.findings  # never nothing: that would pass for "not wrong"
    assert finding.severity is not Severity.OK
    assert finding.rule == "rounds"


def test_a_time_limit_is_no_error_of_the_rule(
    remote: RemoteBench, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Failure(FailureKind.TIMEOUT, "no answer within 900 s")
    monkeypatch.setattr(remote._worker, "request", lambda *_: late)
    answer = remote.judge(by_itself(files["wrong"], 0, "halves"))
    assert isinstance(answer, Found)
    assert answer.finding.verdict is Verdict.TIMEOUT
    assert answer.finding.severity is Severity.INCONCLUSIVE
    assert "900 s" in answer.finding.message


def test_what_crosses_the_pipe_comes_back_as_it_was() -> None:
    for message in (Broken("x"), Paired(PairResult(tried=2, cases=1))):
        kinds = Broken | Paired
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=kinds) == message
