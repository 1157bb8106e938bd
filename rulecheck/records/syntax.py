"""Rule files as syntax: what the engine's own parser said, with places a caret can point at."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Span(msgspec.Struct, frozen=True, order=True):
    """A place in a file. Lines and columns count from 1; columns count characters, not bytes."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int  # one past the last character


class Var(msgspec.Struct, frozen=True, tag=True):
    """A pattern variable, spelled as the author did (``?m`` or ``m``)."""

    name: str
    span: Span


class Lit(msgspec.Struct, frozen=True, tag=True):
    """A primitive literal. ``sort`` is ``i64``, ``f64``, ``String``, ``bool`` or ``Unit``."""

    value: int | float | str | bool | None
    sort: str
    span: Span


class Call(msgspec.Struct, frozen=True, tag=True):
    """``(fn args…)``: a constructor, function, relation or primitive applied to arguments."""

    fn: str
    args: tuple[Expr, ...]
    span: Span


Expr = Var | Lit | Call


class Eq(msgspec.Struct, frozen=True, tag=True):
    """``(= left right)`` in a rule body."""

    left: Expr
    right: Expr
    span: Span


class Holds(msgspec.Struct, frozen=True, tag=True):
    """A bare fact in a body: a relation row, a guard such as ``(!= a b)``, or an existing term."""

    expr: Expr
    span: Span


Fact = Eq | Holds


class Let(msgspec.Struct, frozen=True, tag=True):
    """``(let name expr)`` in a rule head."""

    name: str
    expr: Expr
    span: Span


class Union(msgspec.Struct, frozen=True, tag=True):
    """``(union left right)``: the claim that both sides are one buffer.

    ``sort`` is the sort of both sides, once the rule has been checked.
    """

    left: Expr
    right: Expr
    span: Span
    sort: str = ""


class Set(msgspec.Struct, frozen=True, tag=True):
    """``(set (fn args…) value)``."""

    fn: str
    args: tuple[Expr, ...]
    value: Expr
    span: Span


class Change(msgspec.Struct, frozen=True, tag=True):
    """``(delete (fn args…))`` or ``(subsume (fn args…))``; ``kind`` says which."""

    kind: str
    fn: str
    args: tuple[Expr, ...]
    span: Span


class Do(msgspec.Struct, frozen=True, tag=True):
    """An expression evaluated for its effect, such as adding a row to a relation."""

    expr: Expr
    span: Span


Action = Let | Union | Set | Change | Do


def calls_in(*nodes: Fact | Action) -> Iterator[Call]:
    """Every call in some facts or actions, outermost first."""
    for node in nodes:
        match node:
            case Eq() | Union():
                stack: list[Expr] = [node.right, node.left]
            case Set():
                stack = [node.value, *reversed(node.args)]
            case Change():
                stack = [*reversed(node.args)]
            case Holds() | Let() | Do():
                stack = [node.expr]
        while stack:
            expr = stack.pop()
            if isinstance(expr, Call):
                yield expr
                stack.extend(reversed(expr.args))


class Rule(msgspec.Struct, frozen=True):
    """One rule as it will be judged.

    ``name`` is the author's ``:name``, else ``file.egg:LINE``. A ``rewrite`` is already written
    as body and head (``kind`` keeps what it was); a ``birewrite`` is two rules, suffixed `` =>``
    and `` <=``. ``form`` is the position of its top-level form in the file, counting from 0.
    ``text_hash`` is over the form with comments and white space normalised. ``variables`` are the
    body's variables with their sorts, in order of first appearance (``_`` is none of them).
    """

    name: str
    ruleset: str
    kind: str  # "rule" | "rewrite" | "birewrite"
    body: tuple[Fact, ...]
    head: tuple[Action, ...]
    span: Span
    name_span: Span
    form: int
    text_hash: str
    variables: tuple[tuple[str, str], ...] = ()


class Declaration(msgspec.Struct, frozen=True):
    """A sort, constructor, function, relation or ruleset that a file (or a dialect) declares.

    ``kind`` is ``sort``, ``constructor``, ``function``, ``relation`` or ``ruleset``. ``inputs``
    and ``output`` are sort names; ``output`` is None for sorts and rulesets and ``Unit`` for
    relations. ``merge`` is what a function does with two values (None: they may not differ), over
    the variables ``old`` and ``new``. ``members`` are the rulesets of a combined ruleset.
    ``fields`` are the names of the inputs, if the declaration gives them.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    output: str | None
    span: Span
    merge: Expr | None = None
    cost: int | None = None
    unextractable: bool = False
    members: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """Something wrong in a file, with its place.

    ``kind``: ``syntax``, ``encoding``, ``too-large``, ``too-deep``, ``refused`` (a command or
    primitive that a rule file may not use), ``unknown-sort``, ``unknown-name`` (a function or op
    that nothing declares), ``arity``, ``field`` (a named field that does not fit the declaration),
    ``type``, ``duplicate``, ``engine`` (the engine died or timed out on it). ``rule`` is the rule
    it lies in, or None for the whole file. ``subject`` is the offending name, if there is one.
    ``hint`` says what to do.
    """

    kind: str
    message: str
    hint: str
    span: Span
    rule: str | None = None
    subject: str | None = None


class RuleFile(msgspec.Struct, frozen=True):
    """A file's content after parsing. A rule named by a problem is absent from ``rules``.

    ``facts`` are ground rows that the dialect and the file add to relations at top level.
    ``directives`` are the ``; RULECHECK-KEY: value`` header lines, in order. ``neighbours`` are
    rules of the files that it was loaded with; they are applied, but not judged.
    """

    path: str
    rules: tuple[Rule, ...]
    declarations: tuple[Declaration, ...]
    facts: tuple[Call, ...]
    directives: tuple[tuple[str, str], ...]
    problems: tuple[Problem, ...]
    sha256: str
    neighbours: tuple[Rule, ...] = ()
