"""Which partitioner a window should have: the dissertation's rule, on what a source has measured.

The rule (section 3.8) is: shuffle where groups are far fewer than the tuples of an instance, else
AM or cAM. What is far fewer is told here by costs, in the work that one tuple is for an instance.
A third choice is `hash`: where keys are even by themselves, nothing is split and nothing merged. A
fourth is PK, between the two of the rule: where a few of many keys have more tuples than an
instance should, it divides those, and splits the others less than shuffle does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import ceil

MARGIN = 0.05
"""How much cheaper another partitioner must be than the one that is held, as a share: so choices do
not go back and forth where two are as good as each other, and none is held that is much worse."""


class PartitionerChoice(IntEnum):
    """What a source may choose; the numbers are stored."""

    HASH = 0
    CAM = 1
    SHUFFLE = 2
    PK = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Costs:
    """What work is for instances, where folding a tuple is 1.

    `group` is what a group costs at the instance that has it, `part` what merging one part of a
    group costs. `value` is what it costs to merge a tuple's value, where states keep all of them.
    `step` is what merging costs by itself, some 400 microseconds however little there is to merge.
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
    """What a source has sent in a period, whoever got it, and what choices would make of it.

    `by_hash` is how many tuples the fullest instance has where keys go by their hash, `by_key`
    where every key goes to the emptier of its `d` candidates, `by_tuple` where every tuple does.
    """

    tuples: int
    groups: int
    instances: int
    by_hash: int
    by_key: int
    by_tuple: int
    d: int

    def parts(self, places: int) -> float:
        """How many parts groups come in where each is divided among so many instances.

        A group of n tuples is at 1 - (1 - 1/V)**n of V places; here all have as many, uneven ones
        are at fewer.
        """
        absent: float = (1 - 1 / places) ** (self.tuples / max(self.groups, 1))
        return self.groups * places * (1 - absent)

    def cost(self, choice: PartitionerChoice, costs: Costs) -> float:
        """The work until the windows of a period are merged, of the instance that has most.

        None that has anything has less than one group. The step of merging is left out for cAM, of
        which a window is merged only where several sources or tasks have placed its tuples.
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
        """What the fullest instance has of so many that are divided evenly."""
        return ceil(count / self.instances)


def selected(
    measured: Measured, costs: Costs, held: PartitionerChoice = PartitionerChoice.HASH
) -> PartitionerChoice:
    """The cheapest choice; the one that is held, unless another is cheaper by the margin."""
    by_cost = {choice: measured.cost(choice, costs) for choice in PartitionerChoice}
    best = min(PartitionerChoice, key=lambda choice: by_cost[choice])
    return best if by_cost[best] < (1 - MARGIN) * by_cost[held] else held
