"""egglog's native module, and the only import of it.

``import egglog`` runs the whole package: 0.25 s and cloudpickle, which is what lets a rule file run
Python. A stub package in its place makes ``egglog.bindings`` load alone in 30 ms.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from rulecheck.errors import UserError

Result = TypeVar("Result")

# A PanicSpan would turn the next error message into a panic; this one prints as a place.
_OWN_PLACE = "rulecheck"


class EngineError(Exception):
    """The engine refused or panicked; the text is its own. The EGraph must not be used again."""


def _load() -> Any:
    """Import ``egglog.bindings`` without running ``egglog/__init__.py``."""
    if "egglog" not in sys.modules:
        spec = importlib.util.find_spec("egglog")
        if spec is None or spec.submodule_search_locations is None:
            raise UserError("egglog is not installed", "pip install egglog==13.1.0")
        package = types.ModuleType("egglog")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["egglog"] = package
    return importlib.import_module("egglog.bindings")


egg: Any = _load()
OWN_SPAN: Any = egg.RustSpan(_OWN_PLACE, 0, 0)


def attempt(action: Callable[[], Result]) -> Result:
    """Run ``action``; raise ``EngineError`` for the engine's errors and panics alike.

    A Rust panic arrives as ``pyo3_runtime.PanicException``, which is no ``Exception`` and cannot be
    imported: it is known by its name.
    """
    try:
        return action()
    except egg.EggSmolError as error:
        raise EngineError(str(error.context)) from None
    except UnicodeEncodeError as error:
        raise EngineError(f"text that is not Unicode: {error.reason}") from None
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise EngineError(f"the engine panicked: {error}") from None
        raise


class Parser:
    """The engine's own parser.

    One top-level form at a time, because every node that it returns carries a copy of the whole
    text it was parsed from (egglog 13.x: the cost is nodes times bytes).
    """

    def __init__(self) -> None:
        """Make an EGraph that only ever parses."""
        self._egraph = egg.EGraph()

    def __call__(self, text: str) -> tuple[list[Any], str | None]:
        """Parse one form: (commands, None), or ([], the parser's message)."""
        try:
            return attempt(lambda: list(self._egraph.parse_program(text))), None
        except EngineError as error:
            self._egraph = egg.EGraph()
            return [], str(error)
