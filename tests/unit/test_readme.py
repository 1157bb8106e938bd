"""What README shows is what the tool says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rulecheck", *args],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_the_example_is_the_file() -> None:
    (shown,) = blocks("lisp")
    assert shown in (ROOT / "docs" / "founding_bug.egg").read_text("utf-8")


def test_the_output_is_the_tools() -> None:
    (shown,) = [block for block in blocks("console") if "founding_bug" in block]
    command, *lines = shown.splitlines()
    done = run(*command.removeprefix("$ rulecheck ").split())
    assert done.returncode == 1
    said = done.stdout.splitlines()
    for line in lines:
        if line.strip() != "…":
            wanted = line.removesuffix("…").rstrip()
            assert any(spoken.startswith(wanted) for spoken in said), line


def test_every_command_shown_works(tmp_path: Path) -> None:
    (shown,) = [block for block in blocks("console") if "--output" in block]
    args = shown.strip().removeprefix("$ rulecheck ").split()
    args[-1] = f"json={tmp_path / 'report.json'}"
    assert run(*args).returncode == 0
    assert (tmp_path / "report.json").stat().st_size > 0


def test_every_file_named_exists() -> None:
    for name in re.findall(r"`((?:rules|docs|tests|rulecheck)/[\w./]+)`", README):
        assert (ROOT / name).exists(), name
