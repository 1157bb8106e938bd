"""Names, arities and sorts of one rule, judged before the engine sees it, with exact places.

The engine checks the same again when the rule is added; its messages are the fallback.
"""

from __future__ import annotations

import msgspec

from rulecheck.records import (
    Action,
    Call,
    Change,
    Declaration,
    Do,
    Expr,
    Fact,
    Holds,
    Let,
    Lit,
    Problem,
    Rule,
    Set,
    Span,
    Union,
    Var,
)
from rulecheck.rules.allowlist import POLYMORPHIC, PRIMITIVES, refused_primitive
from rulecheck.rules.convert import WILDCARD
from rulecheck.rules.declare import Signatures, suggest
from rulecheck.rules.ground import ungrounded
from rulecheck.rules.walk import calls, expressions, walk

# Each round settles at least one variable; real rules need two or three.
_MAX_ROUNDS = 50


def check_rule(rule: Rule, signatures: Signatures) -> tuple[Rule, list[Problem]]:
    """Return the rule with its sorts filled in, and what is wrong with it (then leave it out)."""
    problems = [
        *_check_ruleset(rule, signatures),
        *_check_names(rule, signatures),
    ]
    if not problems:
        sorts = _Sorts(signatures)
        problem = sorts.check(rule)
        if problem is None:
            return sorts.annotate(rule), []
        problems = [problem]
    return rule, [msgspec.structs.replace(problem, rule=rule.name) for problem in problems]


def check_row(row: Call, signatures: Signatures) -> list[Problem]:
    """Judge a row that a file adds to a relation at top level: ground, and of the right sorts."""
    problems = [problem for call in calls(row) for problem in _judge_call(call, signatures)]
    if problems:
        return problems
    for expr in walk(row):
        if isinstance(expr, Var):
            what = f"A row of a relation has no variables, but this is one: `{expr.name}`."
            return [Problem("type", what, "Write a constant.", expr.span, None, expr.name)]
        if isinstance(expr, Call) and expr.fn not in signatures.tables:
            what = f"A row of a relation is not computed, but `{expr.fn}` is a primitive."
            return [Problem("refused", what, "Write the result.", expr.span, None, expr.fn)]
    problem = _Sorts(signatures).check_row(row)
    return [] if problem is None else [problem]


def _check_ruleset(rule: Rule, signatures: Signatures) -> list[Problem]:
    if not rule.ruleset:
        return []
    known = signatures.rulesets.get(rule.ruleset)
    if known is None:
        what = f"No ruleset is named `{rule.ruleset}`."
        hint = suggest(rule.ruleset, list(signatures.rulesets)) or "Declare it with `(ruleset …)`."
        return [Problem("unknown-name", what, hint, rule.name_span, None, rule.ruleset)]
    if known.members:
        what = f"`{rule.ruleset}` combines other rulesets, so no rule can be in it."
        hint = f"Use one of {', '.join(known.members)}."
        return [Problem("type", what, hint, rule.name_span, None, rule.ruleset)]
    return []


def _check_names(rule: Rule, signatures: Signatures) -> list[Problem]:
    problems: list[Problem] = []
    for part in (*rule.body, *rule.head):
        for expr in (inner for outer in expressions(part) for inner in walk(outer)):
            if isinstance(expr, Call):
                problems += _judge_call(expr, signatures)
            elif isinstance(expr, Var):
                problems += _judge_variable(expr.name, expr.span, signatures)
        if isinstance(part, Let):
            problems += _judge_variable(part.name, part.span, signatures)
        if isinstance(part, Set | Change):
            # Judged like a call; the place is the action's.
            problems += _judge_call(Call(part.fn, part.args, part.span), signatures)
    return problems


def _judge_variable(name: str, span: Span, signatures: Signatures) -> list[Problem]:
    """Whether the name may be a variable's: the engine has one namespace for everything."""
    known = signatures.tables.get(name) or signatures.rulesets.get(name)
    if known is None:
        return []
    what = f"`{name}` is the name of a {known.kind}, so no variable can have it."
    hint = f"Write `({name})` for the term, or " if known.kind == "constructor" else ""
    hint += f"name the variable `?{name}`."
    return [Problem("type", what, hint[:1].upper() + hint[1:], span, None, name)]


