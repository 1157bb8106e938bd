"""RC3xx: a legal call that computes something else."""

from __future__ import annotations

from rulecheck.explain.entry import Entry

ENTRIES = (
    Entry(
        "RC301",
        "legal call, wrong numbers",
        ("mismatch",),
        "The member's result leaves the error bound, and no placement of roundings explains it.",
        "The two graphs compute different functions. The bound is derived from the dtypes, k and "
        "the accumulation; it is not a tolerance that somebody picked.",
        "Compare the call's fields with the graph: operands swapped, a scalar dropped or applied "
        "twice, an activation before instead of after the addition, a transposed C.",
        "relu(A B) + C rewritten as an epilogue that computes relu(A B + C)",
    ),
    Entry(
        "RC302",
        "a rounding was added",
        ("rounding-added",),
        "The member rounds to a narrower type where the graph does not; its result is further from "
        "float64 than the graph as written.",
        "Precision is lost on those compiles that extract this member, in every layer again.",
        "Keep the wide type in the call (D and compute type), or move the cast.",
        "an F32 result taken from a call with a Bf16 D",
    ),
    Entry(
        "RC303",
        "a rounding was skipped",
        ("rounding-elided",),
        "The graph writes down a rounding that the member does not do; its result is nearer to "
        "float64. The report names which rounding.",
        "Usually wanted: it is what fusion is for. It changes the bytes, so a model is no longer "
        "reproducible across compiles that extract differently.",
        "Nothing, if you want it. With --rounding strict it is an error.",
        "Cast to F32 of a bf16 matmul, fused into a call that writes F32 at once",
    ),
    Entry(
        "RC304",
        "the rule claims another dtype than the member writes",
        ("misread", "mismatch"),
        "The rule sets the dtype of the new term to something else than the call's D.",
        "Every later rule and every reader of the term believes the claim and reads the bytes "
        "wrongly.",
        "Set the dtype that the op writes.",
        "(set (dtype ?new) (F32)) on a call with d_dtype Bf16",
    ),
    Entry(
        "RC305",
        "the member contains the class that it joins",
        ("mismatch", "misread", "rounding-added", "rounding-elided"),
        "The right side uses the very term that it is united with, so the class becomes its own "
        "argument.",
        "Unless the op is the identity the claim is false, and if it is, the member adds nothing; "
        "the rule may then fire on its own result for ever.",
        "Unite with the inner term, or drop the rule.",
        "(= ?x (Op ?kind ?inputs)) … (union ?x (Op ?kind ?inputs))",
    ),
    Entry(
        "RC306",
        "a row that states something false",
        ("mismatch",),
        "The rule adds a row to a relation, or gives a function a value, and the dialect says what "
        "that states: here it does not hold for the terms in the row.",
        "Other rules take such rows for proofs, and fuse where they must not.",
        "Add the fact that makes the row true to the left side.",
        "((cublaslt_valid_leading_dimension ?ld ?rows)) without (>= ld rows)",
    ),
)
