from __future__ import annotations

import subprocess
import sys

import pytest

from rulecheck.backends import BACKENDS, index, load
from rulecheck.errors import InternalError, UserError


@pytest.mark.parametrize("name", BACKENDS)
def test_every_name_loads_and_knows_itself(name: str) -> None:
    assert load(name).name == name


def test_unknown_name_lists_the_known() -> None:
    with pytest.raises(UserError, match="unknown backend 'tpu'") as error:
        load("tpu")
    assert "cpu" in error.value.next_step


def test_duplicates_are_our_bug() -> None:
    with pytest.raises(InternalError, match="two backends are named 'x': a:A and b:B"):
        index([("x", "a:A"), ("x", "b:B")])


def test_the_registry_imports_no_numpy() -> None:
    code = "import sys, rulecheck.backends; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
