"""What a finding advises beyond its evidence: undo a change; guards that other inputs bear out."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rulecheck import campaign
from rulecheck.campaign.hints import _undo
from rulecheck.records import Evidence, Settings, Stage, Verdict, Violation
from tests.gemms import gemm
from tests.samples import VIOLATION

OLD = gemm(5, 7, 11)
NEW = replace(OLD, a=replace(OLD.a, order="ROW"))
BARE = Evidence(Verdict.MISREAD, Stage.CONTRACT, "RC202", "wrong")


def undo(operand: str, field: str) -> str:
    found: Violation = replace(VIOLATION, operand=operand, field=field)
    return _undo(replace(BARE, violations=(found,), original_call=OLD, member_call=NEW))


def test_a_change_of_the_operand_at_fault_is_to_be_undone() -> None:
    assert undo("A", "lda") == "the rule changes a_order: undo it, or "


def test_what_is_named_already_or_is_another_operands_is_not() -> None:
    assert undo("A", "a_order") == ""
    assert undo("B", "ldb") == ""
    assert _undo(BARE) == ""


THRESHOLD = """(rule (
  (= ?mm (Op (cublaslt ?m ?n ?k ?la ?lb "COL" "COL" "COL" "COL"
        ?lda ?ldb ?ldc ?m (MNum 1) ?sa ?sb ?sc ?sd
        (F32) (F32) (F32) (F32) "default" "default" ?al 0.0 "BIAS")
      (ICons ?a (ICons ?b (ICons ?bias (INil))))))
  (= ?one (Op (Constant 1.0) (INil)))
  (= ?dense (ECons (MMul (MIter) ?m) (ECons (MIter) (ENil))))
  (= ?none (ECons (MNum 0) (ECons (MNum 0) (ENil))))
  (= ?shape (ECons ?n (ECons ?m (ENil))))
  (= ?on (Op (LessThan ?shape ?none ?dense ?dense) (ICons ?one (ICons ?mm (INil)))))
  (= ?mask (Op (Cast ?size (F32)) (ICons ?on (INil))))
  (= ?out (Op (Mul ?shape ?dense ?dense ?dense) (ICons ?mask (ICons ?mm (INil)))))
) (
  (union ?out (Op (cublaslt ?m ?n ?k ?la ?lb "COL" "COL" "COL" "COL"
        ?lda ?ldb ?ldc ?m (MNum 1) ?sa ?sb ?sc ?sd
        (F32) (F32) (F32) (F32) "default" "default" ?al 0.0 "RELU_BIAS")
      (ICons ?a (ICons ?b (ICons ?bias (INil))))))
) :ruleset matmul_backend :name "relu from one on")
"""


def test_no_guard_is_learned_from_results_too_small_to_show_it(tmp_path: Path) -> None:
    """Few elements lie between 0 and 1: one column may have none, with these inputs."""
    path = tmp_path / "a.egg"
    path.write_text(THRESHOLD, encoding="utf-8")
    (finding,) = campaign.check(Settings(paths=(str(path),)), lambda _: None).findings
    assert finding.verdict is Verdict.MISMATCH
    assert finding.verdicts[0][1] > 0
    assert "5x1x11" not in finding.hint
    assert "1x7x11" not in finding.hint
