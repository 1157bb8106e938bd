"""Rule files that attack: refused before anything runs, each with its place, in bounded time."""

from __future__ import annotations

import time

import pytest

from rulecheck.egraph.bindings import Parser, egg
from rulecheck.records import Limits
from rulecheck.rules.allowlist import COMMANDS, POLYMORPHIC, PRIMITIVES, REFUSED_COMMANDS
from rulecheck.rules.parse import read_file
from tests.toy import FILE, dialect, place, problem, read

PICKLE = '(py-to-string (py-object "gASVIAAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAVlY2hvlIWUUpQu"))'
EVAL = '(py-eval "open(1)" (py-dict) (py-dict))'

# text, line, column, and the name that is refused
ATTACKS = [
    ('(include "/etc/passwd")', 1, 2, "include"),
    ('(sort A)\n (input narrow "/etc/passwd")', 2, 3, "input"),
    ('(output "x" (F32))', 1, 2, "output"),
    ('(print-function dtype 9 :file "x")', 1, 2, "print-function"),
    ('(print-stats :file "x")', 1, 2, "print-stats"),
    ("(print-size)", 1, 2, "print-size"),
    ('(fail (include "x"))', 1, 2, "fail"),
    ("(push 1000000)", 1, 2, "push"),
    ("(pop)", 1, 2, "pop"),
    ("(run 1)", 1, 2, "run"),
    ("(run-schedule (saturate (run)))", 1, 2, "run-schedule"),
    (f"(extract (F32) {EVAL})", 1, 2, "extract"),
    ("(multi-extract 1 (F32))", 1, 2, "multi-extract"),
    (f"(check {EVAL})", 1, 2, "check"),
    ("(prove (F32))", 1, 2, "prove"),
    (f"(let $x {EVAL})", 1, 2, "let"),
    (f"(union {EVAL} (F32))", 1, 2, "union"),
    ("(set (dtype (Leaf 1 (F32))) (F32))", 1, 2, "set"),
    ("(delete (F32))", 1, 2, "delete"),
    ('(panic "x")', 1, 2, "panic"),
    ("(Leaf 1 (F32))", 1, 2, "Leaf"),
    ("(for ((x 1 2)) (narrow x))", 1, 2, "for"),
    ("(with-ruleset backend (rule ((narrow x)) ()))", 1, 2, "with-ruleset"),
    ("(set-cost (F32) 1)", 1, 2, "set-cost"),
    ("(with-dynamic-cost (datatype E (Num i64)))", 1, 2, "with-dynamic-cost"),
    ('(relation input (String))\n(input narrow "/etc/passwd")', 2, 2, "input"),
    ("(unstable-combined-ruleset loop loop)", 1, 1, "loop"),
    # Python, in every position that evaluates
    (f"(rule ({EVAL}) ())", 1, 8, "py-eval"),
    (f"(rule ((narrow ?t)) ({EVAL}))", 1, 22, "py-eval"),
    (f"(rule ((narrow ?t)) ((let x {EVAL})))", 1, 29, "py-eval"),
    (f"(rule ((narrow ?t)) ((set (dtype {EVAL}) ?t)))", 1, 34, "py-eval"),
    (f"(rule ((= ?x {EVAL})) ())", 1, 14, "py-eval"),
    (f"(rule ((Add ?a ?b)) ((union ?a {EVAL})))", 1, 32, "py-eval"),
    (f"(rule ((Add ?a ?b)) ((delete (Add ?a {EVAL}))))", 1, 38, "py-eval"),
    (f"(rewrite (Add a b) (Add b a) :when ({EVAL}))", 1, 37, "py-eval"),
    (f"(rewrite (Add a b) {EVAL})", 1, 20, "py-eval"),
    (f"(birewrite (Add a b) (Add b {EVAL}))", 1, 29, "py-eval"),
    (f"(function f () i64 :merge {EVAL})", 1, 27, "py-eval"),
    (f"(narrow {EVAL})", 1, 9, "py-eval"),
    ('(rule ((narrow ?t)) ((py-exec "x" (py-dict) (py-dict))))', 1, 22, "py-exec"),
    (f"(rule ((= ?x {PICKLE})) ())", 1, 14, "py-to-string"),
    ('(rule ((narrow ?t)) ((py-call (py-object "x"))))', 1, 22, "py-call"),
    ('(rule ((= ?f (unstable-fn "py-eval"))) ())', 1, 14, "unstable-fn"),
    ("(rule ((unstable-app ?f 1)) ())", 1, 8, "unstable-app"),
    ("(sort Fn (UnstableFn (String) i64))", 1, 1, "Fn"),
    ("(relation R (PyObject))", 1, 1, "PyObject"),
    ("(relation R (UnstableFn))", 1, 1, "UnstableFn"),
    # What hangs, aborts or panics
    ('(rule ((narrow ?t)) ((panic "x")))', 1, 22, "panic"),
    ("(rule ((= ?x (<< 1 64))) ())", 1, 14, "<<"),
    ("(rule ((= ?x (log2 0))) ())", 1, 14, "log2"),
    ("(rule ((= ?x (^ 2 3))) ())", 1, 14, "^"),
    ("(rule ((= ?x (vec-range 1000000000))) ())", 1, 14, "vec-range"),
    ("(rule ((= ?x (pow (bigrat 1 2) 3))) ())", 1, 14, "pow"),
    ('(rule ((= ?x (replace "a" "" "b"))) ())', 1, 14, "replace"),
    ("(rule ((= ?x (get-size!))) ())", 1, 14, "get-size!"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "name"), ATTACKS)
