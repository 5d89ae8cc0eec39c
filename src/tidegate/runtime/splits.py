"""The map tasks of a batch, between the gate's cut and the job."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.gate.intake import Cut
from tidegate.runtime.job import Split

SPLIT_ROWS = 262_144
"""The most positions one map task reads; fixed, so that results do not depend on the cores."""


def splits_of(cut: Cut) -> list[Split]:
    """The map tasks of a batch; a function of the cut alone."""
    splits: list[Split] = []
    for part in cut.parts:
        whole = part.slice
        for start in range(whole.start, whole.stop, SPLIT_ROWS):
            stop = min(start + SPLIT_ROWS, whole.stop)
            late = None
            if whole.late is not None:
                mask = whole.late[start - whole.start : stop - whole.start]
                late = np.packbits(mask).tobytes() if mask.any() else None
            source: Any = part.track.source
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


def time_cuts(cut: Cut, instances: int) -> tuple[int, ...]:
    """Event times that divide a batch's tuples among instances, evenly where times are even."""
    low = max(min((p.slice.low_us for p in cut.parts), default=MAX_US), cut.previous_us)
    high = min(max((p.slice.high_us for p in cut.parts), default=MIN_US), cut.frontier_us)
    if low >= high:
        return (low,) * (instances - 1)
    return tuple(low + (high - low) * i // instances for i in range(1, instances))
