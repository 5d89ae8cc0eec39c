"""The input of the window benchmarks: events of Zipf-distributed keys in files of equal size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START_US = 1_704_067_200_000_000


def write_events(
    folder: Path, rows: int, file_rows: int, keys: int, per_second: int, seed: int = 7
) -> None:
    """Write files in time order unless they are there already; the same bytes for the same call."""
    done = folder / "_done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(1, keys + 1) ** 1.1
    bounds = np.cumsum(weights / weights.sum())
    for number, first in enumerate(range(0, rows, file_rows)):
        count = min(file_rows, rows - first)
        place = np.arange(first, first + count)
        table = pa.table(
            {
                "ts": pa.array(
                    START_US + place * 1_000_000 // per_second, pa.timestamp("us", "UTC")
                ),
                "key": np.searchsorted(bounds, generator.random(count)).astype(np.int64),
                "value": generator.normal(100, 15, count),
            }
        )
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
    done.touch()
