from __future__ import annotations

import json
import math

import msgspec

from rulecheck.records import Lint, Report
from rulecheck.report import Style, render, render_replay
from rulecheck.report.json import finite
from tests import samples

TOP = ["schema", "tool", "environment", "argv", "seed", "summary", "rules"]
SUMMARY = ["errors", "warnings", "inconclusive", "rules", "cases", "elapsed_s"]
RULE = [
    "name",
    "file",
    "line",
    "column",
    "verdict",
    "severity",
    "code",
    "message",
    "cases",
    "fired",
    "compared",
    "detectable",
    "counterexample",
    "blame",
    "lints",
]


def refuse(constant: str) -> float:
    raise ValueError(constant)


def parse(report: Report) -> dict[str, object]:
    data: dict[str, object] = json.loads(render("json", report, Style()), parse_constant=refuse)
    return data


def first(report: Report) -> dict[str, object]:
    rules = parse(report)["rules"]
    assert isinstance(rules, list)
    rule: dict[str, object] = rules[0]
    return rule


def test_the_keys_are_those_of_the_design() -> None:
    data = parse(samples.report(samples.misread()))
    assert list(data) == TOP
    assert data["schema"] == 1
    assert data["environment"] == {"python": "3.11.7", "egglog": "13.1.0"}
    assert isinstance(data["summary"], dict)
    assert list(data["summary"])[: len(SUMMARY)] == SUMMARY
    assert set(RULE) <= first(samples.report(samples.misread())).keys()


def test_lints_are_listed_with_their_place() -> None:
    assert first(samples.report(samples.finding()))["lints"] == []
    lint = Lint("RC501", "C is copied", "convert it", samples.FIELD_SPAN)
    assert first(samples.report(samples.finding(lints=(lint,))))["lints"] == [
        {
            "code": "RC501",
            "message": "C is copied",
            "hint": "convert it",
            "line": 5,
            "column": 27,
        }
    ]


def test_the_summary_counts() -> None:
    report = samples.report(
        samples.misread(), samples.unreadable(), samples.elided(), samples.vacuous()
    )
    summary = parse(report)["summary"]
    assert isinstance(summary, dict)
    assert summary["errors"] == 2
    assert summary["warnings"] == 1
    assert summary["inconclusive"] == 1
    assert summary["rules"] == 3
    assert summary["cases"] == 108


def test_rules_keep_their_order_and_a_file_has_no_name() -> None:
    rules = parse(samples.report(samples.unreadable(), samples.finding(), samples.misread()))
    assert isinstance(rules["rules"], list)
    assert [rule["name"] for rule in rules["rules"]] == [None, "widen-deep", "widen"]


def test_a_counterexample_holds_the_token_and_the_call() -> None:
    rule = first(samples.report(samples.misread()))
    assert (rule["line"], rule["column"]) == (5, 27)
    example = rule["counterexample"]
    assert isinstance(example, dict)
    assert example["token"] == samples.TOKEN
    assert example["call"]["c"]["dtype"] == "F32"
    assert example["original_call"]["c"]["dtype"] == "Bf16"
    assert rule["blame"] == ["widen"]
    assert first(samples.report(samples.finding()))["counterexample"] is None


def test_numbers_are_finite_or_null() -> None:
    rule = first(samples.report(samples.mismatch()))
    example = rule["counterexample"]
    assert isinstance(example, dict)
    assert example["worst"]["got"] is None
    assert example["worst"]["high"] is None
    assert example["worst"]["low"] == 2.49
    assert finite({"a": (math.inf, -math.inf, [math.nan, 1.5])}) == {"a": [None, None, [None, 1.5]]}


def test_any_text_and_any_number_survives() -> None:
    odd = "\ud800 \x1b \u2028 →"
    finding = msgspec.structs.replace(samples.finding(), rule=odd, fired=2**70)
    shown = render("json", samples.report(finding), Style())
    assert shown.isascii()
    rule = first(samples.report(finding))
    assert rule["name"] == odd
    assert rule["fired"] == 2**70


def test_a_replay_is_json_too() -> None:
    data = json.loads(render_replay("json", samples.replay(), Style()), parse_constant=refuse)
    assert data["schema"] == 1
    assert data["case"]["choices"] == [["beta", "1/3"]]
    assert data["tried"] == {"beta": "1/3", "dims": "3x5x7"}
    assert data["fields"][0] == {"field": "c_dtype", "before": "Bf16", "after": "F32"}
    assert data["evidence"]["worst"]["got"] is None
    assert data["elements"][0]["offset"] == 4
