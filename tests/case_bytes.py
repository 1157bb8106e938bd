"""The bytes of a rule's cases, without anything that is slow to import."""

from __future__ import annotations

import hashlib

from rulecheck import plan as planning
from rulecheck.backends.cpu import CpuModel
from rulecheck.oracle import InputKind, draw_inputs
from rulecheck.records import Outcome, Plan
from tests.luminal_rules import Maker
from tests.luminal_terms import VOCABULARY

MODEL = CpuModel()


def plans_of(text: str) -> list[Plan]:
    """The graphs of every instance of a rule."""
    maker, built = Maker(text), []
    for instance in maker.make().instances:
        for root in instance.roots:
            if maker.table.nodes[root].fn == VOCABULARY.encoding.op:
                made = planning.build(maker.table.nodes, root, VOCABULARY)
                assert isinstance(made, Plan)
                built.append(made)
    return built


def digest(plan: Plan, seed: int) -> str:
    """Everything that the model writes, on both kinds of inputs."""
    total = hashlib.sha256()
    for kind in InputKind:
        outcome = MODEL.run(plan, draw_inputs(plan, kind, seed), 30.0)
        assert isinstance(outcome, Outcome)
        for buffer in outcome.buffers:
            total.update(buffer)
    return total.hexdigest()
