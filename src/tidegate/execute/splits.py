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
from tidegate.gate.cut import Cut, SourceCut
from tidegate.plan.physical import Plan, Subquery

SPLIT_ROWS = 262_144
"""The most positions that a map task reads.

Up to twice as many if a cut inside them would make two tasks decode the same part of a file.
"""

LEAST_SPLIT_ROWS = 32_768
"""More instances make splits smaller, but not below this."""


def splits_of(
    subquery: Subquery, cut: Cut, telling: frozenset[int], instances: int = 1
) -> tuple[Split, ...]:
    """The splits over streams: about one for each instance, if there are enough rows.

    They depend on the cut, the layout of its files and the number of instances, never on the cores.
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
    """The inputs of each subquery that report late and rejected tuples.

    Only the first input of a stream does. Otherwise a stream that is read twice would report its
    late tuples twice.
    """
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
    """The splits over the rows that another subquery emitted."""
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
    """The bounds of the splits of [start, stop): at breaks, and between two breaks if they are far
    apart."""
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
    """The least and the greatest event time that a subquery reads from streams in a batch."""
    read = {p.origin for p in subquery.prefixes}
    parts = [p.slice for p in cut.parts if p.stream in read]
    low = min((p.low_us for p in parts), default=MAX_US)
    return low, max((p.high_us for p in parts), default=MIN_US)