def _judge_call(call: Call, signatures: Signatures) -> list[Problem]:
    """Whether the name is known and has that many arguments."""
    known = signatures.tables.get(call.fn)
    if known is not None and known.kind != "sort":
        return _judge_arity(call, (len(known.inputs),))
    if call.fn in POLYMORPHIC:
        return _judge_arity(call, (2,))
    if call.fn in PRIMITIVES:
        return _judge_arity(call, tuple({len(inputs) for inputs, _ in PRIMITIVES[call.fn]}))
    why = refused_primitive(call.fn)
    if why is not None:
        what = f"A rule may not use `{call.fn}`: {why}."
        hint = f"Allowed are {' '.join((*PRIMITIVES, *POLYMORPHIC))}."
        return [Problem("refused", what, hint, call.span, None, call.fn)]
    rejected = signatures.rejected.get(call.fn)
    if rejected is not None:
        what = f"The declaration of `{call.fn}` was left out."
        hint = f"First mend the problem on line {rejected.span.line}."
        return [Problem("unknown-name", what, hint, call.span, None, call.fn)]
    what = f"Nothing declares `{call.fn}`."
    hint = suggest(call.fn, list(signatures.tables)) or (
        "Declare it in the file if it is a helper; an op has to be in the dialect."
    )
    return [Problem("unknown-name", what, hint, call.span, None, call.fn)]


def _judge_arity(call: Call, arities: tuple[int, ...]) -> list[Problem]:
    if len(call.args) in arities:
        return []
    expected = " or ".join(str(arity) for arity in arities)
    what = f"`{call.fn}` takes {expected} argument{'s' if expected != '1' else ''}"
    what += f", not {len(call.args)}."
    return [Problem("arity", what, "Add or remove arguments.", call.span, None, call.fn)]


