"""The transport to child processes: whatever they do, the parent gets an answer in time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rulecheck.records import Failure, FailureKind
from rulecheck.workers import Worker, explain_exit, serve_pipes
from tests.misbehaving import Done, Order

ROOT = str(Path(__file__).parents[2])
Answer = Done | Failure


def make_worker(**environment: str) -> Worker[Answer]:
    return Worker("tests.misbehaving", Answer, {"PYTHONPATH": ROOT} | environment)


@pytest.fixture
def worker() -> Iterator[Worker[Answer]]:
    with make_worker() as running:
        yield running


def ask(worker: Worker[Answer], action: str, timeout_s: float = 20, text: str = "") -> Answer:
    return worker.request(Order(action, text), timeout_s)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_start_does_not_wait_for_the_child() -> None:
    worker = make_worker()
    begin_s = time.monotonic()
    worker.start()
    assert time.monotonic() - begin_s < 0.1
    assert worker.alive
    worker.close()
    assert not worker.alive


def test_one_child_answers_many_requests(worker: Worker[Answer]) -> None:
    first, second = ask(worker, "echo", text="a"), ask(worker, "echo", text="é")
    assert isinstance(first, Done)
    assert isinstance(second, Done)
    assert (first.text, second.text) == ("a", "é")
    assert first.process == second.process != os.getpid()
    assert worker.starts == 1


def test_requests_may_be_sent_ahead(worker: Worker[Answer]) -> None:
    for text in "abc":
        worker.send(Order("echo", text))
    answers = [worker.receive(20) for _ in "abc"]
    assert [answer.text for answer in answers if isinstance(answer, Done)] == ["a", "b", "c"]


@pytest.mark.parametrize("length", [0, 65_535, 5_000_000])
def test_messages_of_any_length_pass_both_ways(worker: Worker[Answer], length: int) -> None:
    answer = ask(worker, "echo", text="x" * length)
    assert isinstance(answer, Done)
    assert len(answer.text) == length


def test_what_a_library_prints_is_no_answer(worker: Worker[Answer]) -> None:
    answer = ask(worker, "print", text="the answer")
    assert isinstance(answer, Done)
    assert answer.text == "the answer"


def test_a_flood_on_stderr_blocks_nobody(worker: Worker[Answer]) -> None:
    assert isinstance(ask(worker, "flood"), Done)


@pytest.mark.parametrize(
    ("action", "kind", "words"),
    [
        ("abort", FailureKind.CRASH, "it aborted (signal 6)"),
        ("fault", FailureKind.CRASH, "overran its stack"),
        ("spin", FailureKind.TIMEOUT, "used up its processor time (signal 24)"),
        ("kill", FailureKind.MEMORY, "the system killed it"),
        ("terminate", FailureKind.CRASH, "signal 15"),
        ("allocate", FailureKind.MEMORY, "memory limit"),
        ("rust-allocate", FailureKind.MEMORY, "memory limit"),
        ("exit", FailureKind.CRASH, "exit code 3"),
        ("raise", FailureKind.CRASH, "ZeroDivisionError"),
        ("orphan", FailureKind.CRASH, "exit code 5"),
        ("huge-frame", FailureKind.CRASH, "4294967295 bytes"),
        ("garbage", FailureKind.CRASH, "malformed answer"),
        ("close", FailureKind.CRASH, "closed its pipe"),
    ],
)
def test_every_death_is_a_failure_and_the_next_request_works(
    worker: Worker[Answer], action: str, kind: FailureKind, words: str
) -> None:
    begin_s = time.monotonic()
    failure = ask(worker, action)
    assert time.monotonic() - begin_s < 10
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert words in failure.message
    assert not worker.alive
    assert isinstance(ask(worker, "echo"), Done)
    assert worker.starts == 2


@pytest.mark.parametrize("action", ["sleep", "half-frame", "half-header"])
def test_no_answer_in_time_kills_the_child(worker: Worker[Answer], action: str) -> None:
    assert isinstance(ask(worker, "echo"), Done)
    begin_s = time.monotonic()
    failure = ask(worker, action, timeout_s=0.3)
    assert 0.3 <= time.monotonic() - begin_s < 2
    assert failure == Failure(
        FailureKind.TIMEOUT,
        "The misbehaving process gave no answer within 0.3 s and was stopped.",
    )
    assert not worker.alive


def test_a_child_that_does_not_read_cannot_block_the_parent() -> None:
    with make_worker(MISBEHAVING="deaf") as worker:
        begin_s = time.monotonic()
        failure = ask(worker, "echo", timeout_s=0.5, text="x" * 5_000_000)
        assert time.monotonic() - begin_s < 2
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.TIMEOUT


def test_receive_without_a_request_ends_in_time(worker: Worker[Answer]) -> None:
    failure = worker.receive(0.2)
    assert isinstance(failure, Failure)
    assert worker.receive(0.2) == Failure(
        FailureKind.CRASH, "The misbehaving process is not running."
    )


def test_close_leaves_no_process_behind(worker: Worker[Answer]) -> None:
    answer = ask(worker, "echo")
    assert isinstance(answer, Done)
    worker.send(Order("orphan"))
    worker.receive(20)
    worker.close()
    assert not is_running(answer.process)


def test_a_module_that_does_not_exist_is_a_failure() -> None:
    with Worker[Answer]("rulecheck.children.nobody", Answer) as worker:
        failure = ask(worker, "echo")
    assert isinstance(failure, Failure)
    assert "nobody" in failure.message


def test_the_child_imports_nothing_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('imported from the working folder')")
    monkeypatch.chdir(tmp_path)
    with make_worker() as worker:
        assert isinstance(ask(worker, "echo"), Done)


def test_the_child_sees_only_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    with make_worker() as worker:
        answer = ask(worker, "echo")
        assert isinstance(answer, Done)
        variables = Path(f"/proc/{answer.process}/environ").read_bytes().split(b"\0")
    assert b"RAYON_NUM_THREADS=1" in variables
    assert b"RUST_BACKTRACE=0" in variables
    assert not any(variable.startswith(b"SECRET") for variable in variables)


def test_the_childs_side_answers_until_its_input_ends() -> None:
    (requests, send), (receive, replies) = os.pipe(), os.pipe()
    for text in ("a", "é"):
        body = msgspec.msgpack.encode(Order("echo", text))
        os.write(send, len(body).to_bytes(4, "big") + body)
    os.write(send, b"\x00\x00")  # an input that ends inside a header ends the service, no more
    os.close(send)
    serve_pipes(lambda order: Done(order.text.upper(), 1), Order, requests, replies)
    os.close(replies)
    answered = os.read(receive, 1000)
    frames = [msgspec.msgpack.encode(Done(text, 1)) for text in ("A", "É")]
    assert answered == b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    os.close(requests)
    os.close(receive)


def test_explanations_keep_the_last_words() -> None:
    failure = explain_exit("engine", 1, "Traceback\n\nValueError: 3\n")
    assert failure.message == (
        "The engine process ended with exit code 1. Its last words: ValueError: 3"
    )
    assert explain_exit("engine", -8, "").message.endswith("arithmetic error (signal 8).")
