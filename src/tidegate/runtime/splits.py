"""The map tasks of a job, between the gate's cut, what other subqueries gave, and the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.gate.intake import Cut, Taken
from tidegate.plan.physical import Edge, Subquery
from tidegate.runtime.edge import Delivery
from tidegate.runtime.job import Split

SPLIT_ROWS = 262_144
"""The positions a map task reads; fixed, so that results do not depend on the cores.

A task reads up to twice as many where they would otherwise be decoded by two.
"""

Deliveries = Mapping[Edge, Delivery]


def splits_of(
    subquery: Subquery, cut: Cut, given: Deliveries, telling: frozenset[int]
) -> tuple[Split, ...]:
    """The map tasks of a subquery; a function of the cut and of how its files are laid out.

    `telling` are the inputs that report late and rejected tuples: one per stream of the query.
    """
    splits: list[Split] = []
    for number, prefix in enumerate(subquery.prefixes):
        if isinstance(prefix.origin, Edge):
            splits += _edge_splits(number, given[prefix.origin])
            continue
        for part in cut.parts:
            if part.stream == prefix.origin:
                splits += _source_splits(number, part, number in telling)
    return tuple(replace(s, index=i) for i, s in enumerate(splits))


def _edge_splits(number: int, delivery: Delivery) -> Iterator[Split]:
    for reader in delivery.readers():
        yield Split(
            0, number, delivery.source, 0, reader.start, reader.stop, reader.stop, None, reader
        )


def _source_splits(number: int, part: Taken, telling: bool) -> Iterator[Split]:
    whole = part.slice
    source: Any = part.track.source
    breaks = source.breaks(whole.start, whole.stop)
    for start, stop in pairwise(_bounds(whole.start, whole.stop, breaks)):
        late = None
        if whole.late is not None:
            mask = whole.late[start - whole.start : stop - whole.start]
            late = np.packbits(mask).tobytes() if mask.any() else None
        yield Split(
            0,
            number,
            source.id,
            part.track.order,
            start,
            whole.new_from if telling else whole.stop,
            stop,
            late,
            source.reader(start, stop),
        )


def _bounds(start: int, stop: int, breaks: Sequence[int] | None) -> list[int]:
    """Where splits begin and end: at breaks, and inside what lies between two where it is long."""
    longest = SPLIT_ROWS if breaks is None else 2 * SPLIT_ROWS
    bounds, edge = [start], start
    for place in [*(breaks or ()), stop]:
        if place - bounds[-1] > SPLIT_ROWS and edge > bounds[-1]:
            bounds.append(edge)
        while place - bounds[-1] > longest:
            bounds.append(bounds[-1] + SPLIT_ROWS)
        edge = place
    return [*bounds, stop]


def time_cuts(subquery: Subquery, cut: Cut, given: Deliveries, instances: int) -> tuple[int, ...]:
    """Event times that divide a batch's tuples among instances, evenly where times are even."""
    read = {p.origin for p in subquery.prefixes}
    parts = [p.slice for p in cut.parts if p.stream in read]
    edges = [given[o] for o in read if isinstance(o, Edge)]
    lows = [p.low_us for p in parts] + [e.low_us for e in edges]
    highs = [p.high_us for p in parts] + [e.high_us for e in edges]
    low = max(min(lows, default=MAX_US), cut.previous_us)
    high = min(max(highs, default=MIN_US), cut.frontier_us)
    if low >= high:
        return (low,) * (instances - 1)
    return tuple(low + (high - low) * i // instances for i in range(1, instances))
