"""What is kept between runs, what never is, and what a damaged or hostile folder can do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from rulecheck import __version__
from rulecheck.campaign import cache as module
from rulecheck.campaign.bench import (
    Answer,
    Found,
    Paired,
    PairTask,
    RuleTask,
    Task,
)
from rulecheck.campaign.cache import Cache, storable
from rulecheck.campaign.pairs import PairResult
from rulecheck.records import (
    Settings,
    Verdict,
)
from tests import samples

ENVIRONMENT = (("python", "3.11.7"), ("egglog", "13.1.0"))
TASK = RuleTask(samples.FILE, 0, "widen-deep", ())
PAIR = PairTask((samples.FILE,), samples.FILE, "widen-deep", ())
KEY = "a" * 64


def opened(tmp_path: Path) -> Cache:
    return Cache(Settings((), cache=str(tmp_path / ".rulecheck_cache")), ENVIRONMENT)


def entry(tmp_path: Path, key: str = KEY) -> Path:
    return tmp_path / ".rulecheck_cache" / __version__ / key


def found(**changes: object) -> Found:
    return Found(replace(samples.finding(), **changes))


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        (TASK, found()),
        (TASK, Found(replace(samples.mismatch(), rule="widen-deep"))),  # holds nan and infinity
        (PAIR, Paired(PairResult(3, 9, [samples.finding(after="x")], samples.finding()))),
        (PAIR, Paired(PairResult())),
    ],
)
def test_what_is_kept_is_found_by_the_next_run(tmp_path: Path, task: Task, answer: Answer) -> None:
    opened(tmp_path).keep(KEY, answer)
    again = opened(tmp_path)
    known = again.find(KEY, task)
    assert repr(known) == repr(answer)  # nan is not equal to itself
    assert again.hits == 1
    assert again.find("b" * 64, task) is None
    assert again.hits == 1


def test_the_folder_is_ignored_by_version_control_and_backups(tmp_path: Path) -> None:
    opened(tmp_path).keep(KEY, found())
    root = tmp_path / ".rulecheck_cache"
    assert (root / ".gitignore").read_text() == "*\n"
    assert (root / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f068868")
    assert [path.name for path in entry(tmp_path).parent.iterdir()] == [KEY]


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cache = Cache(Settings(paths=()), ENVIRONMENT)
    assert cache.key(TASK, {}) == ""
    cache.keep("", found())
    assert cache.find("", TASK) is None
    cache.trim()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [
        *(found(verdict=verdict) for verdict in sorted(module.NEVER, key=str)),
        *(found(verdicts=(("agrees", 3), (word, 1))) for word in ("crash", "timeout", "untrusted")),
        Found(samples.unreadable()),
        Found(samples.finding(), complete=False),
        Paired(PairResult(), complete=False),
        Paired(PairResult(1, 1, [samples.finding(verdict=Verdict.TIMEOUT)])),
        Paired(PairResult(1, 1, [], samples.finding(verdict=Verdict.UNTRUSTED))),
    ],
)
def test_what_may_come_out_differently_is_never_kept(tmp_path: Path, answer: Answer) -> None:
    assert not storable(answer)
    opened(tmp_path).keep(KEY, answer)
    assert not entry(tmp_path).exists()


def damage(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damaged(path: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return damaged


def forge(body: bytes) -> Callable[[Path], None]:
    return damage(lambda _: module._checksum(KEY, body) + body)


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


def elsewhere(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


def huge(path: Path) -> None:
    os.truncate(path, 1 << 40)


HOSTILE: dict[str, Callable[[Path], None]] = {
    "empty": damage(lambda _: b""),
    "cut short": damage(lambda data: data[:-1]),
    "one bit": damage(lambda data: data[:-1] + bytes([data[-1] ^ 1])),
    "no record": forge(b"\x01"),
    "another record": forge(msgspec.msgpack.encode(samples.CASE)),
    "deep": forge(b"\x91" * 100_000),
    "vast": forge(b"\xdd\xff\xff\xff\xff"),
    "not text": forge(msgspec.msgpack.encode(found()).replace(b"widen", b"\xff\xff\xff\xff\xff")),
    "of another rule": forge(msgspec.msgpack.encode(found(rule="other"))),
    "of another file": forge(msgspec.msgpack.encode(found(file="other.egg"))),
    "shows another file": forge(
        msgspec.msgpack.encode(found(field_span=replace(samples.FIELD_SPAN, file="secret")))
    ),
    "of another kind": forge(msgspec.msgpack.encode(Paired(PairResult()))),
    "a crash": forge(msgspec.msgpack.encode(found(verdict=Verdict.CRASH))),
    "a folder": instead(Path.mkdir),
    "a pipe": instead(os.mkfifo),
    "a link": elsewhere,
    "huge": huge,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_entry_that_is_not_ours_is_a_miss(tmp_path: Path, name: str) -> None:
    opened(tmp_path).keep(KEY, found())
    HOSTILE[name](entry(tmp_path))
    cache = opened(tmp_path)
    assert cache.find(KEY, TASK) is None
    assert cache.hits == 0


def test_an_entry_under_another_name_is_a_miss(tmp_path: Path) -> None:
    opened(tmp_path).keep(KEY, found())
    entry(tmp_path).rename(entry(tmp_path, "b" * 64))
    assert opened(tmp_path).find("b" * 64, TASK) is None


def test_what_is_too_large_is_not_kept(tmp_path: Path) -> None:
    opened(tmp_path).keep(KEY, found(message="x" * module.MAX_ENTRY_BYTES))
    assert not entry(tmp_path).exists()


@pytest.mark.parametrize("name", [".rulecheck_cache", f".rulecheck_cache/{__version__}"])
def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path, name: str) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(target)
    cache = opened(tmp_path)
    cache.keep(KEY, found())
    assert cache.find(KEY, TASK) is None
    assert list(target.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_left(tmp_path: Path) -> None:
    (tmp_path / ".rulecheck_cache").touch()
    cache = opened(tmp_path)
    assert cache.find(KEY, TASK) is None
    cache.keep(KEY, found())
    cache.trim()
    assert (tmp_path / ".rulecheck_cache").read_bytes() == b""


def test_a_folder_that_can_only_be_read_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError

    opened(tmp_path).keep(KEY, found())
    for name in ("utime", "replace", "mkdir"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    cache = opened(tmp_path)
    assert cache.find(KEY, TASK) == found()
    cache.keep("b" * 64, found())
    cache.trim()
    assert [path.name for path in entry(tmp_path).parent.iterdir()] == [KEY]


def test_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def full(source: str, _target: Path) -> None:
        tries.append(source)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache = opened(tmp_path)
    cache.keep(KEY, found())
    cache.keep(KEY, found())
    assert len(tries) == 1  # and not tried again
    assert list(entry(tmp_path).parent.iterdir()) == []


def test_sources_that_cannot_be_read_turn_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> bytes:
        raise FileNotFoundError

    monkeypatch.setattr(module, "_sources", gone)
    assert opened(tmp_path).key(TASK, {}) == ""


def test_the_oldest_entries_go_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = opened(tmp_path)
    keys = [letter * 64 for letter in "abcd"]
    for age, key in enumerate(keys):
        cache.keep(key, found())
        used_s = time.time() - 1000 + age
        os.utime(entry(tmp_path, key), (used_s, used_s))
    assert opened(tmp_path).find(keys[0], TASK) is not None  # used: the youngest now
    folder = entry(tmp_path).parent
    (folder / "notes.txt").write_text("x" * 10_000)
    leftover = folder / "writing-abc"
    leftover.touch()
    os.utime(leftover, (0, 0))
    cache.trim()
    assert {path.name for path in folder.iterdir()} == {*keys, "notes.txt"}
    size = entry(tmp_path).stat().st_size
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 3 * size)
    monkeypatch.setattr(module, "KEPT_BYTES", 2 * size)
    cache.trim()
    assert {path.name for path in folder.iterdir()} == {keys[0], keys[3], "notes.txt"}
    opened(tmp_path).trim()  # a run that kept nothing looks at nothing
