"""What names mean: the declarations of the dialect, then those of the file, each judged."""

from __future__ import annotations

import itertools
from difflib import get_close_matches

import msgspec

from rulecheck.records import Call, Declaration, Expr, Lit, Problem, Span, Var
from rulecheck.rules.allowlist import BASE_SORTS, REFUSED_SORTS, is_reserved
from rulecheck.rules.printer import print_declaration
from rulecheck.rules.scanner import shorten

# Merging must give the same value whatever the order of arrival allows, and touch nothing else.
_MERGE_VARIABLES = frozenset({"old", "new"})
# Longer than any name that someone mistypes; comparing a million characters takes long.
_MAX_NAME = 100
# Two declarations that long can be compared by eye.
_MAX_SHOWN = 150
_HEAD = 2  # the command and the name, which always show
_MERGE_CALLS = frozenset({"min", "max", "and", "or"})


class Signatures:
    """Every declared name. Sorts and functions share one namespace; rulesets have their own."""

    def __init__(self, declarations: tuple[Declaration, ...] = ()) -> None:
        """Start from declarations that are taken as they are."""
        self.tables: dict[str, Declaration] = {}
        self.rulesets: dict[str, Declaration] = {}
        self.rejected: dict[str, Problem] = {}
        for declaration in declarations:
            self._space(declaration)[declaration.name] = declaration

    def add_all(
        self, declarations: list[Declaration]
    ) -> tuple[tuple[Declaration, ...], list[Problem]]:
        """Add a file's declarations; return those that are new and right, and the problems.

        A file may use what it declares further down: order is not its author's concern.
        """
        problems: list[Problem] = []
        new: list[Declaration] = []
        for declaration in declarations:
            space = self._space(declaration)
            known = space.get(declaration.name)
            if known is None and not is_reserved(declaration.name):
                space[declaration.name] = declaration
                new.append(declaration)
            elif known is None or not _agree(known, declaration):
                problems.append(_clash(declaration, known))
        kept: list[Declaration] = []
        for declaration in new:
            problem = self._judge(declaration)
            if problem is None:
                kept.append(declaration)
            else:
                problems.append(problem)
                self.reject(declaration, problem)
        return tuple(kept), problems

    def reject(self, declaration: Declaration, problem: Problem) -> None:
        """Forget a declaration that turned out wrong; rules that use it say why."""
        self._space(declaration).pop(declaration.name, None)
        self.rejected[declaration.name] = problem

    def sorts(self) -> list[str]:
        """Return every sort that a declaration may use."""
        declared = (name for name, known in self.tables.items() if known.kind == "sort")
        return [*sorted(BASE_SORTS), *declared]

    def is_sort(self, name: str) -> bool:
        """Whether ``name`` is a sort that terms may have."""
        return name in BASE_SORTS or self.is_class_sort(name)

    def is_class_sort(self, name: str) -> bool:
        """Whether ``name`` is a declared sort, whose terms live in e-classes."""
        known = self.tables.get(name)
        return known is not None and known.kind == "sort"

    def _space(self, declaration: Declaration) -> dict[str, Declaration]:
        return self.rulesets if declaration.kind == "ruleset" else self.tables

    def _judge(self, declaration: Declaration) -> Problem | None:
        if declaration.kind == "ruleset":
            return self._judge_members(declaration)
        outputs = (declaration.output,) if declaration.output is not None else ()
        for sort in (*declaration.inputs, *outputs):
            if not self.is_sort(sort):
                return self._unknown_sort(declaration, sort)
        if declaration.kind == "constructor" and not self.is_class_sort(declaration.output or ""):
            return Problem(
                "type",
                f"A constructor makes terms of a declared sort, not of {declaration.output}.",
                "Declare it as a function, or give it another result.",
                declaration.span,
                None,
                declaration.name,
            )
        return None if declaration.merge is None else _judge_merge(declaration.merge)

    def _judge_members(self, declaration: Declaration) -> Problem | None:
        for member in declaration.members:
            if member == declaration.name:
                # It makes the engine overrun its stack.
                what = f"The ruleset `{member}` combines itself."
                return Problem(
                    "refused", what, "Leave it out of its own list.", declaration.span, None, member
                )
            if member not in self.rulesets:
                what = f"No ruleset is named `{member}`."
                hint = "Declare it with `(ruleset …)`."
                return Problem("unknown-name", what, hint, declaration.span, None, member)
        return self._judge_cycle(declaration)

    def _judge_cycle(self, declaration: Declaration) -> Problem | None:
        seen: set[str] = set()
        pending = list(declaration.members)
        while pending:
            name = pending.pop()
            if name == declaration.name:
                what = f"The ruleset `{name}` combines itself, through others."
                hint = "Break the circle."
                return Problem("refused", what, hint, declaration.span, None, name)
            if name not in seen and name in self.rulesets:
                seen.add(name)
                pending += self.rulesets[name].members
        return None

    def _unknown_sort(self, declaration: Declaration, sort: str) -> Problem:
        if sort in REFUSED_SORTS:
            return Problem(
                "refused",
                f"`{declaration.name}` uses the sort {sort}, which rule files may not use.",
                f"Use one of {', '.join(sorted(BASE_SORTS))}, or a datatype.",
                declaration.span,
                None,
                sort,
            )
        return Problem(
            "unknown-sort",
            f"`{declaration.name}` uses the sort `{sort}`, which nothing declares.",
            suggest(sort, self.sorts()) or f"Declare it with `(sort {sort})` or as a datatype.",
            declaration.span,
            None,
            sort,
        )


