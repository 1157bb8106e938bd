from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rulecheck.errors import UserError
from rulecheck.terminal import Progress, wants_color, write

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "environ", "tty", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"FORCE_COLOR": "0"}, True, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_color(choice: str, environ: dict[str, str], tty: bool, expected: bool) -> None:
    stream = Terminal() if tty else io.StringIO()
    assert wants_color(choice, stream, environ) is expected


def test_no_stream_no_color() -> None:
    assert wants_color("auto", None, {}) is False


def test_progress_overwrites_one_safe_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    progress = Progress(quiet=False)
    progress("rule \x1b[31m\n" + "x" * 500)
    progress.clear()
    shown = stream.getvalue().split("\r\x1b[K")
    assert shown[0] == shown[2] == ""
    assert shown[1].startswith("rule ?[31m?xxx")
    assert len(shown[1]) < 500


def test_progress_is_silent_when_quiet_or_piped(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, quiet in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress(quiet=quiet)
        progress("rule")
        progress.clear()
        assert stream.getvalue() == ""


def start(code: str, **options: object) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code], env=env, **options)  # type: ignore[call-overload,no-any-return] # options of Popen


LONG = "import sys; from rulecheck.terminal import write; write('x' * 1_000_000); sys.exit(7)"


def test_a_reader_that_has_gone_changes_nothing() -> None:
    process = start(LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 7


def test_a_full_disk_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(UserError, match="No space left"):
            write("x")


def test_a_closed_standard_output_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    write("x")


def test_an_ascii_terminal_gets_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii"))
    write("Bf16 → F32")
    assert buffer.getvalue() == b"Bf16 \\u2192 F32"
