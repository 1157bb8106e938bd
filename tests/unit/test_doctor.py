from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

from rulecheck import doctor
from rulecheck.doctor import Check, State
from rulecheck.errors import UserError

FINE = (("engine canary", True, "no false match"), ("numerics child", True, "1 + 1 = 2"))


def find(checks: list[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def pretend(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str | None]) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        found = versions.get(name, "real")
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name) if found == "real" else found

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_all_is_fine_here() -> None:
    checks = doctor.examine(lambda: FINE)
    assert doctor.works(checks)
    assert find(checks, "egglog") == Check("egglog", State.OK, "13.1.0")
    assert find(checks, "backend cpu").state is State.OK
    text = doctor.show(checks)
    assert "ok    engine canary" in text
    assert text.endswith("`rulecheck check` works here\n")


def test_a_canary_that_fails_breaks_the_default_path() -> None:
    checks = doctor.examine(lambda: (("engine canary", False, "two false matches"), FINE[1]))
    assert not doctor.works(checks)
    assert find(checks, "backend cpu").detail == "needs engine canary"
    text = doctor.show(checks)
    assert "FAIL  engine canary" in text
    assert text.endswith("`rulecheck check` cannot work here\n")


def test_another_engine_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"egglog": "13.2.0"})
    check = find(doctor.examine(lambda: FINE), "egglog")
    assert check.state is State.BROKEN
    assert "13.2.0, but only 13.1.0 is trusted" in check.detail


def test_the_pin_is_the_one_of_the_package() -> None:
    settings = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f"egglog=={doctor.EGGLOG}" in tomllib.loads(settings)["project"]["dependencies"]


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"numpy": None, "torch": None})
    checks = doctor.examine(lambda: FINE)
    assert find(checks, "numpy") == Check("numpy", State.BROKEN, "not installed: pip install numpy")
    assert find(checks, "torch").state is State.ABSENT
    assert not doctor.works(checks)


def test_a_missing_gpu_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ("cupy-cuda13x", "cupy-cuda12x", "cupy", "nvmath-python")
    pretend(monkeypatch, dict.fromkeys(missing))
    checks = doctor.examine(lambda: FINE)
    gpu = find(checks, "backend cublaslt")
    assert gpu.state is State.ABSENT
    assert "cupy is not installed" in gpu.detail
    assert "nvmath is not installed" in gpu.detail
    assert doctor.works(checks)


def test_children_that_cannot_be_started_are_a_line_not_an_end() -> None:
    def probe() -> tuple[doctor.Probe, ...]:
        raise UserError("no more processes", "close some")

    checks = doctor.examine(probe)
    assert find(checks, "children") == Check("children", State.BROKEN, "no more processes")
    assert not doctor.works(checks)