def suggest(name: str, known: list[str]) -> str:
    """Return "Did you mean …?" if a known name is close, else an empty string."""
    if len(name) > _MAX_NAME:
        return ""
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"Did you mean `{close[0]}`?" if close else ""


def show_place(span: Span) -> str:
    """Print a place as ``file:line:column``."""
    return f"{span.file}:{span.line}:{span.column}"


def _agree(one: Declaration, other: Declaration) -> bool:
    """Whether two declarations are the same; names of fields may be left out of one."""
    names = {item.fields for item in (one, other) if item.fields}
    return len(names) < 2 and _signature(one) == _signature(other)


def _signature(declaration: Declaration) -> Declaration:
    """Return what makes two declarations the same.

    Neither where they stand, nor what steers extraction alone: nothing is extracted here.
    """
    nowhere = Span("", 0, 0, 0, 0)
    merge = None if declaration.merge is None else _without_places(declaration.merge, nowhere)
    return msgspec.structs.replace(
        declaration, span=nowhere, merge=merge, fields=(), cost=None, unextractable=False
    )


def _without_places(expr: Expr, nowhere: Span) -> Expr:
    if isinstance(expr, Call):
        return Call(expr.fn, tuple(_without_places(arg, nowhere) for arg in expr.args), nowhere)
    return msgspec.structs.replace(expr, span=nowhere)


def _clash(declaration: Declaration, known: Declaration | None) -> Problem:
    name = declaration.name
    if known is None:
        return Problem(
            "duplicate",
            f"`{name}` already means something to the engine.",
            "Choose another name.",
            declaration.span,
            None,
            name,
        )
    return Problem(
        "duplicate",
        f"`{name}` is declared as `{_show(declaration, known)}` here, "
        f"and as `{_show(known, declaration)}` at {show_place(known.span)}.",
        "Make both declarations the same, or rename one.",
        declaration.span,
        None,
        name,
    )


def _show(declaration: Declaration, other: Declaration) -> str:
    """Print a declaration; one of many fields without those at the ends that the other has too."""
    text = print_declaration(declaration)
    its = print_declaration(other)
    if max(len(text), len(its)) <= _MAX_SHOWN:
        return text
    words, others = text.split(), its.split()
    first = _shared(words, others)
    last = min(_shared(words[::-1], others[::-1]), min(len(words), len(others)) - first)
    start = max(first - 1, _HEAD)
    end = max(len(words) - max(last - 1, 0), start)
    middle = words[start:end]
    head = [*words[:_HEAD], *(["…"] if start > _HEAD else [])]
    return shorten(" ".join([*head, *middle, *(["…"] if end < len(words) else [])]), _MAX_SHOWN)


def _shared(words: list[str], others: list[str]) -> int:
    """Count the words that both start with."""
    pairs = zip(words, others, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _judge_merge(merge: Expr) -> Problem | None:
    """Allow `old`, `new`, and the least or greatest of them: nothing else may run in a merge."""
    pending = [merge]
    while pending:
        expr = pending.pop()
        if isinstance(expr, Lit):
            continue
        if isinstance(expr, Var) and expr.name in _MERGE_VARIABLES:
            continue
        if isinstance(expr, Call) and expr.fn in _MERGE_CALLS:
            pending += expr.args
            continue
        name = expr.fn if isinstance(expr, Call) else expr.name
        return Problem(
            "refused",
            f"A merge expression may not use `{name}`.",
            f"Use `old`, `new`, or {', '.join(f'`{call}`' for call in sorted(_MERGE_CALLS))}.",
            expr.span,
            None,
            name,
        )
    return None
