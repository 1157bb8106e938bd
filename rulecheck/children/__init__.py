"""Composition roots of the child processes, run as ``python -m rulecheck.children.NAME``."""
