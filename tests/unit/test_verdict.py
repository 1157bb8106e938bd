"""From evidence to one word: every branch, and the order in which they are taken."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from rulecheck.compare import Allowed
from rulecheck.records import Evidence, Stage, Verdict
from rulecheck.verdict import Alternative, Common, decide
from tests.verdict_facts import CAST, STORE, Alternatives, facts, span


def test_a_member_inside_the_range_agrees() -> None:
    found = decide(facts([1.0, 259.0], written=span([1, 258], 2)))
    assert found == Evidence(
        Verdict.AGREES,
        Stage.BOUND,
        "RC000",
        "agrees",
        compared=2,
        differing=1,
        error_over_bound=0.5,
    )


def test_a_member_inside_agrees_although_the_graphs_differ_in_float64() -> None:
    """Inputs that cannot tell them apart show nothing against the rule."""
    found = decide(facts([1.0, 258.0], real=span([1, 258]), member_real=span([2, 258])))
    assert found.verdict is Verdict.AGREES


def test_nothing_is_said_of_the_rule_when_the_graph_leaves_its_own_bound() -> None:
    found = decide(facts([1.0, 258.0], control=[1.0, 260.0], written=span([1, 258], 1)))
    assert (found.verdict, found.stage) == (Verdict.UNTRUSTED, Stage.CONTROL)
    assert found.code == "RC421"
    assert "the graph itself leaves its own bound" in found.message
    assert "error/bound 2" in found.message
    assert found.error_over_bound == 2.0


def test_a_graph_without_elements_shows_nothing() -> None:
    empty = span([])
    found = decide(facts([], written=empty, member=empty, real=empty))
    assert (found.verdict, found.code, found.compared) == (Verdict.VACUOUS, "RC405", 0)
    assert "no element" in found.message


def test_agreement_where_anything_is_legal_shows_nothing() -> None:
    wide = span([1, 258], 1000)
    found = decide(facts([7.0, 250.0], written=wide))
    assert (found.verdict, found.code) == (Verdict.VACUOUS, "RC405")
    assert "any result would be legal" in found.message
    nothing = span([math.nan, math.inf])
    assert decide(facts([math.nan, math.inf], written=nothing)).verdict is Verdict.VACUOUS


def test_a_departure_counts_although_other_elements_show_nothing() -> None:
    written = Allowed(np.array([1.0, 258.0]), np.array([-9e9, 258.0]), np.array([9e9, 258.0]))
    found = decide(facts([1.0, 300.0], written=written, member_real=span([1, 300])))
    assert found.verdict is Verdict.MISMATCH


def test_graphs_that_differ_without_any_rounding_are_a_mismatch() -> None:
    found = decide(facts([1.0, 300.0], member_real=span([1, 300])))
    assert (found.verdict, found.stage, found.code) == (Verdict.MISMATCH, Stage.BOUND, "RC301")
    assert "1 of 2 elements differ even without any rounding" in found.message
    assert "beta" in found.hint
    assert (found.compared, found.differing, found.error_over_bound) == (2, 1, math.inf)


def test_a_mismatch_is_not_excused_by_a_rounding() -> None:
    """An alternative that happens to explain the numbers changes nothing."""
    explained = [((CAST,), span([1, 300]))]
    found = decide(facts([1.0, 300.0], member_real=span([1, 300]), alternatives=explained))
    assert found.verdict is Verdict.MISMATCH


def test_a_mismatch_stands_even_if_the_member_leaves_its_own_bound() -> None:
    found = decide(facts([1.0, 300.0], member_real=span([1, 299]), member=span([1, 299])))
    assert found.verdict is Verdict.MISMATCH


def test_a_member_that_leaves_its_own_bound_is_not_trusted() -> None:
    found = decide(
        facts([1.0, 260.0], member=span([1, 257]), alternatives=[((CAST,), span([1, 260]))])
    )
    assert (found.verdict, found.code) == (Verdict.UNTRUSTED, "RC421")
    assert "the member leaves its own bound" in found.message
    assert found.error_over_bound == math.inf


def elided(alternatives: Alternatives) -> Evidence:
    """A graph that means 257.25 and writes 258; the member gives 257.25."""
    return decide(
        facts(
            [1.0, 257.25],
            written=span([1, 258]),
            real=span([1, 257.25]),
            alternatives=alternatives,
        )
    )


def test_a_skipped_rounding_is_named() -> None:
    found = elided([((CAST,), span([1, 257.25]))])
    assert (found.verdict, found.code) == (Verdict.ROUNDING_ELIDED, "RC303")
    assert found.roundings == (CAST,)
    assert CAST in found.message
    assert "1 of 2 elements differ, 1 nearer to float64, 0 further" in found.message
    assert "--rounding strict" in found.hint


def test_the_first_alternative_that_explains_every_element_is_taken() -> None:
    partly = ((STORE,), span([7, 257.25]))
    both = ((STORE, CAST), span([1, 257.25]))
    later = ((CAST,), span([1, 257.25]))
    found = elided([partly, both, later])
    assert found.roundings == (STORE, CAST)
    assert f"{STORE} and {CAST}" in found.message


def test_alternatives_are_asked_for_only_when_they_are_needed() -> None:
    asked = []

    def alternatives() -> Iterator[Alternative]:
        asked.append(True)
        return iter(())

    agreeing = facts([1.0, 258.0])._replace(alternatives=alternatives)
    assert decide(agreeing).verdict is Verdict.AGREES
    differing = facts([1.0, 300.0], member_real=span([1, 300]))._replace(alternatives=alternatives)
    assert decide(differing).verdict is Verdict.MISMATCH
    assert asked == []
    added = facts([1.0, 259.0], roundings=(CAST,))._replace(alternatives=alternatives)
    assert decide(added).verdict is Verdict.ROUNDING_ADDED
    assert asked == [True]


@pytest.mark.parametrize(
    ("names", "listed"),
    [((CAST,), CAST), ((STORE, CAST), f"{STORE} and {CAST}")],
)
def test_an_unexplained_departure_is_a_rounding_of_the_member(
    names: tuple[str, ...], listed: str
) -> None:
    found = decide(facts([1.0, 256.0], alternatives=[((CAST,), span([1, 257]))], roundings=names))
    assert (found.verdict, found.code) == (Verdict.ROUNDING_ADDED, "RC302")
    assert found.roundings == names
    assert f"the member's roundings: {listed}" in found.message
    assert "0 nearer to float64, 1 further" in found.message
    assert "wider type" in found.hint


def test_terms_that_are_summed_in_another_order_agree() -> None:
    """Equal over the reals, and the ranges meet: one legal run of each gives the same."""
    written, member = span([1, 258], 2**-10), span([1, 258 + 2**-10], 2**-10)
    got = [1.0, 258 + 1.5 * 2**-10]
    real = span([1, 258])
    found = decide(facts(got, written=written, member=member, real=real))
    assert (found.verdict, found.code) == (Verdict.AGREES, "RC000")
    assert found.error_over_bound > 1
    wide = span([1, 258 + 2.0], 3.0)  # a narrow multiplier: meeting it shows nothing
    found = decide(facts([1.0, 259.0], written=written, member=wide, real=real, roundings=(CAST,)))
    assert found.verdict is Verdict.ROUNDING_ADDED


def test_a_departure_of_a_member_that_never_narrows_is_a_mismatch() -> None:
    found = decide(facts([1.0, 256.0]))
    assert (found.verdict, found.code) == (Verdict.MISMATCH, "RC301")
    assert "1 of 2 elements leave the bound, though the member never narrows" in found.message


def test_a_rounding_that_is_skipped_must_not_lead_away_from_float64() -> None:
    """257.25 is written as 258; 250 without the cast is an alternative, but no better."""
    further = [((CAST,), span([1, 250]))]
    found = decide(
        facts([1.0, 250.0], real=span([1, 257.25]), alternatives=further, roundings=(STORE,))
    )
    assert found.verdict is Verdict.ROUNDING_ADDED


def test_narrow_products_that_both_sides_take_are_no_excuse_and_no_reproach() -> None:
    """The own ranges are wide (TF32 on both sides); taken alike, only F32's freedom is left."""
    real, written = span([1, 258]), span([1, 258], 2**-12)
    got, member = [1.0, 258.5], span([1, 258], 1.0)
    for moved, verdict in ((2**-13, Verdict.AGREES), (2**-3, Verdict.ROUNDING_ADDED)):
        alike = Common(
            span([1, 258], 2**-13), span([1, 258 + moved], 2**-13), written, span([1, 258], 2**-13)
        )
        found = decide(
            facts(got, written=written, member=member, real=real, roundings=(CAST,), common=alike)
        )
        assert found.verdict is verdict


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (2.0, 1.0, Verdict.AGREES),
        (1.0, 2.0, Verdict.ROUNDING_ADDED),
        (math.inf, math.inf, Verdict.ROUNDING_ADDED),
    ],
)
def test_a_member_may_be_as_free_as_the_graph_is_in_f32(
    ours: float, theirs: float, verdict: Verdict
) -> None:
    """Where all terms cancel, F32's own freedom is wide; a wider one of the member's is not its."""
    written, member = span([0.5], 0.5), span([1.75], 1.0)
    alike = Common(written, member, span([0.5], ours), span([0.5], theirs))
    found = decide(
        facts(
            [1.5],
            written=written,
            member=member,
            real=span([0.5]),
            roundings=(CAST,),
            common=alike,
        )
    )
    assert found.verdict is verdict


