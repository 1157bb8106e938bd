"""A rule file, from bytes to records: scan, gate, parse, convert, declare, check."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import msgspec

from rulecheck.records import (
    Call,
    Declaration,
    Do,
    Limits,
    Problem,
    Rule,
    RuleFile,
    Span,
)
from rulecheck.rules.allowlist import COMMANDS, REFUSED_COMMANDS, RULE_COMMANDS
from rulecheck.rules.check import check_row, check_rule
from rulecheck.rules.convert import Converter, Item
from rulecheck.rules.declare import Signatures, show_place, suggest
from rulecheck.rules.expand import Expander
from rulecheck.rules.places import FormPlaces
from rulecheck.rules.same import KnownRule, canonical, clash, is_named
from rulecheck.rules.scanner import Form, Places, Scan, scan, shorten

# One form's text to (the engine's commands, None), or to ([], the engine's message).
Parser = Callable[[str], tuple[list[Any], str | None]]

# More than this many problems tell nobody more, and a hostile file could have millions.
_MAX_PROBLEMS = 1000
_MAX_MESSAGE = 400

# "In 1:8-16: (= a b c)" of its parser; "At 3:5 of rules/a.egg" of what was built from records.
_ENGINE_PLACE = re.compile(r"^(?:In|At) (\d+):(\d+)(?:-[\d:]+)?(?: of )?(?P<file>[^\n]*)\n?")


class Dialect(msgspec.Struct, frozen=True):
    """A vocabulary as the engine needs it. ``commands`` are the parser's own objects, in order.

    ``facts`` are the rows that it adds to relations, and ``rules`` are its rules as records, beside
    those of other files that a file is read with.
    """

    declarations: tuple[Declaration, ...]
    facts: tuple[Call, ...]
    commands: tuple[Any, ...]
    problems: tuple[Problem, ...]
    rules: tuple[KnownRule, ...] = ()


def read_dialect(path: str, text: str, parse: Parser, limits: Limits) -> Dialect:
    """Read a dialect's text. It is trusted: any command goes, and is given to the engine."""
    scanned = scan(path, text.encode(), limits)
    places = Places(path, scanned.text)
    commands: list[Any] = []
    declarations: list[Declaration] = []
    facts: list[Call] = []
    rules: list[KnownRule] = []
    relations = _declared_words(scanned.forms)
    problems = [scanned.fatal] if scanned.fatal else []
    expander = Expander(places, scanned.forms)
    for form in scanned.forms:
        expansion, mistakes, *_ = expander.expand(form)
        problems += mistakes
        here = FormPlaces(places, form, expansion)
        parsed, error = parse(here.form.text)
        if error is not None:
            problems.append(engine_problem("syntax", error, here))
        commands += parsed
        if form.keyword not in relations.union(COMMANDS):
            continue
        converter = Converter(here, expander.fields(form))
        classes = _classes(form)
        for command in parsed:
            for item in converter.items(command, classes):
                if isinstance(item, Declaration):
                    declarations.append(item)
                elif isinstance(item, Do) and isinstance(item.expr, Call):
                    facts.append(item.expr)
                elif isinstance(item, Rule):
                    rules.append(KnownRule(item, len(commands) - 1))
        problems += converter.problems
    return Dialect(
        tuple(declarations), tuple(facts), tuple(commands), tuple(problems), tuple(rules)
    )


def read_file(path: str, data: bytes, dialect: Dialect, parse: Parser, limits: Limits) -> RuleFile:
    """Read a rule file that nobody vouches for. Whatever is wrong with it is in ``problems``."""
    scanned = scan(path, data, limits)
    digest = hashlib.sha256(data).hexdigest()
    if scanned.fatal is not None:
        problems = (scanned.fatal, *scanned.problems)
        return RuleFile(path, (), (), (), scanned.directives, problems, digest)
    reader = _Reader(path, scanned, dialect, parse)
    return reader.read(digest)


