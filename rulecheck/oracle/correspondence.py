"""What a graph and a member that is equal to it over the reals have in common.

Both are evaluated without any rounding; then steps that compute the same numbers correspond,
wherever they stand and however their results are laid out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rulecheck.oracle.evaluate import evaluate, products, roundings
from rulecheck.oracle.intervals import Floats
from rulecheck.oracle.products import Accumulator, Product
from rulecheck.records import Plan

# Literals that stand for one constant differ by up to one F32 roundoff, which a formula may
# amplify somewhat; what a rounding to 16 bits or another factor changes is larger by far.
SAME = 2.0**-16

Side = tuple[Plan, tuple[bytes, ...]]


def common_accumulator(original: Side, member: Side, accumulator: Accumulator) -> Accumulator:
    """How to sum where the products that a graph and a member share are to be taken alike.

    A narrow multiplier or accumulator (TF32, fast 16-bit, fp8) gives a product much more freedom
    than F32 does. If the member's narrow products are products of the graph, that freedom is one
    and the same on both sides, and moves both alike: whether only the order of F32 operations
    differs is seen with it left out. A narrow product is the graph's if the graph takes one of
    the same |A||B| with the same precision, and none of the same |A||B| with another.

    Args:
        original: the graph as written and its input bytes.
        member: the member and its input bytes.
        accumulator: the backend's way of summing.

    Returns:
        ``accumulator.as_f32()``, or ``accumulator`` itself where the member has narrow products
        of its own, or no narrow product occurs at all.
    """
    ours, theirs = (tuple(products(plan, data)) for plan, data in (original, member))
    if not any(product.is_narrow for product in (*ours, *theirs)):
        return accumulator
    if all(_is_shared(product, ours) for product in theirs if product.is_narrow):
        return accumulator.as_f32()
    return accumulator


def _is_shared(product: Product, others: tuple[Product, ...]) -> bool:
    kinds = {other.kind for other in others if _same(product.sizes, other.sizes)}
    return kinds == {product.kind}


def lost_roundings(original: Side, member: Side) -> tuple[int, ...]:
    """Steps of a graph whose rounding the member does not have.

    A rounding is kept if the member rounds the same numbers to the same type. The last ones are
    looked for first: both graphs round the result.
    """
    kept = dict(enumerate(_rounded_values(*member)))
    lost = []
    for index, dtype, values in reversed(tuple(_rounded_values(*original))):
        for place, (_, kept_dtype, kept_values) in kept.items():
            if kept_dtype == dtype and _same(values, kept_values):
                del kept[place]
                break
        else:
            lost.append(index)
    return tuple(reversed(lost))


def _rounded_values(plan: Plan, inputs: tuple[bytes, ...]) -> Iterator[tuple[int, str, Floats]]:
    """Each rounding: its step, its type, and the numbers that it rounds, ascending."""
    values = evaluate(plan, inputs, Accumulator(), unrounded=True)
    for index in roundings(plan):
        out = plan.steps[index].out
        yield index, plan.values[out].dtype.value, np.sort(values[out].mid)


def _same(first: Floats, second: Floats) -> bool:
    if first.shape != second.shape:
        return False
    finite = np.abs(first[np.isfinite(first)])
    room = SAME * float(finite.max(initial=0.0))
    return np.allclose(first, second, rtol=SAME, atol=room, equal_nan=True)
