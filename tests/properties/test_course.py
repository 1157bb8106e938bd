"""A run that begins where the base has come to ends as one that begins at the start."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rulecheck.campaign.members import RuleRun
from rulecheck.campaign.workshop import Workshop, signatures
from rulecheck.instantiate.choices import Chooser, DeadEnd, Missed
from rulecheck.instantiate.course import Course
from rulecheck.instantiate.instantiation import rigid_sorts
from rulecheck.instantiate.pattern import Contradiction, build_pattern
from rulecheck.records import RuleFile, Settings

RULES = Path(__file__).parents[2] / "rules"
RUNS, SEED = 30, 5

Labels = dict[str, dict[str, None]]


class FromTheStart(Course):
    """Keeps nothing of the base's way."""

    def _lay(self) -> None:
        self._is_laid = True


def outcome(course: Course, chooser: Chooser, offered: Labels) -> object:
    """What a run takes and builds, or why it ends."""
    try:
        run = course.complete(chooser, "i0.")
        roots, unions = run.finish()
    except (DeadEnd, Missed, Contradiction) as end:
        return (type(end), str(end), chooser.taken)
    finally:
        for choice in chooser.taken:
            offered.setdefault(choice.axis, {}).update(dict.fromkeys(choice.offered))
    return (chooser.taken, [run.table.show(root) for root in roots], unions)


def some(rng: random.Random, offered: Labels, share: float) -> dict[str, str]:
    return {axis: rng.choice([*labels]) for axis, labels in offered.items() if rng.random() < share}


@pytest.mark.parametrize("name", sorted(path.stem for path in RULES.glob("*.egg"))[::4])
def test_where_a_run_begins_does_not_show(name: str) -> None:
    rng, compared = random.Random(SEED), 0
    with Workshop(Settings(paths=())) as shop:
        file = shop.load(str(RULES / f"{name}.egg"))
        assert isinstance(file, RuleFile)
        setting = RuleRun(shop, file, 0).setting
        pattern = build_pattern(file.rules[0], signatures(file), rigid_sorts(setting))
        courses = Course(pattern, setting), FromTheStart(pattern, setting)
        offered: Labels = {}
        base: dict[str, str] = {}
        for number in range(RUNS):
            if number == RUNS // 3:
                base = some(rng, offered, 0.3)
            preferences = {**base, **some(rng, offered, rng.choice([0.05, 0.2, 0.6]))}
            script = [0] * rng.randint(0, 4) + [1] if rng.random() < 0.25 else []
            required = dict([*preferences.items()][:1]) if rng.random() < 0.3 else {}
            found = []
            for course in courses:
                course.around(base, wide=number > 2 * RUNS // 3)
                found.append(outcome(course, Chooser(preferences, script, required), offered))
            assert found[0] == found[1]
            compared += 1
    assert compared == RUNS
