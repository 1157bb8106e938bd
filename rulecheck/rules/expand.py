"""Named fields spelled out: what the engine's parser gets has positional arguments only.

A call may give leading arguments by position, others as ``:field value`` in any order, and end in
``...``, which stands for any value of the fields that are left. A declaration names its fields by
``:field Sort`` in place of ``Sort``. The engine's parser would take both words for variables and
sorts, so they are resolved here, in linear time, and each character of the new text knows where
it stands in the author's.
"""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from rulecheck.records import Declaration, Problem
from rulecheck.rules.allowlist import COMMANDS
from rulecheck.rules.fields import Edits, FieldNames, FormFields
from rulecheck.rules.places import Expansion, Piece
from rulecheck.rules.scanner import PARSE_BUDGET_BYTES, Form, Places
from rulecheck.rules.tree import Node, read_tree

# A constructor may have thousands of fields, and a few bytes may ask for all of them. The largest
# rule sets of the public compilers have some 8,000 fields in all their calls.
_MAX_FIELDS = 50_000
_DECLARING = frozenset({"constructor", "function", "relation", "datatype", "datatype*"})


class Expanded(NamedTuple):
    """A form for the engine's parser: ``expansion`` is None if it is as the author wrote it.

    ``rejected`` are names whose declarations have to be left out because of the problems.
    ``fields`` are those that the form itself gives to what it declares.
    """

    expansion: Expansion | None
    problems: tuple[Problem, ...]
    rejected: tuple[str, ...] = ()
    fields: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Expander:
    """Expands the forms of one file.

    Declarations are read first, since a file may use what it declares further down.
    """

    def __init__(
        self, places: Places, forms: Iterable[Form], declarations: Iterable[Declaration] = ()
    ) -> None:
        """Read the field names of a dialect's ``declarations``, then those of ``forms``."""
        self._places = places
        self._names = FieldNames({known.name: known.fields for known in declarations})
        self._fields_left = _MAX_FIELDS
        self._declared = {
            form.index: self._expand(form) for form in forms if form.keyword in _DECLARING
        }

    def fields(self, form: Form) -> Mapping[str, tuple[str, ...]]:
        """Return the fields of what a form declares; what it leaves out, the file may give."""
        known = self._declared.get(form.index)
        own = (
            {} if known is None else {name: given for name, given in known.fields.items() if given}
        )
        return ChainMap(own, self._names.own)

    def expand(self, form: Form) -> Expanded:
        """Resolve the named fields of a form."""
        return self._declared.get(form.index) or self._expand(form)

    def _expand(self, form: Form) -> Expanded:
        root = read_tree(form.text)
        fields = FormFields(self._places, form.start, self._names, self._fields_left)
        declares = form.keyword in _DECLARING
        is_known = form.keyword in COMMANDS or self._names.is_declared(form.keyword)
        if not declares and not (root.marked and is_known):
            return Expanded(None, ())
        if declares:
            fields.read_declarations(root)
        fields.arrange(_regions(form.keyword, root))
        if form.keyword in ("rewrite", "birewrite"):
            fields.edits |= _without_name(root)
        self._fields_left -= fields.used
        if fields.problems or not fields.edits:
            rejected = tuple(fields.declared) if fields.problems else ()
            return Expanded(None, tuple(fields.problems), rejected, fields.declared)
        if (form.tokens + fields.used) * (len(form.text) + 2 * fields.used) > PARSE_BUDGET_BYTES:
            what = "This form is too large to parse once all its fields are written out."
            hint = "Split it into smaller forms."
            place = self._places.span(form.start, form.start + 1)
            return Expanded(None, (Problem("too-large", what, hint, place),))
        return Expanded(_write(form.text, root, fields.edits), (), (), fields.declared)


def _regions(keyword: str, root: Node) -> Iterator[tuple[Node, bool]]:
    """Yield the expressions of a command, and whether each only has to match.

    Both sides of a birewrite are also built, so neither can leave a field open.
    """
    parts = root.parts
    if keyword not in COMMANDS:
        yield root, False
    elif keyword == "rule":
        for index, side in enumerate(parts[1:3]):
            yield from ((part, index == 0) for part in side.parts)
    elif keyword in ("rewrite", "birewrite"):
        yield from zip(parts[1:3], (keyword == "rewrite", False), strict=False)
        for option, value in itertools.pairwise(parts[3:]):
            if option.text == ":when":
                yield from ((part, True) for part in value.parts)
    elif keyword == "function":
        for option, value in itertools.pairwise(parts[3:]):
            if option.text == ":merge":
                yield value, False


def _without_name(root: Node) -> Edits:
    """Leave out the ``:name "…"`` of a rewrite, which only later engines can parse.

    The rule gets its name from the author's text.
    """
    parts = root.parts
    for at in range(3, len(parts) - 1):
        if parts[at].text == ":name" and parts[at + 1].kind == "string":
            return {root.start: parts[:at] + parts[at + 2 :]}
    return {}


def _write(text: str, root: Node, edits: Edits) -> Expansion:
    """Write a form with the parts of some lists replaced, piece by piece."""
    written: list[Piece] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.kind == "new":
            written.append(Piece(node.text, node.start, node.end, copied=False))
        elif node.marked and node.kind == "list":
            pending += reversed(list(_pieces(node, edits.get(node.start))))
        else:
            written.append(Piece(text[node.start : node.end], node.start, node.end, copied=True))
    return Expansion(written)


def _pieces(node: Node, edited: tuple[Node, ...] | None) -> Iterator[Node]:
    """Yield what a list consists of: its parts, and the text between them."""
    if edited is None:
        cursor = node.start
        for part in node.parts:
            if part.marked and part.kind == "list":
                yield _between(cursor, part.start)
                yield part
                cursor = part.end
        yield _between(cursor, node.end)
        return
    yield _between(node.start, node.start + 1)
    for index, part in enumerate(edited):
        if index:
            yield Node("new", " ", part.start, part.start)
        yield part
    yield _between(node.end - 1, node.end)


def _between(start: int, end: int) -> Node:
    return Node("string", "", start, end)
