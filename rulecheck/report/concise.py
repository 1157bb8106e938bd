"""One line per finding that is not fine, for logs and ``grep``."""

from __future__ import annotations

from rulecheck.records import Report, Severity
from rulecheck.report import Style
from rulecheck.report.plain import safe
from rulecheck.report.summary import headline
from rulecheck.report.text import summary_line


def render(report: Report, style: Style) -> str:
    """Return the findings that are not ok, a line each, and the summary."""
    lines = []
    for finding in report.findings:
        if finding.severity is not Severity.OK:
            subject = f"{finding.rule}: " if finding.rule is not None else ""
            lines.append(safe(f"{headline(finding)} {subject}{finding.message}"))
    if not style.quiet:
        lines.append(summary_line(report))
    return "".join(line + "\n" for line in lines)
