"""JSON, schema 1 (DESIGN section 6). Keys are added, never renamed, without a new schema."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from rulecheck.records import Counterexample, Finding, Lint, Report
from rulecheck.report import Style
from rulecheck.report.summary import place, summarize

SCHEMA = 1


def render(report: Report, style: Style) -> str:  # noqa: ARG001 -- machines have no style
    """Return the report as one JSON object. Numbers are finite or null."""
    return dump(
        {
            "schema": SCHEMA,
            "tool": report.tool,
            "environment": dict(report.environment),
            "argv": list(report.argv),
            "seed": report.seed,
            "summary": _summary(report),
            "rules": [_rule(finding) for finding in report.findings],
        }
    )


def dump(data: object) -> str:
    """Return ``data`` as indented ASCII JSON: any terminal and any file name can carry it."""
    return json.dumps(finite(data), indent=2, allow_nan=False) + "\n"


def finite(data: Any) -> Any:
    """Return records and containers as plain JSON values, with null for NaN and infinities."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    if isinstance(data, msgspec.Struct):
        return finite(msgspec.to_builtins(data))
    return data


def _summary(report: Report) -> dict[str, object]:
    summary = summarize(report)
    return {
        "errors": summary.errors,
        "warnings": summary.warnings,
        "inconclusive": summary.inconclusive,
        "rules": summary.rules,
        "cases": summary.cases,
        "elapsed_s": summary.elapsed_s,
        "files": report.files,
        "rounding": "strict" if report.strict_rounding else "lenient",
        "pairs": report.pairs,
        "cached": report.cached,
    }


def _rule(finding: Finding) -> dict[str, object]:
    span = place(finding)
    example = finding.counterexample
    return {
        "name": finding.rule,
        "after": finding.after,
        "file": finding.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "verdict": finding.verdict.value,
        "severity": finding.severity.value,
        "code": finding.code,
        "message": finding.message,
        "hint": finding.hint,
        "notes": finding.notes,
        "cases": finding.cases,
        "fired": finding.fired,
        "compared": finding.compared,
        "detectable": finding.detectable,
        "error_over_bound": finding.error_over_bound,
        "verdicts": dict(finding.verdicts),
        "tried": dict(finding.tried),
        "counterexample": None if example is None else _counterexample(example),
        "blame": finding.blame,
        "guard": {
            "facts": finding.guard,
            "passes": finding.guard_passes,
            "warnings": finding.guard_warnings,
        }
        if finding.guard
        else None,
        "lints": [_lint(item) for item in finding.lints],
    }


def _lint(lint: Lint) -> dict[str, object]:
    return {
        "code": lint.code,
        "message": lint.message,
        "hint": lint.hint,
        "line": lint.span.line,
        "column": lint.span.column,
    }


def _counterexample(example: Counterexample) -> dict[str, object]:
    evidence = example.evidence
    return {
        "token": example.token,
        "case": example.case,
        "call": evidence.member_call,
        "original_call": evidence.original_call,
        "original": example.original,
        "member": example.member,
        "choices": dict(example.tried),
        "violations": evidence.violations,
        "roundings": evidence.roundings,
        "worst": evidence.worst,
    }
