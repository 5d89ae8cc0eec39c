"""The partitioner that goes by hash until it is allowed to choose as `auto` does.

The policy `auto` allows it when one key is too much for an instance, and takes that back later. So
a query pays for counting keys only while that may help. The allowance comes with the tasks of a
batch; results are the same whenever it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tidegate.route.auto import Auto, UnitsPart
from tidegate.route.hash import BY_HASH
from tidegate.route.ledger import Chosen, Ledger
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Partitioner, Units
from tidegate.route.selection import PartitionerChoice


@dataclass(frozen=True)
class Standby(Auto):
    """`hash`, which counts nothing; `chooser` is the partitioner in its stead while it may choose.

    A period that `auto` has begun to split goes on as it was begun, because its windows are merged
    by what was recorded of it.
    """

    name: ClassVar[str] = "standby"
    choosing: ClassVar[str] = "hash, until the policy auto has each source choose for each window"
    settled_because: ClassVar[str] = "standby is hash, for a key is as much work as others"

    @property
    def chooser(self) -> Auto:
        """The partitioner that chooses; it reads and writes the same state."""
        return Auto(self.d, self.keys)

    def without_merging(self) -> Partitioner:
        return BY_HASH

    def going_on(self, state: tuple[str, ...]) -> Partitioner:
        return self if set(self.lines) <= set(state) else BY_HASH

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        ledger = units.ledger or Ledger.begun(mapping, self.keys)
        periods = [0] if units.periods is None else np.unique(units.periods).tolist()
        if any(_is_bound(ledger, period) for period in periods):
            return super().buckets(units, mapping)
        part = UnitsPart.of(units)
        return part.by_hash(mapping.buckets)

    def _begin(self, ledger: Ledger, period: int) -> None:
        """Record that a period goes by hash, where the one before it may not.

        Without the record a window over both would count as one whose keys are together.
        """
        ledger.make_room(period)
        if ledger.tally(period).choice is None and _is_bound(ledger, period):
            ledger.choose(Chosen(period, PartitionerChoice.HASH, ledger.held(period)))

    def _period(self, ledger: Ledger, period: int, part: UnitsPart) -> Int32s:
        if ledger.tally(period).choice in (None, PartitionerChoice.HASH):
            return part.by_hash(ledger.mapping.buckets)
        return self._placed(ledger, period, part)


def _is_bound(ledger: Ledger, period: int) -> bool:
    """Whether something was chosen, or may be from what was counted, that a period has to heed."""
    own, before = ledger.tallies.get(period), ledger.tallies.get(period - 1)
    if own is not None and own.choice is not None:
        return own.choice is not PartitionerChoice.HASH
    if before is not None and before.survey is not None:
        return True
    return ledger.held(period) not in (None, PartitionerChoice.HASH)
