"""The instances of a rule's left side, as a campaign asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rulecheck.instantiate.choices import Cause
from rulecheck.instantiate.cover import BACKTRACKS, Search
from rulecheck.instantiate.instances import (
    MAX_INSTANCES,
    NOTHING,
    Instance,
    Instances,
    Judge,
)
from rulecheck.instantiate.pattern import Contradiction, build_pattern
from rulecheck.instantiate.setting import Setting
from rulecheck.records import Declaration, Rule


def rigid_sorts(setting: Setting) -> frozenset[str]:
    """Sorts in which two constructors never denote one value."""
    names = setting.vocabulary.encoding
    return frozenset({names.dtype_sort, names.list_sort, names.inputs_sort, names.kind_sort})


class Instantiation:
    """The search for instances of one left side: the default one, covering ones, more of them."""

    def __init__(
        self, rule: Rule, signatures: Mapping[str, Declaration], setting: Setting, judge: Judge
    ) -> None:
        """Prepare.

        Args:
            rule: the rule, whose body is what is instantiated.
            signatures: every declared name of the dialect and the rule's file.
            setting: vocabulary, term table, relation rows, supported types.
            judge: says why a graph is not well-formed under the ops' semantics, or None.
        """
        self._clash: Contradiction | None = None
        try:
            pattern = build_pattern(rule, signatures, rigid_sorts(setting))
        except Contradiction as clash:
            self._clash = clash
        else:
            self._search = Search(pattern, setting, judge)

    def cover(
        self, enough: int = 0, limit: int = MAX_INSTANCES, like: Instance | None = None
    ) -> Instances:
        """Well-formed instances, the default one first: all labels, all pairs, at least so many.

        ``enough`` is met as far as there are values to be had, beyond the usual ones if need be;
        at ``limit`` the search ends, covered or not. Further ones are ``like`` but for one value.
        """
        found = self.labels(limit)
        if not found.instances:
            return found
        if not self._search.wide:
            self._search.cover_pairs()
        self._search.fill(enough, dict(like.choices) if like is not None else {})
        return self._all()

    def labels(self, limit: int = MAX_INSTANCES) -> Instances:
        """The default instance, and every label of every axis once."""
        if self._clash is not None:
            reason = f"the left side contradicts itself: {self._clash}"
            return Instances((), NOTHING, reason, Cause.CONTRADICTION)
        search = self._search
        search.limit = limit
        if not search.found and search.run({}, BACKTRACKS) is None:
            return Instances((), NOTHING, str(search.reason), search.reason.cause)
        if not search.wide:
            search.cover_labels()
        return self._all()

    def pairs(self) -> Instances:
        """And all pairs of labels."""
        if self._clash is not None or not self._search.found:
            return self.labels()
        self._search.cover_pairs()
        return self._all()

    def around(self, base: Instance) -> None:
        """Search around ``base`` from now on, on which the rule fires, not around the default."""
        self._search.rebase(base)

    def without(self, silent: Sequence[Instance]) -> None:
        """Leave out labels that alone keep the rule from firing: such pairs would tell nothing."""
        self._search.exclude(silent)

    def _all(self) -> Instances:
        return Instances(tuple(self._search.found), self._search.coverage())

    def one(self, preferences: Mapping[str, str]) -> Instances:
        """The one instance that ``preferences`` (labels by axis) lead to."""
        if self._clash is not None:
            return self.cover()
        self._search.wide = True
        found = self._search.run(preferences, BACKTRACKS)
        if found is None:
            return Instances((), NOTHING, str(self._search.reason), self._search.reason.cause)
        return Instances((found,), NOTHING)
