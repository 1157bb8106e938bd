"""Small changes to the text of a rule, and a court that judges many of them in one file.

A mutant differs from its rule in one place. What it changed is said by ``label``, which names the
field or the variable and not the position, so that rules of one family share their labels.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from rulecheck.campaign import findings
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.workshop import Workshop
from rulecheck.dialects import Vocabulary
from rulecheck.records import Limits, RuleFile, Verdict
from rulecheck.rules.scanner import Form, scan
from rulecheck.rules.tree import Node, read_tree

# Fields that one could take for each other.
GROUPS = (
    ("m", "n", "k"),
    ("a_layout", "b_layout"),
    ("a_order", "b_order", "c_order", "d_order"),
    ("lda", "ldb", "ldc", "ldd"),
    ("stride_a", "stride_b", "stride_c", "stride_d"),
    ("a_dtype", "b_dtype", "c_dtype", "d_dtype"),
    ("alpha", "beta"),
)
DTYPES = {"F32": "Bf16", "F64": "F32", "F16": "Bf16", "Bf16": "F16", "F8E4M3": "F8E5M2"}
STRINGS = {
    "N": "T",
    "T": "N",
    "COL": "ROW",
    "ROW": "COL",
    "DEFAULT": "RELU",
    "RELU": "GELU",
    "GELU": "RELU",
    "BIAS": "DEFAULT",
    "RELU_BIAS": "RELU",
    "GELU_BIAS": "GELU",
    "32F": "32F_FAST_TF32",
}
FIELD_STRINGS = {("compute_type", "default"): "32F_FAST_TF32", ("scale_dtype", "default"): "F64"}
LABEL_CHARACTERS = 90


class Mutant(NamedTuple):
    """A changed rule: ``text`` is a whole form, with ``name`` as its :name."""

    rule: str
    kind: str
    label: str
    name: str
    text: str


class Edit(NamedTuple):
    """Text to put in place of what lies between two offsets of a form."""

    start: int
    end: int
    text: str


class Place(NamedTuple):
    """A word or list of a rule, what it is called, and the field of an op that it fills."""

    node: Node
    name: str
    field: str = ""


class RuleText:
    """One rule as text with a tree over it."""

    def __init__(self, form: Form, vocabulary: Vocabulary) -> None:
        self.text = form.text
        self.tree = read_tree(form.text)
        self.body, self.head = self.tree.parts[1], self.tree.parts[2]
        self.vocabulary = vocabulary
        names = [
            second for first, second in itertools.pairwise(self.tree.parts) if first.text == ":name"
        ]
        self.quoted = names[0] if names else None
        self.name = names[0].text[1:-1] if names else f"rule at {form.start}"

    def show(self, node: Node) -> str:
        """The text of a node on one line."""
        text = " ".join(self.text[node.start : node.end].split())
        return text if len(text) <= LABEL_CHARACTERS else text[: LABEL_CHARACTERS - 1] + "…"

    def mutate(self, kind: str, label: str, *edits: Edit) -> Mutant:
        """The rule with edits; its name says which they are, so that no two are alike."""
        name = f"{self.name} | {kind} {label}".replace('"', "'").replace("\\", "/")
        naming = Edit(self.tree.end - 1, self.tree.end - 1, f' :name "{name}"')
        if self.quoted is not None:
            naming = Edit(self.quoted.start, self.quoted.end, f'"{name}"')
        text = self.text
        for edit in sorted((*edits, naming), reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return Mutant(self.name, kind, label, name, text)

    def places(self, part: Node) -> Iterator[Place]:
        """Every node of the body or the head; an argument of an op goes by the op's field."""
        for number, fact in enumerate(part.parts):
            named = [item.text for item in fact.parts[1:2] if item.kind == "atom"]
            said = named[0] if named else self.show(fact.parts[1]) if fact.parts[1:] else ""
            first = fact.parts[0].text if fact.parts else str(number)
            yield from self._inside(Place(fact, said if first in {"=", "let", "union"} else first))

    def _inside(self, place: Place) -> Iterator[Place]:
        yield place
        parts = place.node.parts
        if not parts:
            return
        binding = self.vocabulary.ops.get(parts[0].text)
        fields = binding.fields if binding is not None else ()
        for number, part in enumerate(parts[1:]):
            if fields and number < len(fields):
                inner = Place(part, f"{place.name}.{fields[number]}", fields[number])
            elif parts[0].text in {"ECons", "ICons"}:
                inner = Place(part, f"{place.name}{'>' if number else '.0'}")
            else:
                inner = Place(part, place.name)
            yield from self._inside(inner)


