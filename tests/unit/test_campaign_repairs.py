"""Guards found by trying: each kind of fact, two together, none; and pasted into the rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rulecheck.campaign.findings import judge_rule
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.repairs import Candidate, Sample, _key, repairs
from rulecheck.campaign.workshop import Workshop
from rulecheck.dialects.terms import TermReader
from rulecheck.records import Finding, RuleFile, Settings, Severity
from tests.luminal_rules import first_rule
from tests.luminal_terms import VOCABULARY, Graph
from tests.rule_texts import old_call, rule

CORPUS = Path(__file__).parents[1] / "corpus"
RULE = first_rule(
    rule("r", f"(= ?mm {old_call({}, '(ICons ?a (ICons ?b ?rest))')})", "(union ?mm ?mm)")
)
Value = float | str | int | tuple[int, int]


def key(value: Value) -> object:
    """What a variable holds: a text (a type if it is a name in parentheses), a number, a stride."""
    graph = Graph()
    reader = TermReader(graph.nodes, VOCABULARY.encoding)
    if isinstance(value, tuple):
        start, step = value
        term = graph.add("MAdd", graph.number(start), graph.stride(step))
    elif isinstance(value, int):
        term = graph.number(value)
    elif isinstance(value, float):
        term = graph.literal("f64", value)
    elif value.startswith("("):
        term = graph.add(value.strip("()"))
    else:
        term = graph.literal("String", value)
    return _key(reader, term)


def case(values: Mapping[str, Value], *, passes: bool, **types: str) -> Sample:
    held = {f"?{name}": key(value) for name, value in values.items()}
    return Sample(held, {f"?{name}": dtype for name, dtype in types.items()}, passes)


def good(**values: Value) -> Sample:
    return case(values, passes=True)


def bad(**values: Value) -> Sample:
    return case(values, passes=False)


def offered(*samples: Sample) -> list[tuple[str, ...]]:
    """The guards, each of which lets some case pass and none that fails."""
    found: list[list[Candidate]] = list(repairs(RULE, samples, VOCABULARY))
    for facts in found:
        admitted = [item for item in samples if all(fact.holds(item) for fact in facts)]
        assert admitted
        assert all(item.passes for item in admitted)
    return [tuple(item.text for item in facts) for facts in found]


def test_a_value_is_pinned_where_no_other_passes() -> None:
    found = offered(good(epilogue="BIAS"), bad(epilogue="RELU"), bad(epilogue="GELU"))
    assert found[0] == ('(= ?epilogue "BIAS")',)
    assert ('(!= ?epilogue "RELU")',) not in found, "GELU would still fail"


def test_a_value_is_excluded_where_others_pass() -> None:
    found = offered(good(epilogue="BIAS"), good(epilogue="GELU"), bad(epilogue="RELU"))
    assert found[0] == ('(!= ?epilogue "RELU")',)
    assert ('(= ?epilogue "BIAS")',) in found[1:], "it keeps less"


def test_types_and_numbers_are_pinned_too() -> None:
    assert offered(good(c_dtype="(F32)"), bad(c_dtype="(Bf16)"))[0] in {
        ("(!= ?c_dtype (Bf16))",),
        ("(= ?c_dtype (F32))",),
    }
    found = offered(good(beta=0.0), bad(beta=1.0), bad(beta=-0.5), bad(beta=2.0))
    assert found[0] == ("(= ?beta 0.0)",)


def test_two_fields_of_one_value() -> None:
    found = offered(
        good(c_dtype="(F32)", d_dtype="(F32)"),
        good(c_dtype="(F16)", d_dtype="(F16)"),
        bad(c_dtype="(F32)", d_dtype="(F16)"),
        bad(c_dtype="(F16)", d_dtype="(F32)"),
    )
    assert found == [("(= ?c_dtype ?d_dtype)",)]


def test_fields_of_different_sorts_are_never_equal() -> None:
    """It would not even load."""
    found = offered(good(a_order="COL", lda=5), bad(a_order="ROW", lda=7))
    assert all("?lda" not in text or "?a_order" not in text for facts in found for text in facts)


def test_sizes_are_compared_for_every_value_of_the_iterator() -> None:
    """5 elements, and a stride that is 5 only for the first step."""
    found = offered(good(m=5, ldc=5), good(m=7, ldc=7), bad(m=5, ldc=(0, 5)), bad(m=7, ldc=8))
    assert found == [("(= ?m ?ldc)",)]


def test_a_stride_over_another_field() -> None:
    found = offered(
        good(m=5, ldc=(0, 5)),
        good(m=7, ldc=(0, 7)),
        bad(m=5, ldc=5),
        bad(m=5, ldc=(0, 7)),
        bad(m=5, ldc=(1, 5)),
    )
    assert found == [("(= ?ldc (MMul (MIter) ?m))",)]


@pytest.mark.parametrize(
    ("passing", "failing", "fact"),
    [
        ([1.0, 0.25, 3.0], [0.0, -1.0], "(> ?alpha 0.0)"),
        ([1.0, 0.25, 0.0], [-0.5, -1.0], "(>= ?alpha 0.0)"),
    ],
)
def test_a_sign(passing: list[float], failing: list[float], fact: str) -> None:
    found = offered(
        *(good(alpha=value) for value in passing), *(bad(alpha=value) for value in failing)
    )
    assert found[0] == (fact,)


def test_a_type_that_a_buffer_holds() -> None:
    found = offered(
        case({}, passes=True, a="F32"),
        case({}, passes=False, a="F16"),
        case({}, passes=False, a="Bf16"),
    )
    assert found == [("(= (dtype ?a) (F32))",)]


def test_a_field_that_is_a_buffers_type_reads_best() -> None:
    found = offered(
        case({"c_dtype": "(F32)"}, passes=True, a="F32", b="F16"),
        case({"c_dtype": "(F16)"}, passes=True, a="F16", b="F16"),
        case({"c_dtype": "(F32)"}, passes=False, a="F16", b="F16"),
        case({"c_dtype": "(F16)"}, passes=False, a="F32", b="F32"),
    )
    assert found[0] == ("(= ?c_dtype (dtype ?a))",)


def test_two_facts_where_none_suffices() -> None:
    found = offered(
        good(beta=0.0, epilogue="DEFAULT"),
        bad(beta=1.0, epilogue="DEFAULT"),
        bad(beta=0.0, epilogue="RELU"),
        bad(beta=2.0, epilogue="RELU"),
        bad(beta=-1.0, epilogue="GELU"),
    )
    assert found
    assert all(len(facts) == 2 for facts in found)
    assert ("(= ?beta 0.0)", '(= ?epilogue "DEFAULT")') in found
    assert len({frozenset(facts) for facts in found}) > 1


def test_nothing_is_offered_that_no_case_passes_or_where_nothing_separates() -> None:
    assert offered(bad(beta=1.0), bad(beta=0.0)) == []
    assert offered(good(beta=1.0), good(beta=0.0)) == []
    assert offered(good(beta=1.0), bad(beta=1.0)) == []


def test_what_an_unknown_value_would_decide_is_not_offered() -> None:
    """A graph or a symbolic size has no key; a fact about it holds in no case."""
    assert offered(good(beta=1.0, m=5, ldc=5), bad(beta=1.0)) == [("(= ?m ?ldc)",)]


@pytest.mark.parametrize(("one", "other"), [(5, (5, 0)), ((0, 1), (0, 1)), ((2, 3), (2, 3))])
def test_one_number_has_one_key_however_it_is_spelled(one: Value, other: Value) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"), [(5, (0, 5)), (1, (0, 1)), (0.0, "0.0"), ("F32", "(F32)"), (0.0, 1.0)]
)
def test_different_values_have_different_keys(one: Value, other: Value) -> None:
    assert key(one) != key(other)


# ---- pasted into the file ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop() -> Iterator[Workshop]:
    with Workshop(Settings(paths=())) as running:
        yield running


def judge(shop: Workshop, path: Path) -> tuple[RuleFile, Finding]:
    file = shop.load(str(path))
    assert isinstance(file, RuleFile)
    assert file.problems == ()
    return file, judge_rule(RuleRun(shop, file, 0))


PASTED = {
    "mismatch/leading_dimension_claimed_valid": ("(= ?ld (MMul (MIter) ?n))",),
    "mismatch/residual_under_any_but_relu_before": ('(= ?epilogue "DEFAULT")',),
    "mismatch/scale_over_relu": ("(>= ?value 0.0)",),
    "mismatch/alpha_and_beta_dropped": ("(= ?alpha 1.0)", "(= ?alpha ?beta)"),
    "misread/cast_over_any_beta": ("(= ?beta 0.0)", '(= ?epilogue "DEFAULT")'),
    "misread/residual_of_unread_ldc": ("(= ?m ?ldc)",),
    "misread/type_of_first_operand_claimed_before": ("(= ?d_dtype (dtype ?a))",),
    "misread/type_of_what_is_cast": ("(= ?dt (dtype ?y))",),
}


@pytest.mark.parametrize("name", PASTED)
def test_the_printed_facts_make_the_rule_pass(shop: Workshop, tmp_path: Path, name: str) -> None:
    """They are put behind the last fact of the left side, as the author would."""
    source = CORPUS / f"{name}.egg"
    file, finding = judge(shop, source)
    assert finding.severity is Severity.ERROR
    assert finding.guard == PASTED[name]
    assert finding.guard_passes >= 8
    end = file.rules[0].body[-1].span
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    line = lines[end.end_line - 1]
    cut = end.end_column - 1
    lines[end.end_line - 1] = f"{line[:cut]}\n  {' '.join(finding.guard)}{line[cut:]}"
    mended = tmp_path / source.name
    mended.write_text("".join(lines), encoding="utf-8")
    _, after = judge(shop, mended)
    assert after.severity in {Severity.OK, Severity.WARNING}, after.message
    assert after.cases >= 8
    assert after.guard == ()


def test_a_guard_under_which_the_rule_never_fires_is_not_offered(
    shop: Workshop, tmp_path: Path
) -> None:
    """It fails for every α but 1 and for every β but 0, and its own guard forbids both at once."""
    text = (CORPUS / "mismatch/alpha_and_beta_dropped.egg").read_text(encoding="utf-8")
    path = tmp_path / "never.egg"
    path.write_text(text.replace("?alpha", "3.0"), encoding="utf-8")
    _, finding = judge(shop, path)
    assert finding.severity is Severity.ERROR
    assert finding.guard == ()
