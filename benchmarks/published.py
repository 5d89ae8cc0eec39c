"""When results of a live query were published, seen from outside, and when their tuples were due.

Independent of what Tidegate says of itself: a live generator tells when it begins, from then on it
is known when each of its rows is due; and the folder of a batch is renamed when it is published.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from data import START_US


@contextmanager
def generators_begun() -> Iterator[list[float]]:
    """Note when live generators begin, in seconds of wall time: from then on their rows are due."""
    from tidegate.source.generator import RowPace

    begin = RowPace.begin
    begun: list[float] = []

    def noted(self: RowPace, rows: int) -> None:
        if self._begun_at is None:
            begun.append(time.time())
        begin(self, rows)

    RowPace.begin = noted  # type: ignore[method-assign]
    try:
        yield begun
    finally:
        RowPace.begin = begin  # type: ignore[method-assign]


def published_ms(
    out: Path, column: str, begun_s: float, first_us: int, seconds: float
) -> np.ndarray[Any, Any]:
    """The latencies of results: one for each window, or one for each pair.

    The stream begins at START_US, and `column` has the event time of the tuple that completes a
    result. The time when a folder was changed is when it got its name.
    """
    found = []
    for folder in out.glob("batch=*"):
        published_s = folder.stat().st_ctime
        times_us = pq.read_table(folder, columns=[column]).column(0).cast("int64").to_numpy()
        if column == "window_end":
            times_us = np.unique(times_us)
        wanted = times_us[(times_us >= first_us) & (times_us < first_us + seconds * 1_000_000)]
        due_s = begun_s + (wanted - START_US) / 1e6
        found.append((published_s - due_s) * 1e3)
    return np.concatenate(found)
