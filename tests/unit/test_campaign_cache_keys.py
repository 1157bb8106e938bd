"""What a cached answer depends on, one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from rulecheck.campaign import cache as module
from rulecheck.campaign.bench import PairTask, RuleTask
from rulecheck.campaign.cache import Cache
from rulecheck.campaign.workshop import Workshop
from rulecheck.records import RuleFile, Settings
from tests.rule_texts import SCALE, rename, swap

ENVIRONMENT = (("python", "3.11.7"), ("egglog", "13.1.0"))

# A relation, a rule that derives its rows, one that uses them, one that has nothing to do with it.
PROGRAM = f"""(relation blessed (IR))
(rule ((= ?x (Op (Constant ?v) (INil)))) ((blessed ?x)) :ruleset matmul_backend :name "derives")
(rule ((= ?x (Op (Cast ?n ?t) (ICons ?y (INil)))) (blessed ?y)) ((union ?x ?y))
  :ruleset matmul_backend :name "uses")
{SCALE}"""
RULES = ("derives", "uses", "scale")


def opened(tmp_path: Path, **changes: object) -> Cache:
    return Cache(replace(Settings((), cache=str(tmp_path / "cache")), **changes), ENVIRONMENT)


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with Workshop(Settings(paths=())) as running:
        yield running


Load = Callable[[str], RuleFile]


@pytest.fixture
def load(shop: Workshop, tmp_path: Path) -> Load:
    def read(text: str) -> RuleFile:
        file = shop.engine.load(str(tmp_path / "a.egg"), text)
        assert isinstance(file, RuleFile)
        assert file.problems == ()
        return file

    return read


def keys(cache: Cache, file: RuleFile) -> dict[str, str]:
    return {
        rule.name: cache.key(RuleTask(file.path, index, rule.name, ()), {file.path: file})
        for index, rule in enumerate(file.rules)
    }


def changed(tmp_path: Path, load: Load, text: str) -> set[str]:
    before, after = (keys(opened(tmp_path), load(each)) for each in (PROGRAM, text))
    assert set(before) == set(RULES)
    return {name for name in before if after.get(name) != before[name]}


def test_keys_are_digests_and_the_same_in_the_next_run(tmp_path: Path, load: Load) -> None:
    found_keys = keys(opened(tmp_path), load(PROGRAM))
    assert keys(opened(tmp_path), load(PROGRAM)) == found_keys
    assert len(set(found_keys.values())) == 3
    assert all(
        len(key) == 64 and set(key) <= set("0123456789abcdef") for key in found_keys.values()
    )


@pytest.mark.parametrize(
    ("pairs", "missed"),
    [
        # An unrelated rule changes: only a rule that adds rows looks at every other.
        ([(':name "scale"', ':name "other"')], {"derives", "scale"}),
        (
            [
                (
                    "(= ?x (Op (Cast ?n ?t) (ICons ?y (INil))))",
                    "(= ?x (Op (Cast ?n ?t) (ICons ?y ?z)))",
                )
            ],
            {"derives", "uses"},
        ),
        ([("(Constant ?v)", "(Constant 1.0)")], set(RULES)),  # what is derived holds everywhere
        ([("(relation blessed (IR))", "(relation blessed (IR)) (relation more (IR))")], set(RULES)),
        (
            [
                (
                    "(relation blessed (IR))",
                    "(relation blessed (IR)) (blessed (Op (Constant 3.0) (INil)))",
                )
            ],
            set(RULES),
        ),
        ([("(union ?x ?y))\n", "(union ?x ?y))  ; why\n")], set()),
        ([("(union ?x ?y)", "  (union ?x ?y)")], {"uses"}),  # carets move inside the rule
    ],
)
def test_a_rules_key_follows_what_can_change_its_verdict(
    tmp_path: Path, load: Load, pairs: list[tuple[str, str]], missed: set[str]
) -> None:
    assert changed(tmp_path, load, swap(*pairs)(PROGRAM)) == missed


def test_a_rule_that_moves_has_another_key(tmp_path: Path, load: Load) -> None:
    moved = PROGRAM.replace(SCALE, "\n" + SCALE)
    assert changed(tmp_path, load, moved) == {"scale"}


BASE: dict[str, dict[str, object]] = {
    "rounding": {"strict_rounding": True},
    "seed": {"seed": 1},
    "backend": {"backend": "other"},
}


@pytest.mark.parametrize("name", BASE)
def test_settings_that_change_results_change_every_key(
    tmp_path: Path, load: Load, name: str
) -> None:
    file = load(PROGRAM)
    before, after = keys(opened(tmp_path), file), keys(opened(tmp_path, **BASE[name]), file)
    assert not set(before.values()) & set(after.values())


def test_settings_that_change_no_result_change_no_key(tmp_path: Path, load: Load) -> None:
    file = load(PROGRAM)
    other = opened(tmp_path, jobs=7, rule="scale", paths=("elsewhere",))
    assert keys(opened(tmp_path), file) == keys(other, file)


class OtherDialect:
    @staticmethod
    def declarations() -> str:
        return "(sort Other)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCHEMA", 2),
        ("__version__", "9.9"),
        ("_sources", lambda: b"other"),
        ("_processor", lambda: "other"),
        ("dialects.load", lambda _name: OtherDialect),
    ],
)
def test_the_tool_itself_is_part_of_every_key(
    tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    file = load(PROGRAM)
    before = keys(opened(tmp_path), file)
    monkeypatch.setattr(f"rulecheck.campaign.cache.{name}", value)
    assert not set(before.values()) & set(keys(opened(tmp_path), file).values())


def test_versions_and_the_platform_are_part_of_every_key(tmp_path: Path, load: Load) -> None:
    file = load(PROGRAM)
    other = Cache(Settings((), cache="cache"), (("python", "3.11.7"), ("egglog", "13.2.0")))
    assert not set(keys(opened(tmp_path), file).values()) & set(keys(other, file).values())


def test_every_source_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rulecheck"
    (package / "campaign").mkdir(parents=True)
    monkeypatch.setattr(module, "__file__", str(package / "campaign" / "cache.py"))
    seen = {module._sources()}
    for name, text in (("a.py", "1"), ("a.py", "2"), ("campaign/b.egg", ""), ("t.json", "{}")):
        (package / name).write_text(text)
        seen.add(module._sources())
    assert len(seen) == 5
    (package / "a.pyc").write_text("compiled")
    assert module._sources() in seen


def test_the_processor_is_named_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", lambda *_a, **_k: (_ for _ in ()).throw(OSError()))
    assert isinstance(module._processor(), str)


def test_rules_of_the_context_count_if_they_derive_facts(tmp_path: Path, shop: Workshop) -> None:
    first, second = str(tmp_path / "a.egg"), str(tmp_path / "b.egg")
    provider, user = "\n".join(PROGRAM.split("\n")[:2]), "\n".join(PROGRAM.split("\n")[2:])

    def key(text: str, context: tuple[str, ...] = (first,)) -> str:
        file = shop.engine.load(second, user, ((first, text.encode()),))
        assert isinstance(file, RuleFile)
        assert file.problems == ()
        task = RuleTask(second, 0, "uses", context)
        return opened(tmp_path).key(task, {second: file})

    assert key(provider) == key(provider)
    assert key(provider) == key(provider + rename(SCALE, "another"))
    assert key(provider) != key(provider.replace("?v", "2.0"))
    assert key(provider) != key(provider, (first, "third.egg"))


def test_a_pairs_key_follows_the_whole_program(tmp_path: Path) -> None:
    files = {
        path: RuleFile(path, (), (), (), (), (), sha256=path)
        for path in ("a.egg", "b.egg", "c.egg")
    }
    plain = PairTask(("a.egg", "b.egg"), "a.egg", "r", (("b.egg", "s"), ("a.egg", "t")))

    def key(task: PairTask, **sums: str) -> str:
        known = {path: replace(file, sha256=sums.get(path[0], "0")) for path, file in files.items()}
        return opened(tmp_path).key(task, known)

    same = [
        key(plain),
        key(replace(plain, wrong=(("a.egg", "t"), ("b.egg", "s"), ("c.egg", "u")))),
        key(plain, c="1"),
    ]
    others = [
        key(replace(plain, files=("b.egg", "a.egg"))),
        key(replace(plain, files=("a.egg",))),
        key(replace(plain, path="b.egg")),
        key(replace(plain, name="q")),
        key(replace(plain, wrong=())),
        key(plain, a="1"),
        key(plain, b="1"),
    ]
    assert len(set(same)) == 1
    assert len({*same, *others}) == 1 + len(others)
