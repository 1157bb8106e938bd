from __future__ import annotations

import os
from pathlib import Path

import pytest

from rulecheck.config import Config, cache_folder, default_paths, find_rule_files, load
from rulecheck.errors import UserError


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str = "") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def test_the_nearest_file_wins_and_nothing_is_merged() -> None:
    write("rulecheck.toml", 'paths = ["far"]\njobs = 7\n')
    write("a/b/rulecheck.toml", 'paths = ["near"]\n')
    config = load(Path("a/b").absolute())
    assert config.paths == ("a/b/near",)
    assert config.jobs is None


def test_rulecheck_toml_wins_over_pyproject_in_one_folder() -> None:
    write("rulecheck.toml", "jobs = 2")
    write("pyproject.toml", "[tool.rulecheck]\njobs = 3")
    assert load(Path.cwd()).jobs == 2


def test_a_pyproject_without_our_table_is_passed_over() -> None:
    write("rulecheck.toml", "jobs = 2")
    write("sub/pyproject.toml", "[tool.other]\njobs = 3")
    assert load(Path("sub").absolute()).jobs == 2


def test_every_key_is_read() -> None:
    write(
        "pyproject.toml",
        '[tool.rulecheck]\npaths=["r"]\ndialect="d"\nbackend="cpu"\nrounding="strict"\njobs=4\n',
    )
    source = str(Path.cwd() / "pyproject.toml")
    assert load(Path.cwd()) == Config(source, ("r",), "d", "cpu", "strict", 4)


def test_isolated_reads_nothing() -> None:
    write("rulecheck.toml", "this is no TOML")
    assert load(Path.cwd(), isolated=True) == Config()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("path = []", "unknown key 'path'"),
        ("zzz = 1", "unknown key 'zzz'"),
        ("paths = 'rules'", "paths is 'rules'"),
        ("paths = [1]", r"paths is \[1\]"),
        ("jobs = 0", "jobs is 0"),
        ("jobs = true", "jobs is True"),
        ("cache = 1", "cache is 1"),
        ("jobs = 1.5", "jobs is 1.5"),
        ("rounding = 'loose'", "rounding is 'loose'"),
        ("backend = 'tpu'", "backend is 'tpu'"),
        ("dialect = 3", "dialect is 3"),
        ("jobs = ", "not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text: str, what: str) -> None:
    write("rulecheck.toml", text)
    with pytest.raises(UserError, match=what) as caught:
        load(Path.cwd())
    assert "rulecheck.toml" in caught.value.what
    assert caught.value.next_step


def test_a_close_key_is_suggested() -> None:
    write("rulecheck.toml", "path = []")
    with pytest.raises(UserError) as caught:
        load(Path.cwd())
    assert caught.value.next_step == "did you mean paths?"


def test_a_file_that_is_no_text_is_named() -> None:
    Path("rulecheck.toml").write_bytes(b"jobs = 1 # \xff")
    with pytest.raises(UserError, match="not UTF-8"):
        load(Path.cwd())


def test_an_explicit_file_must_exist_and_speak_of_us() -> None:
    write("other.toml", "jobs = 5")
    assert load(Path.cwd(), "other.toml").jobs == 5
    with pytest.raises(UserError, match="no such file"):
        load(Path.cwd(), "othr.toml")
    write("pyproject.toml", "[tool.x]")
    with pytest.raises(UserError, match=r"no \[tool.rulecheck\]"):
        load(Path.cwd(), "pyproject.toml")
    write("sub/pyproject.toml", "tool.rulecheck = 3")
    with pytest.raises(UserError, match="not a table"):
        load(Path.cwd(), "sub/pyproject.toml")


def test_folders_are_searched_in_order_without_what_belongs_to_tools() -> None:
    for name in (
        "r/b.egg",
        "r/a/z.egg",
        "r/c.txt",
        "r/.git/x.egg",
        "r/__pycache__/y.egg",
        "r/env/lib/w.egg",
    ):
        write(name)
    write("r/env/pyvenv.cfg")
    Path("r/package.egg").mkdir()
    assert find_rule_files(["r"]) == ("r/a/z.egg", "r/b.egg")


def test_explicit_paths_are_never_skipped() -> None:
    write("r/.hidden/x.egg")
    write("notes.txt")
    assert find_rule_files(["r/.hidden", "notes.txt"]) == ("r/.hidden/x.egg", "notes.txt")


def test_a_file_is_taken_once_under_its_first_name() -> None:
    write("r/a.egg")
    Path("link.egg").symlink_to("r/a.egg")
    assert find_rule_files(["r/a.egg", "./r", "link.egg"]) == ("r/a.egg",)


def test_a_loop_of_links_ends() -> None:
    write("r/a.egg")
    Path("r/loop").symlink_to("../r")
    assert find_rule_files(["r"]) == ("r/a.egg",)


@pytest.mark.parametrize("path", ["rules/relo.egg", "rulez", "rules/relu.egg/x", "", "a\0b"])
def test_a_missing_path_is_named(path: str) -> None:
    write("rules/relu.egg")
    with pytest.raises(UserError):
        find_rule_files([path])


def test_near_names_are_suggested() -> None:
    write("rules/relu.egg")
    with pytest.raises(UserError) as caught:
        find_rule_files(["rules/relo.egg"])
    assert caught.value.next_step == "did you mean rules/relu.egg?"
    with pytest.raises(UserError) as caught:
        find_rule_files(["rulez/relu.egg"])
    assert caught.value.next_step == "did you mean rules?"


def test_a_pipe_is_refused_rather_than_waited_for() -> None:
    os.mkfifo("pipe.egg")
    with pytest.raises(UserError, match="not a regular file"):
        find_rule_files(["pipe.egg"])
    write("r/a.egg")
    os.mkfifo("r/pipe.egg")
    assert find_rule_files(["r"]) == ("r/a.egg",)


def test_a_folder_without_rules_is_empty_not_an_error() -> None:
    Path("empty").mkdir()
    assert find_rule_files(["empty"]) == ()


def test_default_paths() -> None:
    assert default_paths(Config(paths=("x",))) == ("x",)
    with pytest.raises(UserError, match="no folder rules/"):
        default_paths(Config())
    Path("rules").mkdir()
    assert default_paths(Config()) == ("rules",)


def test_answers_are_kept_beside_the_file_that_was_read() -> None:
    write("rulecheck.toml", "jobs = 2")
    write("sub/other.toml", "cache = true")
    write("off/rulecheck.toml", "cache = false")
    here, sub = Path.cwd(), Path.cwd() / "sub"
    kept = str(here / ".rulecheck_cache")
    assert cache_folder(load(sub), sub) == kept
    assert cache_folder(load(sub, isolated=True), sub) == str(sub / ".rulecheck_cache")
    assert cache_folder(load(here, "sub/other.toml"), here) == "sub/.rulecheck_cache"
    assert cache_folder(load(here / "off"), here / "off") == ""
