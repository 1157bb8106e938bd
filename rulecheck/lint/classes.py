"""Which terms of a rule are one: a congruence closure over its expressions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from rulecheck.records import Call, Expr, Lit, Var

WILDCARD = "_"
_MAX_SHOWN = 80


class Classes:
    """Classes of equal expressions. A node's number stays; ``find`` gives its class."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._parent: list[int] = []
        self._members: list[list[Expr]] = []
        self._uses: list[list[tuple[str, tuple[int, ...], int]]] = []
        self._ids: dict[Hashable, int] = {}

    def find(self, node: int) -> int:
        """The class that a node is in."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def add(self, expr: Expr) -> int:
        """The class of an expression, which has to live as long as this does."""
        match expr:
            case Call():
                return self._apply(expr.fn, [self.add(arg) for arg in expr.args], expr)
            case Var():
                # Every wildcard is another one, and the same each time that it is asked for.
                place = id(expr) if expr.name == WILDCARD else 0
                key: Hashable = ("variable", expr.name, place)
            case Lit():
                key = (expr.sort, repr(expr.value))
        if key not in self._ids:
            self._ids[key] = self._fresh(expr)
        return self.find(self._ids[key])

    def apply(self, fn: str, *args: int) -> int:
        """The class of ``fn`` applied to classes."""
        return self._apply(fn, args)

    def unite(self, left: int, right: int) -> None:
        """Make two classes one, and with them what is built from them."""
        pending = [(left, right)]
        while pending:
            kept, gone = (self.find(node) for node in pending.pop())
            if kept == gone:
                continue
            if len(self._uses[kept]) < len(self._uses[gone]):
                kept, gone = gone, kept
            self._parent[gone] = kept
            self._members[kept] += self._members[gone]
            for fn, args, node in self._uses[gone]:
                key = (fn, tuple(self.find(arg) for arg in args))
                pending.append((self._ids.setdefault(key, node), node))
                self._uses[kept].append((*key, node))

    def calls(self, node: int) -> list[Call]:
        """The calls in a class."""
        return [expr for expr in self._members[self.find(node)] if isinstance(expr, Call)]

    def constant(self, node: int) -> Call | Lit | None:
        """A literal or a constructor without arguments in a class, if there is one."""
        for expr in self._members[self.find(node)]:
            if isinstance(expr, Lit) or (isinstance(expr, Call) and not expr.args):
                return expr
        return None

    def spell(self, node: int) -> str | None:
        """How the author names a class: a constant, else a variable, else nothing."""
        constant = self.constant(node)
        if constant is not None:
            return constant.fn if isinstance(constant, Call) else brief(constant)
        names = (brief(expr) for expr in self._members[self.find(node)] if isinstance(expr, Var))
        return next((name for name in names if name != WILDCARD), None)

    def _apply(self, fn: str, args: Iterable[int], *members: Expr) -> int:
        key = (fn, tuple(self.find(arg) for arg in args))
        if key not in self._ids:
            self._ids[key] = node = self._fresh(*members)
            for arg in key[1]:
                self._uses[arg].append((*key, node))
        return self.find(self._ids[key])

    def _fresh(self, *members: Expr) -> int:
        self._parent.append(len(self._parent))
        self._members.append(list(members))
        self._uses.append([])
        return len(self._parent) - 1


def brief(expr: Expr | str) -> str:
    """Print an expression for a message, which is read by people: a long one is cut."""
    text = expr if isinstance(expr, str) else show(expr)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def show(expr: Expr) -> str:
    """Print an expression as its author would."""
    match expr:
        case Var():
            return expr.name
        case Call():
            return "(" + " ".join([expr.fn, *(show(arg) for arg in expr.args)]) + ")"
        case Lit(value=bool()):
            return "true" if expr.value else "false"
        case Lit(value=str()):
            return f'"{expr.value}"'
        case Lit():
            return "()" if expr.value is None else repr(expr.value)
