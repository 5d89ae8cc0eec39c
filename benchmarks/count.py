"""How many pairs must come out of the join benchmarks, counted without Tidegate, and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]

_CHUNK = 4_000_000


def kept(folder: Path, name: str, count: Callable[[], int]) -> int:
    """A count that is made once per input and kept beside it."""
    file = folder / f"_count-{name}.json"
    if not file.exists():
        file.write_text(json.dumps(count()))
    return int(json.loads(file.read_text()))


def columns(path: Path, *names: str) -> list[Array]:
    """Columns of a file, or of all files of a folder; the event time first, in microseconds."""
    table = pq.read_table(path, columns=["ts", *names])
    ts = table.column("ts").cast("int64").to_numpy()
    return [ts, *(table.column(n).to_numpy().astype(np.float64) for n in names)]


def near_pairs(folder: Path, window_us: int) -> int:
    """Pairs of r and s that are at most a window apart: the comparisons of the definition."""
    (left,), (right,) = columns(folder / "r.parquet"), columns(folder / "s.parquet")
    upto = np.searchsorted(right, left + window_us, "right")
    return int((upto - np.searchsorted(right, left - window_us, "left")).sum())


def band_pairs(folder: Path, window_us: int, x_band: float | None, y_band: float) -> int:
    """Those of them with |x - a| <= x_band (None: any) and |y - b| <= y_band.

    The plane is cut into cells as wide as the bands; a tuple meets those of nine cells.
    """
    r_ts, x, y = columns(folder / "r.parquet", "x", "y")
    s_ts, a, b = columns(folder / "s.parquet", "a", "b")
    y_cell, b_cell = _cells(y, y_band) + 1, _cells(b, y_band) + 1
    steps, x_cell, a_cell = [0], np.zeros(len(x), np.int64), np.zeros(len(a), np.int64)
    if x_band is not None:
        steps, x_cell, a_cell = [-1, 0, 1], _cells(x, x_band), _cells(a, x_band)
    height = int(max(y_cell.max(), b_cell.max())) + 2
    cells = a_cell * height + b_cell
    order = np.argsort(cells, kind="stable")
    cells, s_ts, a, b = cells[order], s_ts[order], a[order], b[order]
    total = 0
    for dx in steps:
        wanted = (x_cell + dx) * height + y_cell
        first = np.searchsorted(cells, wanted - 1, "left")
        last = np.searchsorted(cells, wanted + 1, "right")
        for p, s in _expanded(first, last):
            near = np.abs(r_ts[p] - s_ts[s]) <= window_us
            near &= (y[p] >= b[s] - y_band) & (y[p] <= b[s] + y_band)
            if x_band is not None:
                near &= (x[p] >= a[s] - x_band) & (x[p] <= a[s] + x_band)
            total += int(np.count_nonzero(near))
    return total


def bounded_pairs(folder: Path, window_us: int, band: float) -> int:
    """Pairs of r and s at most a window apart with |x - a| <= band and y <= b.

    Only tuples that some other bound lets pass are looked at, which must be few.
    """
    r_ts, x, y = columns(folder / "r.parquet", "x", "y")
    s_ts, a, b = columns(folder / "s.parquet", "a", "b")
    left, right = y <= b.max(), b >= y.min()
    r_ts, x, y, s_ts, a, b = r_ts[left], x[left], y[left], s_ts[right], a[right], b[right]
    first = np.searchsorted(s_ts, r_ts - window_us, "left")
    last = np.searchsorted(s_ts, r_ts + window_us, "right")
    return sum(
        int(np.count_nonzero((np.abs(x[p] - a[s]) <= band) & (y[p] <= b[s])))
        for p, s in _expanded(first, last)
    )


def _cells(values: Array, width: float) -> Array:
    """Cells a little wider than the band: values at most a band apart are neighbours at most."""
    return np.floor(values / (1.001 * width)).astype(np.int64)


def _expanded(first: Array, last: Array) -> Any:
    """All (p, s) with first[p] <= s < last[p], some millions at a time."""
    ends = np.cumsum(last - first)
    start = 0
    while start < len(first):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + _CHUNK, "right")), start + 1)
        counts = last[start:stop] - first[start:stop]
        p = np.repeat(np.arange(start, stop), counts)
        s = np.arange(len(p)) + np.repeat(first[start:stop] - np.cumsum(counts) + counts, counts)
        yield p, s
        start = stop


def equal_pairs(folder: Path, bound_s: int) -> int:
    """Pairs of left and right with one key, at most so many seconds apart, by DuckDB."""
    import duckdb

    query = f"""
        SELECT count(*) FROM '{folder}/left/*.parquet' l JOIN '{folder}/right/*.parquet' r
        ON l.key = r.key AND r.ts BETWEEN l.ts - INTERVAL {bound_s} SECOND
                                      AND l.ts + INTERVAL {bound_s} SECOND
    """
    return int(duckdb.sql(query).fetchall()[0][0])
