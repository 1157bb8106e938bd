from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rulecheck.records import Finding, Lint, Severity, Verdict
from rulecheck.report import FORMATS, REPLAY_FORMATS, Style, render, render_replay
from rulecheck.report.calls import call_fields, changed_fields, describe_call
from tests import samples


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / samples.FILE).write_text(samples.SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def text(*findings: Finding, style: Style | None = None) -> str:
    return render("text", samples.report(*findings), style or Style())


def test_a_finding_has_place_source_values_call_hint_and_replay() -> None:
    lines = text(samples.misread()).split("\n")
    assert lines[:3] == [
        f"rules/widen.egg:5:27: misread[RC201]: {samples.misread().message}",
        "    5 |             (Bf16) (Bf16) (F32) (F32)) ?inputs)))",
        "      |                           ^^^^^",
    ]
    assert "   C (c_dtype): expected Bf16, actual F32" in lines
    assert "   call: c_dtype Bf16 → F32, d_dtype Bf16 → F32" in lines
    assert "   cases: 36 agrees, 18 misread; 54 cases, 0 elements" in lines
    assert "   tried: alpha {1, 1/64, -1}, beta {0, 1, 1/3}" in lines
    assert "   hint: restrict the rule to beta = 0, or cast C in the new input list" in lines
    assert f"   replay: rulecheck replay {samples.TOKEN}" in lines


def test_the_replay_line_is_never_broken() -> None:
    long = msgspec.structs.replace(samples.counterexample(samples.MISREAD), token="t" * 300)
    shown = text(msgspec.structs.replace(samples.misread(), counterexample=long))
    assert f"   replay: rulecheck replay {'t' * 300}\n" in shown


def test_a_finding_without_a_field_points_at_the_rule() -> None:
    shown = text(samples.vacuous())
    assert shown.startswith("rules/widen.egg:2:1: vacuous[RC401]: ")
    assert "    2 | (rule\n      | ^^^^^\n" in shown


def test_a_file_that_cannot_be_read_is_reported_without_source() -> None:
    shown = text(samples.unreadable())
    assert shown.startswith(
        "rules/broken.egg:3:9: invalid[RC101]: this parenthesis is never closed\n   hint: close it"
    )


def test_the_worst_element_shows_values_and_the_allowed_interval() -> None:
    shown = " ".join(text(samples.mismatch()).split())
    assert (
        "worst: element 4: got nan, as written 2.5, float64 2.5000001, allowed [2.49, inf]" in shown
    )
    assert "differing: 17 of 1,234 elements" in shown
    assert "error/bound: 12.5" in shown
    assert "call: m=3 n=5 k=7; alpha 1, beta 0.3333333333333333, epilogue DEFAULT" in shown


def test_ok_lines_say_how_much_was_tried() -> None:
    shown = text(samples.finding())
    assert shown.startswith(
        "ok  widen-deep  agrees  (54 cases, 1,234 elements; "
        "would have seen a relative effect of 2^-9)\n"
    )
    assert "1 rule in 1 file: 0 errors, 0 warnings, 0 inconclusive; 54 cases in 1.25 s" in shown


LINT = Lint("RC501", "C is copied", "convert it", samples.FIELD_SPAN)


@pytest.mark.parametrize("make", [samples.misread, samples.elided, samples.finding])
def test_lints_stand_below_any_finding(make: Callable[[], Finding]) -> None:
    plain = msgspec.structs.replace(make(), lints=())
    linted = msgspec.structs.replace(plain, lints=(LINT, LINT))
    line = "   lint RC501 at 5:27: C is copied; convert it\n"
    assert text(linted).replace(line * 2, "") == text(plain)
    assert text(linted) != text(plain)


def test_a_lint_without_a_hint_and_a_long_one() -> None:
    bare = msgspec.structs.replace(LINT, hint="")
    long = msgspec.structs.replace(LINT, message="word " * 40)
    shown = text(samples.finding(lints=(bare, long)), style=Style(width=60))
    assert "   lint RC501 at 5:27: C is copied\n" in shown
    lines = shown[shown.index("   lint") :].split("\n")[1:4]
    assert all(len(one) <= 60 for one in lines)
    assert lines[1].startswith("      word word")


def test_quiet_hides_the_lints_of_what_is_fine() -> None:
    assert text(samples.finding(lints=(LINT,)), style=Style(quiet=True)) == ""


def test_a_near_tie_is_ok_and_explained() -> None:
    shown = text(samples.finding(Verdict.NEAR_TIE, message="two scores inside the noise"))
    assert "near-tie" in shown
    assert "note: two scores inside the noise" in shown


def test_nothing_checked_is_said() -> None:
    assert text() == "nothing was checked: 0 files, no rule\n"


def test_quiet_leaves_out_what_is_fine() -> None:
    assert text(samples.finding(), style=Style(quiet=True)) == ""
    assert text(samples.finding(), samples.vacuous(), style=Style(quiet=True)).count("\n\n") == 0


def test_color_marks_the_head_and_nothing_else() -> None:
    shown = text(samples.misread(), style=Style(color=True))
    assert shown.startswith("\x1b[1;31mrules/widen.egg:5:27: misread[RC201]\x1b[0m: C is read")
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == text(samples.misread())


@pytest.mark.parametrize("form", ["text", "concise"])
def test_no_format_for_people_passes_on_control_characters(form: str) -> None:
    evil = "\x1b]0;evil\x07\u202e\nrules/x.egg:1:1: agrees"
    finding = msgspec.structs.replace(
        samples.misread(file=evil),
        rule=evil,
        message=evil,
        hint=evil,
        notes=(evil,),
        blame=(evil,),
        tried=((evil, (evil,)),),
        lints=(Lint("RC501", evil, evil, samples.FIELD_SPAN),),
    )
    fine = samples.finding(rule=evil, lints=finding.lints)
    shown = render(form, samples.report(finding, fine), Style())
    assert not set(shown) & {"\x1b", "\x07", "\u202e", "\r"}
    assert "\nrules/x.egg" not in shown


def test_concise_is_one_line_per_finding_that_is_not_fine() -> None:
    report = samples.report(samples.misread(), samples.finding(), samples.unreadable())
    lines = render("concise", report, Style()).split("\n")
    assert lines[0].startswith("rules/widen.egg:5:27: misread[RC201] widen: C is read as F32")
    assert lines[1].startswith("rules/broken.egg:3:9: invalid[RC101] this parenthesis")
    assert lines[2].startswith("2 rules in 2 files: 2 errors")
    assert lines[3:] == [""]


def test_call_fields_have_the_names_of_rule_authors() -> None:
    fields = call_fields(samples.CALL)
    assert fields["lda"] == "3"
    assert fields["c_dtype"] == "Bf16"
    assert fields["stride_d"] == "0"
    assert fields["bias_dtype"] == "unset"
    assert fields["c_is_d"] == "no"
    assert (fields["m"], fields["n"], fields["k"]) == ("3", "5", "7")
    assert fields["epilogue"] == "DEFAULT"


def test_changed_fields_are_the_changed_ones() -> None:
    assert changed_fields(samples.CALL, samples.CALL) == []
    assert changed_fields(samples.CALL, samples.WIDENED) == [
        ("c_dtype", "Bf16", "F32"),
        ("d_dtype", "Bf16", "F32"),
    ]


def test_a_batched_call_is_described_with_its_strides() -> None:
    layout = msgspec.structs.replace(samples.CALL.a, batch_count=3, batch_stride=21)
    call = msgspec.structs.replace(samples.CALL, a=layout)
    assert "A Bf16 COL ld 3 batch 3 stride 21" in describe_call(call)


def test_unchanged_calls_are_said_to_be_so() -> None:
    same = msgspec.structs.replace(samples.MISREAD, member_call=samples.CALL)
    finding = msgspec.structs.replace(
        samples.misread(), counterexample=samples.counterexample(same)
    )
    assert "call: unchanged: m=3" in text(finding)


def test_many_violations_are_counted() -> None:
    many = msgspec.structs.replace(samples.MISREAD, violations=(samples.VIOLATION,) * 9)
    finding = msgspec.structs.replace(
        samples.misread(), counterexample=samples.counterexample(many)
    )
    shown = text(finding)
    assert shown.count("C (c_dtype)") == 6
    assert "and: 3 more" in shown


def test_replay_shows_graphs_call_operands_and_elements() -> None:
    shown = render_replay("text", samples.replay(), Style())
    for part in (
        "rules/widen.egg: widen: mismatch[RC301]: the result leaves the bound",
        "   choices: beta 1/3; dims 3x5x7",
        "graph as written\n   (Cast 15\n     (Op (cublaslt …) …)\n     (F32))\n",
        "   c_dtype  Bf16    F32    changed\n   m        3       3\n",
        "   A     21 Bf16: 1.5, -2, 0.25, …\n",
        "   4        3    2.5         2.5000001  [2.49, 2.51]\n",
        "   differing: 17 of 1,234 elements\n",
    ):
        assert part in shown
    assert "has changed" not in shown


def test_replay_says_that_the_rule_has_changed() -> None:
    shown = render_replay("text", samples.replay(rule_changed=True), Style())
    assert "note: the rule's text has changed since the token was made" in shown


def test_replay_of_a_contract_violation_has_no_elements() -> None:
    shown = render_replay("text", samples.replay(samples.MISREAD, elements=()), Style())
    assert "elements, worst first" not in shown
    assert "hint: restrict the rule to beta = 0" in shown


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_every_kind_of_finding(name: str) -> None:
    report = samples.report(
        samples.misread(),
        samples.mismatch(),
        samples.unreadable(),
        samples.elided(),
        samples.vacuous(),
        samples.finding(),
    )
    assert {one.severity for one in report.findings} == set(Severity)
    shown = render(name, report, Style())
    assert shown.endswith("\n")
    assert "widen-guarded" in shown


@pytest.mark.parametrize("name", REPLAY_FORMATS)
def test_every_format_renders_a_replay(name: str) -> None:
    assert "widen" in render_replay(name, samples.replay(), Style())
