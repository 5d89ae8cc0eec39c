"""The streams that partitioners are measured on: generated ones, and real ones where there are any.

A stream is cut into windows of as many tuples. Of a window there are the keys of its tuples, a
number for each key, and a value to aggregate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.source.registry import open_uri

Ints = npt.NDArray[np.int64]

WINDOW_ROWS, WINDOWS = 300_000, 3


@dataclass(frozen=True)
class Case:
    """A stream: a generator or a Parquet file, the columns that are the key, a number, a time."""

    name: str
    origin: str
    keys: tuple[str, ...]
    value: str
    time: str = "ts"

    @property
    def is_file(self) -> bool:
        return self.origin.endswith(".parquet")

    def uri(self, parameters: str) -> str:
        """The generator with more parameters."""
        return f"generator:{self.origin}{'&' if '?' in self.origin else '?'}{parameters}"


GENERATED = (
    Case("taxi, 62,500 routes", "taxi?keys=62500", ("route",), "fare", "dropoff_time"),
    Case("taxi, 360,000 routes", "taxi?keys=360000", ("route",), "fare", "dropoff_time"),
    Case("cluster, 600,000 jobs", "tasks", ("job_id",), "cpu"),
    Case("TPC-H Q3, orders", "lineitem", ("l_orderkey",), "l_extendedprice", "l_shipdate"),
    Case("cluster, 4 classes", "tasks", ("scheduling_class",), "cpu"),
    Case(
        "TPC-H Q1, 4 groups",
        "lineitem",
        ("l_returnflag", "l_linestatus"),
        "l_quantity",
        "l_shipdate",
    ),
    Case("taxi, one route with 60%", "taxi?keys=1000&skew=2", ("route",), "fare", "dropoff_time"),
)
"""Those with many groups first. A Zipf law of exponent 2 gives its first key 61 percent."""

SKEWED = GENERATED[-1]

_TAXIS, _JOBS = "taxi_green_2023q1.parquet", "google_job_events.parquet"
REAL = (
    Case("green taxis, routes", _TAXIS, ("pu_zone", "do_zone"), "total_amount", "pickup_ts"),
    Case("green taxis, zones", _TAXIS, ("pu_zone",), "total_amount", "pickup_ts"),
    Case("Google, jobs", _JOBS, ("job_id",), "event_type"),
    Case("Google, logical jobs", _JOBS, ("logical_job_name_id",), "event_type"),
    Case("Google, 4 classes", _JOBS, ("scheduling_class",), "event_type"),
)
"""Of New York's green taxis in 2023, and the job events of Google's cluster trace of 2011."""


@dataclass(frozen=True)
class Window:
    """The tuples of a window: keys by column, and a value each."""

    keys: list[pa.Array]
    values: pa.Array

    @property
    def rows(self) -> int:
        return len(self.values)

    @cached_property
    def codes(self) -> Ints:
        """The number of each tuple's key, from 0 on."""
        codes = np.zeros(self.rows, np.int64)
        for key in self.keys:
            indices = key.dictionary_encode().indices.fill_null(-1).to_numpy()
            codes = codes * (int(indices.max()) + 2) + indices + 1
        return np.unique(codes, return_inverse=True)[1]

    @cached_property
    def groups(self) -> int:
        """How many keys there are."""
        return int(self.codes.max()) + 1

    @cached_property
    def heads(self) -> list[pa.Array]:
        """The keys by their numbers."""
        row = np.empty(self.groups, np.int64)
        row[self.codes] = np.arange(self.rows)
        return [key.take(pa.array(row)) for key in self.keys]

    def part(self, rows: Ints) -> Window:
        """Some of its tuples."""
        picked = pa.array(rows)
        return Window([key.take(picked) for key in self.keys], self.values.take(picked))

    def renamed(self, codes: Ints) -> Window:
        """The same tuples with other keys, by their numbers."""
        return Window([head.take(pa.array(codes)) for head in self.heads], self.values)

    def table(self) -> pa.Table:
        """Its tuples as the kernels of aggregates take them; all are in one pane."""
        named = {f"k{i}": key for i, key in enumerate(self.keys)}
        return pa.table(named | {"x": self.values, "ts": np.zeros(self.rows, np.int64)})


def windows_of(case: Case, folder: Path | None, rows: int, windows: int) -> Iterator[Window]:
    """Windows of so many rows, of a real stream as many as it has for each."""
    table = _read(case, folder, rows * windows)
    size = min(rows, table.num_rows // windows)
    for start in range(0, size * windows, size):
        part = table.slice(start, size).combine_chunks()
        keys = [part.column(name).chunk(0) for name in case.keys]
        value = pc.cast(part.column(case.value), pa.float64()).combine_chunks()
        yield Window(keys, value.fill_null(0.0))


def _read(case: Case, folder: Path | None, rows: int) -> pa.Table:
    columns = list(dict.fromkeys((*case.keys, case.value)))
    if case.is_file:
        assert folder is not None, "real streams are read from a folder"
        return pq.read_table(folder / case.origin, columns=columns)
    source: Any = open_uri(case.uri(f"rows={rows}"), "s", None, False)
    return source.reader(0, rows).read(columns).table
