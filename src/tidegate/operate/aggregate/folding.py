"""Who folds tuples into partials: the map tasks, which then route partials, or the instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane import AggregateSpec, fold, fold_placed, merge, placed
from tidegate.route.partitioner import Router


@dataclass(frozen=True)
class Folding:
    """`deal` makes of a split what it sends, `partials` of what splits have sent one partial for
    each bucket, pane and group. What is `sent_whole` is tuples, which instances have to work on.

    The others are words of a plan and of its spans: `name` as users write it, the `step` of map
    tasks, its `span` of time, where functions are folded, the `unit` that is placed where keys are
    split, and where they are not, if that is unusual.
    """

    name: str
    deal: Callable[[AggregateSpec, pa.Table, Router], pa.Table]
    partials: Callable[[AggregateSpec, Sequence[pa.Table]], pa.Table]
    sent_whole: bool
    step: str
    span: str
    side: str
    unit: str
    unit_by_key: str = ""


def _merged(spec: AggregateSpec, dealt: Sequence[pa.Table]) -> pa.Table:
    # What one split brings is merged already.
    return dealt[0] if len(dealt) == 1 else merge(spec, dealt)


def _folded(spec: AggregateSpec, dealt: Sequence[pa.Table]) -> pa.Table:
    return fold_placed(spec, pa.concat_tables(dealt)) if dealt else merge(spec, dealt)


BY_MAP = Folding(
    name="map",
    deal=fold,
    partials=_merged,
    sent_whole=False,
    step="panes",
    span="map fold",
    side="on the map side",
    unit="partials, weighted by their tuples",
)
"""Little is sent: one partial for each pane and group of a split."""

BY_INSTANCE = Folding(
    name="instance",
    deal=placed,
    partials=_folded,
    sent_whole=True,
    step="route",
    span="map place",
    side="in the instances",
    unit="tuples",
    unit_by_key="tuples, by their key",
)
"""All tuples are sent: for states that keep every value, and for a user's costly code."""

FOLDINGS = {folding.name: folding for folding in (BY_MAP, BY_INSTANCE)}


def folding_for(functions: Sequence[Function], splits_keys: bool) -> Folding:
    """Who folds, where nobody has said: instances, where keys are split and folding saves little.

    So it is where a state keeps all values, and where the work is that of a user's own code.
    """
    costly = any(f.definition.holistic or f.definition.by_user for f in functions)
    return BY_INSTANCE if splits_keys and costly else BY_MAP
