"""What every format says of a whole run, and where a finding is."""

from __future__ import annotations

from typing import NamedTuple

from rulecheck.records import Finding, Report, Severity, Span


class Summary(NamedTuple):
    """The totals of a run. ``rules`` leaves out files that could not be read, and pairs."""

    rules: int
    errors: int
    warnings: int
    inconclusive: int
    cases: int
    elapsed_s: float


def summarize(report: Report) -> Summary:
    """Count the findings of ``report`` by severity."""
    severities = [finding.severity for finding in report.findings]
    return Summary(
        rules=sum(
            finding.rule is not None and finding.after is None for finding in report.findings
        ),
        errors=severities.count(Severity.ERROR),
        warnings=severities.count(Severity.WARNING),
        inconclusive=severities.count(Severity.INCONCLUSIVE),
        cases=sum(finding.cases for finding in report.findings if finding.after is None)
        + report.pairs.cases,
        elapsed_s=report.elapsed_s,
    )


def place(finding: Finding) -> Span:
    """Return the span to point at: the offending field if it is known, else the rule."""
    return finding.field_span or finding.span


def headline(finding: Finding) -> str:
    """Return ``file:line:column: verdict[CODE]``, the first words on a finding."""
    span = place(finding)
    return f"{finding.file}:{span.line}:{span.column}: {finding.verdict.value}[{finding.code}]"
