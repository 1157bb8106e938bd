"""RC4xx: nothing wrong was found, and nothing was shown either."""

from __future__ import annotations

from rulecheck.explain.entry import Entry

ENTRIES = (
    Entry(
        "RC401",
        "the rule's conditions can never hold together",
        ("vacuous",),
        "No well-formed left side satisfies every condition of the rule's body.",
        "The rule is dead code: it was never tested here, and it never helps a compile.",
        "Look at the condition that the report names. A frequent one: (!= ?x (MNum 1)) only holds "
        "where the term (MNum 1) exists.",
        "(= ?beta 0.0) (!= ?beta 0.0)",
    ),
    Entry(
        "RC402",
        "the rule never fired",
        ("vacuous",),
        "Left sides were built from the rule's own text, and the engine found no match on them.",
        "Zero firings prove nothing, so they are never a success.",
        "See which choices were tried. The body may need a fact that only another rule derives.",
        "a body that needs a relation which nothing fills",
    ),
    Entry(
        "RC403",
        "only an ill-formed left side makes the rule fire",
        ("vacuous",),
        "Every left side that matches is one that the ops do not allow: shapes, strides or dtypes "
        "contradict each other.",
        "On real graphs the rule is dead code; on a broken graph it hides the break.",
        "Correct the pattern: usually a variable is used for two different extents.",
        "the same ?m for both extents of a matrix that is not square",
    ),
    Entry(
        "RC404",
        "the rule fires, and what it adds or removes claims nothing",
        ("unsupported",),
        "The rule only adds rows to relations of which the dialect does not say what they state, "
        "or removes terms from classes in which nothing else is left to compare them with.",
        "There is nothing to compare, so nothing was shown about it.",
        "Check it together with the rules that use its rows: it agrees where all of them do, on "
        "rows of its own. Or give the relation a meaning in the dialect.",
        "(relation my_own_witness (IR)) … ((my_own_witness ?x))",
    ),
    Entry(
        "RC405",
        "the inputs cannot tell right from wrong",
        ("vacuous",),
        "Every element of the graph's own result is NaN, infinite, or may legally be almost "
        "anything, so no result of the member could have been told from a wrong one.",
        "Agreement on such inputs is luck.",
        "Let the left side say more: the reciprocal of a difference that is always zero tells "
        "nothing.",
        "(Recip (x - x))",
    ),
    Entry(
        "RC411",
        "an op that the dialect does not know",
        ("unsupported",),
        "The rule uses a constructor that has no meaning in the dialect. It is named with its "
        "place, never guessed.",
        "Without its meaning neither side can be evaluated.",
        "Correct the spelling, choose another --dialect, or add the op to the dialect's table.",
        "(FlashAttention ?q ?k ?v)",
    ),
    Entry(
        "RC412",
        "a construct that the checker does not handle",
        ("unsupported",),
        "The rule uses a form, primitive or sort for which no left side can be built, although "
        "egglog accepts it; or it makes terms equal that are no graphs.",
        "Judging the rest of the rule without it would judge another rule.",
        "See whether the condition can be written with the relations of the dialect, and the claim "
        "on the ops that use the term.",
        "a condition on a set or a map",
    ),
    Entry(
        "RC413",
        "no left side could be built for the rule",
        ("unsupported",),
        "The rule may match something, but rulecheck did not find a well-formed graph that it "
        "matches: a symbolic dimension, an unusual layout, or a fact that only other rules derive.",
        "An untested rule is not a right rule, and not a wrong one either.",
        "Read which constraint could not be met; put the rule that derives a missing fact into the "
        "same file.",
        "a relation that another file's rules fill",
    ),
    Entry(
        "RC421",
        "a control failed",
        ("untrusted",),
        "The left side did not agree with itself, a legal variant was rejected, the engine "
        "reported a match that its facts do not support, or two runs of one case differed.",
        "Then the fault lies in the tool, the engine or the machine, and no verdict on the rule "
        "would mean anything.",
        "Run rulecheck doctor, then the replay line. It deserves a bug report.",
        "two runs of one case with different bytes",
    ),
    Entry(
        "RC431",
        "a limit was reached",
        ("timeout",),
        "Seconds, nodes or memory ran out before the rule was judged.",
        "What has not finished has not passed.",
        "See whether the rule feeds itself (it grows the graph without end), or check it alone "
        "with --rule.",
        "a rule whose right side matches its own left side with a larger term",
    ),
    Entry(
        "RC441",
        "the engine or a library died on the case",
        ("crash",),
        "A child process ended without an answer: a panic, a signal, or memory.",
        "In a compiler the same thing ends the compile.",
        "The replay line runs the same case again. Overflow in a rule's head and division by zero "
        "are common causes.",
        "(% ?k 0) in the head of a rule",
    ),
)
