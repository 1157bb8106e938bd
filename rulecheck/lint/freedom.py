"""RC502: fields of the left side that may have any value, and that the product ignores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rulecheck.lint.classes import WILDCARD, brief
from rulecheck.lint.launch import (
    ALPHA,
    BATCH,
    EXTENTS,
    NEVER_MATTERS,
    ONLY_WITH_BATCH,
    ONLY_WITH_C,
    ONLY_WITH_PRODUCT,
)
from rulecheck.lint.sides import OpUse, Sides
from rulecheck.lint.walk import expressions, walk
from rulecheck.records import Call, Declaration, Expr, Holds, Let, Lint, Span, Union, Var

_MAX_LISTED = 6


def lint_freedom(sides: Sides, declared: Mapping[str, Declaration]) -> Iterator[Lint]:
    """Yield one lint that lists the fields, if there are any."""
    count = _count(sides)
    witnessed = _witnessed(sides, declared)
    shared = Counter(
        sides.at(expr) for use in (*sides.matched, *sides.built) for expr in use.fields.values()
    )
    free = [
        (span, f"{use.kind.fn}.{name}" + (f" ({variable})" if variable else ""))
        for use in _dropped(sides)
        if sides.classes.find(use.root) not in witnessed
        for span, name, variable in _free_fields(sides, use, declared, count, shared)
    ]
    if not free:
        return
    free.sort()
    names = [name for _, name in free]
    listed = ", ".join(names[:_MAX_LISTED])
    listed += f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    one = len(names) == 1
    message = (
        f"{'a field' if one else f'{len(names)} fields'} of the left side may have any value, "
        f"and the product ignores {'it' if one else 'them'}: {listed}"
    )
    hint = "pin each, or use it in the product, unless the claim holds whatever its value"
    yield Lint("RC502", message, hint, free[0][0])


def _count(sides: Sides) -> Counter[str]:
    """How often each variable occurs in the rule."""
    rule = sides.rule
    parts = (part for item in (*rule.body, *rule.head) for part in walk(*expressions(item)))
    return Counter(part.name for part in parts if isinstance(part, Var))


def _witnessed(sides: Sides, declared: Mapping[str, Declaration]) -> set[int]:
    """Graphs of which a relation holds: it may say what the pattern does not."""
    return {
        sides.at(arg)
        for fact in sides.rule.body
        if isinstance(fact, Holds) and isinstance(fact.expr, Call)
        if fact.expr.fn in declared and declared[fact.expr.fn].kind == "relation"
        for arg in fact.expr.args
    }


def _dropped(sides: Sides) -> list[OpUse]:
    """Ops of the body that the product stands for: below a union's side, above what it reuses."""
    kept = _kept(sides)
    ops: dict[int, list[OpUse]] = {}
    for use in sides.matched:
        ops.setdefault(sides.classes.find(use.root), []).append(use)
    found: set[int] = set()
    for union in sides.unions():
        left, right = sides.at(union.left), sides.at(union.right)
        below = {top: _below(sides, ops, top, kept) for top in (left, right)}
        for top, other in ((left, right), (right, left)):
            if other in below[top]:  # the product is a part of what it stands for
                found |= _below(sides, ops, top, kept | {other})
            elif top not in below[other]:
                found |= below[top]
    return [use for use in sides.matched if sides.classes.find(use.root) in found]


def _below(sides: Sides, ops: Mapping[int, list[OpUse]], top: int, kept: set[int]) -> set[int]:
    """Graphs of the left side that ``top`` is made of, down to what is kept."""
    pending = [top]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if node not in seen and node not in kept:
            seen.add(node)
            pending += [sides.at(expr) for use in ops.get(node, ()) for expr in use.inputs]
    return seen


def _kept(sides: Sides) -> set[int]:
    """Graphs that the product reads as they are."""
    names = {action.name for action in sides.rule.head if isinstance(action, Let)}
    found: set[int] = set()
    for action in sides.rule.head:
        if isinstance(action, Let):
            exprs: tuple[Expr, ...] = (action.expr,)
        elif isinstance(action, Union):
            exprs = tuple(side for side in (action.left, action.right) if isinstance(side, Call))
        else:
            continue
        for part in walk(*exprs):
            if isinstance(part, Var) and part.name not in names:
                found.add(sides.at(part))
                found |= {sides.at(element) for element in sides.elements(part)[0]}
    return found


def _free_fields(
    sides: Sides,
    use: OpUse,
    declared: Mapping[str, Declaration],
    count: Counter[str],
    shared: Counter[int],
) -> Iterator[tuple[Span, str, str]]:
    """Place, field and variable of everything in an op that nothing constrains."""
    ignored = _ignored(sides, use)
    spelled = declared[use.kind.fn].fields if use.kind.fn in declared else ()
    for position, (name, expr) in enumerate(use.fields.items()):
        if name in ignored or (use.spec.name, name) in NEVER_MATTERS:
            continue
        shown = spelled[position] if position < len(spelled) else name
        for variable in _free_variables(sides, expr, count, shared):
            hidden = variable.name == WILDCARD or variable.name.startswith("$")
            yield variable.span, shown, "" if hidden else brief(variable)


def _ignored(sides: Sides, use: OpUse) -> set[str]:
    """Fields that a library call does not look at, given the others."""
    if not use.is_gemm:
        return set()
    ignored = {f"ld{operand}" for operand in EXTENTS if _is_one_line(sides, use, operand)}
    if sides.number(use, ALPHA) == 0.0:
        ignored |= ONLY_WITH_PRODUCT
    if sides.reads_c(use) is False:
        ignored |= ONLY_WITH_C
    if sides.number(use, BATCH) == 1:
        ignored |= ONLY_WITH_BATCH
    return ignored


def _is_one_line(sides: Sides, use: OpUse, operand: str) -> bool:
    """Whether a matrix has one column, or one row in row order."""
    rows, columns = EXTENTS[operand]
    if operand in "ab":
        text = sides.text(use, f"{operand}_layout")
        if text is None:
            return False
        rows, columns = (rows, columns) if text == "N" else (columns, rows)
    outer = {"COL": columns, "ROW": rows}.get(sides.text(use, f"{operand}_order") or "")
    return outer is not None and sides.number(use, outer) == 1


def _free_variables(
    sides: Sides, field: Expr, count: Counter[str], shared: Counter[int]
) -> Iterator[Var]:
    """Variables that occur once in the rule, in a field or in the list that it is said to be.

    A list that several fields share is held by the others.
    """
    pending: list[Expr] = [field]
    seen: set[int] = set()
    while pending:
        expr = pending.pop()
        if isinstance(expr, Var) and (expr.name == WILDCARD or count[expr.name] == 1):
            yield expr
            continue
        node = sides.at(expr)
        if node not in seen and shared[node] <= 1:
            seen.add(node)
            cells = sides.classes.calls(node)
            cells = [call for call in cells if call.fn == sides.vocabulary.encoding.list_cons]
            pending += [arg for call in cells for arg in reversed(call.args)]