def test_an_attack_is_refused_with_its_place(text: str, line: int, column: int, name: str) -> None:
    file = read(text)
    found = [one for one in file.problems if one.kind == "refused"]
    assert [one.subject for one in found[:1]] == [name]
    assert place(found[0])[:2] == (line, column)
    assert found[0].message.endswith(".")
    assert found[0].hint
    assert file.rules == ()
    assert file.facts == ()


@pytest.mark.parametrize(("text", "line", "column", "name"), ATTACKS)
def test_an_attack_does_not_hide_behind_a_declaration(
    text: str, line: int, column: int, name: str
) -> None:
    """Declaring a dangerous name first does not make it an ordinary one."""
    del text, line, column
    if name in ("Fn", "loop", "Leaf", "UnstableFn"):
        return  # names of the attack's own making
    file = read(f'(sort Mine)\n(constructor {name} (String) Mine)\n(rule ((= ?x ({name} "a"))) ())')
    assert file.rules == ()
    assert file.problems[0].kind == "duplicate"
    assert place(file.problems[0])[:2] == (2, 1)


def test_the_refused_commands_are_not_allowed_ones() -> None:
    assert not COMMANDS.keys() & REFUSED_COMMANDS.keys()


def test_every_allowed_primitive_is_one_of_the_engine() -> None:
    for name in (*PRIMITIVES, *POLYMORPHIC):
        egraph = egg.EGraph()
        with pytest.raises(egg.EggSmolError, match="already declared"):
            egraph.run_program(*egraph.parse_program(f"(relation {name} (i64))"))


@pytest.mark.parametrize("command", sorted(REFUSED_COMMANDS))
def test_words_that_are_refused_are_refused_bare(command: str) -> None:
    found = problem(f"({command})")
    assert (found.kind, found.subject, place(found)[:2]) == ("refused", command, (1, 2))


@pytest.mark.parametrize("text", ["(run-schedule (saturate (run)))", "(let $x 1)", '(panic "x")'])
def test_a_command_behind_an_innocent_word_is_caught_by_its_class(text: str) -> None:
    """The second look: should a first word ever turn into more, its commands are still refused."""
    commands, error = Parser()(text)
    assert error is None

    def parse(_: str) -> tuple[list[object], None]:
        return commands, None

    file = read_file(FILE, b"(narrow (F16))\n(sort A)\n", dialect(), parse, Limits())
    assert [found.kind for found in file.problems] == ["refused", "refused"]
    assert [place(found)[0] for found in file.problems] == [1, 2]
    assert (file.declarations, file.facts) == (dialect().declarations, ())


@pytest.mark.parametrize(
    ("data", "kind", "line", "column"),
    [
        (b"(sort A)\n(rule \xc3\x28", "encoding", 2, 7),
        (b"(sort A)\n\x00", "encoding", 2, 1),
        (b"\xef\xbb\xbf(sort A)", "encoding", 1, 1),
        (b"(sort A)\n" + b"(" * 100_000, "too-deep", 2, 201),
        (b"(" * 100_000 + b")" * 100_000, "too-deep", 1, 201),
        (b"(rule ((Add " + b"x" * 1_000_000 + b" ?b ?c)) ())", "arity", 1, 8),
        (b'(rule ((Named ?a "' + b"x" * 1_000_000 + b'")) ())', "arity", 1, 8),
        (b"x" * 1_000_000, "syntax", 1, 1),
        (b"(narrow " + b"(F32) " * 300_000 + b")", "too-large", 1, 1),
        (b" " * (3 << 20), "too-large", 1, 1),
        (b"(rule ((= a b c)) ())" * 1000, "syntax", 1, 8),
        (b"(sort A)\n\n)", "syntax", 3, 1),
        (b"(sort A)\n(rule (", "syntax", 2, 1),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_damaged_files_are_answered_in_bounded_time(
    data: bytes, kind: str, line: int, column: int
) -> None:
    begin_s = time.process_time()
    file = read(data)
    assert time.process_time() - begin_s < 10
    assert file.rules == ()
    assert (file.problems[0].kind, place(file.problems[0])[:2]) == (kind, (line, column))
    assert file.problems[0].hint
