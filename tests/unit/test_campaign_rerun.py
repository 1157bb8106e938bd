"""Replay: the case again, or why there is none any more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rulecheck import campaign
from rulecheck.campaign import token
from rulecheck.campaign.rerun import _fields, _rerun, replay
from rulecheck.campaign.workshop import Workshop
from rulecheck.errors import UserError
from rulecheck.records import Case, Failure, FailureKind, RuleFile, Settings, Verdict
from tests.gemms import gemm
from tests.rule_texts import RESIDUAL, fields, rename, swap

DOUBLED = fields(beta="2.0")(RESIDUAL)
SETTINGS = Settings(paths=())


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with Workshop(SETTINGS) as running:
        yield running


def load(shop: Workshop, path: Path, text: str) -> RuleFile:
    path.write_text(text, encoding="utf-8")
    shop._loaded = None  # the file has changed on disk
    shop._sources.clear()
    file = shop.load(str(path))
    assert isinstance(file, RuleFile)
    return file


def case_of(file: RuleFile, **changes: object) -> Case:
    rule = file.rules[0]
    case = Case("luminal", file.path, rule.name, rule.text_hash, (), 0, "cpu")
    return msgspec.structs.replace(case, **changes)


def test_a_replay_shows_everything(shop: Workshop, tmp_path: Path) -> None:
    file = load(shop, tmp_path / "a.egg", DOUBLED)
    found = _rerun(shop, file, case_of(file))
    assert found.evidence.verdict is Verdict.MISMATCH
    assert not found.rule_changed
    assert len(found.elements) == 8
    assert [name for name, _ in found.operands] == ["A0", "B1", "x2"]
    changed = [name for name, before, after in found.fields if before != after]
    assert {"beta", "c_is_d"} <= set(changed)
    assert [row[0] for row in found.fields][: len(changed)] == changed
    assert dict(found.tried)["cublaslt.beta"] == "0"


def test_choices_lead_to_their_case(shop: Workshop, tmp_path: Path) -> None:
    file = load(shop, tmp_path / "a.egg", DOUBLED)
    found = _rerun(shop, file, case_of(file, choices=(("cublaslt.alpha", "1/3"),)))
    assert dict(found.tried)["cublaslt.alpha"] == "1/3"
    assert found.case.choices == (("cublaslt.alpha", "1/3"),)


def test_a_changed_rule_is_told(shop: Workshop, tmp_path: Path) -> None:
    file = load(shop, tmp_path / "a.egg", DOUBLED)
    assert _rerun(shop, file, case_of(file, text_hash="another")).rule_changed


def test_a_rule_without_a_name_is_found_where_it_has_moved(shop: Workshop, tmp_path: Path) -> None:
    nameless = swap((' :name "residual"', ""))(DOUBLED)
    before = case_of(load(shop, tmp_path / "a.egg", nameless))
    assert before.rule == "a.egg:1"
    after = load(shop, tmp_path / "a.egg", "\n; a line more\n" + nameless)
    found = _rerun(shop, after, before)
    assert found.case.rule == "a.egg:3"
    assert not found.rule_changed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (rename(RESIDUAL, "another"), "has no valid rule called 'residual'"),
        (swap(("(= ?sum", "(= ?one 1.0) (> ?one 2.0) (= ?sum"))(RESIDUAL), "no longer matches"),
    ],
)
def test_a_rule_that_is_gone_or_no_longer_matches_is_a_usage_error(
    shop: Workshop, tmp_path: Path, text: str, words: str
) -> None:
    case = case_of(load(shop, tmp_path / "a.egg", DOUBLED))
    with pytest.raises(UserError, match=words):
        _rerun(shop, load(shop, tmp_path / "a.egg", text), case)


def test_a_member_that_is_not_added_any_more_is_a_usage_error(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = load(shop, tmp_path / "a.egg", DOUBLED)
    with pytest.raises(UserError, match="adds no member on this case: it did not fire"):
        _rerun(shop, file, case_of(file, ordinal=7))
    gone = Failure(FailureKind.CRASH, "the engine is gone")
    monkeypatch.setattr(shop, "match", lambda *_: gone)
    with pytest.raises(UserError, match="the engine is gone"):
        _rerun(shop, file, case_of(file))


def test_a_case_whose_file_cannot_be_had_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("luminal", str(tmp_path / "gone.egg"), "r", "h", (), 0, "cpu")
    with pytest.raises(UserError, match="cannot be read"):
        replay(token.encode(case), SETTINGS)
    broken = Failure(FailureKind.CRASH, "the parser died")
    monkeypatch.setattr(Workshop, "load", lambda *_, **__: broken)
    with pytest.raises(UserError, match="the parser died"):
        replay(token.encode(case), SETTINGS)


def test_a_case_is_read_from_a_file_or_a_token(tmp_path: Path) -> None:
    rules = tmp_path / "a.egg"
    rules.write_text(DOUBLED, encoding="utf-8")
    (finding,) = campaign.check(Settings(paths=(str(rules),)), lambda _: None).findings
    assert finding.counterexample is not None
    case = tmp_path / "case.json"
    case.write_bytes(msgspec.json.encode(finding.counterexample.case))
    by_file = replay(str(case), SETTINGS)
    by_token = replay(finding.counterexample.token, SETTINGS)
    assert by_file == by_token
    assert json.loads(msgspec.json.encode(by_file.case))["rule"] == "residual"
    with pytest.raises(UserError):
        replay(str(tmp_path), SETTINGS)  # a folder is no file, and its name no token
    with pytest.raises(UserError):
        replay("rc1-" + "A" * 5000, SETTINGS)


def test_calls_are_laid_side_by_side_changed_fields_first() -> None:
    before = gemm(5, 7, 11)
    after = msgspec.structs.replace(before, alpha=2.0, d=msgspec.structs.replace(before.d, ld=9))
    rows = _fields(before, after)
    assert rows[:2] == (("d.ld", "5", "9"), ("alpha", "1.0", "2.0"))
    assert all(one == other for _, one, other in rows[2:])
    assert {row[1] for row in _fields(None, after)} == {"-"}
    assert _fields(None, None) == ()