def rule_texts(path: Path, vocabulary: Vocabulary) -> tuple[str, list[RuleText]]:
    """The forms of a file that are no rules, as text, and its rules."""
    found = scan(str(path), path.read_bytes(), Limits())
    assert found.fatal is None
    rules = [RuleText(form, vocabulary) for form in found.forms if form.keyword == "rule"]
    rest = [form.text for form in found.forms if form.keyword != "rule"]
    return "\n".join(rest), rules


def dropped_facts(rule: RuleText) -> Iterator[Mutant]:
    """Without one fact of the body each."""
    for fact in rule.body.parts:
        yield rule.mutate("drop", rule.show(fact), Edit(fact.start, fact.end, ""))


def swapped_fields(rule: RuleText) -> Iterator[Mutant]:
    """Two fields of one sort change places in an op that the head builds; two inputs likewise."""
    for place in rule.places(rule.head):
        binding = rule.vocabulary.ops.get(place.node.parts[0].text) if place.node.parts else None
        if binding is None:
            continue
        given = dict(zip(binding.fields, place.node.parts[1:], strict=False))
        for group in GROUPS:
            pairs = itertools.combinations([name for name in group if name in given], 2)
            for name, other in pairs:
                label = f"{place.name}: {name} {other}"
                yield from _swap(rule, label, given[name], given[other])
    for name, elements in _input_lists(rule):
        for one, two in itertools.combinations(elements, 2):
            first, second = one.parts[1], two.parts[1]
            label = f"{name}: inputs {rule.show(first)} {rule.show(second)}"
            yield from _swap(rule, label, first, second)


def _swap(rule: RuleText, label: str, one: Node, two: Node) -> Iterator[Mutant]:
    texts = [rule.text[node.start : node.end] for node in (one, two)]
    if rule.show(one) != rule.show(two):
        edits = (Edit(one.start, one.end, texts[1]), Edit(two.start, two.end, texts[0]))
        yield rule.mutate("swap", label, *edits)


def _input_lists(rule: RuleText) -> Iterator[tuple[str, list[Node]]]:
    """Input lists of the head, each as its ICons cells."""
    cons = rule.vocabulary.encoding.input_cons
    for place in rule.places(rule.head):
        node, cells = place.node, list[Node]()
        if place.name.endswith(">") or not node.parts or node.parts[0].text != cons:
            continue
        while node.parts and node.parts[0].text == cons:
            cells.append(node)
            node = node.parts[2]
        yield place.name, cells


def changed_literals(rule: RuleText) -> Iterator[Mutant]:
    """Another type, number or text for one literal each, in the body and in the head."""
    for part, where in ((rule.body, "body"), (rule.head, "head")):
        for place in rule.places(part):
            node, new = place.node, None
            if len(node.parts) == 1 and node.parts[0].text in DTYPES:
                new = f"({DTYPES[node.parts[0].text]})"
                kind = "dtype"
            elif not node.parts:
                new, kind = _other(node, place.field), "literal"
            if new is not None:
                label = f"{where} {place.name} {rule.show(node)} -> {new}"
                yield rule.mutate(kind, label, Edit(node.start, node.end, new))


