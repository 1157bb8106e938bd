from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rulecheck"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Build the wheel; return the names of the files in it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    ran = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False, timeout=110
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def data_files(pattern: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob(pattern)}


def test_rule_files_are_inside_although_tools_ignore_their_suffix(names: set[str]) -> None:
    eggs = data_files("*.egg")
    assert any("dialects/luminal" in egg for egg in eggs)
    assert eggs <= names


def test_every_file_of_the_package_is_inside(names: set[str]) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "rulecheck/py.typed" in files
    assert any(file.endswith("cublaslt_support.json") for file in files)
    assert files <= names


def test_nothing_else_is_inside(names: set[str]) -> None:
    assert {name.split("/")[0].split("-")[0] for name in names} == {"rulecheck"}


def test_the_licence_and_the_command_are_inside(names: set[str]) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("entry_points.txt") for name in names)
