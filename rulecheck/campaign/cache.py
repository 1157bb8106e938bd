"""Answers of earlier runs, by content: what the same tool has judged before, it judges no more.

A key is a digest of everything that can change an answer, so an entry is never out of date, only
unused. What depends on time or luck is never kept: crashes, timeouts, results that a control does
not trust, and any answer on whose way a process failed. The folder is only ever a help: what cannot
be read is judged, what cannot be written is not kept, and nothing is said about either. Entries are
data; but who may write them may write verdicts, so a gate on foreign checkouts runs without.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import platform
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from rulecheck import __version__, dialects
from rulecheck.campaign.bench import Answer, Found, PairTask, RuleTask, Task
from rulecheck.records import Change, Do, Finding, Rule, RuleFile, Settings, Union, Verdict

# Raised when the records of an answer, or what a key is made of, change their meaning.
SCHEMA = 1
# The largest entries seen are a few tens of KiB; all shipped rules together are under 1 MiB.
MAX_ENTRY_BYTES = 1 << 20
MAX_TOTAL_BYTES = 64 << 20
# Trimming goes somewhat below the limit, so that not every run has to.
KEPT_BYTES = MAX_TOTAL_BYTES * 3 // 4
MAX_LISTED = 100_000
STALE_S = 3600.0
NEVER = frozenset({Verdict.CRASH, Verdict.TIMEOUT, Verdict.UNTRUSTED})

_DIGEST_BYTES = 32
_PREFIX = "writing-"
_ENTRY = re.compile(rf"[0-9a-f]{{64}}|{_PREFIX}\w+")
_TAG = """\
Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of rulecheck and may be deleted. See https://bford.info/cachedir/
"""
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Cache:
    """The answers kept in ``settings.cache``; none at all if that is empty."""

    def __init__(self, settings: Settings, environment: tuple[tuple[str, str], ...]) -> None:
        """Digest what all answers of the run depend on.

        Args:
            settings: what the run was asked to do; paths and jobs change no answer.
            environment: versions, platform, dialect and backend.

        Raises:
            UserError: the dialect does not exist.
        """
        self.hits = 0
        self._root = Path(settings.cache)
        self._folder = self._root / __version__
        self._on = bool(settings.cache) and not (_is_link(self._root) or _is_link(self._folder))
        self._kept = self._prepared = False
        self._base = b""
        self._declared: dict[str, bytes] = {}
        if self._on:
            asked = (settings.dialect, settings.backend, settings.strict_rounding, settings.seed)
            text = dialects.load(settings.dialect).declarations()
            try:
                known = (SCHEMA, __version__, _sources(), environment, _processor(), asked, text)
            except OSError:  # the package itself is being edited
                self._on = False
            else:
                self._base = _digest(known)

    def key(self, task: Task, files: Mapping[str, RuleFile]) -> str:
        """The name of a task's entry; empty if nothing is to be looked up or kept.

        Args:
            task: one rule, by itself or after others.
            files: every file of the run, each loaded with what it relies on.
        """
        if not self._on:
            return ""
        if isinstance(task, PairTask):
            return _digest((self._base, *_of_pairs(task, files))).hex()
        file = files[task.path]
        if task.path not in self._declared:
            self._declared[task.path] = _digest((file.declarations, file.facts))
        return _digest((self._base, self._declared[task.path], *_of_rule(task, file))).hex()

    def find(self, key: str, task: Task) -> Answer | None:
        """The answer to a task, if it is known."""
        if not key:
            return None
        with contextlib.suppress(OSError):
            answer = _decode(key, _read(self._folder / key))
            if answer is not None and _fits(answer, task):
                self.hits += 1
                with contextlib.suppress(OSError):
                    os.utime(self._folder / key, follow_symlinks=False)  # used, so kept longer
                return answer
        return None

    def keep(self, key: str, answer: Answer) -> None:
        """Keep an answer, unless it might come out differently another time."""
        if not key or not self._on or not storable(answer):
            return
        body = msgspec.msgpack.encode(answer)
        if len(body) > MAX_ENTRY_BYTES - _DIGEST_BYTES:
            return
        try:
            self._prepare()
            self._write(key, _checksum(key, body) + body)
        except OSError:  # a read-only checkout, a full disk: the run goes on without
            self._on = False

    def trim(self) -> None:
        """Remove the oldest entries if all together have become too large."""
        if not self._kept:
            return
        with contextlib.suppress(OSError):
            entries = sorted(_entries(self._root), key=lambda entry: entry[0])
            total = sum(size for _, size, _ in entries)
            limit = KEPT_BYTES if total > MAX_TOTAL_BYTES else total
            for used_s, size, path in entries:
                left_over = path.name.startswith(_PREFIX) and time.time() - used_s > STALE_S
                if total > limit or left_over:
                    path.unlink(missing_ok=True)
                    total -= size

    def _prepare(self) -> None:
        """Make the folder, and tell version control and backups to leave it alone."""
        if self._prepared:
            return
        self._root.mkdir(exist_ok=True)
        self._folder.mkdir(exist_ok=True)
        for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
            with contextlib.suppress(FileExistsError), (self._root / name).open("x") as stream:
                stream.write(text)
        self._prepared = True

    def _write(self, key: str, data: bytes) -> None:
        """Write whole or not at all, whoever else writes the same entry."""
        handle, name = tempfile.mkstemp(prefix=_PREFIX, dir=self._folder)
        try:
            with open(handle, "wb") as stream:  # noqa: PTH123 -- a descriptor, not a path
                stream.write(data)
            os.replace(name, self._folder / key)  # noqa: PTH105 -- beside mkstemp's own string
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)  # noqa: PTH108 -- the same
            raise
        self._kept = True


def storable(answer: Answer) -> bool:
    """Whether an answer depends on nothing but its key."""
    return answer.complete and all(
        item.rule is not None
        and item.verdict not in NEVER
        and not any(word in {verdict.value for verdict in NEVER} for word, _ in item.verdicts)
        for item in _findings(answer)
    )


def _findings(answer: Answer) -> list[Finding]:
    if isinstance(answer, Found):
        return [answer.finding]
    whole = answer.result.whole
    return [*answer.result.findings, *([] if whole is None else [whole])]


def _fits(answer: Answer, task: Task) -> bool:
    """Whether an entry is about the task's rule and shows no other file."""
    if isinstance(answer, Found) != isinstance(task, RuleTask) or not storable(answer):
        return False
    for item in _findings(answer):
        spans = [item.span, *(lint.span for lint in item.lints)]
        spans += [] if item.field_span is None else [item.field_span]
        places = {item.file, *(span.file for span in spans)}
        if item.rule != task.name or places != {task.path}:
            return False
    return True


