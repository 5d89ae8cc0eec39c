"""Decides where tuples are folded into partials: in the map tasks, or in the instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec, fold, fold_placed, merge, placed
from tidegate.route.partitioner import Router


@dataclass(frozen=True)
class Folding:
    """One of the two places; a row of FOLDINGS.

    Map tasks call `deal` on a split and send the result. Instances call `partials` on what arrived,
    and get one partial for each bucket, pane and group. `sent_whole` says that tuples are sent, so
    that the instances do the work.

    The other fields are words. `name` is what users write. `step` is what map tasks do and `span`
    its name in measurements. `side` says where functions are folded. `unit` is what is placed where
    keys are split, and `unit_by_key` where they are not; empty where that is simply the key.
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
    if not dealt:
        return merge(spec, dealt)
    # A split that has no value of a column may have sent it as NULL.
    return fold_placed(spec, pa.concat_tables(dealt, promote_options="default"))


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
    """The folding of a query that does not name one.

    Instances fold where keys are split and folding first would save little: where a state keeps
    all values, or where a user's own code is the work.
    """
    costly = any(f.definition.holistic or f.definition.by_user for f in functions)
    return BY_INSTANCE if splits_keys and costly else BY_MAP
