"""``rulecheck check``: every rule of every file, by itself and after its neighbours."""

from __future__ import annotations

import contextlib
import platform
import sys
import time
from importlib import metadata

from rulecheck import __version__
from rulecheck.campaign.cache import Cache
from rulecheck.campaign.credit import credit
from rulecheck.campaign.crew import Crew, Progress, merge
from rulecheck.errors import UserError
from rulecheck.records import PairCount, Report, Settings, Severity


def check(settings: Settings, progress: Progress) -> Report:
    """Judge every rule of the files in ``settings.paths``.

    Rules are independent, so several are judged at once (``settings.jobs``, 0 for one per core);
    the report is the same whatever their number.

    Raises:
        UserError: the dialect is not known, or no rule has the name that was asked for.
    """
    started = time.monotonic()
    cache = Cache(settings, environment(settings))
    with contextlib.ExitStack() as stack:
        crew = Crew(settings, stack, cache)
        findings = [item for path in settings.paths for item in crew.read(path, progress)]
        findings += crew.plan_tasks()
        findings += crew.judge_rules(progress)
        pairs = crew.judge_pairs(findings, progress) if settings.rule is None else []
    cache.trim()
    if settings.rule is not None and not any(item.rule == settings.rule for item in findings):
        raise UserError(
            f"no rule is called {settings.rule!r} in {', '.join(settings.paths[:3])}"
            + (" …" if len(settings.paths) > 3 else ""),
            "give the rule's :name, or file.egg:LINE for a rule without a name",
        )
    findings = credit(merge(findings, pairs), crew.files)
    order = {path: position for position, path in enumerate(settings.paths)}
    findings.sort(key=lambda item: (order[item.file], item.span.line, item.span.column))
    return Report(
        tool=f"rulecheck {__version__}",
        environment=environment(settings),
        argv=tuple(sys.argv),
        seed=settings.seed,
        findings=tuple(findings),
        elapsed_s=time.monotonic() - started,
        files=len(settings.paths),
        strict_rounding=settings.strict_rounding,
        pairs=PairCount(
            tried=sum(result.tried for result in pairs),
            cases=sum(result.cases for result in pairs),
            wrong=sum(
                item.severity is Severity.ERROR for result in pairs for item in result.findings
            ),
        ),
        cached=cache.hits,
    )


def environment(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What a result depends on."""
    found = [("python", platform.python_version()), ("platform", platform.platform())]
    for name in ("egglog", "numpy", "ml_dtypes"):
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append((name, "not installed"))
    return (*found, ("dialect", settings.dialect), ("backend", settings.backend))
