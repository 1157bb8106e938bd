"""RC0xx and RC1xx: a rule that agrees, and files that cannot be judged."""

from __future__ import annotations

from rulecheck.explain.entry import Entry

ENTRIES = (
    Entry(
        "RC000",
        "the member agrees with what it replaces",
        ("agrees", "near-tie"),
        "Every member that the rule added gave the bytes of the graph as written, or stayed inside "
        "the derived error bound.",
        "It says how much was tried, not that the rule is sound. The report names the number of "
        "cases and the smallest relative effect that would have been seen.",
        "Nothing to repair. If the smallest visible effect is too large for you, look at which "
        "choices were tried.",
        "ok  residual-into-beta  agrees  (54 cases, 1,234 elements; …)",
    ),
    Entry(
        "RC101",
        "syntax error",
        ("invalid",),
        "The file is not a sequence of well-formed s-expressions, or a command does not have the "
        "shape that egglog gives it.",
        "Nothing in the file can be trusted to mean what its author meant, so none of it is "
        "judged. Other files are.",
        "Close the parenthesis or string that the report points at: for an unclosed one it points "
        "at the opening, not at the end of the file.",
        "(rule ((= ?x (Op (Cast ?n (F32)) ?i)) ((union ?x ?x)))   ; the body is not closed",
    ),
    Entry(
        "RC102",
        "the file is not plain UTF-8 text",
        ("invalid",),
        "The file holds bytes that are not UTF-8, a NUL, a byte order mark, or it is an archive: "
        "Python packages also use the suffix .egg.",
        "egglog reads text. Guessing an encoding could change a name inside a rule.",
        "Save the file as UTF-8 without a byte order mark, or leave the Python package out of the "
        "paths.",
        "rulecheck check dist/thing-1.0-py3.11.egg",
    ),
    Entry(
        "RC103",
        "the file is too large or nested too deeply",
        ("invalid",),
        "The file is larger than the limit, or its parentheses nest deeper than the limit.",
        "egglog's parser is recursive: at a depth of some thousands it overflows its stack and "
        "takes the process with it. Real rules nest about ten deep.",
        "Split the file; build long lists in steps, with let.",
        "(Add (Add (Add … 100,000 levels …)))",
    ),
    Entry(
        "RC104",
        "refused command, primitive or sort",
        ("invalid",),
        "The file uses something that can read or write files, run Python code, run the engine "
        "without a limit, or change the scope that the checker relies on.",
        "Rule files are untrusted input: they come with pull requests, and an unchecked .egg file "
        "is code that runs on the machine that checks it. Only declarations and rules pass.",
        "Remove the command. Schedules, extractions and checks belong to the compiler, not to the "
        "rule file.",
        '(include "../../etc/passwd")',
    ),
    Entry(
        "RC105",
        "unknown sort",
        ("invalid",),
        "A declaration names a sort that neither the dialect nor the file declares.",
        "Terms of an unknown sort cannot be built, so no rule over them can be tried.",
        "Correct the spelling, or declare the sort in the file before its first use.",
        "(constructor Fused (IRR i64) IR)   ; the sort is IR",
    ),
    Entry(
        "RC106",
        "wrong number of arguments",
        ("invalid",),
        "A constructor, function or relation is applied to more or fewer arguments than it is "
        "declared with.",
        "Positional fields shift: of the 27 fields of a call, every later one is read as another.",
        "Compare with the declaration; the report gives both numbers.",
        "(Op (Cast (F32)) ?i)   ; Cast takes a size and a dtype",
    ),
    Entry(
        "RC107",
        "ill-typed expression",
        ("invalid",),
        "An argument has another sort than the declaration says, or two uses of one variable need "
        "two sorts.",
        "egglog refuses the file. An i64 where an f64 is expected is the common one: numbers are "
        "not converted.",
        "Write 1.0 where an f64 is expected, and wrap dimensions in their constructor.",
        "(= ?beta 0)   ; beta is an f64: write 0.0",
    ),
    Entry(
        "RC108",
        "duplicate name",
        ("invalid",),
        "Two rules, rulesets, sorts or functions have the same name.",
        "egglog panics on a rule that is declared twice, and a finding could not say which one it "
        "means.",
        "Rename one. Names must be unique over everything that is loaded together.",
        '(rule (…) (…) :name "fuse") … (rule (…) (…) :name "fuse")',
    ),
    Entry(
        "RC109",
        "the engine died or gave up on the file",
        ("invalid", "crash", "timeout"),
        "egglog panicked, was killed, ran out of memory or took too long while it loaded the file.",
        "The engine runs in a process of its own, so the rest of the run goes on, but nothing is "
        "known about this file.",
        "Bisect the file: check one rule at a time. If a small file does it, it is a defect of the "
        "engine worth reporting upstream.",
        "rulecheck check big.egg --rule first-rule",
    ),
    Entry(
        "RC110",
        "a declaration or a name in the file that is not understood",
        ("invalid",),
        "Something at the top level of the file names what nothing declares, and it lies in no "
        "rule, so no rule can be singled out.",
        "A file that is half understood would be half tested.",
        "Declare the name before it is used, or correct its spelling.",
        "(cublaslt_base_type (F32))   ; the relation is called cublaslt_base_dtype",
    ),
    Entry(
        "RC111",
        "named fields that do not fit the declaration",
        ("invalid",),
        "A call names a field that its constructor does not have, gives one twice or leaves one "
        "out, puts an argument without a name after a named one, or uses `...` where a value is "
        "built or before the last argument.",
        "Fields are resolved to positions before anything is judged; a guess would put a value "
        "into another field.",
        "Write leading arguments by position, then `:field value` in any order; end a pattern "
        "with `...` to allow any value in the other fields. A head names every field.",
        "(cublaslt :m ?m :c_dtyp (F32) ...)   ; the field is c_dtype",
    ),
)
