"""Named fields of one form: which arguments go where, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from rulecheck.records import Problem
from rulecheck.rules.allowlist import is_reserved
from rulecheck.rules.declare import suggest
from rulecheck.rules.scanner import Places, shorten
from rulecheck.rules.tree import Node

# start of a list: the parts that it gets instead of its own
Edits = dict[int, tuple[Node, ...]]

# Option of a datatype's variant: how many words follow it. These are no field names there.
_VARIANT_OPTIONS = {":cost": 1, ":unextractable": 0}
# More than this many mistakes in one form tell nobody more.
_MAX_PROBLEMS = 50
_MAX_LISTED = 5
_MAX_COMPARED = 200


class FieldNames:
    """Field names of everything that is declared; those without names have none."""

    def __init__(self, inherited: Mapping[str, tuple[str, ...]]) -> None:
        """Start from a dialect's declarations."""
        self.own: dict[str, tuple[str, ...]] = {}
        self._inherited = inherited
        self._positions: dict[str, dict[str, int]] = {}

    def declare(self, name: str, fields: tuple[str, ...]) -> None:
        """Remember a declaration of the file; the first one that names its fields counts."""
        self.own[name] = self.own.get(name) or fields

    def is_declared(self, name: str) -> bool:
        """Whether anything declares ``name``."""
        return name in self.own or name in self._inherited

    def fields(self, name: str) -> tuple[str, ...]:
        """Return the fields of ``name``.

        A file that repeats a declaration of the dialect need not repeat the names.
        """
        return self.own.get(name) or self._inherited.get(name, ())

    def positions(self, name: str) -> Mapping[str, int]:
        """Return where each field of ``name`` stands."""
        if name not in self._positions:
            self._positions[name] = {field: at for at, field in enumerate(self.fields(name))}
        return self._positions[name]


class FormFields:
    """What has to change in one form; ``used`` counts the fields of the calls that do.

    ``declared`` are the fields of what the form declares.
    """

    def __init__(self, places: Places, start: int, names: FieldNames, budget: int) -> None:
        """Start with no edits; the form begins at ``start``, and may use ``budget`` fields."""
        self.edits: Edits = {}
        self.problems: list[Problem] = []
        self.declared: dict[str, tuple[str, ...]] = {}
        self.used = 0
        self._places = places
        self._start = start
        self._names = names
        self._budget = budget

    @property
    def is_full(self) -> bool:
        """Whether enough is wrong already."""
        return len(self.problems) >= _MAX_PROBLEMS

    def names(self) -> FieldNames:
        """Return the names that calls are resolved by."""
        return self._names

    def problem(
        self, kind: str, message: str, hint: str, node: Node, subject: str | None = None
    ) -> None:
        """Report what is wrong at a node."""
        place = self._places.span(self._start + node.start, self._start + node.end)
        self.problems.append(Problem(kind, message, hint, place, None, subject))

    # Declarations

    def read_declarations(self, root: Node) -> None:
        """Read the names and fields that a declaring command gives; none if any is wrong."""
        keyword, *parts = root.parts
        if keyword.text == "datatype":
            self._variants(parts[1:])
        elif keyword.text == "datatype*":
            for part in parts:
                if part.parts and part.parts[0].text != "sort":
                    self._variants(part.parts[1:])
        elif len(parts) > 1:
            self._declare(parts[0].text, parts[1], (), parts[1].parts, {})
        if not self.problems:
            for name, fields in self.declared.items():
                self._names.declare(name, fields)

    def _variants(self, variants: Sequence[Node]) -> None:
        for variant in variants:
            if variant.parts:
                head, *rest = variant.parts
                self._declare(head.text, variant, (head,), rest, _VARIANT_OPTIONS)

    def _declare(
        self,
        name: str,
        node: Node,
        head: tuple[Node, ...],
        parts: Sequence[Node],
        options: Mapping[str, int],
    ) -> None:
        """Read ``:field Sort …`` or ``Sort …``, and options among them."""
        fields: dict[str, Node] = {}
        sorts: list[Node] = []
        rest: list[Node] = []
        unnamed: list[Node] = []
        words = iter(parts)
        for part in words:
            if self.is_full:
                break
            if part.text in options:
                rest += [part, *islice(words, options[part.text])]
            elif part.is_field:
                sort = self._field_sort(name, part, next(words, None), fields)
                sorts += [sort] if sort is not None else []
            else:
                unnamed.append(part)
        if fields and unnamed:
            what = f"`{shorten(name)}` names some of its fields, but not this one."
            self.problem("field", what, "Name all fields or none.", unnamed[0], name)
        self.declared[name] = tuple(fields)
        if fields:
            self.edits[node.start] = (*head, *sorts, *rest)

    def _field_sort(
        self, name: str, field: Node, sort: Node | None, known: dict[str, Node]
    ) -> Node | None:
        """Judge one ``:field Sort``."""
        word = field.text[1:]
        if sort is None or sort.is_marker:
            what = f"The field `{shorten(word)}` of `{shorten(name)}` has no sort."
            self.problem("field", what, "Write `:field Sort`.", field, word)
            return None
        if word in known:
            what = f"`{shorten(name)}` has two fields called `{shorten(word)}`."
            self.problem("field", what, "Rename one.", field, word)
            return None
        known[word] = field
        return sort

    # Calls

    def arrange(self, regions: Iterable[tuple[Node, bool]]) -> None:
        """Put the arguments of every call into the order of its fields.

        A region that only has to match may leave fields open.
        """
        pending = list(regions)
        while pending and not self.is_full:
            node, is_open = pending.pop()
            if node.is_marker:
                what = f"`{shorten(node.text)}` stands outside any call."
                self.problem("field", what, "Write it among the arguments of a call.", node)
            if not node.marked:
                continue
            if any(part.is_marker for part in node.parts[1:]):
                self._call(node, is_open=is_open)
            pending += ((part, is_open) for part in node.parts if part.kind == "list")

    def _call(self, node: Node, *, is_open: bool) -> None:
        head = node.parts[0]
        fields = self._names.fields(head.text)
        if not fields:
            self._no_fields(node)
            return
        self.used += len(fields)
        if self.used > self._budget:
            what = "The calls with named fields in this file have too many fields in all."
            self.problem("too-large", what, "Split the file.", node)
            return
        found = len(self.problems)
        arguments = _Arguments(self, node, is_open=is_open)
        arguments.read()
        if len(self.problems) == found:
            arguments.close()
        if len(self.problems) == found:
            self.edits[node.start] = (head, *arguments.ordered())

    def _no_fields(self, node: Node) -> None:
        """Report named fields of what has none.

        What nothing declares is left as it is: the check of names comes to it.
        """
        head = node.parts[0]
        name = head.text
        marker = next(part for part in node.parts[1:] if part.is_marker)
        if head.kind != "atom":
            what = f"`{shorten(marker.text)}` stands in no call."
            self.problem("field", what, "A call starts with a name.", marker)
        elif self._names.is_declared(name) or is_reserved(name):
            what = (
                f"`{shorten(name)}` has no field names, so `{shorten(marker.text)}` means nothing."
            )
            hint = "Give its arguments by position, or name its fields where it is declared."
            self.problem("field", what, hint, marker, name)


