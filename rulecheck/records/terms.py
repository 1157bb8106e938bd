"""Ground terms as a hash-consed table, cheap to build, to send and to compare."""

from __future__ import annotations

import msgspec


class Node(msgspec.Struct, frozen=True, array_like=True):
    """One node. A literal has ``fn`` in {i64, f64, String, bool} and ``value``, and no args."""

    fn: str
    args: tuple[int, ...] = ()
    value: int | float | str | bool | None = None


class TermTable:
    """Nodes in topological order (arguments first); equal terms have one id.

    Not a record: a builder. What crosses a stage is ``freeze()``.
    """

    def __init__(self, nodes: tuple[Node, ...] = ()) -> None:
        """Start from ``nodes``, whose ids are kept."""
        self.nodes: list[Node] = list(nodes)
        self._frozen = nodes
        self._ids: dict[Node, int] = {}
        for index, node in enumerate(self.nodes):
            self._ids.setdefault(_key(node), index)

    def add(self, fn: str, *args: int) -> int:
        """Return the id of ``(fn args…)``."""
        return self.intern(Node(fn, args))

    def literal(self, sort: str, value: float | str | bool) -> int:
        """Return the id of a literal of ``sort``."""
        return self.intern(Node(sort, (), value))

    def intern(self, node: Node) -> int:
        """Return the id of ``node``, adding it if it is new."""
        key = _key(node)
        found = self._ids.get(key)
        if found is None:
            found = len(self.nodes)
            self.nodes.append(node)
            self._ids[key] = found
        return found

    def freeze(self) -> tuple[Node, ...]:
        """The nodes so far, to keep or to send; one tuple as long as nothing is added."""
        if len(self._frozen) != len(self.nodes):
            self._frozen = tuple(self.nodes)
        return self._frozen

    def copy_from(self, nodes: tuple[Node, ...], root: int) -> int:
        """Copy the term ``root`` of another table; return its id here."""
        moved: dict[int, int] = {}
        stack = [root]
        while stack:
            index = stack[-1]
            missing = [arg for arg in nodes[index].args if arg not in moved]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            node = nodes[index]
            args = tuple(moved[arg] for arg in node.args)
            moved[index] = self.intern(Node(node.fn, args, node.value))
        return moved[root]

    def show(self, root: int, limit: int = 4000) -> str:
        """Print a term as an s-expression; shared parts are repeated, a long text is cut at ``…``.

        A term of n nodes can have a text of 2^n characters, so the text is what is bounded.
        """
        parts: list[str] = []
        length = 0
        stack: list[int | str] = [root]
        while stack and length <= limit:
            item = stack.pop()
            if isinstance(item, str):
                text = item
            else:
                node = self.nodes[item]
                if node.value is not None:
                    text = quote(node.value)
                else:
                    text = f"({node.fn}"
                    stack.append(")")
                    for arg in reversed(node.args):
                        stack.extend((arg, " "))
            parts.append(text)
            length += len(text)
        return "".join(parts) + (" …" if stack else "")


def _key(node: Node) -> Node:
    """Keep 1 and 1.0 and True apart, and 0.0 and -0.0, which are equal as Python values."""
    if node.value is None:
        return node
    return Node(node.fn, (), repr(node.value))


def quote(value: float | str | bool) -> str:
    """Spell a literal as egglog does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
