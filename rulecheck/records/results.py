"""Cases, evidence, verdicts and the report: what a run has to say."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

from rulecheck.records.calls import GemmCall
from rulecheck.records.syntax import Span


class Severity(enum.Enum):
    """How a verdict counts towards the exit code."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"


class Verdict(enum.Enum):
    """One word per rule (DESIGN section 5)."""

    AGREES = "agrees"
    ROUNDING_ELIDED = "rounding-elided"
    ROUNDING_ADDED = "rounding-added"
    MISREAD = "misread"
    ILLEGAL = "illegal"
    MISMATCH = "mismatch"
    INVALID = "invalid"
    CRASH = "crash"
    NEAR_TIE = "near-tie"
    VACUOUS = "vacuous"
    UNSUPPORTED = "unsupported"
    UNTRUSTED = "untrusted"
    TIMEOUT = "timeout"


class Stage(enum.Enum):
    """Where a verdict was reached."""

    LOAD = "load"
    INSTANTIATE = "instantiate"
    ENGINE = "engine"
    PLAN = "plan"
    CONTRACT = "contract"
    CONTROL = "control"
    EXACT = "exact-integers"
    BOUND = "bound"


class FailureKind(enum.Enum):
    """Why something could not be done. Returned, never raised."""

    UNSUPPORTED = "unsupported"
    TIMEOUT = "timeout"
    CRASH = "crash"
    MEMORY = "memory"
    ILLEGAL = "illegal"


class Failure(msgspec.Struct, frozen=True, tag=True):
    """An expected failure of a backend, a worker or a plan."""

    kind: FailureKind
    message: str


class ReadEvent(msgspec.Struct, frozen=True):
    """A read or write outside an operand, seen by a backend while it ran.

    ``start`` and ``stop`` are byte offsets from the operand's start; ``count`` elements lay
    outside.
    """

    step: int
    operand: str
    access: Literal["read", "write"]
    count: int
    start: int
    stop: int


class Outcome(msgspec.Struct, frozen=True, tag=True):
    """Bytes of every value of a plan after running it, and what happened outside operands."""

    buffers: tuple[bytes, ...]
    events: tuple[ReadEvent, ...] = ()


class Violation(msgspec.Struct, frozen=True):
    """One broken clause of the contract, exact and without arithmetic.

    ``verdict`` is MISREAD or ILLEGAL. ``code`` is a diagnostic code (``RC201``). ``operand`` is
    ``A``, ``B``, ``C``, ``D``, ``bias`` or an input position; ``field`` is the descriptor field
    to point at (``c_dtype``, ``ldc``, …), or None.
    """

    verdict: Verdict
    code: str
    step: int
    operand: str
    field: str | None
    expected: str
    actual: str
    message: str
    hint: str


class WorstElement(msgspec.Struct, frozen=True):
    """The element that departs most: flat offset in the buffer, values, and the bound."""

    offset: int
    got: float
    as_written: float
    float64: float
    low: float
    high: float


class Evidence(msgspec.Struct, frozen=True):
    """What one comparison of a member with the graph it claims to equal has shown.

    ``compared`` counts elements over all inputs. ``error_over_bound`` is the largest ratio of
    deviation to allowed deviation (≤ 1 inside the bound). ``detectable`` is the smallest
    relative effect on one element that would have been seen. ``roundings`` name the roundings
    that moved.
    """

    verdict: Verdict
    stage: Stage
    code: str
    message: str
    hint: str = ""
    violations: tuple[Violation, ...] = ()
    compared: int = 0
    differing: int = 0
    error_over_bound: float = 0.0
    detectable: float | None = None
    roundings: tuple[str, ...] = ()
    worst: WorstElement | None = None
    member_call: GemmCall | None = None
    original_call: GemmCall | None = None


