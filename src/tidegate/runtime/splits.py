"""The map tasks of a batch, between the gate's cut and the job."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.gate.intake import Cut
from tidegate.runtime.job import Split

SPLIT_ROWS = 262_144
"""The positions a map task reads; fixed, so that results do not depend on the cores.

A task reads up to twice as many where they would otherwise be decoded by two.
"""


def splits_of(cut: Cut) -> list[Split]:
    """The map tasks of a batch; a function of the cut and of how its files are laid out."""
    splits: list[Split] = []
    for part in cut.parts:
        whole = part.slice
        source: Any = part.track.source
        breaks = source.breaks(whole.start, whole.stop)
        for start, stop in pairwise(_bounds(whole.start, whole.stop, breaks)):
            late = None
            if whole.late is not None:
                mask = whole.late[start - whole.start : stop - whole.start]
                late = np.packbits(mask).tobytes() if mask.any() else None
            splits.append(
                Split(
                    len(splits),
                    part.stream,
                    source.id,
                    part.track.order,
                    start,
                    whole.new_from,
                    stop,
                    late,
                    source.reader(start, stop),
                )
            )
    return splits


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


def time_cuts(cut: Cut, instances: int) -> tuple[int, ...]:
    """Event times that divide a batch's tuples among instances, evenly where times are even."""
    low = max(min((p.slice.low_us for p in cut.parts), default=MAX_US), cut.previous_us)
    high = min(max((p.slice.high_us for p in cut.parts), default=MIN_US), cut.frontier_us)
    if low >= high:
        return (low,) * (instances - 1)
    return tuple(low + (high - low) * i // instances for i in range(1, instances))