class _Stop(Exception):  # noqa: N818  # no error: the way out of a walk, with what it found
    def __init__(self, message: str, hint: str, span: Span, subject: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem("type", message, hint, span, None, subject)


class _Sorts:
    """Sorts of the variables of one rule, from the signatures of what they appear in."""

    def __init__(self, signatures: Signatures) -> None:
        self._tables = signatures.tables
        self._signatures = signatures
        self._sorts: dict[str, str] = {}
        self._scope: set[str] = set()
        self._in_head = False  # a body binds variables, a head only uses them
        self._changed = False

    def check(self, rule: Rule) -> Problem | None:
        try:
            self._settle(rule.body)
            self._scope, self._in_head = set(self._sorts), True
            for action in rule.head:
                self._action(action)
        except _Stop as stop:
            return stop.problem
        return None

    def check_row(self, row: Call) -> Problem | None:
        try:
            self._infer(row, None)
        except _Stop as stop:
            return stop.problem
        return None

    def annotate(self, rule: Rule) -> Rule:
        """Fill in the sorts that ``check`` has found."""
        names = dict.fromkeys(
            part.name
            for fact in rule.body
            for expr in expressions(fact)
            for part in walk(expr)
            if isinstance(part, Var) and part.name != WILDCARD
        )
        head = tuple(
            msgspec.structs.replace(action, sort=self._infer(action.left, None) or "")
            if isinstance(action, Union)
            else action
            for action in rule.head
        )
        variables = tuple((name, self._sorts[name]) for name in names)
        return msgspec.structs.replace(rule, head=head, variables=variables)

    def _settle(self, body: tuple[Fact, ...]) -> None:
        """Go over the body until no more sorts come out of it."""
        for _ in range(_MAX_ROUNDS):
            self._changed = False
            for fact in body:
                self._fact(fact)
            if not self._changed:
                break
        loose = ungrounded(body, self._tables) or self._unsorted(body)
        if loose is not None:
            raise _Stop(
                f"Nothing in the body tells what `{loose.name}` is.",
                "Use the variable in a term or a relation of the body.",
                loose.span,
                loose.name,
            )

    def _unsorted(self, body: tuple[Fact, ...]) -> Var | None:
        """Return a variable whose sort has not come out of all the rounds."""
        parts = (part for fact in body for expr in expressions(fact) for part in walk(expr))
        variables = (part for part in parts if isinstance(part, Var) and part.name != WILDCARD)
        return next((part for part in variables if part.name not in self._sorts), None)

    def _fact(self, fact: Fact) -> None:
        if isinstance(fact, Holds):
            self._infer(fact.expr, None)
            return
        left = self._infer(fact.left, None)
        right = self._infer(fact.right, left)
        if left is None and right is not None:
            self._infer(fact.left, right)

    def _action(self, action: Action) -> None:
        match action:
            case Let():
                self._define(action)
            case Union():
                sort = self._infer(action.left, None)
                self._infer(action.right, sort)
                if sort is None or not self._signatures.is_class_sort(sort):
                    raise _Stop(
                        f"`union` joins terms, but these are of sort {sort}.",
                        "Unite terms of a declared sort.",
                        action.span,
                    )
            case Do():
                self._infer(action.expr, None)
            case Set() | Change():
                self._row(action)

    def _define(self, action: Let) -> None:
        if action.name in self._scope:
            raise _Stop(
                f"`{action.name}` is bound already.",
                "Choose another name.",
                action.span,
                action.name,
            )
        sort = self._infer(action.expr, None)
        self._scope.add(action.name)
        if sort is not None:
            self._sorts[action.name] = sort

    def _row(self, action: Set | Change) -> None:
        """Judge an action on a row of a table by its arguments."""
        known = self._tables[action.fn]
        for arg, sort in zip(action.args, known.inputs, strict=True):
            self._infer(arg, sort)
        if isinstance(action, Set):
            if known.kind != "function":
                raise _Stop(
                    f"`set` gives a function a value, but `{action.fn}` is a {known.kind}.",
                    "Use `union` for terms; name a relation's row to add it.",
                    action.span,
                    action.fn,
                )
            self._infer(action.value, known.output)

    def _infer(self, expr: Expr, expected: str | None) -> str | None:
        """Return the sort of ``expr``, which should be ``expected``; None if nothing tells yet."""
        match expr:
            case Var():
                return self._variable(expr, expected)
            case Lit():
                return self._agree(expr, expr.sort, expected)
            case Call():
                known = self._tables.get(expr.fn)
                if known is not None:
                    return self._table(expr, known, expected)
                if expr.fn in POLYMORPHIC:
                    return self._same(expr, expected)
                return self._primitive(expr, expected)

    def _variable(self, expr: Var, expected: str | None) -> str | None:
        if expr.name == WILDCARD and not self._in_head:
            return expected
        if self._in_head and expr.name not in self._scope:
            raise _Stop(
                f"Nothing binds `{expr.name}`.",
                suggest(expr.name, sorted(self._scope)) or "Bind it in the body, or with `let`.",
                expr.span,
                expr.name,
            )
        known = self._sorts.get(expr.name)
        if expected == "Unit":
            raise _Stop("A fact is no value.", "State the fact by itself.", expr.span, expr.name)
        if known is None:
            if expected is not None:
                self._sorts[expr.name] = expected
                self._changed = True
            return expected
        return self._agree(expr, known, expected)

    def _table(self, expr: Call, known: Declaration, expected: str | None) -> str | None:
        if known.kind == "function" and self._in_head:
            raise _Stop(
                f"A head may not look `{expr.fn}` up.",
                f"Bind its value in the body: `(= ?value ({expr.fn} …))`.",
                expr.span,
                expr.fn,
            )
        for arg, sort in zip(expr.args, known.inputs, strict=True):
            self._infer(arg, sort)
        return self._agree(expr, known.output or "", expected)

    def _same(self, expr: Call, expected: str | None) -> str | None:
        left, right = expr.args
        known = self._infer(left, None)
        sort = self._infer(right, known)
        if known is None and sort is not None:
            self._infer(left, sort)
        return self._agree(expr, "Unit", expected)

    def _primitive(self, expr: Call, expected: str | None) -> str | None:
        given = [self._infer(arg, None) for arg in expr.args]
        fitting = [
            (inputs, output)
            for inputs, output in PRIMITIVES[expr.fn]
            if len(inputs) == len(given)
            and expected in (None, output)
            and all(sort in (None, wanted) for sort, wanted in zip(given, inputs, strict=True))
        ]
        if not fitting:
            sorts = " ".join(sort or "?" for sort in given)
            to_give = f" to give {expected}" if expected else ""
            raise _Stop(
                f"`{expr.fn}` does not take ({sorts}){to_give}.",
                "Mind that 1 is an i64 and 1.0 an f64; `to-f64` converts.",
                expr.span,
                expr.fn,
            )
        if len(fitting) == 1:
            # Only what is still open is looked at again: nested calls would double the work.
            for arg, wanted, sort in zip(expr.args, fitting[0][0], given, strict=True):
                if sort is None:
                    self._infer(arg, wanted)
        outputs = {output for _, output in fitting}
        return outputs.pop() if len(outputs) == 1 else None

    @staticmethod
    def _agree(expr: Var | Lit | Call, actual: str, expected: str | None) -> str:
        if expected is None or actual == expected:
            return actual
        hint = "Change one of them."
        if (actual, expected) == ("i64", "f64"):
            hint = "Write the number with a point: 1.0 is an f64."
        raise _Stop(f"This is of sort {actual}, where {expected} is needed.", hint, expr.span)
