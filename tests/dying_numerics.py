"""The numerics child with a backend that dies, hangs, or runs out of memory on request."""

from __future__ import annotations

import os
import time

from rulecheck.backends import BACKENDS
from rulecheck.backends.cpu import CpuModel
from rulecheck.children import numerics
from rulecheck.records import Failure, FailureKind, Outcome, Plan


def wish(plan: Plan) -> str:
    """The label of the first input."""
    return plan.inputs[0].label.partition("#")[0]


class Dying(CpuModel):
    """Does what the label of the first input says, else what the model does."""

    name = "dying"

    def supports(self, plan: Plan) -> Failure | None:
        """Refuse a plan that asks for it."""
        if wish(plan) == "refuse":
            return Failure(FailureKind.UNSUPPORTED, "no such kernel here")
        return super().supports(plan)

    def run(self, plan: Plan, inputs: tuple[bytes, ...], timeout_s: float) -> Outcome | Failure:
        """Run a plan, or not."""
        match wish(plan):
            case "die":
                os.abort()
            case "hang":
                time.sleep(60)
            case "memory":
                raise MemoryError("300 GiB")
            case "give up":
                return Failure(FailureKind.TIMEOUT, "stopped before step 0")
        return super().run(plan, inputs, timeout_s)


BACKENDS["dying"] = "tests.dying_numerics:Dying"

if __name__ == "__main__":
    numerics.main()
