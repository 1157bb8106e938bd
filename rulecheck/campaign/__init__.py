"""Runs: every rule of every file judged (``check``), one case again (``replay``), a self-test.

The one place in the parent process where stages are wired together.
"""

from rulecheck.campaign.rerun import replay
from rulecheck.campaign.run import check
from rulecheck.campaign.selftest import probe

__all__ = ["check", "probe", "replay"]
