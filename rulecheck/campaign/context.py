"""Which files a rule file relies on: those that declare a name which it uses and does not declare.

A compiler loads all its rule files as one program. Here each file is judged by itself, with just
the others that it needs, so that unrelated files cannot change its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from rulecheck.records import RuleFile

MAX_FILES = 16


def find_context(path: str, files: Mapping[str, RuleFile]) -> tuple[str, ...]:
    """Files that ``path`` needs, and that those need, providers first.

    Args:
        path: the file.
        files: every file of the run, each loaded by itself.
    """
    providers: dict[str, str] = {}
    for name, file in files.items():
        for declaration in file.declarations:
            if declaration.span.file == name:
                providers.setdefault(declaration.name, name)
    found: dict[str, None] = {}
    stack = [path]
    while stack and len(found) < MAX_FILES:
        needed = {providers[name] for name in _unknown(files[stack.pop()]) if name in providers}
        for name in sorted(needed - {path, *found}):
            found[name] = None
            stack.append(name)
    return tuple(reversed(found))


def _unknown(file: RuleFile) -> list[str]:
    """Names that a file uses and nothing declares."""
    return [
        problem.subject
        for problem in file.problems
        if problem.kind in {"unknown-name", "unknown-sort"} and problem.subject is not None
    ]
