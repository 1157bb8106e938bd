"""What a backend is."""

from __future__ import annotations

from typing import Protocol

from rulecheck.records import Failure, Outcome, Plan


class Backend(Protocol):
    """Runs plans. A new one needs a row in the registry and must pass ``tests/backends``."""

    @property
    def name(self) -> str:
        """The name in the registry."""
        ...

    def supports(self, plan: Plan) -> Failure | None:
        """Return why the backend cannot run a plan here, or None."""
        ...

    def run(self, plan: Plan, inputs: tuple[bytes, ...], timeout_s: float) -> Outcome | Failure:
        """Run a plan.

        Args:
            plan: what to run.
            inputs: the bytes of each leaf, in the order of ``plan.inputs``.
            timeout_s: seconds after which to give up.

        Returns:
            The bytes of every value, and reads or writes outside operands; or why there are none.
            The same plan and bytes give the same outcome.
        """
        ...