def _other(node: Node, field: str) -> str | None:
    if node.kind == "string":
        text = node.text[1:-1]
        new = FIELD_STRINGS.get((field, text)) or STRINGS.get(text)
        return None if new is None else f'"{new}"'
    try:
        number = int(node.text)
    except ValueError:
        try:
            real = float(node.text)
        except ValueError:
            return None
        return repr(2 * real or 1.0)
    return str(number // 2 if number > 1 else number + 1)


def changed_inputs(rule: RuleText) -> Iterator[Mutant]:
    """One input of a built op is dropped, or stands there twice."""
    for name, cells in _input_lists(rule):
        for cell in cells:
            item = rule.text[cell.parts[1].start : cell.parts[1].end]
            rest = rule.text[cell.parts[2].start : cell.parts[2].end]
            whole = rule.text[cell.start : cell.end]
            cons = cell.parts[0].text
            yield rule.mutate("drop input", f"{name}: {item}", Edit(cell.start, cell.end, rest))
            twice = Edit(cell.start, cell.end, f"({cons} {item} {whole})")
            end = " at the end" if cell is cells[-1] else ""
            yield rule.mutate("duplicate input", f"{name}: {item}{end}", twice)


KINDS: tuple[Callable[[RuleText], Iterator[Mutant]], ...] = (
    dropped_facts,
    swapped_fields,
    changed_literals,
    changed_inputs,
)


def mutants_of(
    rule: RuleText, kinds: Sequence[Callable[[RuleText], Iterator[Mutant]]] = KINDS
) -> list[Mutant]:
    """All mutants of a rule; those with one label are told apart by number."""
    seen: dict[str, int] = {}
    found = []
    for mutant in itertools.chain.from_iterable(kind(rule) for kind in kinds):
        number = seen[mutant.name] = seen.get(mutant.name, 0) + 1
        if number == 1:
            found.append(mutant)
            continue
        name = f"{mutant.name} #{number}"
        text = mutant.text.replace(f'"{mutant.name}"', f'"{name}"')
        found.append(mutant._replace(label=f"{mutant.label} #{number}", name=name, text=text))
    return found


class Court:
    """Judges the rules of one text, without the hints that only a reader needs."""

    def __init__(self, shop: Workshop, folder: Path) -> None:
        self.shop = shop
        self.folder = folder

    def verdicts(
        self, name: str, text: str, context: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, Verdict]]:
        """Name and verdict of every rule of a text, as each is judged; INVALID where it is none.

        Args:
            name: of the file to write.
            text: its forms.
            context: files that declare what the text uses.
        """
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        file = self.shop.load(str(path), context)
        assert isinstance(file, RuleFile), file
        broken = {problem.rule for problem in file.problems}
        assert None not in broken, file.problems
        yield from ((rule, Verdict.INVALID) for rule in broken if rule is not None)
        for index, rule in enumerate(file.rules):
            if rule.name not in broken:
                with mock.patch.object(findings, "advise", return_value=""):
                    finding = findings.judge_rule(RuleRun(self.shop, file, index, context))
                yield rule.name, finding.verdict


class Sentence(NamedTuple):
    """What became of a mutant: ``before`` is the verdict of its rule."""

    mutant: Mutant
    before: Verdict
    after: Verdict

    @property
    def is_rule(self) -> bool:
        """Whether the mutant can be read at all; one that cannot shows nothing."""
        return self.after is not Verdict.INVALID

    @property
    def survives(self) -> bool:
        """Whether it is told from its rule by nothing."""
        return self.after is self.before


class Source(NamedTuple):
    """Where mutants come from: the file's other forms, and the files that it needs."""

    name: str
    rest: str
    context: tuple[str, ...] = ()


def try_mutants(
    court: Court, source: Source, mutants: Sequence[Mutant], expected: Mapping[str, Verdict]
) -> Iterator[Sentence]:
    """Judge mutants of one file together; ``expected`` are the verdicts of their rules."""
    by_name = {mutant.name: mutant for mutant in mutants}
    text = "\n".join((source.rest, *(mutant.text for mutant in mutants)))
    for rule, verdict in court.verdicts(source.name, text, source.context):
        mutant = by_name[rule]
        yield Sentence(mutant, expected[mutant.rule], verdict)
