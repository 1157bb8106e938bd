"""Terms become typed steps over buffers; a matmul op becomes the exact library call."""

from rulecheck.plan.build import build

__all__ = ["build"]
