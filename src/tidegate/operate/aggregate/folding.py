"""Who folds tuples into partials: the map tasks, which then route partials, or the instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa

from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane import AggregateSpec, fold, fold_placed, merge, placed
from tidegate.route.partitioner import Router


class Folding(Protocol):
    """Frozen and picklable; it has no state."""

    name: ClassVar[str]
    """As users write it, for `--partial-aggregation`."""

    step: ClassVar[str]
    """What map tasks do, in a plan."""

    span: ClassVar[str]
    """What their time goes to."""

    side: ClassVar[str]
    """Where functions are folded, in a plan."""

    unit: ClassVar[str]
    """What a partitioner places that splits keys, in a plan."""

    whole: ClassVar[str]
    """What it places that keeps keys together, in a plan; empty where that is usual."""

    def deal(self, spec: AggregateSpec, rows: pa.Table, router: Router) -> pa.Table:
        """What a split sends: rows with `bucket` and `pane`."""

    def partials(self, spec: AggregateSpec, dealt: Sequence[pa.Table]) -> pa.Table:
        """The partials of what splits have sent, one for each bucket, pane and group."""

    def touched(self, dealt: Sequence[pa.Table], news: pa.Table) -> list[pa.Table]:
        """The rows that an instance worked on to have these partials."""


@dataclass(frozen=True)
class MapFolding:
    """Little is sent: one partial for each pane and group of a split.

    Its total work grows with the instances only by the partials of groups that are split.
    """

    name: ClassVar[str] = "map"
    step: ClassVar[str] = "panes"
    span: ClassVar[str] = "map fold"
    side: ClassVar[str] = "on the map side"
    unit: ClassVar[str] = "partials, weighted by their tuples"
    whole: ClassVar[str] = ""

    def deal(self, spec: AggregateSpec, rows: pa.Table, router: Router) -> pa.Table:
        return fold(spec, rows, router)

    def partials(self, spec: AggregateSpec, dealt: Sequence[pa.Table]) -> pa.Table:
        # What one split brings is merged already.
        return dealt[0] if len(dealt) == 1 else merge(spec, dealt)

    def touched(self, dealt: Sequence[pa.Table], news: pa.Table) -> list[pa.Table]:
        return list(dealt)


@dataclass(frozen=True)
class InstanceFolding:
    """All tuples are sent; for states that keep every value, and for a user's costly code.

    Its total work is that of the tuples, however many instances there are.
    """

    name: ClassVar[str] = "instance"
    step: ClassVar[str] = "route"
    span: ClassVar[str] = "map place"
    side: ClassVar[str] = "in the instances"
    unit: ClassVar[str] = "tuples"
    whole: ClassVar[str] = "tuples, by their key"

    def deal(self, spec: AggregateSpec, rows: pa.Table, router: Router) -> pa.Table:
        return placed(spec, rows, router)

    def partials(self, spec: AggregateSpec, dealt: Sequence[pa.Table]) -> pa.Table:
        return fold_placed(spec, pa.concat_tables(dealt)) if dealt else merge(spec, dealt)

    def touched(self, dealt: Sequence[pa.Table], news: pa.Table) -> list[pa.Table]:
        return [*dealt, news]


BY_MAP, BY_INSTANCE = MapFolding(), InstanceFolding()

FOLDINGS: dict[str, Folding] = {folding.name: folding for folding in (BY_MAP, BY_INSTANCE)}


def folding_for(functions: Sequence[Function], splits_keys: bool) -> Folding:
    """Who folds, where nobody has said: instances, where keys are split and folding saves little.

    So it is where a state keeps all values, and where the work is that of a user's own code.
    """
    costly = any(f.definition.holistic or f.definition.by_user for f in functions)
    return BY_INSTANCE if splits_keys and costly else BY_MAP
