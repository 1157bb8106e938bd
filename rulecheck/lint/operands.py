"""RC501: an input of a library call that need not be of the type that the call takes it for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rulecheck.lint.classes import brief
from rulecheck.lint.launch import TYPE_FIELDS
from rulecheck.lint.sides import OpUse, Sides
from rulecheck.records import Expr, Lint

# A place among the inputs (None: the rest of the list) and the class of what stands there.
Slot = tuple[int | None, int]

_HINTS = {
    "A": "convert A with a Cast in the new input list, or keep a_dtype",
    "B": "convert B with a Cast in the new input list, or keep b_dtype",
    "C": "guard beta = 0.0 (then C is not read), or convert C with a Cast in the new input list",
    "bias": "pin an epilogue without a bias, or convert the bias with a Cast in the new input list",
}


def lint_operands(sides: Sides) -> Iterator[Lint]:
    """Yield what the new library calls may misread."""
    donors: dict[Slot, list[OpUse]] = {}
    for old in sides.matched:
        for slot, _ in _slots(sides, old):
            donors.setdefault(slot, []).append(old)
    for use in sides.built:
        for slot, expr in _slots(sides, use):
            yield from _lint_slot(sides, use, slot, expr, donors.get(slot, []))


def _slots(sides: Sides, use: OpUse) -> Iterator[tuple[Slot, Expr]]:
    """Inputs of a library call: those written out, then the rest of the list."""
    if use.is_gemm:
        for position, expr in enumerate(use.inputs):
            yield (position, sides.at(expr)), expr
        if use.tail is not None:
            yield (None, sides.at(use.tail)), use.tail


def _lint_slot(
    sides: Sides, use: OpUse, slot: Slot, expr: Expr, donors: Sequence[OpUse]
) -> Iterator[Lint]:
    """Judge one input; ``donors`` are calls of the left side that have it in the same place."""
    position, _ = slot
    roles = sides.roles(use, position)
    for role in roles:
        old_fields = [
            sides.at(old.fields[TYPE_FIELDS[role]])
            for old in donors
            if role in sides.roles(old, position)
        ]
        new = sides.at(use.fields[TYPE_FIELDS[role]])
        if position is not None:
            held = sides.type_of(sides.at(expr))
            if sides.same_type(held, new):
                continue
            if not old_fields and len(roles) == 1 and not sides.related(sides.at(expr), new):
                yield from _lint_other(sides, use, role, expr, held)
        if old_fields and not any(sides.same_type(old, new) for old in old_fields):
            yield _lint_copy(sides, use, role, old_fields[0])


def _lint_copy(sides: Sides, use: OpUse, role: str, old: int) -> Lint:
    field = TYPE_FIELDS[role]
    value = use.fields[field]
    before, after = sides.classes.spell(old), sides.classes.spell(sides.at(value))
    what = f"{_name(role)} is copied as it is, but {field}"
    what += ", by which the call knows its type," if role == "bias" else ""
    message = f"{what} changes from {before or 'any type'} to {after or 'another'}"
    return Lint("RC501", message, _HINTS[role], value.span)


def _lint_other(sides: Sides, use: OpUse, role: str, expr: Expr, held: int) -> Iterator[Lint]:
    """Judge an input that the left side does not have in this place."""
    field = TYPE_FIELDS[role]
    value = use.fields[field]
    known, after = sides.classes.spell(held), sides.classes.spell(sides.at(value))
    if known is None:
        said = f"nothing says that {_name(role)}, {brief(expr)}, holds it"
    else:
        said = f"{_name(role)}, {brief(expr)}, holds {known}"
    message = f"{field} is {after or 'any type'}, but {said}"
    typed = sides.vocabulary.encoding.dtype_function
    fact = f"require (= {brief(value)} ({typed} {brief(expr)}))"
    yield Lint("RC501", message, f"{fact}, or {_HINTS[role]}", value.span)


def _name(role: str) -> str:
    return "the bias" if role == "bias" else role
