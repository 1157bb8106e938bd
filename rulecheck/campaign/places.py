"""Where to put the caret: the field of the rule's right side that an evidence is about."""

from __future__ import annotations

from collections.abc import Iterator

from rulecheck.dialects import Vocabulary
from rulecheck.records import Call, Evidence, Expr, Let, Lit, Rule, Set, Span, Union, Var, calls_in


def unions(rule: Rule) -> list[Union]:
    """The rule's unions in order."""
    return [action for action in rule.head if isinstance(action, Union)]


def called(rule: Rule) -> list[str]:
    """Names of everything that a rule's body calls, in order."""
    return [call.fn for call in calls_in(*rule.body)]


def point_at(rule: Rule, union: int, evidence: Evidence, vocabulary: Vocabulary) -> Span | None:
    """The place to show: the offending field, else what the rule changed, else the union.

    For a type that the rule claims wrongly, the ``set`` that claims it.
    """
    if evidence.code == "RC304":
        for action in rule.head:
            if isinstance(action, Set) and action.fn == vocabulary.encoding.dtype_function:
                return action.value.span
    claims = unions(rule)
    if union >= len(claims):
        return None
    claim = claims[union]
    # The same op on other inputs: whatever the evidence complains about, the list is what changed.
    if inputs := _changed_inputs(rule, claim, vocabulary):
        return inputs
    if operand := _swapped_operand(rule, claim, evidence, vocabulary):
        return operand
    calls = list(_op_calls(rule, claim, vocabulary))
    for field in _fields_at_fault(evidence):
        for call in calls:
            names = vocabulary.ops[call.fn].fields
            if field in names and names.index(field) < len(call.args):
                return call.args[names.index(field)].span
    return _changed(rule, calls) or claim.span


def _changed_inputs(rule: Rule, claim: Union, vocabulary: Vocabulary) -> Span | None:
    """The new op's input list, if the same op with the same fields has another on the left."""
    op = vocabulary.encoding.op
    body = [call for call in calls_in(*rule.body) if call.fn == op]
    for call in _all_calls(rule, claim):
        if call.fn == op and len(call.args) == 2:
            twins = [twin for twin in body if _same(twin.args[0], call.args[0])]
            if twins and not any(_same(twin.args[1], call.args[1]) for twin in twins):
                return call.args[1].span
    return None


def _swapped_operand(
    rule: Rule, claim: Union, evidence: Evidence, vocabulary: Vocabulary
) -> Span | None:
    """A violating operand that is another input than before, under the fields of before."""
    letters = {item.operand for item in evidence.violations}
    op = vocabulary.encoding.op
    for call in _all_calls(rule, claim):
        kind, listed = call.args if call.fn == op else (None, None)
        for twin in calls_in(*rule.body):
            if not (isinstance(kind, Call) and listed and twin.fn == op):
                continue
            if not (isinstance(twin.args[0], Call) and twin.args[0].fn == kind.fn):
                continue
            pairs = zip("AB", _elements(listed), _elements(twin.args[1]), strict=False)
            for letter, ours, theirs in pairs:
                kept = not changed_of(evidence, letter)
                if letter in letters and kept and not _same(ours, theirs):
                    return ours.span
    return None


def _elements(listed: Expr) -> Iterator[Expr]:
    """What an input list holds, as far as it is written out."""
    while isinstance(listed, Call) and len(listed.args) == 2:
        first, listed = listed.args
        yield first


def _fields_at_fault(evidence: Evidence) -> Iterator[str | None]:
    """Fields to show, best first: of the violated operand the one that the rule changed."""
    changed = list(_changed_fields(evidence))
    for item in evidence.violations:
        if item.field not in changed:
            yield from changed_of(evidence, item.operand)
        yield item.field
    yield from changed


def changed_of(evidence: Evidence, operand: str) -> list[str]:
    """Fields of one operand (``A`` to ``D``) in which the new call differs from the old one."""
    return [field for field in _changed_fields(evidence) if field in _fields_of(operand)]


def _fields_of(operand: str) -> tuple[str, ...]:
    letter = operand.lower()
    return (f"{letter}_layout", *(name.format(letter) for _, name in _OPERAND_FIELDS))


_OPERAND_FIELDS = (("dtype", "{}_dtype"), ("ld", "ld{}"), ("order", "{}_order"))


def _changed_fields(evidence: Evidence) -> Iterator[str]:
    """Fields in which the new call differs from the old one, those that change numbers first."""
    before, after = evidence.original_call, evidence.member_call
    if before is None or after is None:
        return
    for field in ("alpha", "beta", "epilogue", "compute_type"):
        if getattr(before, field) != getattr(after, field):
            yield field
    for operand in "abcd":
        old, new = getattr(before, operand), getattr(after, operand)
        for part, name in _OPERAND_FIELDS:
            if getattr(old, part) != getattr(new, part):
                yield name.format(operand)
    for part, name in (("transa", "a_layout"), ("transb", "b_layout")):
        if getattr(before, part) != getattr(after, part):
            yield name


def _op_calls(rule: Rule, claim: Union, vocabulary: Vocabulary) -> Iterator[Call]:
    """Op constructors that the union's sides build, outermost first."""
    return (call for call in _all_calls(rule, claim) if call.fn in vocabulary.ops)


def _all_calls(rule: Rule, claim: Union) -> Iterator[Call]:
    """Everything that the union's sides build, outermost first, through the head's lets."""
    lets = {action.name: action.expr for action in rule.head if isinstance(action, Let)}
    seen: set[str] = set()
    stack: list[Expr] = [claim.left, claim.right]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Var):
            if expr.name in lets and expr.name not in seen:
                seen.add(expr.name)
                stack.append(lets[expr.name])
        elif isinstance(expr, Call):
            yield expr
            stack.extend(reversed(expr.args))


def _changed(rule: Rule, calls: list[Call]) -> Span | None:
    """The first field of a new call that is not what the same op has on the left side."""
    body = list(calls_in(*rule.body))
    for call in calls:
        twins = [twin for twin in body if twin.fn == call.fn]
        for twin in twins:
            for ours, theirs in zip(call.args, twin.args, strict=False):
                if not _same(ours, theirs):
                    return ours.span
    return None


def _same(first: Expr, second: Expr) -> bool:
    match first, second:
        case Var(), Var():
            return first.name == second.name
        case Lit(), Lit():
            return first.value == second.value
        case Call(), Call():
            return first.fn == second.fn and all(
                _same(one, other) for one, other in zip(first.args, second.args, strict=False)
            )
        case _:
            return False
