"""One form as a tree of its words, with their places."""

from __future__ import annotations

from typing import NamedTuple

from rulecheck.rules.scanner import tokenize

ELLIPSIS = "..."


class Node(NamedTuple):
    """A word or a list. ``start`` and ``end`` are offsets in characters of the form.

    ``kind`` is ``atom``, ``string`` or ``list``, or ``new`` for text that the author did not write
    and that stands for what is at its place. ``marked`` says that a marker is in it, or is it.
    """

    kind: str
    text: str
    start: int
    end: int
    parts: tuple[Node, ...] = ()
    marked: bool = False

    @property
    def is_ellipsis(self) -> bool:
        """Whether this is ``...``."""
        return self.marked and self.text == ELLIPSIS

    @property
    def is_field(self) -> bool:
        """Whether this is a ``:name``."""
        return self.marked and self.text.startswith(":")

    @property
    def is_marker(self) -> bool:
        """Whether this is a word that can never be an argument."""
        return self.marked and self.kind == "atom"


def read_tree(text: str) -> Node:
    """Read the first form of a balanced text, in linear time."""
    opened: list[tuple[int, list[Node]]] = [(0, [])]
    for token in tokenize(text):
        end = token.start + len(token.text)
        if token.kind == "open":
            opened.append((token.start, []))
        elif token.kind == "close":
            start, parts = opened.pop()
            marked = any(part.marked for part in parts)
            opened[-1][1].append(Node("list", "", start, end, tuple(parts), marked))
        elif token.kind != "comment":
            marks = token.kind == "atom" and (token.text == ELLIPSIS or token.text[0] == ":")
            opened[-1][1].append(Node(token.kind, token.text, token.start, end, (), marks))
    return opened[0][1][0]
