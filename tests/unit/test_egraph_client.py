"""The engine as the parent uses it: over a real child, which hostile files may kill."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from rulecheck.egraph.bindings import egg
from rulecheck.egraph.canary import ask_canary
from rulecheck.egraph.client import Engine
from rulecheck.errors import InternalError
from rulecheck.records import (
    CanaryReply,
    Failure,
    FailureKind,
    InstanceBatch,
    Limits,
    MatchReply,
    RuleFile,
)
from tests.test_toy import ROOT
