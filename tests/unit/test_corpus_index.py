"""docs/corpus.md names every row, every case and every file of the corpus, and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from rulecheck.records import Verdict

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
# Rows of the soundness history and ids of the cases: both lists have gaps.
ROWS = [*range(1, 8), 9, 10, 11, 13, *range(15, 21), *range(22, 30), 31, 32]
CASES = [
    *(1, 2, 6, 7, 11, 12, 13, 14, 15, 16, 18, 19, 20, 22, 23, 24, 25, 27, 28, 31, 32, 34, 35, 36),
    *(39, 41, 42, 43, 44, 45, 47, 49, 50, 51, 53, 56, 57, 60, 61, 62, 64, 65, 67, 69, 70, 72, 73),
    *(76, 77, 80, 81, 82, 83, 85, 87, 88, 89, 91, 92, 93, 94, 95, 97, 98, 99, 100),
]
PASSING = {"agrees", "rounding-elided", "rules"}
FILE = re.compile(r"`([^`\s]+\.egg)`")


def page() -> str:
    return (ROOT / "docs" / "corpus.md").read_text("utf-8")


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page(), re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/corpus.md has no section {title}"
    return found[1]


def table(title: str) -> list[list[str]]:
    """Cells of each row below the head of a section's table."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert len({len(row) for row in rows if not row[0].startswith("-")}) == 1, "cells are missing"
    return rows[2:]


def place(name: str) -> Path:
    return ROOT / name if name.startswith("rules/") else CORPUS / name


def files() -> set[str]:
    return {path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*.egg")}


def test_every_row_stands_once() -> None:
    assert [int(row[0]) for row in table("Rows of the history")] == ROWS


def test_every_case_stands_once() -> None:
    assert [row[0] for row in table("Cases")] == [f"C{number:02d}" for number in CASES]
    assert all(row[1] for row in table("Cases")), "each names its source"


@pytest.mark.parametrize("name", sorted(set(FILE.findall(page()))))
def test_every_file_that_is_named_is_there(name: str) -> None:
    path = place(name)
    folder = path.parent.name
    assert path.is_file()
    assert folder in {verdict.value for verdict in Verdict} | {"rules"}
    if folder != "rules":
        assert f"; RULECHECK-EXPECT: {folder}\n" in path.read_text("utf-8")


def test_every_file_of_the_corpus_is_named() -> None:
    assert files() == {name for name in FILE.findall(page()) if not name.startswith("rules/")}


def test_further_files_are_those_that_nothing_else_names() -> None:
    further = [*FILE.findall(section("Further files"))]
    rest = FILE.findall(page().partition("## Further files")[0])
    assert [name for name, count in Counter(further).items() if count > 1] == []
    assert set(further).isdisjoint(rest)
    assert all(row[1] for row in table("Further files")), "each says its idea"


@pytest.mark.parametrize("title", ["Rows of the history", "Cases"])
def test_what_is_not_stated_says_why(title: str) -> None:
    for row in table(title):
        first, wrong, right, note = row[0], row[-3], row[-2], row[-1]
        if not FILE.findall(wrong + right):
            assert note.startswith("not stated: "), first
        else:
            assert not note.startswith("not stated"), first


@pytest.mark.parametrize("title", ["Rows of the history", "Cases"])
def test_the_right_form_passes(title: str) -> None:
    for row in table(title):
        folders = {name.partition("/")[0] for name in FILE.findall(row[-2])}
        assert folders <= PASSING, row[0]