class _Arguments:
    """The arguments of one call, as they are read."""

    def __init__(self, form: FormFields, node: Node, *, is_open: bool) -> None:
        self._form = form
        self._node = node
        self._is_open = is_open
        self._name = node.parts[0].text
        self._fields = form.names().fields(self._name)
        self._given: dict[int, Node] = {}
        self._by_position = 0
        self._has_named = False
        self._ellipsis: Node | None = None

    def read(self) -> None:
        """Take the arguments from left to right."""
        parts = self._node.parts
        at = 1
        while at < len(parts) and not self._form.is_full:
            part = parts[at]
            if self._ellipsis is not None:
                what = "`...` is not the last argument."
                self._problem(what, "Move it to the end of the call.", self._ellipsis)
                return
            at += 1
            if part.is_ellipsis:
                self._ellipsis = part
            elif part.is_field:
                at += self._named(part, parts[at] if at < len(parts) else None)
            else:
                self._positional(part)

    def close(self) -> None:
        """Judge what was not given."""
        missing = [name for at, name in enumerate(self._fields) if at not in self._given]
        listed = " ".join(missing[:_MAX_LISTED])
        listed += f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        if self._ellipsis is None and missing:
            some = "Give them, or end the call with `...` to allow any value."
            hint = some if self._is_open else "Give them: what is built needs every field."
            what = f"`{shorten(self._name)}` is not given {listed}."
            self._form.problem("field", what, hint, self._node, missing[0])
        elif self._ellipsis is not None and not self._is_open:
            what = "`...` allows any value, but what is built needs one in every field."
            hint = f"Give {listed}." if missing else "Remove it: every field is given."
            self._problem(what, hint, self._ellipsis)

    def ordered(self) -> tuple[Node, ...]:
        """Return the arguments in the order of the fields; wildcards for those left open."""
        place = self._ellipsis or self._node
        wildcard = Node("new", "_", place.start, place.end)
        return tuple(self._given.get(at, wildcard) for at in range(len(self._fields)))

    def _named(self, field: Node, value: Node | None) -> int:
        """Take ``:field value``; return how many words the value is."""
        self._has_named = True
        word = field.text[1:]
        at = self._form.names().positions(self._name).get(word)
        if at is None:
            what = f"`{shorten(self._name)}` has no field `{shorten(word)}`."
            known = list(self._fields[:_MAX_COMPARED])
            hint = suggest(word, known) or f"Its fields are {shorten(' '.join(known), 300)}."
            self._problem(what, hint, field, word)
        elif at in self._given:
            what = f"The field `{shorten(word)}` is given twice"
            what += ", first by position." if at < self._by_position else "."
            self._problem(what, "Remove one of them.", field, word)
        if value is None or value.is_marker:
            what = f"The field `{shorten(word)}` is given no value."
            self._problem(what, "Write `:field value`.", field, word)
            return 0
        if at is not None:
            self._given.setdefault(at, value)
        return 1

    def _positional(self, part: Node) -> None:
        if self._has_named:
            what = "An argument without a name stands after a named one."
            self._problem(what, "Name it, or move it before the named ones.", part)
        elif self._by_position == len(self._fields):
            what = f"`{shorten(self._name)}` takes {len(self._fields)} arguments; this is one more."
            self._form.problem("arity", what, "Remove arguments.", part, self._name)
        else:
            self._given[self._by_position] = part
            self._by_position += 1

    def _problem(self, what: str, hint: str, node: Node, subject: str | None = None) -> None:
        self._form.problem("field", what, hint, node, subject)
