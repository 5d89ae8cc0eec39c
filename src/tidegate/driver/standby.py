"""Lets partitioners on standby split keys while a query runs, or has them go by hash again.

The allowance is part of what tasks of a batch get. No row depends on it and a run begins without
it, so nothing of it is recorded: what a partitioner has chosen is in the state of its aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tidegate.model.observation import SplitSeen
from tidegate.operate.change import OperatorChange
from tidegate.operate.operator import Operator
from tidegate.plan.physical import Plan, Subquery

Changes = Callable[[], Sequence[tuple[int, OperatorChange]]]


class StandbyPartitioners:
    """The subqueries whose partitioner is on standby; owned by the loop, grows with subqueries."""

    def __init__(self, plan: Plan) -> None:
        found = {s.key: s.operator.splitting for s in plan.subqueries}
        self._choosing: Mapping[str, Operator] = {k: o for k, o in found.items() if o is not None}
        self._made: dict[str, Subquery] = {}
        self._allowed = False

    def allow(self, splits: bool) -> None:
        """Have them split keys from the next batch on where that is cheaper, or not any more."""
        self._allowed = splits

    def applied(self, subquery: Subquery) -> Subquery:
        """A subquery as tasks of the batch see it; the same object for the same subquery."""
        operator = self._choosing.get(subquery.key)
        if operator is None or not self._allowed:
            return subquery
        made = self._made.get(subquery.key)
        if made is None or made.prefixes is not subquery.prefixes:
            made = self._made[subquery.key] = replace(subquery, operator=operator)
        return made

    def seen(self, key: str, changes: Changes) -> SplitSeen | None:
        """What a policy may know of a subquery; None where its partitioner is not on standby.

        `changes` gives the newest choices of its sources, which tell of changes alone.
        """
        if key not in self._choosing:
            return None
        if not self._allowed:
            return SplitSeen(False)
        newest = {change.facts.get("source"): change.facts.get("after") for _, change in changes()}
        return SplitSeen(True, any(choice != "hash" for choice in newest.values()))