def test_a_member_meets_an_alternative_that_it_does_not_lie_in() -> None:
    """The epilogue's gelu is -0 in the tail; the graph less its roundings is -5e-24 there.

    Nor is it then further from float64, though the graph as written is at -6e-24.
    """
    left_out = [((CAST,), span([257.25, -5e-24]))]
    written, beside = span([258, -6e-24]), np.array([1.0, 0.0])  # a narrow product: 257.25 is legal
    member = Allowed(np.array([257.25, 0.0]), np.array([257.25, -1e-6]), np.array([257.25, 1e-6]))
    given = facts(
        [257.25, -0.0],
        written=Allowed(written.mid, written.low - beside, written.high + beside),
        common=Common(written, member, written, span([257.25, -5e-24])),
        member=member,
        real=span([257.25, -5e-24]),
        alternatives=left_out,
        roundings=(STORE,),
    )
    found = decide(given)
    assert (found.verdict, found.roundings) == (Verdict.ROUNDING_ELIDED, (CAST,))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_member_that_leaves_the_finite_numbers_is_a_mismatch(value: float) -> None:
    """C69: a rounding of the member overflows; no bits were lost but the number."""
    got = [1.0, value, 70000.0, value]
    written = span([1, 70000, 70000, -80000.5])
    found = decide(facts(got, written=written, member=span(got), roundings=(CAST,)))
    assert (found.verdict, found.code) == (Verdict.MISMATCH, "RC301")
    kind = "nan" if math.isnan(value) else "inf"
    assert f"of 4 elements, 2 are finite as written, {kind} in the member" in found.message
    assert "(first element 1: 70000 as written)" in found.message
    assert "power of two" in found.hint


