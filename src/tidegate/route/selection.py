"""Chooses a partitioner for a period by the dissertation's rule, from a source's counts.

The rule (section 3.8) is: shuffle if groups are far fewer than the tuples of an instance, else AM
or cAM. Here costs say what "far fewer" is, in units of the work of one tuple. Two choices are
added. `hash` splits nothing and merges nothing; it is best where keys are even by themselves. PK is
between the two of the rule: where a few of many keys have more tuples than an instance should, it
divides those, and splits the others less than shuffle does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import ceil

MARGIN = 0.05
"""Another partitioner must be cheaper than the present one by this share. So choices do not go back
and forth between two that are about as good."""


class PartitionerChoice(IntEnum):
    """The partitioners that a source may choose; the numbers are part of stored state."""

    HASH = 0
    CAM = 1
    SHUFFLE = 2
    PK = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Costs:
    """Costs of work at instances, where folding a tuple is 1.

    `group` is the cost of a group at the instance that has it, `part` that of merging one part of a
    group. `value` is the cost of merging a tuple's value, for states that keep all values. `step`
    is the fixed cost of merging, some 400 microseconds however little there is to merge.
    """

    group: float
    part: float
    value: float = 0.0
    step: float = 0.0


CHEAP = Costs(group=25, part=4, step=12_000)
"""Counts, sums and the like: a tuple takes some 30 ns of an instance."""
KEEPING_VALUES = Costs(group=4, part=2, value=0.1, step=2_700)
"""Medians and distinct counts: a tuple takes some 150 ns."""
OF_USERS = Costs(group=3, part=2, step=600)
"""A user's own aggregate or process: a tuple takes a microsecond, or much more."""


@dataclass(frozen=True)
class Measured:
    """What a source has sent in a period, and the fullest instance that each choice would make.

    `by_hash` is the number of tuples of the fullest instance if keys go by their hash, `by_key` if
    every key goes to the emptiest of its `d` candidates, `by_tuple` if every tuple does.
    """

    tuples: int
    groups: int
    instances: int
    by_hash: int
    by_key: int
    by_tuple: int
    d: int

    def parts(self, places: int) -> float:
        """The expected number of parts of all groups, if each is divided among so many instances.

        A group of n tuples is at a share 1 - (1 - 1/V)**n of V places. Here all groups count as
        equally large; uneven groups are in fewer parts.
        """
        absent: float = (1 - 1 / places) ** (self.tuples / max(self.groups, 1))
        return self.groups * places * (1 - absent)

    def cost(self, choice: PartitionerChoice, costs: Costs) -> float:
        """The work of the busiest instance until the windows of a period are merged.

        An instance with any tuple has at least one group. For cAM the step of merging is left out:
        its windows are merged only if several sources or tasks have placed their tuples.
        """
        if choice is PartitionerChoice.HASH:
            return self.by_hash + costs.group * self._each(self.groups)
        values = costs.value * self.tuples / self.instances
        if choice is PartitionerChoice.CAM:
            return self.by_key + values + (costs.group + costs.part) * self._each(self.groups)
        if choice is PartitionerChoice.PK:
            tuples, places = self.by_tuple, min(self.d, self.instances)
        else:
            tuples, places = self._each(self.tuples), self.instances
        parts = (costs.group + costs.part) * self._each(self.parts(places))
        return tuples + values + parts + costs.step

    def _each(self, count: float) -> int:
        """The part of the fullest instance if so many are divided evenly."""
        return ceil(count / self.instances)


def selected(
    measured: Measured, costs: Costs, held: PartitionerChoice = PartitionerChoice.HASH
) -> PartitionerChoice:
    """The cheapest choice, if it is cheaper by MARGIN than the one that is held; else that one."""
    by_cost = {choice: measured.cost(choice, costs) for choice in PartitionerChoice}
    best = min(PartitionerChoice, key=lambda choice: by_cost[choice])
    # Ties go to the first choice in the order of the enumeration, so that replays choose alike.
    return best if by_cost[best] < (1 - MARGIN) * by_cost[held] else held
