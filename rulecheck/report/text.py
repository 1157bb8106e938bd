"""The report for people: findings with source, values, hint and replay line; then what is fine."""

from __future__ import annotations

from rulecheck.records import Evidence, Finding, Report, Severity, Verdict, WorstElement
from rulecheck.report import Style
from rulecheck.report.calls import changed_fields, describe_call
from rulecheck.report.plain import count, field, number, paint, power_of_two, safe
from rulecheck.report.source import Sources
from rulecheck.report.summary import headline, place, summarize

_SHOWN_VIOLATIONS = 6


def render(report: Report, style: Style) -> str:
    """Return the whole report as text, ending in a newline unless there is nothing to say."""
    sources = Sources()
    blocks = [
        finding_block(finding, sources, style)
        for finding in report.findings
        if finding.severity is not Severity.OK
    ]
    if not style.quiet:
        fine = [finding for finding in report.findings if finding.severity is Severity.OK]
        if fine:
            blocks.append(_ok_lines(fine, style))
        blocks.append([summary_line(report)])
    return "\n".join("".join(line + "\n" for line in block) for block in blocks)


def finding_block(finding: Finding, sources: Sources, style: Style) -> list[str]:
    """Return the lines on one finding: place, message, source, values, call, hint, replay."""
    head = paint(safe(headline(finding)), finding.severity, color=style.color)
    lines = [f"{head}: {safe(finding.message)}", *sources.snippet(place(finding))]
    if finding.rule is not None:
        after = f" (after {finding.after})" if finding.after is not None else ""
        lines += field("rule", finding.rule + after, style.width)
    example = finding.counterexample
    if example is not None:
        lines += evidence_lines(example.evidence, style.width)
    if finding.cases:
        lines += field("cases", _cases(finding), style.width)
    if finding.error_over_bound is not None and finding.compared:
        lines += field("error/bound", f"{finding.error_over_bound:.3g}", style.width)
    if example is not None:
        lines += _call_lines(example.evidence, style.width)
    if finding.severity is not Severity.WARNING:  # a warning is read in every run: keep it short
        lines += _effort_lines(finding, style.width)
    lines += lint_lines(finding, style.width)
    lines += _advice_lines(finding, style.width)
    if example is not None:
        # On one line, whatever the width: it is there to be copied.
        lines.append(f"   replay: rulecheck replay {safe(example.token)}")
    return lines


def _advice_lines(finding: Finding, width: int) -> list[str]:
    """Return whose fault it is and what to do about it."""
    lines = field("blame", ", ".join(finding.blame), width) if finding.blame else []
    if finding.hint:
        lines += field("hint", finding.hint, width)
    if finding.guard:
        passes = f"{count(finding.guard_passes, 'new case')} pass and none fails with it"
        if finding.guard_warnings:
            passes += f"; {finding.guard_warnings:,} still warn"
        lines += field("guard", f"{' '.join(finding.guard)}   ({passes})", width)
    return lines


def lint_lines(finding: Finding, width: int) -> list[str]:
    """Return what a reviewer would ask about the rule, a paragraph each."""
    lines = []
    for lint in finding.lints:
        label = f"lint {lint.code} at {lint.span.line}:{lint.span.column}"
        lines += field(label, "; ".join(filter(None, (lint.message, lint.hint))), width)
    return lines


def evidence_lines(evidence: Evidence, width: int) -> list[str]:
    """Return what was measured: each broken clause, the roundings that moved, the worst element."""
    lines = []
    for violation in evidence.violations[:_SHOWN_VIOLATIONS]:
        name = violation.operand + (f" ({violation.field})" if violation.field else "")
        text = f"expected {violation.expected}, actual {violation.actual}"
        lines += field(name, text, width)
    if len(evidence.violations) > _SHOWN_VIOLATIONS:
        lines += field("and", f"{len(evidence.violations) - _SHOWN_VIOLATIONS} more", width)
    if evidence.roundings:
        lines += field("roundings", "; ".join(evidence.roundings), width)
    if evidence.worst is not None:
        lines += field("worst", worst_text(evidence.worst), width)
    if evidence.differing:
        text = f"{evidence.differing:,} of {count(evidence.compared, 'element')}"
        lines += field("differing", text, width)
    return lines


def worst_text(worst: WorstElement) -> str:
    """Return one element's values and the interval that was allowed."""
    return (
        f"element {worst.offset}: got {number(worst.got)}, as written {number(worst.as_written)}, "
        f"float64 {number(worst.float64)}, allowed [{number(worst.low)}, {number(worst.high)}]"
    )


def summary_line(report: Report) -> str:
    """Return the totals in one line."""
    summary = summarize(report)
    if not report.findings:
        return f"nothing was checked: {count(report.files, 'file')}, no rule"
    pairs = f" and {count(report.pairs.tried, 'pair')}" if report.pairs.tried else ""
    cached = f" ({report.cached:,} cached)" if report.cached else ""
    return (
        f"{count(summary.rules, 'rule')}{pairs} in {count(report.files, 'file')}: "
        f"{count(summary.errors, 'error')}, {count(summary.warnings, 'warning')}, "
        f"{summary.inconclusive:,} inconclusive; "
        f"{count(summary.cases, 'case')} in {summary.elapsed_s:.2f} s{cached}"
    )


def _call_lines(evidence: Evidence, width: int) -> list[str]:
    member = evidence.member_call
    if member is None:
        return []
    if evidence.original_call is None:
        return field("call", describe_call(member), width)
    changes = changed_fields(evidence.original_call, member)
    if not changes:
        return field("call", f"unchanged: {describe_call(member)}", width)
    text = ", ".join(f"{name} {before} → {after}" for name, before, after in changes)
    return field("call", text, width)


def _effort_lines(finding: Finding, width: int) -> list[str]:
    """Return notes, and the labels that occurred, op by op; an axis is named ``op.field``."""
    lines = [line for note in finding.notes for line in field("note", note, width)]
    ops: dict[str, list[str]] = {}
    for axis, labels in finding.tried:
        op, _, field_name = axis.rpartition(".")
        ops.setdefault(op, []).append(f"{field_name} {{{', '.join(labels)}}}")
    for op, axes in ops.items():
        lines += field("tried", f"{op}: {', '.join(axes)}" if op else ", ".join(axes), width)
    return lines


def _ok_lines(findings: list[Finding], style: Style) -> list[str]:
    names = [
        safe(finding.rule if finding.rule is not None else finding.file) for finding in findings
    ]
    column = min(max(len(name) for name in names), 48)
    lines = []
    for finding, name in zip(findings, names, strict=True):
        ok = paint("ok", Severity.OK, color=style.color)
        # A rule without a case of its own says by whose it is judged.
        detail = _effort(finding) if finding.cases else safe(finding.message)
        lines.append(f"{ok}  {name:<{column}}  {finding.verdict.value}  ({detail})")
        if finding.verdict is Verdict.NEAR_TIE:
            lines += field("note", finding.message, style.width)
        lines += lint_lines(finding, style.width)
    return lines


def _cases(finding: Finding) -> str:
    words = ", ".join(f"{amount:,} {word}" for word, amount in finding.verdicts)
    return f"{words}; {_effort(finding)}" if len(finding.verdicts) > 1 else _effort(finding)


def _effort(finding: Finding) -> str:
    """Say how much stands behind a verdict."""
    text = f"{count(finding.cases, 'case')}, {count(finding.compared, 'element')}"
    if finding.detectable is not None:
        text += f"; would have seen a relative effect of {power_of_two(finding.detectable)}"
    return text
