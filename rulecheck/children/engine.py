"""The engine's child process: read a rule file, match its rules, and touch nothing else."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable

import msgspec

from rulecheck.egraph.bindings import Parser
from rulecheck.egraph.canary import ask_canary
from rulecheck.egraph.load import Program, RejectedError, read_header
from rulecheck.egraph.match import Session
from rulecheck.egraph.seal import limit_request, seal_process
from rulecheck.records import (
    Call,
    CanaryReply,
    CanaryRequest,
    Change,
    Declaration,
    Failure,
    FailureKind,
    LoadReply,
    LoadRequest,
    MatchReply,
    MatchRequest,
    Problem,
    Rule,
    RuleFile,
    Span,
    Union,
)
from rulecheck.rules.parse import Dialect, place_message, read_dialect, read_file
from rulecheck.rules.same import KnownRule, canonical
from rulecheck.workers import serve_pipes, take_pipes

# Each item that only the engine rejects costs a rebuild; a hostile file could have thousands.
_MAX_REJECTED = 16

Request = LoadRequest | MatchRequest | CanaryRequest
Reply = LoadReply | MatchReply | CanaryReply | Failure


class Engine:
    """The state of the child: the last dialect, and the last file with its EGraph."""

    def __init__(self, version: str) -> None:
        """Start with nothing loaded."""
        self._version = version
        self._parse = Parser()
        self._dialects: dict[tuple[str, str], Dialect] = {}
        self._program: Program | None = None
        # One EGraph, of which the rules of the dialect that one rule repeats are no part.
        self._session: tuple[frozenset[int], Session] | None = None
        self._repeated: tuple[frozenset[int], ...] = ()

    def answer(self, request: Request) -> Reply:
        """Answer one request."""
        match request:
            case LoadRequest():
                limit_request(request.limits.seconds, request.limits.memory_bytes)
                return self._load(request)
            case MatchRequest():
                limit_request(request.limits.seconds, request.limits.memory_bytes)
                if self._program is None:
                    return Failure(FailureKind.CRASH, "The engine process has no file loaded.")
                own = request.rule < len(self._repeated)
                left_out = self._repeated[request.rule] if own else frozenset[int]()
                return self._open(self._program, left_out).match(request)
            case CanaryRequest():
                return ask_canary(self._version)

    def _open(self, program: Program, left_out: frozenset[int]) -> Session:
        """Return a session without some of the dialect's commands: what a rule repeats is its own.

        Else the dialect would have done the rule's work before the rule is looked at.
        """
        if self._session is None or self._session[0] != left_out:
            kept = (item for at, item in enumerate(program.dialect) if at not in left_out)
            session = Session(program._replace(dialect=tuple(kept)))
            self._session = (left_out, session)
        return self._session[1]

    def _load(self, request: LoadRequest) -> Reply:
        self._program = self._session = None
        dialect = self._dialect(request)
        if dialect.problems:
            first = dialect.problems[0]
            place = f"{first.span.file}:{first.span.line}:{first.span.column}"
            return Failure(FailureKind.CRASH, f"{place}: {first.message}")
        read = functools.partial(read_file, parse=self._parse, limits=request.limits)
        wider, helpers, own = dialect, tuple[Rule, ...](), None
        for path, data in _ordered(request, dialect, read):
            known = read(path, data, wider)
            if path == request.path:
                own = known
            elif known.declarations:  # else nothing of it could be read
                wider = msgspec.structs.replace(wider, facts=(*wider.facts, *known.facts))
                helpers += tuple(
                    item for item in known.rules if request.whole or _derives_facts(item)
                )
            if known.declarations:
                rules = (*wider.rules, *map(KnownRule, known.rules))
                wider = msgspec.structs.replace(wider, declarations=known.declarations, rules=rules)
        assert own is not None
        # What is read after the file, as it uses what that declares, belongs to the program too.
        declared = wider.declarations if own.declarations else ()
        file = msgspec.structs.replace(own, declarations=declared)
        file = self._build(request, (dialect, wider), file, helpers)
        return LoadReply(msgspec.structs.replace(file, facts=(*wider.facts, *file.facts)))

    def _build(
        self,
        request: LoadRequest,
        dialects: tuple[Dialect, Dialect],
        file: RuleFile,
        helpers: tuple[Rule, ...],
    ) -> RuleFile:
        """Give the file to the engine; leave out, and report, what it does not take.

        ``dialects`` are the dialect itself and the same with what the context declares.
        """
        if not file.declarations:
            return file  # nothing of it could be read
        header = read_header(request.dialect_text)
        own, wider = dialects
        written = [canonical(rule) for rule in file.rules]
        helpers = tuple(rule for rule in helpers if canonical(rule) not in written)
        inherited = len(own.declarations)
        rows = wider.facts[len(own.facts) :]
        for _ in range(_MAX_REJECTED):
            whole = msgspec.structs.replace(
                file, rules=(*file.rules, *helpers), facts=(*rows, *file.facts)
            )
            program = Program(own.commands, header, whole, inherited)
            try:
                session = Session(program)
            except RejectedError as error:
                if error.item in helpers:
                    helpers = tuple(rule for rule in helpers if rule is not error.item)
                    continue
                file = _without(file, error)
            else:
                self._program, self._session = program, (frozenset(), session)
                self._repeated = _repeated(file.rules, own)
                return msgspec.structs.replace(file, neighbours=helpers)
        what = f"The engine rejects more than {_MAX_REJECTED} items of this file."
        hint = "Mend those named above; the rest has not been looked at."
        problem = Problem("engine", what, hint, Span(file.path, 1, 1, 1, 1))
        return msgspec.structs.replace(file, rules=(), problems=(*file.problems, problem))

    def _dialect(self, request: LoadRequest) -> Dialect:
        key = (request.dialect_path, request.dialect_text)
        if key not in self._dialects:
            self._dialects = {
                key: read_dialect(*key, self._parse, request.limits),
            }
        return self._dialects[key]


def _ordered(
    request: LoadRequest, dialect: Dialect, read: Callable[[str, bytes, Dialect], RuleFile]
) -> list[tuple[str, bytes]]:
    """The context and the file itself, those first that declare what others use."""
    own = (request.path, request.data)
    if not request.context:
        return [own]
    waiting = dict((*request.context, own))
    known = {path: read(path, data, dialect) for path, data in waiting.items()}
    declares = {
        path: {item.name for item in file.declarations if item.span.file == path}
        for path, file in known.items()
    }
    lacks = {path: {item.subject for item in file.problems} for path, file in known.items()}
    found = []
    while waiting:
        free = [
            path
            for path in waiting
            if not any(lacks[path] & declares[other] for other in waiting if other != path)
        ]
        path = next(iter(free or waiting))  # files that need each other: in the order given
        found.append((path, waiting.pop(path)))
    return found


def _derives_facts(rule: Rule) -> bool:
    """Whether a rule only adds rows and values, so that it can serve other files as context."""
    return not any(isinstance(action, Union | Change) for action in rule.head)


def _repeated(rules: tuple[Rule, ...], dialect: Dialect) -> tuple[frozenset[int], ...]:
    """Return, for each rule, the commands by which the dialect adds the very same one."""
    commands: dict[object, frozenset[int]] = {}
    for known, command in dialect.rules:
        if command is not None:
            form = canonical(known)
            commands[form] = commands.get(form, frozenset()) | {command}
    return tuple(commands.get(canonical(rule), frozenset()) for rule in rules)


def _without(file: RuleFile, error: RejectedError) -> RuleFile:
    """Drop one item from a file and put the engine's message in its place."""
    item = error.item
    message, span = place_message(str(error), item.span)
    name = item.fn if isinstance(item, Call) else item.name
    problem = Problem("type", message, "The message is the engine's own.", span, None, name)
    match item:
        case Rule():
            problem = msgspec.structs.replace(problem, rule=item.name, subject=None)
            rest = tuple(rule for rule in file.rules if rule.name != item.name)
            file = msgspec.structs.replace(file, rules=rest)
        case Declaration():
            kept = tuple(known for known in file.declarations if known is not item)
            file = msgspec.structs.replace(file, declarations=kept)
        case Call():
            rows = tuple(row for row in file.facts if row is not item)
            file = msgspec.structs.replace(file, facts=rows)
    return msgspec.structs.replace(file, problems=(*file.problems, problem))


def main() -> None:
    """Serve requests until stdin ends."""
    engine = Engine(importlib.metadata.version("egglog"))
    requests, replies = take_pipes()
    seal_process()
    serve_pipes(engine.answer, Request, requests, replies)


if __name__ == "__main__":
    main()
