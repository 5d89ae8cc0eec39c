"""Where the work of an aggregate goes: a partitioner, and what it needs to do its work.

A partitioner chooses the bucket of a unit. A placement adds who folds tuples. Some partitioners
remember earlier decisions: their placement adds the channel on which map tasks send these, and the
part of the state in which an instance keeps them. `Partitioner.remembers` names the placement.
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
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.ledger import LEDGER, LedgerState, noted
from tidegate.operate.aggregate.pane.fold_placement import BY_MAP, Folding
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.change import OperatorChange
from tidegate.operate.figures import ShownFigure
from tidegate.operate.keeper import Keeper
from tidegate.operate.operator import InstanceWork, MapWork, Share
from tidegate.route.hash import BY_HASH
from tidegate.route.ledger import Ledger
from tidegate.route.partitioner import Partitioner, Router
from tidegate.state.segment.segment import Segment

EVERY_WINDOW = ((MIN_US, MAX_US),)


@dataclass(frozen=True)
class Placement:
    """Uses a partitioner that remembers nothing.

    If it keeps keys together, the total work is the same for any number of instances. If it splits
    keys, a group may have as many parts as it has units, but at most one for each instance. The
    work of merging grows with the parts.
    """

    partitioner: Partitioner = BY_HASH
    folding: Folding = BY_MAP
    asked: Partitioner = BY_HASH
    """The partitioner that the query names; `partitioner` may be a simpler one (`settled`)."""

    finishes: ClassVar[bool] = False
    """Whether it knows windows in which every key is at one instance only."""

    @property
    def splits_keys(self) -> bool:
        return self.partitioner.splits_keys

    def folded(self, partials: pa.Table) -> list[pa.Table]:
        """The partials that the instances have folded themselves: all of them, or none."""
        return [partials] if self.folding.sent_whole else []

    def router(self, work: MapWork, spec: AggregateSpec) -> Router:
        """The router that places the units of a split."""
        return work.router(self.partitioner)

    def beside(self, work: MapWork, router: Router) -> list[Share]:
        """What a map task sends on the placement's own channels, after placing its units."""
        return []

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        """The keepers of what comes on these channels."""
        return {}

    def written(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> dict[str, tuple[Segment, ...]]:
        """Write what came on these channels."""
        return {}

    def split_windows(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> Sequence[Ends]:
        """The windows that may have a key at several instances; called where it `finishes`."""
        return EVERY_WINDOW

    def changes(
        self, work: InstanceWork, spec: AggregateSpec, came: Channels
    ) -> tuple[OperatorChange, ...]:
        """Decisions that the sources have changed, for people."""
        return ()

    @property
    def shown(self) -> tuple[ShownFigure, ...]:
        """The figures of windows that people see."""
        return SENT_SHOWN if self.splits_keys else ()

    @property
    def way(self) -> str:
        """How partials are divided among instances, as a plan says it."""
        return self.partitioner.text if self.splits_keys else "bucket"

    def details(self) -> list[str]:
        """The lines of a plan, where the routed unit is not simply a key."""
        if self.splits_keys:
            unit = f"{self.folding.unit}; a key may be at several instances"
            return [f"routed: {unit}, and is merged after them"]
        if self.asked.splits_keys:
            return [f"routed: partials, by their key; {self.asked.settled_because}"]
        unit = self.folding.unit_by_key
        return [f"routed: {unit}"] if unit else []


@dataclass(frozen=True)
class LedgerPlacement(Placement):
    """Uses a partitioner that decides by what its source has sent before: the ledger.

    A key has d candidate buckets, so a group has at most d parts; with `shuffle` it may have one at
    each instance. The work of merging grows with the parts: with d, not with the instances.
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
    """Lets each source choose a partitioner for each window, from what it has measured.

    If all sources of a window keep keys together, each instance answers it, and the total work is
    that of `hash`. Otherwise it is that of the chosen partitioner, which a source chooses only
    where it leaves the fullest instance less work.
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
"""The placement of each partitioner, by what the partitioner remembers."""


def placement_of(asked: Partitioner, functions: Sequence[Function], folding: Folding) -> Placement:
    """The placement of a partitioner, or of a simpler one that does as well here (`settled`).

    Where map tasks fold, a key is one unit, however many tuples it has. All units are then about
    the same work, unless a state keeps a value for each tuple.
    """
    even = folding == BY_MAP and not any(f.definition.holistic for f in functions)
    partitioner = asked.settled(even)
    return PLACEMENTS[partitioner.remembers](partitioner, folding, asked)
