"""Mutation score of rule files: how many small changes to a rule does rulecheck notice?

    python benchmarks/mutation.py                        every mutant of the shipped rules
    python benchmarks/mutation.py --rules-per-file 1     one rule a file, every mutant of it
    python benchmarks/mutation.py --drop-facts PATH…     one fact of the body at a time, any files

Survivors are compared with the table of explained ones in ``tests/quality/test_rule_mutations.py``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rulecheck.campaign.context import find_context  # noqa: E402 - the path comes first
from rulecheck.campaign.workshop import Workshop  # noqa: E402 - the path comes first
from rulecheck.records import RuleFile, Settings, Severity  # noqa: E402 - the path comes first
from rulecheck.severity import severity  # noqa: E402 - the path comes first
from tests.mutants import (  # noqa: E402 - the path comes first
    KINDS,
    Court,
    Sentence,
    Source,
    dropped_facts,
    mutants_of,
    rule_texts,
    try_mutants,
)
from tests.quality.test_rule_mutations import GAPS, explanation, sample  # noqa: E402 - the path comes first


def arguments() -> argparse.Namespace:
    """What to do."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", default=[str(ROOT / "rules")])
    parser.add_argument("--drop-facts", action="store_true", help="only delete facts; any files")
    parser.add_argument("--rules-per-file", type=int, default=0, metavar="N", help="0: all rules")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="N mutants a file; 0: all"
    )
    parser.add_argument("--rule", default="", metavar="TEXT", help="only rules with it in the name")
    return parser.parse_args()


def files(paths: Sequence[str]) -> list[Path]:
    """Rule files among paths and inside of folders."""
    found = (path.rglob("*.egg") if path.is_dir() else [path] for path in map(Path, paths))
    return sorted(path for group in found for path in group)


def contexts(shop: Workshop, paths: Sequence[Path]) -> dict[Path, tuple[str, ...]]:
    """What each file needs of the others."""
    loaded = {str(path): shop.load(str(path)) for path in paths}
    known = {path: file for path, file in loaded.items() if isinstance(file, RuleFile)}
    return {path: find_context(str(path), known) for path in paths}


def judge_file(
    court: Court, path: Path, context: tuple[str, ...], options: argparse.Namespace
) -> Iterator[Sentence]:
    """All sentences of one file's mutants."""
    rest, rules = rule_texts(path, court.shop.vocabulary)
    rules = [rule for rule in rules if options.rule in rule.name]
    rules = rules[: options.rules_per_file or None]
    if not rules:
        return
    kinds = (dropped_facts,) if options.drop_facts else KINDS
    whole = "\n".join((rest, *(rule.text for rule in rules)))
    before = dict(court.verdicts(path.name, whole, context))
    mutants = [mutant for rule in rules for mutant in mutants_of(rule, kinds)]
    mutants = sample(mutants, options.sample or len(mutants))
    source = Source(f"mutants-of-{path.name}", rest, context)
    yield from try_mutants(court, source, mutants, before)


def report_dropped(sentences: Sequence[Sentence]) -> None:
    """How many deletions change the verdict, by rule."""
    for rule in dict.fromkeys(item.mutant.rule for item in sentences):
        mine = [item for item in sentences if item.mutant.rule == rule]
        valid = [item for item in mine if item.is_rule]
        changed = [item for item in valid if not item.survives]
        print(
            f"{rule}: {mine[0].before.value}; {len(changed)} of {len(valid)} deletions change it; "
            f"{len(mine) - len(valid)} leave no rule"
        )
        for item in valid:
            print(f"    {item.after.value:17}{item.mutant.label}")


def report_scores(path: Path, sentences: Sequence[Sentence]) -> Counter[str]:
    """Print survivors that nothing explains; return the counts of one file."""
    counts: Counter[str] = Counter()
    for item in sentences:
        reason, gap = explanation(item.mutant), explanation(item.mutant, GAPS)
        if not item.is_rule:
            counts["no rule"] += 1
        elif not item.survives:
            wrong = severity(item.after, strict_rounding=False) is Severity.ERROR
            counts["killed as wrong" if wrong else "killed otherwise"] += 1
            if reason or gap:
                print(f"    in the tables, but {item.after.value}: {item.mutant.name}")
        elif reason:
            counts["equivalent"] += 1
        elif gap:
            counts["gap"] += 1
        else:
            counts["unexplained"] += 1
            print(f"    survives: {item.mutant.name}")
    print(f"{path.name}: {describe(counts)}", flush=True)
    return counts


def describe(counts: Counter[str]) -> str:
    """Mutation score: killed of those that are rules and are not equivalent."""
    killed = counts["killed as wrong"] + counts["killed otherwise"]
    total = killed + counts["gap"] + counts["unexplained"]
    return (
        f"{killed} of {total} killed ({counts['killed as wrong']} as wrong), "
        f"{counts['gap']} known gaps, {counts['unexplained']} unexplained; "
        f"{counts['equivalent']} equivalent and explained, {counts['no rule']} are no rules"
    )


def main() -> None:
    """Judge all mutants of all files."""
    options, started = arguments(), time.monotonic()
    total: Counter[str] = Counter()
    paths = files(options.paths)
    with (
        tempfile.TemporaryDirectory() as folder,
        Workshop(Settings(paths=tuple(map(str, paths)))) as shop,
    ):
        needed = contexts(shop, paths)
        for path in paths:
            sentences = list(judge_file(Court(shop, Path(folder)), path, needed[path], options))
            if options.drop_facts:
                report_dropped(sentences)
                changed = sum(item.is_rule and not item.survives for item in sentences)
                total["changed"] += changed
                total["valid"] += sum(item.is_rule for item in sentences)
            else:
                total += report_scores(path, sentences)
    if options.drop_facts:
        print(f"all: {total['changed']} of {total['valid']} deletions change the verdict")
    else:
        print(f"all: {describe(total)}")
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
