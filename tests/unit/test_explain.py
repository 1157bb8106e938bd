from __future__ import annotations

import re
from pathlib import Path

import pytest

import rulecheck
from rulecheck.errors import UserError
from rulecheck.explain import ENTRIES, _table, find, show, with_verdict
from rulecheck.explain.entry import LINT
from rulecheck.records import Verdict

PACKAGE = Path(rulecheck.__file__).parent


def used_codes() -> set[str]:
    """Return every code that the package can print, wherever it is written."""
    return {
        code
        for path in PACKAGE.rglob("*.py")
        if "explain" not in path.relative_to(PACKAGE).parts
        for code in re.findall(r'"(RC\d{3})"', path.read_text(encoding="utf-8"))
    }


def test_every_code_in_use_is_explained() -> None:
    used = used_codes()
    assert "RC201" in used
    assert used <= ENTRIES.keys()


def test_every_explained_code_is_in_use() -> None:
    assert ENTRIES.keys() - used_codes() == set()


@pytest.mark.parametrize("code", ENTRIES)
def test_an_entry_is_complete(code: str) -> None:
    entry = ENTRIES[code]
    assert re.fullmatch(r"RC\d{3}", entry.code)
    assert entry.code == code
    assert entry.title[0].islower() or entry.title.startswith(("8-bit", "C and D"))
    assert not entry.title.endswith(".")
    for text in (entry.meaning, entry.why, entry.repair):
        assert text.endswith(".")
        assert "  " not in text
    assert entry.example
    words = {verdict.value for verdict in Verdict}
    assert entry.verdicts
    assert set(entry.verdicts) <= words or entry.verdicts == (LINT,)


def test_every_verdict_has_a_code() -> None:
    for verdict in Verdict:
        assert with_verdict(verdict.value), verdict


def test_a_lint_comes_with_no_verdict() -> None:
    lints = find("Lint")
    assert [entry.code for entry in lints] == ["RC501", "RC502", "RC503", "RC504"]
    assert not {verdict.value for verdict in Verdict} & {LINT}
    assert "\nlint: beside any verdict; it changes none\n" in show(lints[0], 100)
    assert "\nverdict: misread\n" in show(ENTRIES["RC201"], 100)


def test_titles_differ() -> None:
    titles = [entry.title for entry in ENTRIES.values()]
    assert len(set(titles)) == len(titles)


def test_a_code_that_is_explained_twice_is_an_error() -> None:
    entry = ENTRIES["RC201"]
    with pytest.raises(ValueError, match="RC201 is explained twice"):
        _table([(entry,), (entry,)])


def test_find_takes_codes_and_verdicts_in_any_case() -> None:
    assert find("rc201") == [ENTRIES["RC201"]]
    assert ENTRIES["RC201"] in find("Misread")


@pytest.mark.parametrize(
    ("subject", "hint"),
    [
        ("RC20l", "did you mean RC20"),
        ("misraed", "did you mean misread?"),
        ("cast over matmul", "rulecheck check --rule 'cast over matmul'"),
    ],
)
def test_find_says_what_to_do_about_anything_else(subject: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        find(subject)
    assert hint in caught.value.next_step


def test_show_wraps_and_keeps_the_example() -> None:
    entry = ENTRIES["RC201"]
    text = show(entry, 60)
    prose, example = text.split("Example:\n")
    assert all(len(line) <= 60 for line in prose.split("\n"))
    assert entry.example in example
    assert " ".join(entry.repair.split()) in " ".join(prose.split())
