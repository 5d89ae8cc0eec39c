"""Divides the input of a job into splits, one for each map task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.execute.delivery import Delivery
from tidegate.execute.job import Split
from tidegate.gate.intake import Cut, SourceCut
from tidegate.plan.physical import Plan, Subquery

SPLIT_ROWS = 262_144
"""The most positions that a map task reads.

A task reads up to twice as many where they would otherwise be decoded by two.
"""

LEAST_SPLIT_ROWS = 32_768
"""Where instances are many, no map task reads fewer for their sake."""


def splits_of(
    subquery: Subquery, cut: Cut, telling: frozenset[int], instances: int = 1
) -> tuple[Split, ...]:
    """The map tasks over streams, about as many as instances where there are rows enough for that.

    A function of the cut, of how its files are laid out, and of the instances; not of the cores.
    `telling` are the inputs that report late and rejected tuples: one per stream of the query.
    """
    splits: list[Split] = []
    most_rows = min(SPLIT_ROWS, max(LEAST_SPLIT_ROWS, cut.rows // instances))
    for number, prefix in enumerate(subquery.prefixes):
        for part in cut.parts:
            if part.stream == prefix.origin:
                splits += _source_splits(number, part, number in telling, most_rows)
    return tuple(replace(s, index=i) for i, s in enumerate(splits))


def telling_inputs(plan: Plan) -> list[frozenset[int]]:
    """By subquery, the inputs that report late and rejected tuples: the first of each stream."""
    told: set[int] = set()
    telling = []
    for subquery in plan.subqueries:
        mine = set()
        for number, prefix in enumerate(subquery.prefixes):
            if isinstance(prefix.origin, int) and prefix.origin not in told:
                told.add(prefix.origin)
                mine.add(number)
        telling.append(frozenset(mine))
    return telling


def edge_splits(number: int, delivery: Delivery) -> Iterator[Split]:
    """The map tasks over the rows that another subquery gave."""
    for reader in delivery.readers():
        yield Split(
            0, number, delivery.source, 0, reader.start, reader.stop, reader.stop, None, reader
        )


def _source_splits(number: int, part: SourceCut, telling: bool, most_rows: int) -> Iterator[Split]:
    whole = part.slice
    source: Any = part.track.source
    breaks = source.breaks(whole.start, whole.stop)
    for start, stop in pairwise(_bounds(whole.start, whole.stop, breaks, most_rows)):
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


def _bounds(start: int, stop: int, breaks: Sequence[int] | None, most_rows: int) -> list[int]:
    """Where splits begin and end: at breaks, and inside what lies between two where it is long."""
    longest = most_rows if breaks is None else 2 * most_rows
    bounds, edge = [start], start
    for place in [*(breaks or ()), stop]:
        if place - bounds[-1] > most_rows and edge > bounds[-1]:
            bounds.append(edge)
        while place - bounds[-1] > longest:
            bounds.append(bounds[-1] + most_rows)
        edge = place
    return [*bounds, stop]


def time_span(subquery: Subquery, cut: Cut) -> tuple[int, int]:
    """The least and the greatest event time of what a subquery reads of streams."""
    read = {p.origin for p in subquery.prefixes}
    parts = [p.slice for p in cut.parts if p.stream in read]
    low = min((p.low_us for p in parts), default=MAX_US)
    return low, max((p.high_us for p in parts), default=MIN_US)
