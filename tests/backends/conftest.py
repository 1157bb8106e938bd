from __future__ import annotations

import pytest

from rulecheck.backends import BACKENDS, Backend, load
from tests.gemms import gemm, plan_of


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend that can run a small call here."""
    found = load(request.param)
    refused = found.supports(plan_of(gemm(4, 4, 4)))
    if refused is not None:
        pytest.skip(f"backend {request.param}: {refused.message}")
    return found
