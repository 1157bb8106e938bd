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


def encode(case: Case) -> str:
    """Print a case as one token."""
    packed = zlib.compress(msgspec.json.encode(msgspec.structs.astuple(case)), 9)
    return _PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


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
        text = zlib.decompressobj().decompress(packed, _MAX_BYTES)
        return msgspec.convert(
            dict(zip(Case.__struct_fields__, msgspec.json.decode(text), strict=True)), Case
        )
    except (binascii.Error, zlib.error, msgspec.MsgspecError, ValueError, TypeError) as error:
        raise UserError(
            "the replay token is damaged or was made by another version",
            "copy the whole line behind 'replay:', or pass the case's JSON file",
        ) from error


def load(text: str) -> Case:
    """Read a case from JSON, as ``--format json`` prints it.

    Raises:
        UserError: the text is no case.
    """
    try:
        return msgspec.json.decode(text, type=Case)
    except msgspec.MsgspecError as error:
        raise UserError(
            f"the file holds no case: {error}", "save the 'case' object of a counterexample"
        ) from error