def _of_rule(task: RuleTask, file: RuleFile) -> Iterator[object]:
    """What the finding on one rule depends on, beside what its file declares.

    The rule with its places, which carets point at; the rules that derive facts, which the engine
    applies to every graph and whose left sides may become part of this one's; and all rules if this
    one adds rows, for it is then tried where they are used. Variables are renamed by a rule's
    position, and messages may show them.
    """
    rule = file.rules[task.index]
    adds_rows = any(isinstance(action, Do) for action in rule.head)
    yield from (task.path, task.context, rule)
    for position, other in enumerate((*file.rules, *file.neighbours)):
        if other is not rule and (adds_rows or _derives_facts(other)):
            yield (position, other.span.file, other.name, other.text_hash)


def _of_pairs(task: PairTask, files: Mapping[str, RuleFile]) -> Iterator[object]:
    """What comes of a rule's pairs depends on every rule of the program, and on their lines."""
    yield from (task.path, task.name)
    yield from ((path, files[path].sha256) for path in task.files)
    yield sorted(item for item in set(task.wrong) if item[0] in task.files)


def _derives_facts(rule: Rule) -> bool:
    return not any(isinstance(action, Union | Change) for action in rule.head)


def _digest(content: object) -> bytes:
    """A digest of records: msgpack is unambiguous, and keeps every float's bits."""
    return hashlib.sha256(msgspec.msgpack.encode(content)).digest()


def _checksum(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _decode(key: str, data: bytes) -> Answer | None:
    """An entry's content, or None if it is damaged, cut short, of another key or of no record."""
    body = data[_DIGEST_BYTES:]
    if len(data) > MAX_ENTRY_BYTES or data[:_DIGEST_BYTES] != _checksum(key, body):
        return None
    try:
        return msgspec.msgpack.decode(body, type=Answer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _read(path: Path) -> bytes:
    """The bytes of a regular file, at most one more than an entry may have."""
    handle = os.open(path, _READ_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return b""
        return os.read(handle, MAX_ENTRY_BYTES + 1)
    finally:
        os.close(handle)


def _entries(root: Path) -> Iterator[tuple[float, int, Path]]:
    """(last use, size, path) of each entry of any version; nothing that is not named like one."""
    for folder in itertools.islice(root.iterdir(), MAX_LISTED):
        if _is_link(folder) or not folder.is_dir():
            continue
        with os.scandir(folder) as listed:
            for item in itertools.islice(listed, MAX_LISTED):
                if _ENTRY.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # another run trims too
                        known = item.stat(follow_symlinks=False)
                        yield known.st_mtime, known.st_size, folder / item.name


def _is_link(path: Path) -> bool:
    """Whether a folder lies elsewhere: a checkout must not choose where files are written."""
    return path.is_symlink()


def _sources() -> bytes:
    """A digest of this package's own files: a changed rulecheck knows nothing of the old one."""
    root = Path(__file__).parents[1]
    paths = sorted(path for path in root.rglob("*") if path.suffix in {".py", ".egg", ".json"})
    return _digest([(str(path.relative_to(root)), path.read_bytes()) for path in paths])


def _processor() -> str:
    """The processor: matrix libraries choose their code by it, and sums may end in other bits."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as stream:
            lines = stream.read(1 << 14).splitlines()
    except OSError:
        return platform.processor()
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith(wanted)))
