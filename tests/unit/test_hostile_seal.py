"""The second line of defence: attacks given straight to the engine in a sealed process.

Each is first tried in a process that is not sealed, where it has to succeed: else the test would
pass for the wrong reason.
"""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from rulecheck.egraph.bindings import EngineError, Parser, attempt, egg

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from rulecheck.egraph.bindings import egg
from rulecheck.egraph.seal import limit_request, seal_process

if sys.argv[1] == "sealed":
    seal_process()
    limit_request(5, 1 << 30)
egraph = egg.EGraph()
try:
    egraph.run_program(*egraph.parse_program(sys.argv[2]))
except BaseException as error:
    sys.stdout.write(f"{type(error).__name__}: {error}\\n")
tables = egraph.freeze().functions
sys.stdout.write("TABLES " + " ".join(f"{name}={len(tables[name].rows)}" for name in tables))
"""

PYTHON = r'(py-eval "open(\"MARK\", \"w\")" (py-dict) (py-dict))'
WRITES = {
    "output": '(output "MARK" 1)',
    "print-function": "(function g (i64) i64 :no-merge) (set (g 1) 2)"
    ' (print-function g 9 :file "MARK")',
    "print-stats": '(print-stats :file "MARK")',
    "fail": '(fail (fail (print-stats :file "MARK")))',
    "action": PYTHON,
    "let": f"(let $x {PYTHON})",
    "head": f"(relation R (i64)) (R 1) (rule ((R x)) ({PYTHON})) (run 1)",
    "body": f"(relation R (i64)) (R 1) (rule ((R x) (= z {PYTHON})) ()) (run 1)",
    "when": f"(datatype E (A i64)) (A 1) (rewrite (A x) (A 2) :when ((= z {PYTHON}))) (run 1)",
    "merge": f"(function f () PyObject :merge {PYTHON})"
    ' (set (f) (py-from-string "a")) (set (f) (py-from-string "b"))',
    "check": f"(check (= {PYTHON} {PYTHON}))",
    "until": f"(run 1 :until (= {PYTHON} {PYTHON}))",
    "extract": f"(extract 1 {PYTHON})",
    "output-term": f'(output "/dev/null" {PYTHON})',
    "exec": PYTHON.replace("py-eval", "py-exec"),
    "pickle": '(py-to-string (py-object "PICKLE"))',
    "call": '(py-call (py-object "PICKLE"))',
    "hidden-name": "(sort Fn (UnstableFn (String PyObject PyObject) PyObject))"
    r' (unstable-app (unstable-fn "py-eval") "open(\"MARK\", \"w\")" (py-dict) (py-dict))',
}
READS = {
    "include": ('(include "SECRET")', "leaked=0"),
    "input": ('(relation q (String)) (input q "ROWS")', "q=1"),
}


class Touch:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


def run_attack(folder: Path, program: str, *, sealed: bool) -> str:
    """Run a program; return what it printed, and forget nothing that it wrote."""
    loaded = base64.b64encode(pickle.dumps(Touch(folder / "mark"))).decode()
    for name, value in (
        ("MARK", str(folder / "mark")),
        ("SECRET", str(folder / "secret")),
        ("ROWS", str(folder / "rows")),
        ("PICKLE", loaded),
    ):
        program = program.replace(name, value)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, "sealed" if sealed else "open", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ran.stdout


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_written_or_run(name: str, tmp_path: Path) -> None:
    run_attack(tmp_path, WRITES[name], sealed=False)
    assert (tmp_path / "mark").exists()
    (tmp_path / "mark").unlink()
    before = sorted(tmp_path.iterdir())
    printed = run_attack(tmp_path, WRITES[name], sealed=True)
    assert not (tmp_path / "mark").exists()
    assert sorted(tmp_path.iterdir()) == before
    assert "TABLES" in printed


@pytest.mark.parametrize("name", READS)
def test_nothing_is_read(name: str, tmp_path: Path) -> None:
    program, sign = READS[name]
    (tmp_path / "secret").write_text("(relation leaked (String))\n")
    (tmp_path / "rows").write_text("hunter2\n")
    assert sign in run_attack(tmp_path, program, sealed=False)
    printed = run_attack(tmp_path, program, sealed=True)
    assert sign not in printed
    assert "PanicException" in printed


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def run_sealed(code: str) -> subprocess.CompletedProcess[str]:
    imports = "import socket\nfrom rulecheck.egraph.seal import limit_request, seal_process\n"
    return run_python(f"{imports}seal_process()\n{code}")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('/dev/null')", "Too many open files"),
        ("import os; os.pipe()", "Too many open files"),
        ("socket.socket()", "Too many open files"),
        ("import wave", "Too many open files"),
        ("import cloudpickle", "None in sys.modules"),
    ],
)
def test_a_sealed_process_cannot(code: str, error: str) -> None:
    ran = run_sealed(code)
    assert ran.returncode == 1
    assert error in ran.stderr


def test_pipes_that_are_open_still_work() -> None:
    ran = run_sealed("import sys; sys.stdout.write('through')")
    assert (ran.returncode, ran.stdout) == (0, "through")


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("limit_request(0, 1 << 30)\nwhile True: pass", -24),
        ("limit_request(60, 0)\nx = bytearray(4 << 30)", 1),
    ],
)
def test_limits_end_the_process(code: str, number: int) -> None:
    assert run_sealed(code).returncode == number


def test_limits_are_counted_from_each_request() -> None:
    """A long-lived child may use more processor time in all than one request may."""
    code = """
import time
for _ in range(3):
    limit_request(0, 1 << 30)
    begin_s = time.process_time()
    while time.process_time() - begin_s < 0.9: pass
"""
    assert run_sealed(code).returncode == 0


def test_an_engine_panic_is_an_error_like_any_other() -> None:
    egraph = egg.EGraph()
    commands = egraph.parse_program('(relation r (i64)) (rule ((r x)) () :name "n")')
    attempt(lambda: egraph.run_program(*commands))
    with pytest.raises(EngineError, match="the engine panicked: Rule 'n' was already present"):
        attempt(lambda: egraph.run_program(commands[1]))
    with pytest.raises(EngineError, match="not Unicode"):
        attempt(lambda: egraph.parse_program("(f \ud800)"))
    with pytest.raises(EngineError, match="already bound"):
        attempt(lambda: egraph.run_program(commands[0]))


def test_other_exceptions_are_not_mistaken_for_the_engines() -> None:
    with pytest.raises(ZeroDivisionError):
        attempt(lambda: 1 // 0)


def test_the_parser_goes_on_after_an_error() -> None:
    parse = Parser()
    assert parse("(sort")[1] is not None
    commands, error = parse("(sort A)")
    assert (len(commands), error) == (1, None)


def test_the_package_of_the_engine_is_not_run() -> None:
    ran = run_python(
        "import sys, rulecheck.egraph.bindings\n"
        "loaded = [name for name in sys.modules if name.startswith('egglog')]\n"
        "sys.stdout.write(' '.join(sorted(loaded)))"
    )
    assert ran.stdout == "egglog egglog.bindings"