def test_infinities_and_nans_are_both_named_beside_other_wrong_numbers() -> None:
    got = [5.0, math.inf, math.nan]
    written = span([1, 2, 3])
    found = decide(facts(got, written=written, member=span(got), member_real=span([5, 2, 3])))
    assert found.verdict is Verdict.MISMATCH
    assert "1 of 3 elements differ even without any rounding" in found.message
    assert "2 are finite as written, inf or nan in the member (first element 1: 2 " in found.message
    assert "order of the epilogue" in found.hint


def test_an_overflow_that_a_skipped_rounding_explains_is_elided() -> None:
    """F16: 65519 + 10 is 65504 + 10 after a rounding of the product, and overflows without it."""
    found = decide(
        facts(
            [1.0, math.inf],
            written=span([1, 65504]),
            real=span([1, 65529]),
            alternatives=[((STORE,), span([1, math.inf]))],
            roundings=(STORE,),
        )
    )
    assert found.verdict is Verdict.ROUNDING_ELIDED


def test_a_member_that_stays_finite_where_the_graph_overflows_is_elided() -> None:
    """C70: that an infinity or a NaN is written counts as further than any number."""
    for overflown in (math.inf, math.nan):
        found = decide(
            facts(
                [1.0, 66246.0],
                written=span([1, overflown]),
                real=span([1, 66246]),
                alternatives=[((STORE,), span([1, 66246]))],
            )
        )
        assert (found.verdict, found.roundings) == (Verdict.ROUNDING_ELIDED, (STORE,))
        assert "1 nearer to float64, 0 further" in found.message