def engine_problem(kind: str, message: str, places: FormPlaces) -> Problem:
    """Turn the engine's message about one form into a problem, at the place that it names."""
    said, line, column, _ = _read_place(message)
    span = places.keyword if line is None else places.at(line, column)
    return Problem(kind, said, "The message is the engine's own.", span)


def place_message(message: str, fallback: Span) -> tuple[str, Span]:
    """Split the engine's message on an item built from records: what it says, and where."""
    said, line, column, file = _read_place(message)
    if line is None or file != fallback.file:
        return said, fallback
    return said, Span(file, line, column, line, column + 1)


def _read_place(message: str) -> tuple[str, int | None, int, str]:
    """Take the engine's message apart: the sentence, line, column and file."""
    match = _ENGINE_PLACE.match(message)
    if match is None:
        return _sentence(message), None, 0, ""
    rest = message[match.end() :].strip().splitlines()
    return _sentence(rest[-1] if rest else message), int(match[1]), int(match[2]), match["file"]


class _Reader:
    """One pass over the forms of a scanned file, then one over its declarations and rules."""

    def __init__(self, path: str, scanned: Scan, dialect: Dialect, parse: Parser) -> None:
        self._path = path
        self._scan = scanned
        self._dialect = dialect
        self._parse = parse
        self._places = Places(path, scanned.text)
        self._signatures = Signatures(dialect.declarations)
        self._relations = _declared_words(scanned.forms) | {
            known.name for known in dialect.declarations if known.kind == "relation"
        }
        self._expander = Expander(self._places, scanned.forms, dialect.declarations)
        self._problems: list[Problem] = list(scanned.problems)
        self._items: list[Item] = []
        self._names: dict[str, Rule] = {}
        self._known = {
            known.rule.name: known.rule for known in dialect.rules if is_named(known.rule)
        }
        self._line = 0

    def read(self, digest: str) -> RuleFile:
        for form in self._scan.forms:
            self._form(form)
            if len(self._problems) >= _MAX_PROBLEMS:
                break
        declared = [item for item in self._items if isinstance(item, Declaration)]
        new, problems = self._signatures.add_all(declared)
        self._problems += problems
        rows = [item.expr for item in self._items if isinstance(item, Do)]
        facts = tuple(row for row in rows if isinstance(row, Call) and self._row(row))
        drafts = [item for item in self._items if isinstance(item, Rule)]
        rules = tuple(rule for draft in drafts for rule in self._rule(draft))
        problems = [_trim(problem) for problem in self._problems[:_MAX_PROBLEMS]]
        if len(self._problems) >= _MAX_PROBLEMS:
            what = (
                f"More than {_MAX_PROBLEMS} things are wrong in this file; the rest is not named."
            )
            hint = "Mend those named first, or split the file."
            problems.append(Problem("too-large", what, hint, max(item.span for item in problems)))
        return RuleFile(
            self._path,
            rules,
            (*self._dialect.declarations, *new),
            facts,
            self._scan.directives,
            tuple(sorted(problems, key=lambda problem: problem.span)),
            digest,
        )

    def _form(self, form: Form) -> None:
        line, _ = self._places.point(form.start)
        expansion, mistakes, rejected, _ = self._expander.expand(form)
        places = FormPlaces(self._places, form, expansion, shares_line=line == self._line)
        self._line = line
        rule = places.rule_name if form.keyword in RULE_COMMANDS else None
        problem = self._gate(form, places)
        if problem is not None:
            self._problems.append(problem)
            return
        if mistakes:
            self._signatures.rejected |= dict.fromkeys(rejected, mistakes[0])
            self._problems += (msgspec.structs.replace(problem, rule=rule) for problem in mistakes)
            return
        commands, error = self._parse(places.form.text)
        if error is not None:
            problem = engine_problem("syntax", error, places)
            self._problems.append(msgspec.structs.replace(problem, rule=rule))
            return
        converter = Converter(places, self._expander.fields(form))
        classes = _classes(form)
        items = [item for command in commands for item in converter.items(command, classes)]
        if converter.problems:
            self._problems += (
                msgspec.structs.replace(problem, rule=rule) for problem in converter.problems
            )
        else:
            self._items += items

    def _gate(self, form: Form, places: FormPlaces) -> Problem | None:
        """Refuse a form by its first word, before any parser sees it."""
        word = form.keyword
        why = REFUSED_COMMANDS.get(word)
        if why is None and word in RULE_COMMANDS and places.repeated is not None:
            option, span = places.repeated
            what = f"`{option}` is given twice; the engine keeps only the last."
            return Problem("syntax", what, "Join them.", span, places.rule_name)
        if why is None and (word in COMMANDS or word in self._relations):
            return None
        known = self._signatures.tables.get(word)
        if why is None and known is not None:
            why = f"it is a {known.kind}, and only rows of relations may stand at top level"
        if why is not None:
            what = f"A rule file may not use `{word}` at top level: {why}."
            hint = "Remove it: a rule file holds declarations, rules, and rows of relations."
            return Problem("refused", what, hint, places.keyword, None, word)
        if not word:
            what = "A form has to start with a command."
            return Problem("syntax", what, "Remove it.", places.keyword)
        what = f"`{word}` is no command, and nothing declares it."
        hint = suggest(word, [*COMMANDS, *self._relations]) or "Declare it as a relation."
        return Problem("unknown-name", what, hint, places.keyword, None, word)

    def _row(self, row: Call) -> bool:
        known = self._signatures.tables.get(row.fn)
        if known is not None and known.kind != "relation":
            what = f"`{row.fn}` is a {known.kind}; only rows of relations may stand at top level."
            problem = Problem("refused", what, "Remove it.", row.span, None, row.fn)
            self._problems.append(problem)
            return False
        problems = check_row(row, self._signatures)
        self._problems += problems
        return not problems

    def _rule(self, draft: Rule) -> list[Rule]:
        """Return the rule if it can be judged, under a name of its own."""
        problem = self._judge_name(draft)
        if problem is not None:
            self._problems.append(problem)
            return []
        self._names[draft.name] = draft
        rule, problems = check_rule(draft, self._signatures)
        self._problems += problems
        return [] if problems else [rule]

    def _judge_name(self, draft: Rule) -> Problem | None:
        """Allow a name once in a file, and to what is the same rule as one that has it already."""
        name = draft.name
        known = self._names.get(name) or (self._known.get(name) if is_named(draft) else None)
        if known is None:
            return None
        if canonical(known) != canonical(draft):
            return clash(draft, known)
        if name not in self._names:
            return None
        what = f"The rule `{name}` stands at {show_place(known.name_span)} already."
        hint = "Remove one: the engine takes each rule once."
        return Problem("duplicate", what, hint, draft.name_span, name, name)


def _trim(problem: Problem) -> Problem:
    """Keep a problem readable when the name that it is about is a million characters long."""
    return msgspec.structs.replace(
        problem,
        message=shorten(problem.message, _MAX_MESSAGE),
        subject=None if problem.subject is None else shorten(problem.subject, _MAX_MESSAGE),
    )


def _classes(form: Form) -> frozenset[str]:
    """Return the classes of commands that a form may turn into; a relation's name adds a row."""
    return COMMANDS.get(form.keyword, frozenset({"ActionCommand"}))


def _declared_words(forms: tuple[Form, ...]) -> frozenset[str]:
    """Return the names of the relations that a file declares, wherever it does."""
    words = (form.words(2) for form in forms if form.keyword == "relation")
    return frozenset(pair[1].text for pair in words if len(pair) == 2)


def _sentence(text: str) -> str:
    said = shorten(text.removeprefix("parse error: ").strip(), _MAX_MESSAGE)
    return f"The engine says: {said[:1].upper()}{said[1:]}{'' if said.endswith('.') else '.'}"
