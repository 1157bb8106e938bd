"""Each bug is planted in the text of a correct rule, and ``check`` must say what it is and where.

The rules are judged unplanted too: a plant that stops working agrees, and fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pytest

from rulecheck import campaign
from rulecheck.campaign import token
from rulecheck.campaign.findings import judge_rule
from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.rerun import _rerun
from rulecheck.campaign.workshop import Workshop
from rulecheck.records import Finding, RuleFile, Settings, Severity, Verdict
from tests.rule_texts import RULES, Plant, fields, rename, swap

MISREAD, ILLEGAL, MISMATCH = Verdict.MISREAD, Verdict.ILLEGAL, Verdict.MISMATCH
ADDED, ELIDED, AGREES = Verdict.ROUNDING_ADDED, Verdict.ROUNDING_ELIDED, Verdict.AGREES


class Bug(NamedTuple):
    """A planted bug: what must be said, on which line (by the field that it names), and how."""

    rule: str
    plant: Plant
    verdict: Verdict
    code: str
    field: str | None = None
    hint: str = ""


def rounded(name: str, result: str) -> Plant:
    """Put a cast to Bf16 and back around an input or around the call."""
    there = f"(Op (Cast (MMul ?m ?n) (Bf16)) (ICons {name} (INil)))"
    back = f"(Op (Cast (MMul ?m ?n) (F32)) (ICons {there} (INil)))"
    return swap((result, result.replace(name, back)))


ROUND_RESULT = swap(
    (
        "(union ?sum (Op",
        (
            "(union ?sum (Op (Cast (MMul ?m ?n) (F32)) (ICons "
            "(Op (Cast (MMul ?m ?n) (Bf16)) (ICons (Op"
        ),
    ),
    (" ; new inputs\n  )", " ; new inputs\n  ) (INil))) (INil)))"),
)
CLAIM_F16 = swap(
    ("(union ?sum (Op", "(let ?new (Op"),
    (
        " ; new inputs\n  ))",
        " ; new inputs\n  ))\n  (set (dtype ?new)\n    (F16) ; new claim\n  ) (union ?sum ?new)",
    ),
)
NEW_INPUTS = "(ICons ?a (ICons ?b (ICons ?r (INil)))) ; new inputs"
NEW_BIAS = "(ICons ?a (ICons ?b (ICons ?v (INil)))) ; new inputs"
BF16_BIAS = "(Op (Cast ?m (Bf16)) (ICons ?v (INil)))"

BUGS: dict[str, Bug] = {
    "residual: swap A and B": Bug(
        "residual",
        swap((NEW_INPUTS, "(ICons ?b (ICons ?a (ICons ?r (INil)))) ; new inputs")),
        MISREAD,
        "RC202",
        hint="buffer",
    ),
    "residual: drop alpha": Bug(
        "residual", fields(alpha="1.0"), MISMATCH, "RC301", "alpha", "(= ?alpha 1.0)"
    ),
    "residual: double C": Bug("residual", fields(beta="2.0"), MISMATCH, "RC301", "beta", "beta"),
    "residual: drop C": Bug("residual", fields(beta="0.0"), MISMATCH, "RC301", None, "beta"),
    "residual: negate C": Bug("residual", fields(beta="-1.0"), MISMATCH, "RC301", "beta", "beta"),
    "residual: transpose C by its order": Bug(
        "residual", fields(c_order='"ROW"'), ILLEGAL, "RC204", "c_order", "order"
    ),
    "residual: transpose C by its strides": Bug(
        "residual",
        swap(
            (
                "(= ?rs (ECons (MMul (MIter) ?m) (ECons (MIter) (ENil))))",
                "(= ?rs (ECons (MIter) (ECons (MMul (MIter) ?n) (ENil))))",
            )
        ),
        MISMATCH,
        "RC301",
        hint="axes",
    ),
    "residual: shift ldc by one": Bug(
        "residual", fields(ldc="(MAdd ?m (MNum 1))"), MISREAD, "RC202", "ldc", "ldc"
    ),
    "residual: shift lda by one": Bug(
        "residual", fields(lda="(MAdd ?lda (MNum 1))"), MISREAD, "RC202", "lda", "lda"
    ),
    "residual: shift ldb back by one": Bug(
        "residual", fields(ldb="(MSub ?ldb (MNum 1))"), MISREAD, "RC203", "ldb", "ldb"
    ),
    "residual: shift ldd by one": Bug(
        "residual", fields(ldd="(MAdd ?m (MNum 1))"), MISREAD, "RC207", "ldd", "ldd"
    ),
    "residual: read C past its end": Bug(
        "residual", fields(ldc="(MNum 1000)"), MISREAD, "RC202", "ldc", "ldc"
    ),
    "residual: read the batch of C past its end": Bug(
        "residual",
        fields(batch_count="(MNum 3)", stride_d="(MMul ?m ?n)", stride_c="(MMul ?m ?n)"),
        MISREAD,
        "RC202",
        "stride_c",
        "stride_c",
    ),
    "residual: round C": Bug("residual", rounded("?r", NEW_INPUTS), ADDED, "RC302", hint="wider"),
    "residual: round the result": Bug("residual", ROUND_RESULT, ADDED, "RC302", hint="wider"),
    "residual: add RELU": Bug(
        "residual", fields(epilogue='"RELU"'), MISMATCH, "RC301", None, "epilogue"
    ),
    "residual: add BIAS": Bug(
        "residual", fields(epilogue='"BIAS"'), ILLEGAL, "RC217", None, "launch"
    ),
    "residual: drop the guard on the epilogue": Bug(
        "residual", swap(('"DEFAULT"', "?epilogue")), MISMATCH, "RC301", None, "epilogue"
    ),
    "residual: drop the guard on the types": Bug(
        "residual",
        swap(
            ("(F32) (F32) (F32) (F32)", "(Bf16) (Bf16) (Bf16) (Bf16)"),
            ("      (F32) ;", "      (Bf16) ;"),
        ),
        ELIDED,
        "RC303",
        hint="--rounding strict",
    ),
    "residual: k is m": Bug("residual", fields(k="?m"), MISREAD, "RC202"),
    "residual: k is one more": Bug("residual", fields(k="(MAdd ?k (MNum 1))"), MISREAD, "RC202"),
    "residual: k is one less": Bug("residual", fields(k="(MSub ?k (MNum 1))"), MISMATCH, "RC301"),
    "residual: claim another type": Bug(
        "residual",
        CLAIM_F16,
        MISREAD,
        "RC304",
        "claim",
        "set the type",
    ),
    "residual: claim another type of the old term": Bug(
        "residual",
        swap(("(union ?sum (Op", "(set (dtype ?sum)\n    (F16) ; new claim\n  ) (union ?sum (Op")),
        MISREAD,
        "RC304",
        "claim",
        "set the type",
    ),
    "residual: write another type": Bug(
        "residual", fields(d_dtype="(Bf16)", c_dtype="(Bf16)"), ILLEGAL, "RC211"
    ),
    "widen: drop the guard on beta": Bug(
        "widen", swap(("0.0", "?beta")), MISREAD, "RC201", "c_dtype", "β = 0"
    ),
    "widen: drop the guard on the epilogue": Bug(
        "widen", swap(('"DEFAULT"', "?epilogue")), MISREAD, "RC205", "epilogue", "bias"
    ),
    "widen: forget that C is D": Bug(
        "widen", fields(c_dtype="(Bf16)"), ILLEGAL, "RC204", "c_dtype", "c_dtype to F32"
    ),
    "widen: forget to widen": Bug(
        "widen", fields(c_dtype="(Bf16)", d_dtype="(Bf16)"), MISREAD, "RC201", "d_dtype", "Cast"
    ),
    "widen: drop the batch": Bug(
        "widen", fields(batch_count="(MNum 1)"), MISREAD, "RC202", None, "batch count"
    ),
    "widen: share A in the batch": Bug(
        "widen", fields(stride_a="(MNum 0)"), MISMATCH, "RC301", hint="batch_count is 1"
    ),
    "widen: cast only half": Bug(
        "widen",
        swap(("(= ?wide", "(= ?size (MNum 4))\n  (= ?wide")),
        MISREAD,
        "RC202",
        None,
        "extents",
    ),
    "bias: cast it wrongly": Bug(
        "bias", swap((NEW_BIAS, NEW_BIAS.replace("?v", BF16_BIAS))), MISREAD, "RC205", hint="bias"
    ),
    "bias: round it": Bug(
        "bias",
        swap(
            (NEW_BIAS, NEW_BIAS.replace("?v", f"(Op (Cast ?m (F32)) (ICons {BF16_BIAS} (INil)))"))
        ),
        ADDED,
        "RC302",
    ),
    "bias: drop the epilogue": Bug(
        "bias", fields(epilogue='"DEFAULT"'), MISMATCH, "RC301", hint="epilogue"
    ),
    "bias: add RELU": Bug("bias", fields(epilogue='"RELU_BIAS"'), MISMATCH, "RC301", "epilogue"),
    "bias: along the other axis": Bug(
        "bias",
        swap(
            (
                "(= ?vs (ECons (MNum 0) (ECons (MIter) (ENil))))",
                "(= ?vs (ECons (MIter) (ECons (MNum 0) (ENil))))",
            )
        ),
        MISREAD,
        "RC205",
    ),
    "bias: add the residual too": Bug("bias", fields(beta="1.0"), ILLEGAL, "RC217"),
    "layout: swap A and B": Bug(
        "layout",
        swap(("(ICons ?b (ICons ?a (INil))) ; new", "(ICons ?a (ICons ?b (INil))) ; new")),
        MISREAD,
        "RC202",
    ),
    "layout: forget that D is transposed": Bug("layout", fields(m="?m", n="?n"), MISREAD, "RC202"),
    "layout: transpose A": Bug("layout", fields(a_layout='"T"'), MISREAD, "RC203"),
    "layout: double": Bug("layout", fields(alpha="2.0"), MISMATCH, "RC301", None, "scale"),
    "layout: k is n": Bug("layout", fields(k="?n"), MISREAD, "RC202"),
    "scale: drop it": Bug("scale", fields(alpha="1.0"), MISMATCH, "RC301", None, "scale"),
    "scale: twice": Bug("scale", fields(alpha="(* ?value 2.0)"), MISMATCH, "RC301", "alpha"),
    "scale: under RELU": Bug(
        "scale", swap(('"DEFAULT"', '"RELU"')), MISMATCH, "RC301", "alpha", "(>= ?value 0.0)"
    ),
}


TEXTS = {name: rename(text, name) for name, text in RULES.items()}
TEXTS |= {name: rename(bug.plant(RULES[bug.rule]), name) for name, bug in BUGS.items()}


class Shop(NamedTuple):
    """One file with all rules, and a workshop to judge them and to replay their cases in."""

    path: str
    lines: list[str]
    workshop: Workshop
    file: RuleFile

    def judge(self, name: str) -> Finding:
        """Judge one rule by itself, as ``check`` does."""
        return judge_rule(RuleRun(self.workshop, self.file, list(TEXTS).index(name)))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    path = tmp_path_factory.mktemp("planted") / "rules.egg"
    path.write_text("\n".join(TEXTS.values()), encoding="utf-8")
    with Workshop(Settings(paths=(str(path),))) as workshop:
        file = workshop.load(str(path))
        assert isinstance(file, RuleFile)
        assert [rule.name for rule in file.rules] == list(TEXTS)
        yield Shop(str(path), path.read_text(encoding="utf-8").split("\n"), workshop, file)


@pytest.mark.parametrize("name", RULES)
def test_nothing_is_wrong_without_a_plant(shop: Shop, name: str) -> None:
    finding = shop.judge(name)
    assert finding.verdict is (ELIDED if name == "widen" else AGREES), finding.message
    assert finding.compared > 1000
    assert min(finding.fired, finding.cases) > 10


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_named_placed_and_replayed(shop: Shop, name: str) -> None:
    bug, finding = BUGS[name], shop.judge(name)
    assert (finding.verdict, finding.code) == (bug.verdict, bug.code), finding.message
    assert bug.hint in " ".join((finding.hint, *finding.guard))
    if bug.verdict is not ELIDED:
        assert finding.severity is Severity.ERROR
        assert finding.blame == (name,)
    check_place(shop, bug, finding)
    check_replay(shop, finding)


def check_place(shop: Shop, bug: Bug, finding: Finding) -> None:
    """The caret stands under the planted field, or at least inside the rule."""
    place = finding.field_span
    assert place is not None
    (rule,) = [rule for rule in shop.file.rules if rule.name == finding.rule]
    assert rule.span.line <= place.line <= place.end_line <= rule.span.end_line
    if bug.field is not None:
        assert shop.lines[place.line - 1].endswith(f" ; new {bug.field}")


def check_replay(shop: Shop, finding: Finding) -> None:
    """The token leads to the same case, verdict and worst element."""
    found = finding.counterexample
    assert found is not None
    case = token.decode(found.token)
    assert case == found.case
    again = _rerun(shop.workshop, shop.file, case)
    assert not again.rule_changed
    assert again.case == case
    assert again.evidence.verdict is finding.verdict
    assert again.evidence.code == finding.code
    assert again.tried == found.tried
    assert _untagged(again.original) == _untagged(found.original)
    assert _untagged(again.member) == _untagged(found.member)
    worst = found.evidence.worst
    # As text: a NaN that was read past an end equals itself.
    assert repr(again.elements[:1]) == repr(() if worst is None else (worst,))


def _untagged(text: str) -> str:
    """A graph without the numbers that tell the leaves of several instances apart."""
    return re.sub(r'"i\d+\.', '"', text)


def test_a_run_says_of_a_rule_among_others_what_is_said_of_it_by_itself(shop: Shop) -> None:
    names = ("scale", "scale: drop it", "layout: transpose A")
    for name in names:
        (finding,) = campaign.check(
            Settings(paths=(shop.path,), rule=name, jobs=1), lambda _: None
        ).findings
        alone = msgspec.structs.replace(finding, lints=())  # which are no judgement
        assert repr(alone) == repr(shop.judge(name))
