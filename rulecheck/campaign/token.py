"""A case as one word: ``rulecheck replay TOKEN``."""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec

from rulecheck.errors import UserError
from rulecheck.records import Case

_PREFIX = "rc1-"
_MAX_BYTES = 1 << 16


class _Packed(Case, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A case as the bare list of its fields."""


def encode(case: Case) -> str:
    """Print a case as one token."""
    text = msgspec.json.encode(_Packed(*msgspec.structs.astuple(case)))
    return _PREFIX + base64.urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")


def decode(token: str) -> Case:
    """Read a token.

    Raises:
        UserError: the text is no token of this version.
    """
    if not token.startswith(_PREFIX):
        raise UserError(
            f"{token[:40]!r} is neither a file nor a replay token",
            f"a token starts with {_PREFIX!r} and is printed behind 'replay:'",
        )
    body = token.removeprefix(_PREFIX)
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        fields = msgspec.json.decode(_unpack(packed), type=_Packed)
    except (binascii.Error, zlib.error, msgspec.MsgspecError, ValueError) as error:
        raise UserError(
            "the replay token is damaged or was made by another version",
            "copy the whole line behind 'replay:', or pass the case's JSON file",
        ) from error
    return Case(*msgspec.structs.astuple(fields))


def _unpack(packed: bytes) -> bytes:
    """Decompress in bounded memory; what ends before its checksum was cut."""
    stream = zlib.decompressobj()
    text = stream.decompress(packed, _MAX_BYTES)
    if not stream.eof:
        raise zlib.error("too long, or cut")
    return text


def load(text: str | bytes) -> Case:
    """Read the one case in a JSON text: a case, a replay, a counterexample or a whole report.

    Raises:
        UserError: the text holds no case, or several.
    """
    try:
        found = [msgspec.convert(item, Case) for item in _cases(msgspec.json.decode(text))]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UserError(
            f"the file holds no case: {error}",
            "save what 'rulecheck check --format json' or 'replay --format json' prints",
        ) from error
    if len(found) != 1:
        raise UserError(
            f"the file holds {len(found) or 'no'} cases, not one",
            "give the token of one of them, or run check with --rule to get one",
        )
    return found[0]


def _cases(data: object) -> list[object]:
    """Every case inside a report, a rule, a counterexample, a replay, or the case itself."""
    if isinstance(data, list):
        return [case for item in data for case in _cases(item)]
    if not isinstance(data, dict):
        return []
    if "text_hash" in data:
        return [data]
    return [case for key in ("case", "counterexample", "rules") for case in _cases(data.get(key))]
