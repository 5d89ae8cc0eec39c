"""Lets partitioners on standby split keys while a query runs, or has them go by hash again.

The allowance is part of what tasks of a batch get. No row depends on it and a run begins without
it, so nothing of it is recorded: what a partitioner has chosen is in the state of its aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tidegate.model.observation import SplitSeen
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.change import OperatorChange
from tidegate.plan.physical import Plan, Subquery
from tidegate.route.standby import Standby

Changes = Callable[[], Sequence[tuple[int, OperatorChange]]]


class StandbyPartitioners:
    """The subqueries whose partitioner is on standby; owned by the loop, grows with subqueries."""

    def __init__(self, plan: Plan) -> None:
        found = {s.key: allowed for s in plan.subqueries if (allowed := _choosing(s)) is not None}
        self._choosing: Mapping[str, WindowAggregate] = found
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


def _choosing(subquery: Subquery) -> WindowAggregate | None:
    """The operator of a subquery with the partitioner that may choose; None without one."""
    operator = subquery.operator
    if not isinstance(operator, WindowAggregate):
        return None
    partitioner = operator.partitioner
    if not isinstance(partitioner, Standby):
        return None
    placement = replace(operator.placement, partitioner=partitioner.chooser)
    return replace(operator, placement=placement)
