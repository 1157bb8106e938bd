"""A file that uses what another file of the run declares is judged with that file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rulecheck import campaign
from rulecheck.records import Finding, Replay, Settings, Verdict

DECLARES = """
(relation blessed (IR))
(rule ((= ?x (Op (Cast ?n (F32)) (ICons ?y (INil))))) ((blessed ?x)) :ruleset expr :name "bless")
"""
USES = """
(rule ((= ?x (Op (Cast ?n (F32)) (ICons ?y (INil)))) (blessed ?x)
       (= ?z (Op (Cast ?n (F32)) (ICons ?x (INil)))))
      ((union ?z ?x)) :ruleset matmul_backend :name "cast of a blessed cast")
"""
UNRELATED = """
(rule ((= ?x (Op (Cast ?n (F32)) ?i))) ((set (dtype ?x) (F16))) :ruleset expr :name "lies")
"""


def quiet(_line: str) -> None:
    """No progress."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("a.egg", USES), ("b.egg", DECLARES), ("c.egg", UNRELATED)):
        (tmp_path / name).write_text(text)
    return tmp_path


def findings(*paths: Path) -> dict[str | None, Finding]:
    settings = Settings(paths=tuple(str(path) for path in paths), jobs=1)
    return {item.rule: item for item in campaign.check(settings, quiet).findings}


def test_alone_the_file_is_unsupported(folder: Path) -> None:
    found = findings(folder / "a.egg")["cast of a blessed cast"]
    assert found.verdict is Verdict.UNSUPPORTED
    assert "blessed" in found.message


def test_with_the_file_that_declares_it_the_rule_is_judged(folder: Path) -> None:
    found = findings(folder / "a.egg", folder / "b.egg")["cast of a blessed cast"]
    assert found.verdict is Verdict.AGREES
    assert found.fired > 0


def test_a_file_that_is_not_needed_changes_nothing(folder: Path) -> None:
    found = findings(folder / "a.egg", folder / "b.egg", folder / "c.egg")
    assert found["cast of a blessed cast"].verdict is Verdict.AGREES


def test_a_case_remembers_what_its_file_relies_on(folder: Path) -> None:
    wrong = USES.replace("(union ?z ?x)", "(union ?z (Op (Cast ?n (F16)) (ICons ?x (INil))))")
    (folder / "a.egg").write_text(wrong)
    found = findings(folder / "a.egg", folder / "b.egg")["cast of a blessed cast"]
    assert found.verdict is Verdict.MISREAD
    assert found.counterexample is not None
    assert found.counterexample.case.context == (str(folder / "b.egg"),)
    again = campaign.replay(found.counterexample.token, Settings(paths=()))
    assert isinstance(again, Replay)
    assert again.evidence.verdict is Verdict.MISREAD