def test_an_infinity_that_the_bound_reaches_is_legal() -> None:
    written = Allowed(np.array([1.0, 65504.0]), np.array([1.0, 65472.0]), np.array([1.0, math.inf]))
    assert decide(facts([1.0, math.inf], written=written)).verdict is Verdict.AGREES


def test_what_is_nearer_to_float64_throughout_never_has_a_rounding_added() -> None:
    """No alternative tried explains it, but the graph has roundings that the member lacks."""
    given = facts(
        [1.0, 257.5],
        real=span([1, 257.25]),
        alternatives=[((CAST,), span([1, 257.25]))],
        roundings=(STORE,),
        lost=(CAST, STORE),
    )
    found = decide(given)
    assert (found.verdict, found.roundings) == (Verdict.ROUNDING_ELIDED, (CAST, STORE))
    assert decide(given._replace(lost=tuple)).verdict is Verdict.ROUNDING_ADDED
    further = given._replace(
        got=np.array([1.5, 257.5]), member_as_written=lambda: span([1.5, 257.5])
    )
    assert decide(further).verdict is Verdict.ROUNDING_ADDED


@pytest.mark.parametrize(
    ("room", "verdict"), [(0.0, Verdict.ROUNDING_ADDED), (1.0, Verdict.MISMATCH)]
)
def test_graphs_are_equal_only_where_float64_is_settled(room: float, verdict: Verdict) -> None:
    """A wide range over the reals (a pole, a pick) is no proof that two graphs are equal."""
    found = decide(facts([1.0, 259.0], real=span([1, 258], room), roundings=(CAST,)))
    assert found.verdict is verdict


def test_not_a_number_on_both_sides_is_equal() -> None:
    real = span([math.nan, math.inf, 258])
    found = decide(
        facts(
            [math.nan, math.inf, 256.0],
            written=real,
            member=span([math.nan, math.inf, 256]),
            real=real,
            roundings=(CAST,),
        )
    )
    assert found.verdict is Verdict.ROUNDING_ADDED


def test_distances_pass_over_what_is_not_finite() -> None:
    written = span([math.inf, math.nan, 258])
    found = decide(
        facts(
            [math.inf, math.nan, 256.0],
            written=written,
            member=span([math.inf, math.nan, 256]),
            roundings=(CAST,),
        )
    )
    assert found.verdict is Verdict.ROUNDING_ADDED
    assert "1 of 3 elements differ, 0 nearer to float64, 1 further" in found.message


def test_the_stage_is_that_of_the_inputs() -> None:
    integers = facts([1.0, 300.0], member_real=span([1, 300]))._replace(stage=Stage.EXACT)
    assert decide(integers).stage is Stage.EXACT


def test_evidence_is_frozen() -> None:
    found = decide(facts([1.0, 258.0]))
    assert replace(found, compared=3) != found
