"""The queries whose checkpoints are kept, one for each kind of state.

Each reads the folders `l` and `r`, which hold CSV files with the columns of `write_half`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

import tidegate as tg
from tidegate.sink.memory import MemorySink

ROWS = 120
"""Rows of a stream in each half of its input."""

_STREAMS = """
CREATE STREAM l FROM 'l' TIME ts;
CREATE STREAM r FROM 'r' TIME ts;
CREATE TABLE z FROM 'z.csv';
CREATE TABLE v FROM 'v.csv' VALID FROM since;
"""

_SQL = {
    "sliding": "SELECT k, AVG(y) AS y, COUNT(DISTINCT x) AS n, MEDIAN(y) AS m"
    " FROM l [RANGE 60 SECONDS SLIDE 20 SECONDS] GROUP BY k",
    "tuple_window": "SELECT k, SUM(x) AS x, LAST(y) AS y FROM l [ROWS 7 SLIDE 3] GROUP BY k",
    "split_keys": "SELECT k, SUM(y) AS y FROM l [RANGE 90 SECONDS] GROUP BY k WITH PARTITIONER cam",
    "chosen_partitioner": "SELECT k, SUM(y) AS y FROM l [RANGE 30 SECONDS] GROUP BY k"
    " WITH PARTITIONER auto",
    "within_error": "SELECT k, MEDIAN(y) AS y, SUM(x) AS x FROM l [RANGE 90 SECONDS] GROUP BY k"
    " WITH ERROR 20 PERCENT CONFIDENCE 90 PERCENT",
    "shed": "SELECT k, SUM(y) AS y, COUNT(*) AS n FROM l [RANGE 90 SECONDS] GROUP BY k"
    " WITH SHED 50 PERCENT BY CONCEPT",
    "balanced": "SELECT k, MEDIAN(y) AS y FROM l [RANGE 90 SECONDS] GROUP BY k"
    " WITH BALANCE ERROR 20 PERCENT TRIM ALL",
    "equality_join": "SELECT l.x AS a, r.x AS b FROM l [RANGE 30 SECONDS] JOIN r [RANGE 10 SECONDS]"
    " ON l.k = r.k AND l.x < r.x",
    "band_join": "SELECT l.x AS a, r.x AS b FROM l [RANGE 20 SECONDS] JOIN r [RANGE 20 SECONDS]"
    " ON l.x BETWEEN r.x - 2 AND r.x + 2",
    "rows_join": "SELECT l.x AS a, r.x AS b FROM l [ROWS 9] JOIN r [ROWS 4] ON l.x <> r.x",
    "shed_join": "SELECT l.k AS k, r.x AS x FROM l [RANGE 30 SECONDS] JOIN r [RANGE 30 SECONDS]"
    " ON l.k = r.k WITH SHED 50 PERCENT BY CONCEPT",
    "graph": "SELECT k, COUNT(*) AS n FROM (SELECT l.k AS k FROM l [RANGE 20 SECONDS]"
    " JOIN r [RANGE 20 SECONDS] ON l.x = r.x) [RANGE 60 SECONDS] GROUP BY k",
    "stateless": "SELECT k, x * 2 AS x FROM l WHERE y > 0",
    "sessions": "SELECT k, COUNT(*) AS n, SUM(y) AS y FROM l [SESSION GAP 4 SECONDS] GROUP BY k",
    "longest_sessions": "SELECT k, MAX(x) AS x, LAST(y) AS y"
    " FROM l [SESSION GAP 4 SECONDS MAX 15 SECONDS] GROUP BY k",
    "calendar": "SELECT k, SUM(y) AS y FROM l [RANGE 2 DAYS SLIDE 1 DAY OFFSET 58 MINUTES"
    " TIME ZONE 'America/New_York'] GROUP BY k",
    "early_rows": "SELECT k, SUM(y) AS y FROM l [RANGE 60 SECONDS SLIDE 20 SECONDS] GROUP BY k"
    " EMIT EVERY 5 SECONDS",
    "grouping_sets": "SELECT k, x % 3 AS x, SUM(y) AS y FROM l [RANGE 90 SECONDS]"
    " GROUP BY CUBE (k, x % 3)",
    "left_join": "SELECT l.x AS a, r.x AS b FROM l [RANGE 20 SECONDS] LEFT JOIN r [RANGE 5 SECONDS]"
    " ON l.x BETWEEN r.x - 1 AND r.x + 1 AND l.k <> r.k",
    "full_join": "SELECT l.x AS a, r.x AS b FROM l [RANGE 20 SECONDS] FULL JOIN r [RANGE 9 SECONDS]"
    " ON l.k = r.k AND l.x = r.x",
    "semi_join": "SELECT x, y FROM l [RANGE 20 SECONDS] SEMI JOIN r [RANGE 9 SECONDS] ON l.x = r.x",
    "asof_join": "SELECT l.x AS a, r.x AS b FROM l ASOF LEFT JOIN r [RANGE 30 SECONDS]"
    " MATCH_CONDITION (l.ts > r.ts) ON l.k = r.k",
    "asof_join_ahead": "SELECT l.x AS a, r.x AS b FROM l ASOF LEFT JOIN r [RANGE 9 SECONDS]"
    " MATCH_CONDITION (l.ts < r.ts) ON l.k = r.k",
    "table_join": "SELECT z.name, COUNT(*) AS n FROM l [RANGE 60 SECONDS] JOIN z ON l.k = z.k"
    " GROUP BY z.name",
    "table_versions": "SELECT l.x, v.name FROM l LEFT JOIN v ON l.k = v.k",
    "first_of_key": "SELECT DISTINCT ON (k, x) k, x, y FROM l KEEP FIRST WITHIN 40 SECONDS",
    "last_of_key": "SELECT DISTINCT ON (k) k, x, y FROM l KEEP LAST WITHIN 15 SECONDS",
    "over": "SELECT k, SUM(y) OVER (PARTITION BY k ORDER BY ts) AS total,"
    " MAX(x) OVER (PARTITION BY k ORDER BY ts ROWS 5 PRECEDING) AS x,"
    " COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE 20 SECONDS PRECEDING) AS n,"
    " LAG(x, 2) OVER (PARTITION BY k ORDER BY ts) AS before FROM l",
    "lead": "SELECT k, x, LEAD(x, 3) OVER (PARTITION BY k ORDER BY ts) AS after FROM l",
}


class Streaks(tg.Process):
    """Keys whose x has grown three times in a row; a timer tells when the stream falls silent."""

    output = {"k": "string", "run": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.seen: dict[str, list[int]] = {}

    def on_tuple(self, row: Any, keys: list[str]) -> Iterator[tuple[str, int]]:
        last, run = self.seen.get(row.k, (-1, 0))
        self.seen[row.k] = [row.x, run + 1 if row.x > last else 0]
        self.wake(row.ts + timedelta(seconds=5))
        if self.seen[row.k][1] >= 3:
            yield (row.k, self.seen[row.k][1])

    def on_frontier(self, ts: datetime) -> Iterator[tuple[str, int]]:
        yield ("-", len(self.seen))


class Commonest(tg.Process):
    """The commonest x of a key in a window."""

    output = {"x": "bigint", "n": "bigint"}  # noqa: RUF012
    mergeable = True

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def on_tuple(self, row: Any, keys: list[str]) -> None:
        self.counts[row.x] += 1

    def merge(self, other: Commonest) -> None:
        self.counts.update(other.counts)

    def finish(self) -> Iterator[tuple[int, int]]:
        yield min(self.counts.items(), key=lambda item: (-item[1], item[0]))


def _by_sql(text: str) -> Callable[[tg.Session], tg.Stream]:
    return lambda session: session.sql(_STREAMS + text)


def _process(session: tg.Session) -> tg.Stream:
    return session.stream("l", time="ts", name="l").process(Streaks, keys="k")


def _window_process(session: tg.Session) -> tg.Stream:
    rows = session.stream("l", time="ts", name="l")
    return rows.window("60 seconds").group_by("k").process(Commonest)


QUERIES: dict[str, Callable[[tg.Session], tg.Stream]] = {
    **{name: _by_sql(text) for name, text in _SQL.items()},
    "process": _process,
    "window_process": _window_process,
}


def write_half(folder: Path, stream: str, half: int) -> None:
    """Write one half of a stream's input as a CSV file into its folder, the same every time."""
    random = np.random.default_rng([half, ord(stream)])
    start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=ROWS * half)
    keys = np.array(["a", "a", "a", "a", "b", "b", "c", "d"])
    table = pa.table(
        {
            "ts": [start + timedelta(seconds=i) for i in range(ROWS)],
            "k": keys[random.integers(0, len(keys), ROWS)],
            "x": random.integers(0, 20, ROWS),
            "y": random.integers(-50, 200, ROWS) / 4,
        }
    )
    (folder / stream).mkdir(exist_ok=True)
    csv.write_csv(table, folder / stream / f"{half}.csv")


def write_tables(folder: Path, name: str) -> None:
    """Write the tables with names that begin so; a run goes on with those that it began with."""
    keys = ["a", "b", "c", "c"]
    names = [f"{name} {n}" for n in range(len(keys))]
    since = [datetime(2024, 1, 1, 0, minute, tzinfo=UTC) for minute in (0, 0, 0, 3)]
    csv.write_csv(pa.table({"k": keys, "name": names}), folder / "z.csv")
    csv.write_csv(pa.table({"k": keys, "name": names, "since": since}), folder / "v.csv")


def run(
    name: str, folder: Path, sink: MemorySink | None = None, **options: Any
) -> list[dict[str, Any]]:
    """Run a query in the current folder on the checkpoint there; give the rows in the sink.

    These are of this run, or of all runs that the sink was given to.
    """
    sink = sink or MemorySink()
    stream = QUERIES[name](tg.Session(master="none"))
    stream.start(
        sink=sink, checkpoint=folder / "checkpoint", batch_rows=50, buckets=4, **options
    ).wait()
    return sink.table().to_pylist()
