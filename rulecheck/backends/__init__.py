"""Backends by name. Modules load only when asked for, so that a name costs no import."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from rulecheck.backends.protocol import Backend
from rulecheck.errors import InternalError, UserError

__all__ = ["BACKENDS", "Backend", "index", "load"]


def index(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Turn rows (name, ``module:Class``) into the registry.

    Raises:
        InternalError: a name is given twice.
    """
    table: dict[str, str] = {}
    for name, target in rows:
        if name in table:
            raise InternalError(f"two backends are named {name!r}: {table[name]} and {target}")
        table[name] = target
    return table


BACKENDS = index([("cpu", "rulecheck.backends.cpu:CpuModel")])


def load(name: str) -> Backend:
    """Return the backend of that name.

    Raises:
        UserError: no such backend.
    """
    target = BACKENDS.get(name)
    if target is None:
        raise UserError(f"unknown backend {name!r}", f"choose one of: {', '.join(BACKENDS)}")
    module, _, attribute = target.partition(":")
    backend: Backend = getattr(importlib.import_module(module), attribute)()
    return backend
