"""Records as a run would make them, for tests of what is printed."""

from __future__ import annotations

import msgspec

from rulecheck.records import (
    Case,
    Counterexample,
    DType,
    Evidence,
    Finding,
    GemmCall,
    MatrixLayout,
    Replay,
    Report,
    Severity,
    Span,
    Stage,
    Verdict,
    Violation,
    WorstElement,
)

SOURCE = """\
; claims: a cast to F32 over a bf16 matmul is a matmul that writes F32
(rule
    ((= ?m (Op (cublaslt ?m ?n ?k) ?inputs)))
    ((union ?cast (Op (cublaslt ?m ?n ?k
            (Bf16) (Bf16) (F32) (F32)) ?inputs)))
    :name "widen")
"""
FILE = "rules/widen.egg"
TOKEN = "rc1.sJ2mVQ0xkQ"
CALL = GemmCall(
    compute_type="32F",
    scale_type=DType.F32,
    transa="N",
    transb="T",
    a=MatrixLayout(DType.BF16, 3, 7, 3),
    b=MatrixLayout(DType.BF16, 5, 7, 5),
    c=MatrixLayout(DType.BF16, 3, 5, 3),
    d=MatrixLayout(DType.BF16, 3, 5, 3),
    alpha=1.0,
    beta=1 / 3,
)
WIDENED = msgspec.structs.replace(
    CALL, c=MatrixLayout(DType.F32, 3, 5, 3), d=MatrixLayout(DType.F32, 3, 5, 3)
)
VIOLATION = Violation(
    verdict=Verdict.MISREAD,
    code="RC201",
    step=0,
    operand="C",
    field="c_dtype",
    expected="Bf16",
    actual="F32",
    message="C is read as F32 and holds Bf16",
    hint="restrict the rule to beta = 0",
)
MISREAD = Evidence(
    verdict=Verdict.MISREAD,
    stage=Stage.CONTRACT,
    code="RC201",
    message=VIOLATION.message,
    hint=VIOLATION.hint,
    violations=(VIOLATION,),
    member_call=WIDENED,
    original_call=CALL,
)
WRONG = Evidence(
    verdict=Verdict.MISMATCH,
    stage=Stage.BOUND,
    code="RC301",
    message="the result leaves the bound",
    compared=1234,
    differing=17,
    error_over_bound=12.5,
    worst=WorstElement(4, float("nan"), 2.5, 2.5000001, 2.49, float("inf")),
    member_call=WIDENED,
)
CASE = Case(
    dialect="luminal",
    file=FILE,
    rule="widen",
    text_hash="0123456789abcdef",
    choices=(("beta", "1/3"),),
    input_seed=0,
    backend="cpu",
)
TRIED = (("beta", "1/3"), ("dims", "3x5x7"))
RULE_SPAN = Span(FILE, 2, 1, 6, 19)
FIELD_SPAN = Span(FILE, 5, 27, 5, 32)


def finding(verdict: Verdict = Verdict.AGREES, **changes: object) -> Finding:
    """Return a finding of a plausible rule; by default it agrees."""
    plain = Finding(
        rule="widen-deep",
        file=FILE,
        span=RULE_SPAN,
        verdict=verdict,
        severity=Severity.OK,
        code="RC000",
        message="agrees",
        cases=54,
        fired=54,
        compared=1234,
        detectable=2**-9,
    )
    return msgspec.structs.replace(plain, **changes)


def counterexample(evidence: Evidence) -> Counterexample:
    return Counterexample(TOKEN, CASE, evidence, TRIED, "(Cast …)", "(Op (cublaslt …) …)")


def misread(file: str = FILE) -> Finding:
    """Return the founding bug as a finding in ``file``."""
    return finding(
        Verdict.MISREAD,
        rule="widen",
        file=file,
        severity=Severity.ERROR,
        code="RC201",
        message="C is read as F32 and holds Bf16; half of the read lies past its end",
        hint="restrict the rule to beta = 0, or cast C in the new input list",
        span=msgspec.structs.replace(RULE_SPAN, file=file),
        field_span=msgspec.structs.replace(FIELD_SPAN, file=file),
        compared=0,
        detectable=None,
        notes=("18 of 54 cases show it",),
        tried=(("alpha", ("1", "1/64", "-1")), ("beta", ("0", "1", "1/3"))),
        verdicts=(("agrees", 36), ("misread", 18)),
        counterexample=counterexample(MISREAD),
        blame=("widen",),
    )


def mismatch(file: str = FILE) -> Finding:
    """Return wrong numbers without an original call, and with values that are not finite."""
    return finding(
        Verdict.MISMATCH,
        rule="relu-residual",
        file=file,
        severity=Severity.ERROR,
        code="RC301",
        message="the result leaves the bound",
        span=msgspec.structs.replace(RULE_SPAN, file=file),
        error_over_bound=12.5,
        counterexample=counterexample(WRONG),
    )


def unreadable(file: str = "rules/broken.egg") -> Finding:
    """Return a finding on a whole file."""
    return Finding(
        rule=None,
        file=file,
        span=Span(file, 3, 9, 3, 10),
        verdict=Verdict.INVALID,
        severity=Severity.ERROR,
        code="RC101",
        message="this parenthesis is never closed",
        hint="close it",
    )


def elided(file: str = FILE) -> Finding:
    """Return a skipped rounding, a warning."""
    return finding(
        Verdict.ROUNDING_ELIDED,
        rule="widen-guarded",
        file=file,
        severity=Severity.WARNING,
        code="RC303",
        message="the rounding of the matmul's result to Bf16 is skipped",
        span=msgspec.structs.replace(RULE_SPAN, file=file),
    )


def vacuous(file: str = FILE) -> Finding:
    """Return a rule on which nothing is known."""
    return finding(
        Verdict.VACUOUS,
        rule="never",
        file=file,
        severity=Severity.INCONCLUSIVE,
        code="RC401",
        message="the guard can never hold",
        span=msgspec.structs.replace(RULE_SPAN, file=file),
        cases=0,
        fired=0,
        compared=0,
        detectable=None,
    )


def report(*findings: Finding, **changes: object) -> Report:
    plain = Report(
        tool="rulecheck 0.1.0",
        environment=(("python", "3.11.7"), ("egglog", "13.1.0")),
        argv=("rulecheck", "check", "rules"),
        seed=0,
        findings=findings,
        elapsed_s=1.25,
        files=len({one.file for one in findings}),
    )
    return msgspec.structs.replace(plain, **changes)


def replay(evidence: Evidence = WRONG, **changes: object) -> Replay:
    plain = Replay(
        case=CASE,
        rule_changed=False,
        original="(Cast 15\n  (Op (cublaslt …) …)\n  (F32))",
        member="(Op (cublaslt …) …)",
        evidence=evidence,
        tried=TRIED,
        fields=(("c_dtype", "Bf16", "F32"), ("m", "3", "3")),
        operands=(("A", "21 Bf16: 1.5, -2, 0.25, …"), ("C", "15 Bf16: nan, 1, …")),
        elements=(WorstElement(4, 3.0, 2.5, 2.5000001, 2.49, 2.51),),
    )
    return msgspec.structs.replace(plain, **changes)
