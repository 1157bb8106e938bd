from __future__ import annotations

import os

import pytest

from rulecheck.backends import BACKENDS, Backend, load
from tests.gemms import gemm, plan_of


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend that can run a small call here; the CPU model always can."""
    found = load(request.param)
    refused = found.supports(plan_of(gemm(4, 4, 4)))
    if refused is not None:
        message = f"backend {request.param}: {refused.message}"
        if request.param == "cpu" or os.environ.get("RULECHECK_REQUIRE_GPU") == "1":
            pytest.fail(message)
        pytest.skip(message)  # a device that this machine lacks
    return found
