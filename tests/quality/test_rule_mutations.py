"""Every small change to a shipped rule is noticed, or it is explained why it changes nothing.

``benchmarks/mutation.py`` tries every mutant; here a few of each file are tried, the same ones
every time.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rulecheck import dialects
from rulecheck.campaign.workshop import Workshop
from rulecheck.records import Settings, Verdict
from tests.mutants import Court, Mutant, RuleText, Source, mutants_of, rule_texts, try_mutants

SHIPPED = sorted((Path(__file__).parents[2] / "rules").glob("*.egg"))
SAMPLE = 3  # mutants a file; each takes about half a second


class Survivor(NamedTuple):
    """Mutants that nothing notices: patterns of rule names and of changes, and why."""

    rule: str
    change: str
    reason: str


IGNORED = "the launch ignores inputs beyond those that the call reads"
NO_BATCH = "the launch sets batch strides only where there is a batch"
UNREAD_C = "with beta = 0 nobody reads C, and the stride of its batch may be anything"
ONE_TYPE = "the op takes operands of one type, so that the fact holds anyway"
SAME_TYPES = "but for fp8, in column order, A and B always have one type"
ELEMENTWISE = "read and written with the same strides, an element stays where it is"
FIRST_MATRIX = (
    "the op behind the matmul reads the first matrix of the batch, which is the new call's"
)

ONE = "(?!.*(batched|narrow|matmul cast)).*"  # rules about one matrix

EQUIVALENT = (
    Survivor(".*", r"duplicate input \?(fused|call): .* at the end", IGNORED),
    Survivor(ONE, r"swap \S+: stride_. stride_.", NO_BATCH),
    Survivor(ONE, r"literal head \S+\.stride_. 0 -> 1", NO_BATCH),
    Survivor("layout batched", r"literal head \S+\.stride_c 0 -> 1", UNREAD_C),
    Survivor("widened batched", r"literal head \S+\.stride_c 0 -> 1", UNREAD_C),
    Survivor("layout|row order|mul sum", r"drop \(= \?dt \(dtype \?.\)\)", ONE_TYPE),
    Survivor("bias", r"drop \(= \(F32\) \(dtype \?bias\)\)", ONE_TYPE),
    Survivor("residual", r"drop \(= \(F32\) \(dtype \?c\)\)", ONE_TYPE),
    Survivor("fp8 scaled", r"drop \(= \(F32\) \(dtype \?._scale\)\)", ONE_TYPE),
    Survivor("narrow", r"swap \S+: c_order d_order", "C and D have one order in every call"),
    Survivor("bias|gelu|.*row-order", r"swap \S+: a_dtype b_dtype", SAME_TYPES),
    Survivor(
        "(fp8 scaled|gelu|relu|scale|residual (f32|batched|scaled))(?!.*shared)",
        r"drop \(= \?dense .*",
        ELEMENTWISE,
    ),
    Survivor(
        "gelu|scale", r"drop \(= \?scalar .*", "a constant has one element, and no stride but 0"
    ),
    Survivor(
        "(?!.*(batched|narrow)).*",
        r"literal body \?matmul\.batch_count 1 -> 2",
        FIRST_MATRIX,
    ),
    Survivor(
        ".*batched", r"drop \(!= \?batch \(MNum 1\)\)", "a batch of one matrix is right as well"
    ),
    Survivor(".*batched", r"literal body != 1 -> 2", "leaves out a batch of two, which is right"),
    Survivor(
        "residual.*batched(?!.*shared)",
        r"swap \S+: stride_c stride_d",
        "C and D are dense: both have one matrix after the other",
    ),
    Survivor(
        "residual scaled|scale residual",
        r"(drop \(!= \?value 0\.0|literal body != 0\.0)",
        "0 * C differs from no C where C is not finite only, of which nothing is claimed",
    ),
    Survivor(
        "scale",
        r"(drop \(!= \?value 1\.0|literal body != 1\.0)",
        "a factor of 1 is right too; the guard keeps a class from holding itself, which is a note",
    ),
    Survivor(
        "mul sum",
        r"drop \(= \?mul_shape .*",
        "a product over more than what is summed has the same elements where it is read",
    ),
    Survivor(
        "relu", r"literal body \?matmul\.epilogue DEFAULT -> RELU", "relu of a relu is that relu"
    ),
    Survivor("relu 16", r"drop \(low_precision.*", "relu commutes with the rounding to any type"),
    Survivor(
        "fp8 scaled", r"swap \S+: inputs \?a_scale \?b_scale", "the scales multiply; they commute"
    ),
    Survivor(
        "gelu",
        r"literal body \?matmul\.compute_type default -> 32F_FAST_TF32",
        "what replaces a TF32 matmul computes more exactly, inside the bound of TF32",
    ),
    Survivor(
        "layout (2d|batched(?!: row-major A, shared row))|widened batched",
        r"drop \(= \?(out|mul)_shape .*",
        "the shape of the product is the shape of the result and k; the strides pin both",
    ),
)
# Mutants that are wrong and that nothing notices yet: what is never tried.
GAPS = (
    Survivor(
        "fp8 product",
        r"(drop \(= 0 \(% \?n_extent|literal body 0 16 ->)",
        "an extent that is a multiple of 8 and not of 16, behind casts of fp8",
    ),
    Survivor(
        "gelu batched", r"drop \(= \?shape .*", "elementwise ops over a part of what they read"
    ),
    Survivor(
        ".*",
        r"(drop \(!= \?k \(MNum 0\)\)|literal body != 0 -> 1 #3)",
        "a sum over no terms: the frontend builds none",
    ),
)


def explanation(mutant: Mutant, table: tuple[Survivor, ...] = EQUIVALENT) -> str:
    """The reason of the first row that a mutant matches, or an empty string."""
    change = f"{mutant.kind} {mutant.label}".replace('"', "")
    for row in table:
        if re.match(row.rule, mutant.rule) and re.match(row.change, change):
            return row.reason
    return ""


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    with Workshop(Settings(paths=())) as shop:
        yield Court(shop, tmp_path_factory.mktemp("mutants"))


def shipped(path: Path) -> tuple[str, list[RuleText]]:
    return rule_texts(path, dialects.load("luminal"))


def stated(path: Path) -> Verdict:
    """The verdict that the header states, which tests/corpus checks."""
    (verdict,) = re.findall(r"^; RULECHECK-EXPECT: (\S+)$", path.read_text("utf-8"), re.MULTILINE)
    return Verdict(verdict)


def sample(mutants: list[Mutant], count: int = SAMPLE) -> list[Mutant]:
    """Always the same few, spread over rules and kinds."""
    ordered = sorted(mutants, key=lambda mutant: zlib.crc32(mutant.name.encode()))
    return ordered[:count]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_mutant_is_noticed_or_explained(court: Court, path: Path) -> None:
    rest, rules = shipped(path)
    chosen = sample([mutant for rule in rules for mutant in mutants_of(rule)])
    expected = {rule.name: stated(path) for rule in rules}
    sentences = list(try_mutants(court, Source(path.name, rest), chosen, expected))
    assert len(sentences) == len(chosen)
    for sentence in sentences:
        if sentence.is_rule:
            known = explanation(sentence.mutant) or explanation(sentence.mutant, GAPS)
            assert sentence.survives == bool(known), (sentence.mutant.name, sentence.after, known)


def test_every_row_of_the_tables_is_about_a_mutant_that_exists() -> None:
    mutants = [
        mutant for path in SHIPPED for rule in shipped(path)[1] for mutant in mutants_of(rule)
    ]
    for row in (*EQUIVALENT, *GAPS):
        assert any(explanation(mutant, (row,)) for mutant in mutants), row


RULE = """(rule (
  (= ?matmul (Op (cublaslt
      ?m ?n ?k "N" ?bl "COL" "COL" "COL" "COL" ?lda ?ldb ?ldc ?ldd
      ?batch ?sa ?sb ?sc ?sd (F32) (F32) (F32) (F32)
      "default" "default" ?alpha 0.0 "DEFAULT") (ICons ?a (ICons ?b (INil)))))
  (!= ?alpha 2.5)
) (
  (union ?matmul (Op (cublaslt
      ?m ?n ?n "N" ?bl "COL" "ROW" "COL" "COL" ?lda ?lda ?lda ?lda
      ?batch ?sa ?sa ?sa ?sa (F32) (F32) (F32) (F32)
      "default" "default" ?alpha 0.0 "BIAS") (ICons ?a (ICons ?b (INil)))))
) :name "toy")"""


@pytest.fixture
def toy(tmp_path: Path) -> list[Mutant]:
    (tmp_path / "toy.egg").write_text(RULE, encoding="utf-8")
    _, (rule,) = shipped(tmp_path / "toy.egg")
    return mutants_of(rule)


def test_a_mutant_says_what_it_changes(toy: list[Mutant]) -> None:
    labels = {f"{mutant.kind} {mutant.label}" for mutant in toy}
    assert {
        "drop (!= ?alpha 2.5)",
        "swap ?matmul: m n",
        "swap ?matmul: a_layout b_layout",
        "swap ?matmul: alpha beta",
        "swap ?matmul: inputs ?a ?b",
        "dtype head ?matmul.c_dtype (F32) -> (Bf16)",
        'literal body ?matmul.a_layout "N" -> "T"',
        'literal head ?matmul.compute_type "default" -> "32F_FAST_TF32"',
        "literal head ?matmul.beta 0.0 -> 1.0",
        "literal body != 2.5 -> 5.0",
        'literal head ?matmul.epilogue "BIAS" -> "DEFAULT"',
        "drop input ?matmul: ?a",
        "duplicate input ?matmul: ?a",
        "duplicate input ?matmul: ?b at the end",
    } <= labels
    assert "swap ?matmul: n k" not in labels  # both are ?n
    assert len({mutant.name for mutant in toy}) == len(toy)


def test_a_mutant_is_the_rule_with_one_change_and_another_name(toy: list[Mutant]) -> None:
    by_label = {mutant.label: mutant.text for mutant in toy if mutant.kind != "duplicate input"}
    before, after = RULE.rsplit("(ICons ?a (ICons ?b (INil)))", 1)
    dropped = by_label["?matmul: ?a"]
    assert dropped.startswith(before + "(ICons ?b (INil))")
    assert dropped.count("(") == RULE.count("(") - 1
    assert after.startswith(")")
    swapped = by_label["?matmul: m n"]
    assert "?n ?m ?n" in swapped
    assert RULE.count("(") == swapped.count("(")
    assert swapped.endswith(':name "toy | swap ?matmul: m n")')
