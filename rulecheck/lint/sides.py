"""The two sides of a rule as ops with named fields, and what type each term is known to hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, get_args

from rulecheck.dialects import Vocabulary
from rulecheck.lint.classes import Classes
from rulecheck.lint.launch import BETA, CALL_FIELDS, EPILOGUE, GEMMS, SCALED, TYPE_FIELDS
from rulecheck.ops import OPS, OpSpec
from rulecheck.records import (
    Action,
    Call,
    DType,
    Epilogue,
    Eq,
    Expr,
    Holds,
    Let,
    Lit,
    Rule,
    Set,
    Union,
    Var,
    calls_in,
)

GUARDS = frozenset({"!=", "<", ">", "<=", ">="})


class OpUse(NamedTuple):
    """An op on its inputs. ``root`` is the class of its result; ``tail`` the rest of the list."""

    root: int
    spec: OpSpec
    kind: Call
    fields: Mapping[str, Expr]
    inputs: tuple[Expr, ...]
    tail: Expr | None

    @property
    def is_gemm(self) -> bool:
        """Whether it is a library call with the fields that the lints know."""
        return self.spec.family in GEMMS and self.fields.keys() >= CALL_FIELDS


class Sides:
    """A rule's classes and ops. Terms that the head builds are in the same classes as the body's.

    ``matched`` are the ops of the body, ``built`` those of the head.
    """

    def __init__(self, rule: Rule, vocabulary: Vocabulary, *, united: bool = False) -> None:
        """Read a rule; with ``united``, as it is once the head's unions have been made."""
        self.rule = rule
        self.vocabulary = vocabulary
        self.classes = Classes()
        for fact in rule.body:
            if isinstance(fact, Eq):
                self.classes.unite(self.classes.add(fact.left), self.classes.add(fact.right))
            else:
                self.classes.add(fact.expr)
        for action in rule.head:
            self._act(action, united=united)
        self._unequal = {classes for fn, classes in self._facts() if fn == "!="}
        self.matched = tuple(self._uses(calls_in(*rule.body)))
        self.built = tuple(self._uses(calls_in(*rule.head)))
        self._constants = {
            use.root for use in (*self.matched, *self.built) if use.spec.family == "fill"
        }
        for use in (*self.matched, *self.built):
            self._learn_result(use)
        for use in self.matched:
            self._learn_inputs(use)
        # Last: what was learned has made types one.
        self._rows = [classes for fn, classes in self._facts() if fn not in GUARDS]

    def unions(self) -> list[Union]:
        """The head's unions."""
        return [action for action in self.rule.head if isinstance(action, Union)]

    def at(self, expr: Expr) -> int:
        """The class of an expression."""
        return self.classes.find(self.classes.add(expr))

    def type_of(self, node: int) -> int:
        """The class of the type that a graph is known to hold."""
        return self.classes.apply(self.vocabulary.encoding.dtype_function, node)

    def dtype(self, node: int) -> DType | None:
        """The type that a class of types is, if the rule says it."""
        constant = self.classes.constant(node)
        return self.vocabulary.dtypes.get(constant.fn) if isinstance(constant, Call) else None

    def same_type(self, left: int, right: int) -> bool:
        """Whether two types are one in memory."""
        if self.classes.find(left) == self.classes.find(right):
            return True
        first, second = self.dtype(left), self.dtype(right)
        return first is not None and second is not None and first.storage is second.storage

    def related(self, left: int, right: int) -> bool:
        """Whether a fact of the body that is no guard speaks of both classes at once."""
        return any({left, right} <= row for row in self._rows)

    def number(self, use: OpUse, field: str) -> int | float | None:
        """The number that a field is pinned to."""
        node = self.at(use.fields[field])
        for call in self.classes.calls(node):
            if call.fn == self.vocabulary.encoding.number and isinstance(call.args[0], Lit):
                node = self.at(call.args[0])
        constant = self.classes.constant(node)
        value = constant.value if isinstance(constant, Lit) else None
        return value if isinstance(value, int | float) else None

    def text(self, use: OpUse, field: str) -> str | None:
        """The string that a field is pinned to."""
        constant = self.classes.constant(self.at(use.fields[field]))
        value = constant.value if isinstance(constant, Lit) else None
        return value if isinstance(value, str) else None

    def reads_c(self, use: OpUse) -> bool | None:
        """Whether a library call reads C; None if it may."""
        beta = self.number(use, BETA)
        if beta is not None:
            return beta != 0.0
        node = self.at(use.fields[BETA])
        zeros = (Lit(zero, "f64", use.kind.span) for zero in (0.0, -0.0))
        guarded = any(frozenset({node, self.at(zero)}) in self._unequal for zero in zeros)
        return True if guarded else None

    def reads_bias(self, use: OpUse) -> bool | None:
        """Whether a library call reads a bias; None if it may."""
        known = self.text(use, EPILOGUE)
        if known is not None:
            return known.endswith("BIAS")
        expr = use.fields[EPILOGUE]
        left = [
            name
            for name in get_args(Epilogue)
            if frozenset({self.at(expr), self.at(Lit(name, "String", expr.span))})
            not in self._unequal
        ]
        answers = {name.endswith("BIAS") for name in left}
        return answers.pop() if len(answers) == 1 else None

    def _act(self, action: Action, *, united: bool) -> None:
        add = self.classes.add
        match action:
            case Let():
                self.classes.unite(add(Var(action.name, action.span)), add(action.expr))
            case Union():
                left, right = add(action.left), add(action.right)
                if united:
                    self.classes.unite(left, right)
            case Set():
                for expr in (*action.args, action.value):
                    add(expr)

    def _facts(self) -> Iterator[tuple[str, frozenset[int]]]:
        """Names of relations and guards of the body, and the classes that each speaks of."""
        for fact in self.rule.body:
            if isinstance(fact, Holds) and isinstance(fact.expr, Call):
                yield fact.expr.fn, frozenset(self.at(arg) for arg in fact.expr.args)

    def _uses(self, calls: Iterable[Call]) -> Iterator[OpUse]:
        """Every application of an op that the dialect knows, once."""
        seen: set[int] = set()
        for call in calls:
            if call.fn != self.vocabulary.encoding.op or len(call.args) != 2:
                continue
            for kind in self.classes.calls(self.at(call.args[0])):
                binding = self.vocabulary.ops.get(kind.fn)
                if binding is None or len(binding.fields) != len(kind.args) or id(call) in seen:
                    continue
                seen.add(id(call))
                fields = dict(zip(binding.fields, kind.args, strict=True))
                inputs, tail = self.elements(call.args[1])
                yield OpUse(self.at(call), OPS[binding.spec], kind, fields, inputs, tail)

    def elements(self, listed: Expr) -> tuple[tuple[Expr, ...], Expr | None]:
        """What an input list holds, and the rest of it that is not written out."""
        names = self.vocabulary.encoding
        found: list[Expr] = []
        seen: set[int] = set()
        while (node := self.at(listed)) not in seen:
            seen.add(node)
            calls = self.classes.calls(node)
            if any(call.fn == names.input_nil for call in calls):
                return tuple(found), None
            cells = [call for call in calls if call.fn == names.input_cons]
            if not cells:
                break
            first, listed = cells[0].args
            found.append(first)
        return tuple(found), listed

    def _learn_result(self, use: OpUse) -> None:
        """Equate the type of an op's result with what the op table says."""
        result = use.spec.result
        if isinstance(result, DType):
            node = self.at(Call(self.vocabulary.dtype_constructor(result), (), use.kind.span))
        elif result in use.fields:
            node = self.at(use.fields[result])
        else:
            typed = self._typed_inputs(use)
            if not typed:
                return
            node = self.type_of(typed[0])
        self.classes.unite(self.type_of(use.root), node)

    def _learn_inputs(self, use: OpUse) -> None:
        """Equate what a well-formed graph has of one type."""
        if use.spec.family in {"pointwise", "matmul"}:
            typed = self._typed_inputs(use)
            for node in typed[1:]:
                self.classes.unite(self.type_of(typed[0]), self.type_of(node))
        elif use.is_gemm:
            for position, expr in enumerate(use.inputs):
                roles = self.roles(use, position)
                if len(roles) == 1:
                    field = self.at(use.fields[TYPE_FIELDS[roles[0]]])
                    self.classes.unite(self.type_of(self.at(expr)), field)

    def _typed_inputs(self, use: OpUse) -> list[int]:
        """Classes of an op's inputs but constants, which take the type of the others."""
        return [node for expr in use.inputs if (node := self.at(expr)) not in self._constants]

    def roles(self, use: OpUse, position: int | None) -> list[str]:
        """What a library call may take an input for; without a position, those not written out."""
        if position is None:
            covered = len(use.inputs)
            return list(
                dict.fromkeys(role for at in range(covered, 4) for role in self.roles(use, at))
            )
        with_c, with_bias = self.reads_c(use), self.reads_bias(use)
        if self._is_fp8(use):  # the library's default type of a bias is then another
            with_bias = False
        may = {
            0: ["A"],
            1: ["B"],
            2: ["C"] * (with_c is not False) + ["bias"] * (with_bias is not False and not with_c),
            3: ["bias"] * (with_bias is not False and with_c is not False),
        }
        return may.get(position, [])

    def _is_fp8(self, use: OpUse) -> bool:
        dtype = self.dtype(self.at(use.fields["a_dtype"]))
        return use.spec.name in SCALED if dtype is None else dtype.is_fp8
