"""Errors that a user sees, and the one that is our own bug."""

from __future__ import annotations


class UserError(Exception):
    """A usage or configuration error: exit code 2, printed as one clear message.

    Args:
        what: what is wrong, with the place and both values.
        next_step: what to do about it.
    """

    def __init__(self, what: str, next_step: str) -> None:
        """Keep both parts; ``str(error)`` shows both."""
        super().__init__(f"{what}\n  hint: {next_step}")
        self.what = what
        self.next_step = next_step


class InternalError(Exception):
    """A broken invariant of rulecheck itself: exit code 3. Nobody catches it but the front door."""
