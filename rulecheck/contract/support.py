"""cuBLASLt's table of supported type combinations, and lookups in it."""

from __future__ import annotations

import functools
from importlib import resources

import msgspec

from rulecheck.records import DType, GemmCall

_FIELDS = ("compute_type", "scale_dtype", "a_dtype", "b_dtype", "c_dtype", "d_dtype")
_BY_NAME = {dtype.name: dtype.value for dtype in DType}


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One row. Types are spelled as in NVIDIA's tables; ``bias`` None means no epilogue at all.

    ``group`` is ``reg``, ``fp8``, ``fp4`` or ``assumed`` (used in practice and not documented).
    """

    group: str
    compute: tuple[str, ...]
    scale: str
    a: str
    b: str
    c: str
    d: str
    bias: str | None


class Mismatch(msgspec.Struct, frozen=True):
    """The one field in which a call differs from the nearest rows."""

    field: str
    actual: str
    expected: tuple[str, ...]


class _File(msgspec.Struct, frozen=True):
    rows: tuple[Row, ...]


Key = tuple[str, str, str, str, str, str]


@functools.cache
def rows() -> tuple[Row, ...]:
    """Return all rows of the packaged table."""
    text = resources.files("rulecheck").joinpath("data", "cublaslt_support.json").read_bytes()
    return msgspec.json.decode(text, type=_File).rows


@functools.cache
def _index() -> dict[Key, Row]:
    return {
        (compute, row.scale, row.a, row.b, row.c, row.d): row
        for row in rows()
        for compute in row.compute
    }


def _key(call: GemmCall) -> Key:
    names = (call.scale_type, call.a.dtype, call.b.dtype, call.c.dtype, call.d.dtype)
    scale, a, b, c, d = (dtype.storage.name for dtype in names)
    return call.compute_type, scale, a, b, c, d


def support_row(call: GemmCall) -> Row | None:
    """Return the table's row for the call's types, or None if cuBLASLt has none."""
    return _index().get(_key(call))


def nearest(call: GemmCall) -> tuple[Mismatch, ...]:
    """Say which single fields could be changed to reach a row; empty if one is not enough."""
    return _nearest(_key(call))


@functools.cache
def _nearest(key: Key) -> tuple[Mismatch, ...]:
    repairs: dict[int, list[str]] = {}
    for row in _index():
        apart = [i for i, (have, want) in enumerate(zip(key, row, strict=True)) if have != want]
        if len(apart) == 1:
            repairs.setdefault(apart[0], []).append(row[apart[0]])
    return tuple(
        Mismatch(_FIELDS[i], spell(key[i]), tuple(spell(name) for name in dict.fromkeys(names)))
        for i, names in sorted(repairs.items(), reverse=True)
    )


def spell(name: str) -> str:
    """Return a type's name as reports spell it (``BF16`` is ``Bf16``)."""
    return _BY_NAME.get(name, name)
