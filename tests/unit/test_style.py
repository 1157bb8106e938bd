"""The house rules that no linter knows."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rulecheck

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("rulecheck", "tests", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
)
NAMES = [str(path.relative_to(ROOT)) for path in SOURCES]
# Handlers that catch anything: where a user would see a traceback, and where a panic of the
# engine's library (which is no Exception) arrives.
BROAD_HANDLERS = {
    "rulecheck/cli.py": 1,
    "rulecheck/egraph/bindings.py": 1,
    "rulecheck/campaign/bench.py": 1,  # a process of its own hands its defects to the parent
}
BINDINGS = "rulecheck/egraph/bindings.py"
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

# Children and what only they run; everything else belongs to the parent.
COMPUTING = ("backends", "children", "compare", "dtypes", "egraph", "oracle", "verdict")
HEAVY = ("egglog", "numpy", "ml_dtypes", "torch", "cupy", "nvmath", "jinja2", "rich")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_sources_are_found() -> None:
    assert "rulecheck/cli.py" in NAMES
    assert "tests/unit/test_style.py" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_short(name: str) -> None:
    assert len(read(name).splitlines()) < MAX_MODULE_LINES


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_short(name: str) -> None:
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(read(name)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 >= MAX_FUNCTION_LINES
    ]
    assert long == []


@pytest.mark.parametrize("name", NAMES)
def test_an_excuse_has_a_code_and_a_reason(name: str) -> None:
    for line in read(name).splitlines():
        if name != "tests/unit/test_style.py" and re.search(r"# *(noqa|type: *ignore)", line):
            assert re.search(
                r"# (noqa: [A-Z]+\d+(, [A-Z]+\d+)*|type: ignore\[[a-z, -]+\]) +(--?|#) \S", line
            ), line


@pytest.mark.parametrize("name", NAMES)
def test_only_borders_catch_everything(name: str) -> None:
    broad = {"Exception", "BaseException", "InternalError"}
    caught = [
        node.lineno
        for node in ast.walk(ast.parse(read(name)))
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)} & broad
        )
    ]
    assert len(caught) == BROAD_HANDLERS.get(name, 0), caught


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_for_later_or_for_one_machine(name: str) -> None:
    if name == "tests/unit/test_style.py":
        return
    words = re.findall(r"\b(?:TODO|FIXME|XXX)\b|(?<![\w.])/(?:work|root|home)/\w+", read(name))
    assert words == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("rulecheck/")])
def test_egglog_is_named_for_import_in_one_module(name: str) -> None:
    """import-linter cannot see imports by string; this can."""
    pattern = r"^\s*(import|from) egglog|(import_module|find_spec|__import__)\(\s*[\"']egglog"
    assert bool(re.search(pattern, read(name), re.MULTILINE)) == (name == BINDINGS)


def test_every_layer_of_the_package_is_in_the_contracts() -> None:
    """`exhaustive` tells of modules without a layer; this, of parent modules without a rule."""
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    parent = next(contract for contract in contracts if contract["id"] == "parent")
    modules = {module.name for module in pkgutil.iter_modules(rulecheck.__path__)}
    may_compute = set(COMPUTING) - {"egraph"}
    expected = {f"rulecheck.{name}" for name in modules - may_compute - {"__main__"}}
    assert set(parent["source_modules"]) == expected


def test_the_parent_loads_neither_engine_nor_numerics() -> None:
    """Import every module of the parent in a fresh interpreter and look at what came along."""
    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in NAMES
        if name.startswith("rulecheck/")
        and Path(name).parts[1].removesuffix(".py") not in COMPUTING
    ]
    modules.remove("rulecheck.__main__")
    code = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
print(sorted(name for name in {HEAVY!r} if name in sys.modules))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert len(modules) > 20
    assert ran.stdout == "[]\n"
