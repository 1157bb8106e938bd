"""What works on this machine, and why the rest does not."""

from __future__ import annotations

import ctypes
import enum
import importlib.metadata
import importlib.resources
import platform
from collections.abc import Callable, Iterable
from typing import NamedTuple

import rulecheck
from rulecheck.errors import UserError

Probe = tuple[str, bool, str]

EGGLOG = "13.1.0"  # 13.2.0 returns false matches; no other release has been examined
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


class State(enum.Enum):
    """The value is what a line starts with. ABSENT is something that the default path can miss."""

    OK = "ok"
    ABSENT = "-"
    BROKEN = "FAIL"


class Check(NamedTuple):
    """One line of the answer."""

    name: str
    state: State
    detail: str


def examine(probe: Callable[[], Iterable[Probe]]) -> list[Check]:
    """Return all checks, cheap ones first.

    Args:
        probe: starts the children and returns (name, ok, detail) for each of their canaries.
    """
    checks = [
        Check("python", State.OK, f"{platform.python_version()} ({platform.machine()})"),
        Check("rulecheck", State.OK, rulecheck.__version__),
        _engine(),
        *(_installed(name, State.BROKEN) for name in ("numpy", "ml_dtypes", "msgspec", "click")),
        _installed("torch", State.ABSENT),
    ]
    try:
        checks += [
            Check(name, State.OK if ok else State.BROKEN, detail) for name, ok, detail in probe()
        ]
    except UserError as error:
        checks.append(Check("children", State.BROKEN, error.what))
    return [*checks, _cpu(checks), _cublaslt()]


def works(checks: Iterable[Check]) -> bool:
    """Return whether everything that the default path needs is fine."""
    return all(check.state is not State.BROKEN for check in checks)


def show(checks: list[Check]) -> str:
    """Return a line per check, and what they come to."""
    width = max(len(check.name) for check in checks)
    lines = [f"{check.state.value:<4}  {check.name:<{width}}  {check.detail}" for check in checks]
    end = "`rulecheck check` works here" if works(checks) else "`rulecheck check` cannot work here"
    return "".join(line + "\n" for line in [*lines, "", end])


def _version(distributions: Iterable[str]) -> str | None:
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _engine() -> Check:
    check = _installed("egglog", State.BROKEN)
    if check.state is State.OK and check.detail != EGGLOG:
        detail = f"{check.detail}, but only {EGGLOG} is trusted: pip install egglog=={EGGLOG}"
        return Check("egglog", State.BROKEN, detail)
    return check


def _installed(name: str, otherwise: State) -> Check:
    version = _version((name,))
    if version is None:
        return Check(name, otherwise, f"not installed: pip install {name}")
    return Check(name, State.OK, version)


def _cpu(checks: list[Check]) -> Check:
    """Judge the default backend by what it needs."""
    broken = [check.name for check in checks if check.state is State.BROKEN]
    if broken:
        return Check("backend cpu", State.BROKEN, f"needs {', '.join(broken)}")
    return Check("backend cpu", State.OK, "the default: a model of cuBLASLt on bytes")


def _cublaslt() -> Check:
    """Say what the GPU backend lacks here: everything, not the first thing."""
    lacking = []
    backends = importlib.resources.files("rulecheck") / "backends"
    if not (backends / "cublaslt.py").is_file():
        lacking.append("this version of rulecheck does not have it")
    for name, distributions in (("cupy", _CUPY), ("nvmath", ("nvmath-python",))):
        if _version(distributions) is None:
            lacking.append(f"{name} is not installed (pip install 'rulecheck[cuda13]')")
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        lacking.append("no NVIDIA driver (libcuda.so.1 is not found)")
    if lacking:
        return Check("backend cublaslt", State.ABSENT, "not available: " + "; ".join(lacking))
    return Check("backend cublaslt", State.OK, "cupy, nvmath and the driver are there")
