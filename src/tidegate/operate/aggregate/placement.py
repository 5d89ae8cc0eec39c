"""Where the work of an aggregate goes: a partitioner with what it takes to carry it out.

A partitioner says which bucket a unit is for. A placement adds who folds, and for partitioners that
remember something the channel on which map tasks send it, and the part of the state in which an
instance keeps it. A partitioner names its placement by what it `remembers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.answer import Channels
from tidegate.operate.aggregate.choice import (
    CHOICES,
    ChoiceState,
    Ends,
    changes_of,
    chosen_by,
    informed,
    split_windows,
)
from tidegate.operate.aggregate.figures import SENT_SHOWN
from tidegate.operate.aggregate.folding import BY_MAP, Folding
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.ledger import LEDGER, LedgerState, noted
from tidegate.operate.aggregate.pane import AggregateSpec
from tidegate.operate.change import OperatorChange
from tidegate.operate.figures import ShownFigure
from tidegate.operate.keeper import Keeper
from tidegate.operate.operator import InstanceWork, MapWork, Share
from tidegate.route.hash import BY_HASH
from tidegate.route.ledger import Ledger
from tidegate.route.partitioner import Partitioner, Router
from tidegate.state.segment import Segment

EVERY_WINDOW = ((MIN_US, MAX_US),)


@dataclass(frozen=True)
class Placement:
    """By a partitioner that remembers nothing.

    Where it keeps keys together, the total work is the same for any number of instances. Where it
    splits them, a group has a part at up to as many instances as it has units, and merging costs
    for each part.
    """

    partitioner: Partitioner = BY_HASH
    folding: Folding = BY_MAP
    asked: Partitioner = BY_HASH
    """What the query names; `partitioner` may have settled in its stead."""

    finishes: ClassVar[bool] = False
    """Whether it knows windows of which no key can be at several instances."""

    @property
    def splits_keys(self) -> bool:
        return self.partitioner.splits_keys

    def folded(self, partials: pa.Table) -> list[pa.Table]:
        """Those of the partials that instances have folded themselves: all or none."""
        return [partials] if self.folding.sent_whole else []

    def router(self, work: MapWork, spec: AggregateSpec) -> Router:
        """Who places the units of a split."""
        return work.router(self.partitioner)

    def beside(self, work: MapWork, router: Router) -> list[Share]:
        """What a split sends on the channels of the placement when it has placed its units."""
        return []

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        """How what comes on these channels is kept."""
        return {}

    def written(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> dict[str, tuple[Segment, ...]]:
        """What is stored of it."""
        return {}

    def split_windows(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> Sequence[Ends]:
        """The windows that may have a key at several instances; asked where it `finishes`."""
        return EVERY_WINDOW

    def changes(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> tuple[OperatorChange, ...]:
        """What it does otherwise from now on, for people."""
        return ()

    @property
    def shown(self) -> tuple[ShownFigure, ...]:
        """The figures of windows that people see."""
        return SENT_SHOWN if self.splits_keys else ()

    @property
    def way(self) -> str:
        """By what partials come to instances, in a plan."""
        return self.partitioner.text if self.splits_keys else "bucket"

    def details(self) -> list[str]:
        """What is routed, where that is not simply a key."""
        if self.splits_keys:
            unit = f"{self.folding.unit}; a key may be at several instances"
            return [f"routed: {unit}, and is merged after them"]
        if self.asked.splits_keys:
            return [f"routed: partials, by their key; {self.asked.settled_because}"]
        unit = self.folding.unit_by_key
        return [f"routed: {unit}"] if unit else []


@dataclass(frozen=True)
class LedgerPlacement(Placement):
    """By what a source has sent before, which is noted in its ledger.

    A group has a part at up to d instances, d being the candidates of a key; at all of them with
    `shuffle`. Merging costs for each part: the total work grows with d, not with the instances.
    """

    def router(self, work: MapWork, spec: AggregateSpec) -> Router:
        return work.router(self.partitioner).with_ledger(self._ledger(work, spec))

    def _ledger(self, work: MapWork, spec: AggregateSpec) -> Ledger:
        return LedgerState(spec.window).opened(work, self.partitioner.key_memory)

    def beside(self, work: MapWork, router: Router) -> list[Share]:
        assert router.ledger is not None
        return noted(work, router.ledger)

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        return {LEDGER: LedgerState(spec.window)}

    def written(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> dict[str, tuple[Segment, ...]]:
        return LedgerState(spec.window).written(work, came.get(LEDGER, ()))


@dataclass(frozen=True)
class ChosenPlacement(LedgerPlacement):
    """By a partitioner that each source chooses for each window, from what it has measured.

    Windows whose sources keep keys together are finished where they are: the total work is then
    that of `hash`, and else that of the partitioner that was chosen, which is chosen where the
    fullest instance has less to do with it.
    """

    finishes: ClassVar[bool] = True

    def _ledger(self, work: MapWork, spec: AggregateSpec) -> Ledger:
        return informed(work, super()._ledger(work, spec), spec)

    def beside(self, work: MapWork, router: Router) -> list[Share]:
        assert router.ledger is not None
        chosen = chosen_by(work, router.ledger)
        told = [] if chosen is None else [Share.for_all(chosen, CHOICES)]
        return [*super().beside(work, router), *told]

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        return super().keepers(spec) | {CHOICES: ChoiceState(spec.window)}

    def written(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> dict[str, tuple[Segment, ...]]:
        chosen = ChoiceState(spec.window).written(work, came.get(CHOICES, ()))
        return super().written(work, spec, came) | chosen

    def split_windows(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> Sequence[Ends]:
        known = ChoiceState(spec.window).known(work, came.get(CHOICES, ()))
        return split_windows(spec.window, known)

    def changes(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> tuple[OperatorChange, ...]:
        return changes_of(work, spec, came.get(CHOICES, ()))

    def details(self) -> list[str]:
        return [*super().details(), f"{self.partitioner.name}: {self.partitioner.choosing}"]


PLACEMENTS: dict[str, type[Placement]] = {
    "": Placement,
    LEDGER: LedgerPlacement,
    CHOICES: ChosenPlacement,
}
"""By what a partitioner remembers."""


def placement_of(asked: Partitioner, functions: Sequence[Function], folding: Folding) -> Placement:
    """The placement of a partitioner, or of the one that settles in its stead.

    Where map tasks fold, a key is one unit however many tuples it has, and as much work as others,
    unless its state has a value for each of them.
    """
    even = folding == BY_MAP and not any(f.definition.holistic for f in functions)
    partitioner = asked.settled(even)
    return PLACEMENTS[partitioner.remembers](partitioner, folding, asked)
