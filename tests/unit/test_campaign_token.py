"""A case as one word, there and back; and words that are none."""

from __future__ import annotations

import base64
import json
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulecheck.campaign import token
from rulecheck.errors import UserError
from rulecheck.records import Case
from tests.samples import CASE

TEXT = st.text(max_size=30)
CASES = st.builds(
    Case,
    dialect=TEXT,
    file=TEXT,
    rule=TEXT,
    text_hash=TEXT,
    choices=st.lists(st.tuples(TEXT, TEXT), max_size=4).map(tuple),
    input_seed=st.integers(-(2**63), 2**63 - 1),
    backend=TEXT,
    union=st.integers(0, 100),
)


@given(CASES)
def test_every_case_is_one_word_there_and_back(case: Case) -> None:
    word = token.encode(case)
    assert token.decode(word) == case
    assert word.isascii()
    assert all(letter.isalnum() or letter in "-_" for letter in word)


@given(CASES)
def test_a_case_passes_through_json(case: Case) -> None:
    assert token.load(msgspec.json.encode(case).decode()) == case


def test_equal_cases_have_equal_tokens() -> None:
    assert token.encode(CASE) == token.encode(msgspec.structs.replace(CASE))
    assert token.encode(CASE) != token.encode(msgspec.structs.replace(CASE, input_seed=1))


def test_tokens_are_short_enough_to_paste() -> None:
    assert len(token.encode(CASE)) < 200


@given(st.text(max_size=60))
def test_any_other_word_is_a_usage_error(word: str) -> None:
    for text in (word, "rc1-" + word):
        with pytest.raises(UserError):
            token.decode(text)


@pytest.mark.parametrize("keep", [10, 20, -4, -1])
def test_a_token_that_was_cut_is_damaged(keep: int) -> None:
    with pytest.raises(UserError, match="damaged"):
        token.decode(token.encode(CASE)[:keep])


@given(st.integers(4, len(token.encode(CASE)) - 1), st.sampled_from("AZaz09-_"))
def test_a_changed_letter_never_gives_another_case(position: int, letter: str) -> None:
    word = token.encode(CASE)
    changed = word[:position] + letter + word[position + 1 :]
    try:
        found = token.decode(changed)
    except UserError:
        return
    assert found == CASE


def pack(value: object) -> str:
    data = zlib.compress(json.dumps(value).encode())
    return "rc1-" + base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        "text",
        7,
        None,
        [1] * 8,
        ["luminal", "a", "b", "c", [], 0],
        ["luminal", "a", "b", "c", [], 0, "cpu", "0"],
        [*msgspec.structs.astuple(CASE), "more"],
        ["luminal", "a", "b", "c", [["axis"]], 0, "cpu", 0],
        ["luminal", "a", "b", "c", [], "0", "cpu", 0],
    ],
)
def test_well_packed_nonsense_is_damaged(value: object) -> None:
    with pytest.raises(UserError, match="damaged"):
        token.decode(pack(value))


def test_fields_that_have_defaults_may_be_missing() -> None:
    """A token stays good when the next version has one field more."""
    first = ["luminal", "a.egg", "r", "hash", [["beta", "1"]], 3, "cpu"]
    found = token.decode(pack(first))
    assert found == Case("luminal", "a.egg", "r", "hash", (("beta", "1"),), 3, "cpu")


def test_a_bomb_is_refused_in_bounded_memory() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" * (1 << 24), 9)).decode().rstrip("=")
    with pytest.raises(UserError, match="damaged"):
        token.decode("rc1-" + bomb)


def test_what_is_no_token_is_told_apart_from_a_damaged_one() -> None:
    with pytest.raises(UserError, match="neither a file nor a replay token") as raised:
        token.decode("rules/a.egg")
    assert "rc1-" in str(raised.value)


NONSENSE = ("", "[]", "{}", '{"rule": 1}', "not json", "null", b"\xff\xfe", '{"x":' + "[" * 9999)


@pytest.mark.parametrize("text", NONSENSE, ids=range(len(NONSENSE)))
def test_a_file_without_a_case_is_a_usage_error(text: str | bytes) -> None:
    with pytest.raises(UserError, match="holds no case"):
        token.load(text)
