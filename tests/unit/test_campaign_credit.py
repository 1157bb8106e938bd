"""Rules whose rows mean nothing by themselves, and the rules that use those rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from rulecheck import campaign
from rulecheck.records import Finding, Settings, Severity, Verdict
from tests.rule_texts import LAYOUT

DECLARED = "(relation small (Expression))\n"
MAKER = """(rule ((= ?x (Op (Cast ?n ?t) (ICons ?y (INil))))) ((small ?n))
  :ruleset matmul_backend :name "maker")
"""
OTHER_MAKER = """(rule ((= ?x (Op (Cast ?n (F16)) (ICons ?y (INil))))) ((small ?n))
  :ruleset matmul_backend :name "other maker")
"""
RELAY = """(relation blessed (Expression))
(rule ((small ?n)) ((blessed ?n)) :ruleset matmul_backend :name "relay")
"""


def user(result: str, relation: str = "small") -> str:
    """A rule that drops a cast to the type that is there already, or makes something else of it."""
    return f"""(rule ((= ?x (Op (Cast ?n ?t) (ICons ?y (INil)))) (= ?t (dtype ?y)) ({relation} ?n))
  ((union ?x {result})) :ruleset matmul_backend :name "user")
"""


RIGHT, WRONG = "?y", "(Op (Cast ?n (Int)) (ICons ?y (INil)))"
BROKEN = user(RIGHT).replace('"user"', '"broken"').replace("(dtype ?y)", "(nothing ?y)")


def judge(tmp_path: Path, text: str, rule: str | None = None) -> dict[str | None, Finding]:
    path = tmp_path / "rules.egg"
    path.write_text(text, encoding="utf-8")
    report = campaign.check(Settings(paths=(str(path),), jobs=1, rule=rule), lambda _: None)
    return {item.rule: item for item in report.findings}


@pytest.mark.parametrize("more", ["", OTHER_MAKER])
def test_a_rule_is_as_right_as_what_uses_its_rows(tmp_path: Path, more: str) -> None:
    found = judge(tmp_path, DECLARED + MAKER + user(RIGHT) + more)
    assert found["user"].verdict is Verdict.AGREES
    maker = found["maker"]
    assert (maker.verdict, maker.code, maker.severity) == (Verdict.AGREES, "RC000", Severity.OK)
    assert maker.message == "as what uses its rows does: user"
    assert maker.fired > 0
    assert maker.compared == found["user"].compared > 0


def test_what_is_handed_on_counts_too(tmp_path: Path) -> None:
    found = judge(tmp_path, DECLARED + MAKER + RELAY + user(RIGHT, "blessed"))
    assert found["relay"].verdict is Verdict.AGREES
    assert found["maker"].message == "as what uses its rows does: relay"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (MAKER, None),  # nothing uses its rows
        (MAKER + user(WRONG), None),
        (MAKER + user(RIGHT) + user(WRONG).replace('"user"', '"other"'), None),
        (MAKER + "(small (MNum 35))\n" + user("?y"), "maker"),  # its user is not judged
        (MAKER + LAYOUT, None),
        (MAKER + user(RIGHT) + BROKEN, None),
    ],
)
def test_without_that_nothing_is_shown_about_it(
    tmp_path: Path, text: str, rule: str | None
) -> None:
    maker = judge(tmp_path, DECLARED + text, rule)["maker"]
    assert (maker.verdict, maker.code) == (Verdict.UNSUPPORTED, "RC404")
    assert maker.severity is Severity.INCONCLUSIVE
