"""RC5xx: what a reviewer would ask about a rule's text. No verdict follows from it."""

from __future__ import annotations

from rulecheck.explain.entry import LINT, Entry

ENTRIES = (
    Entry(
        "RC501",
        "an input is kept and the type by which the call knows it is not",
        (LINT,),
        "The new call reads an input by a type field (a_dtype, b_dtype, c_dtype; d_dtype for a "
        "bias) that is not the type which the buffer is known to hold. Usually the input list is "
        "copied from the left side, and a type changes beside it.",
        "A buffer has the type that its producer wrote. The library cannot know it: it takes the "
        "bytes for what the field says, and reads past the end where the field is wider. Such a "
        "rule is right only where the input is not read.",
        "Pin what keeps the input from being read (beta = 0.0 for C, an epilogue without BIAS for "
        "a bias), convert the input with a Cast in the new input list, or require its type: "
        "(= (F32) (dtype ?c)).",
        "c_dtype (Bf16) → (F32) beside the same ?inputs, with ?beta free",
    ),
    Entry(
        "RC502",
        "a field of the left side is neither constrained nor used",
        (LINT,),
        "A field of an op that the rule replaces is a variable that occurs nowhere else, so that "
        "the rule matches whatever its value, and the new term does not depend on it. Fields that "
        "cannot matter are left out: those of C where beta is 0.0, batch strides where the batch "
        "count is 1, the size of a Cast, and fields of an op of which a relation holds.",
        "Strides say which element goes where. A sum with free strides may be a transposed or a "
        "sliced one, and the new term computes the dense one: right on most graphs, wrong on some.",
        "Pin the field, use the variable in the new term, or require a relation that says what the "
        "op is. If the claim holds whatever the value, nothing has to change.",
        "(Add ?shape ?a_strides ?b_strides ?out_strides) with ?out_strides used nowhere else",
    ),
    Entry(
        "RC503",
        "a guard compares with a term that may not exist",
        (LINT,),
        "A guard such as (!= ?k (MNum 3)) is looked up in the e-graph: it holds only if the term "
        "(MNum 3) is there already. Neither the dialect nor the rest of the body makes it, and no "
        "row of a relation holds it.",
        "Where the term does not exist the rule silently never matches, which no message tells; "
        "it begins to match once some other graph happens to hold the term.",
        "Compare numbers instead of terms, (= ?k (MNum ?n)) (!= ?n 3); for types, require a "
        "relation of those that are meant; or make the term in the program's preamble. The "
        "luminal dialect makes (MNum 0) and (MNum 1).",
        "(!= ?k (MNum 3))",
    ),
    Entry(
        "RC504",
        "one value is claimed twice, and differently",
        (LINT,),
        "A function that keeps the newest value (:merge new) is set to two different values for "
        "one term, or the type that is set is not the one which the new op writes, or the rule "
        "unites a buffer of one type with one of another.",
        "Nothing stops on the conflict. Which value stays depends on the order in which rules run, "
        "and so may differ from compile to compile.",
        "Set each value once and to what the op says; where the types of the two sides differ, "
        "convert one with a Cast.",
        "(set (dtype ?fused) (Bf16)) for a call whose d_dtype is (F32)",
    ),
)
