"""Options of the whole suite."""

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the files under tests/golden"
    )


def pytest_configure(config: pytest.Config) -> None:
    # Every test judges for itself, and none leaves a folder where it runs.
    os.environ["RULECHECK_NO_CACHE"] = "1"
    if config.getoption("--update-golden") and os.environ.get("CI") == "true":
        raise pytest.UsageError("--update-golden: CI compares golden files, it never writes them")