class Case(msgspec.Struct, frozen=True):
    """All that replay needs. ``choices`` holds only the axes that differ from their default.

    ``union`` is the position among the rule's unions, ``ordinal`` that among the claims which the
    rule makes on the graph. ``context`` are the files that the rule's file relies on. ``pair``
    names the rule that was applied before: (file, name), or nothing.
    """

    dialect: str
    file: str
    rule: str
    text_hash: str
    choices: tuple[tuple[str, str], ...]
    input_seed: int
    backend: str
    union: int = 0
    ordinal: int = 0
    context: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()


class CaseResult(msgspec.Struct, frozen=True):
    """One judged member. ``tried`` are the labels of every choice that made the instance."""

    case: Case
    tried: tuple[tuple[str, str], ...]
    evidence: Evidence


class Counterexample(msgspec.Struct, frozen=True):
    """The simplest case that shows the verdict, with both calls and the replay token."""

    token: str
    case: Case
    evidence: Evidence
    tried: tuple[tuple[str, str], ...]
    original: str
    member: str


class Lint(msgspec.Struct, frozen=True):
    """A suspicion read off a rule's text. It stands beside the verdict and never changes it."""

    code: str
    message: str
    hint: str
    span: Span


class Finding(msgspec.Struct, frozen=True):
    """The verdict on one rule (or on a whole file, ``rule`` None, when it cannot be read).

    ``after`` names the rule that has to be applied before, where the two are wrong only together.
    ``guard`` are facts with which the left side passes, on ``guard_passes`` new cases; on
    ``guard_warnings`` of them with a warning.
    """

    rule: str | None
    file: str
    span: Span
    verdict: Verdict
    severity: Severity
    code: str
    message: str
    hint: str = ""
    notes: tuple[str, ...] = ()
    field_span: Span | None = None
    cases: int = 0
    fired: int = 0
    compared: int = 0
    detectable: float | None = None
    error_over_bound: float | None = None
    tried: tuple[tuple[str, tuple[str, ...]], ...] = ()
    verdicts: tuple[tuple[str, int], ...] = ()
    counterexample: Counterexample | None = None
    blame: tuple[str, ...] = ()
    lints: tuple[Lint, ...] = ()
    after: str | None = None
    guard: tuple[str, ...] = ()
    guard_passes: int = 0
    guard_warnings: int = 0


class PairCount(msgspec.Struct, frozen=True):
    """Pairs of rules that were applied one after the other: tried, cases judged, found wrong."""

    tried: int = 0
    cases: int = 0
    wrong: int = 0


class Report(msgspec.Struct, frozen=True):
    """Everything one run has to say; every format is printed from it.

    ``pairs`` counts the pairs of rules that were tried together; findings on pairs are among the
    others, and name both rules. ``cached`` counts answers, on rules and on their pairs, that an
    earlier run had left.
    """

    tool: str
    environment: tuple[tuple[str, str], ...]
    argv: tuple[str, ...]
    seed: int
    findings: tuple[Finding, ...]
    elapsed_s: float
    files: int
    strict_rounding: bool = False
    pairs: PairCount = PairCount()
    cached: int = 0


class Settings(msgspec.Struct, frozen=True):
    """What a run was asked to do, after the command line and the configuration were read.

    ``jobs`` is how many rules are judged at once; 0 means one per usable core. ``cache`` is the
    folder in which answers are kept for later runs; empty: nowhere.
    """

    paths: tuple[str, ...]
    rule: str | None = None
    dialect: str = "luminal"
    backend: str = "cpu"
    strict_rounding: bool = False
    jobs: int = 0
    seed: int = 0
    cache: str = ""


class Replay(msgspec.Struct, frozen=True):
    """One case again, with everything shown.

    ``operands`` are (name, text) pairs: each input's dtype, count and first elements.
    ``fields`` are (field, before, after) of the two calls, changed fields first.
    """

    case: Case
    rule_changed: bool
    original: str
    member: str
    evidence: Evidence
    tried: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, str, str], ...]
    operands: tuple[tuple[str, str], ...]
    elements: tuple[WorstElement, ...]
