"""Small queries that touch all there is to lose: state, waiting tuples, side outputs, switches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.operate.process.definition import Process
from tidegate.query.output import Output
from tidegate.query.stream import Stream
from tidegate.session.script import streams_of
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

TIME = pa.timestamp("us", tz="UTC")
START_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
ROWS = 600
"""Rows per source."""
PAUSE = timedelta(seconds=1)


class Rises(Process):
    """How much more the seats of a route are than before, and how many came before a pause."""

    output: ClassVar = {"route": "string", "more": "bigint"}

    def __init__(self) -> None:
        self.last = self.state.map("last", ttl="5 minutes")
        self.seats = self.state.columns("seats", {"seats": "bigint"}, ttl="5 minutes")
        self.count = 0
        self.newest: datetime | None = None

    def on_tuple(self, tuple: Any, keys: Sequence[str | None]) -> Iterator[dict[str, Any]]:
        self.count += 1
        self.newest = tuple.ts
        self.seats.append({"ts": [tuple.ts], "seats": [tuple.seats]})
        self.wake(tuple.ts + PAUSE)
        for key in keys:
            before = self.last.get(str(key), 0)
            if tuple.seats > before:
                yield {"route": key, "more": tuple.seats - before}
            self.last[str(key)] = tuple.seats

    def on_frontier(self, ts: datetime) -> Iterator[dict[str, Any]]:
        if self.newest is not None and ts - self.newest == PAUSE:
            yield {"route": f"pause of {self.bucket}", "more": self.count}
            yield {"route": "seats of late", "more": int(self.seats["seats"].sum())}
            self.count = 0


@dataclass(frozen=True)
class Own:
    """An output that a class of its own makes of another one's rows."""

    of: str
    factory: type[Process]
    keys: str


@dataclass(frozen=True)
class Scene:
    """One query over the files that `write_inputs` makes, and how it is cut and shared out.

    In `sql` the folder of the inputs is written {inputs}.
    """

    name: str
    sql: str
    format: str
    batch_rows: int
    instances: int = 2
    switches: Mapping[int, int] = field(default_factory=dict)
    processes: Mapping[str, Own] = field(default_factory=dict)

    def script(self, inputs: Path | str) -> str:
        return self.sql.replace("{inputs}", str(inputs))

    def outputs(self, inputs: Path | str) -> list[Output]:
        """What is put out: by the script, and by the processes over that."""
        script = read_script(self.script(inputs))
        found = list(bind(script, streams_of(script)))
        streams = {o.name: Stream(o.node, _nothing, _nothing) for o in found}
        for name, own in self.processes.items():
            made = streams[own.of].process(own.factory, keys=own.keys)
            found.append(Output(name, made.node))
        return found


AGGREGATE = Scene(
    "aggregate",
    """
    CREATE STREAM rides FROM '{inputs}/a.parquet', '{inputs}/b.csv', '{inputs}/c.json'
    TIME at DISORDER 2 SECONDS;

    SELECT route, COUNT(*) AS n, SUM(fare) AS total, AVG(fare) AS fare, STDDEV(fare) AS spread,
           MEDIAN(fare) AS middle, COUNT(DISTINCT seats) AS kinds, MAX(seats) AS most
    FROM rides [RANGE 60 SECONDS SLIDE 20 SECONDS]
    WHERE seats > 0
    GROUP BY route
    HAVING COUNT(*) > 1;
    """,
    "parquet",
    batch_rows=140,
)

STATELESS = Scene(
    "stateless",
    """
    CREATE STREAM rides FROM '{inputs}/a.parquet', '{inputs}/b.csv' TIME at DISORDER 15 SECONDS;
    CREATE STREAM more FROM '{inputs}/c.json' TIME at DISORDER 3 SECONDS;

    SELECT route, fare * 2 AS double_fare, seats FROM rides WHERE seats > 1
    UNION ALL
    SELECT route, fare AS double_fare, seats FROM more;
    """,
    "json",
    batch_rows=165,
)

TOP = Scene(
    "top",
    """
    CREATE STREAM rides FROM '{inputs}/many' TIME at;

    SELECT route, VAR(fare) AS spread, COUNT(*) AS n
    FROM rides [RANGE 5 MINUTES SLIDE 30 SECONDS]
    GROUP BY route
    ORDER BY spread DESC LIMIT 5;
    """,
    "csv",
    batch_rows=120,
    switches={2: 3, 5: 1, 8: 4},
)

THROUGH_SQL = replace(
    AGGREGATE,
    name="through-sql",
    sql=AGGREGATE.sql.replace(
        "WHERE seats > 0", "WHERE seats > 0 AND soundex(coalesce(route, 'x')) IS NOT NULL"
    ),
)
"""The same rows by way of Spark SQL, which alone knows the function."""

WHOLE = Scene(
    "whole",
    """
    CREATE STREAM rides FROM '{inputs}/a.parquet', '{inputs}/b.csv', '{inputs}/c.json'
    TIME at DISORDER 2 SECONDS;
    CREATE STREAM busy AS
    SELECT route, COUNT(*) AS n, AVG(fare) AS fare
    FROM rides [RANGE 30 SECONDS SLIDE 10 SECONDS] WHERE seats > 0 GROUP BY route;
    CREATE STREAM dear AS
    SELECT r.route, r.fare - b.fare AS more, b.n
    FROM rides [RANGE 20 SECONDS] AS r JOIN busy [RANGE 20 SECONDS] AS b
    ON r.route = b.route AND r.fare > b.fare;

    SELECT route, SUM(more) AS more, MAX(n) AS n, COUNT(*) AS pairs
    FROM dear [ROWS 8 SLIDE 3] GROUP BY route;
    """,
    "json",
    batch_rows=150,
    switches={3: 3, 6: 1},
)
"""Three stateful operators, one of them taking the rows of another and the stream itself."""

SEVERAL = Scene(
    "several",
    """
    CREATE STREAM rides FROM '{inputs}/a.parquet', '{inputs}/b.csv' TIME at DISORDER 2 SECONDS;
    CREATE STREAM more FROM '{inputs}/c.json' TIME at DISORDER 3 SECONDS;

    INSERT INTO busy
    SELECT route, COUNT(*) AS n, SUM(fare) AS total FROM rides [ROWS 8 SLIDE 3] GROUP BY route;

    INSERT INTO pairs
    SELECT r.route, r.fare - m.fare AS more, m.seats
    FROM rides AS r [RANGE 20 SECONDS] JOIN more AS m [RANGE 20 SECONDS]
    ON r.route = m.route AND r.fare > m.fare;
    """,
    "parquet",
    batch_rows=150,
    switches={3: 3, 6: 1},
    processes={"rises": Own("pairs", Rises, "route")},
)
"""Three outputs: windows of tuples, a join, and a class of its own over the pairs."""

WAITING = Scene(
    "waiting",
    """
    CREATE STREAM rides FROM '{inputs}/a.parquet', '{inputs}/b.csv' TIME at DISORDER 2 SECONDS;
    CREATE STREAM more FROM '{inputs}/c.json' TIME at DISORDER 3 SECONDS;
    CREATE TABLE zones FROM '{inputs}/zones.csv';
    CREATE STREAM once AS
    SELECT DISTINCT ON (route, seats) route, seats, fare FROM rides KEEP FIRST WITHIN 20 SECONDS;

    INSERT INTO visits
    SELECT z.zone, COUNT(*) AS n, SUM(o.fare) AS total
    FROM once AS o [SESSION GAP 2 SECONDS MAX 30 SECONDS] JOIN zones AS z ON o.route = z.route
    GROUP BY z.zone;

    INSERT INTO pairs
    SELECT r.route, r.fare, m.seats
    FROM rides AS r [RANGE 20 SECONDS] LEFT JOIN more AS m [RANGE 5 SECONDS]
    ON r.route = m.route AND r.fare > m.fare + 4;

    INSERT INTO latest
    SELECT DISTINCT ON (route) route, before, fare FROM (
      SELECT r.route, m.fare AS before, SUM(r.fare) OVER (PARTITION BY r.route ORDER BY ts) AS fare
      FROM rides AS r ASOF JOIN more AS m [RANGE 1 MINUTE] MATCH_CONDITION (r.ts >= m.ts)
      ON r.route = m.route
    ) KEEP LAST WITHIN 10 SECONDS;
    """,
    "parquet",
    batch_rows=150,
    switches={3: 3, 6: 1},
)
"""Sessions over tuples that are kept once and joined to a table, an outer join, and tuples that
wait, over running sums, over an as-of join."""

LOCAL = (AGGREGATE, STATELESS, TOP, WHOLE, SEVERAL, WAITING)
SCENES = {s.name: s for s in (*LOCAL, THROUGH_SQL)}


def _nothing(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("the driver starts the query, not its streams")


@dataclass(frozen=True)
class Ordered:
    """A query whose rows do not depend on the cut, over files that follow each other in time."""

    query: str
    columns: str
    files: int


IN_ORDER = Ordered(
    """
    SELECT route, COUNT(*) AS n, SUM(seats) AS seats, MAX(fare) AS fare
    FROM rides [RANGE 60 SECONDS SLIDE 20 SECONDS]
    GROUP BY route
    """,
    "at timestamp, route string, fare double, seats long",
    files=8,
)


def write_in_order(folder: Path) -> Path:
    """Files for `IN_ORDER`, in the order that Spark and the engine take them: the same rows."""
    folder.mkdir(parents=True)
    rides = _rides(np.random.default_rng(7), START_US)
    rides = rides.filter(rides["at"].is_valid()).sort_by("at")
    rows = -(-rides.num_rows // IN_ORDER.files)
    for number in range(IN_ORDER.files):
        path = folder / f"{number}.parquet"
        pq.write_table(rides.slice(number * rows, rows), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def write_inputs(folder: Path) -> Path:
    """The files of all scenes: out of order here and there, with rows that cannot be read."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(20_240_229)
    tables = [_rides(generator, START_US + shift * SECOND_US) for shift in (0, 7, -4)]
    pq.write_table(tables[0], folder / "a.parquet", row_group_size=128)
    _write_csv(tables[1], folder / "b.csv")
    _write_json(tables[2], folder / "c.json")
    zones = "".join(f"r{r},zone {r % 3}\n" for r in range(1, 12))
    (folder / "zones.csv").write_text(f"route,zone\n{zones}", encoding="utf-8")
    (folder / "many").mkdir()
    for number, table in enumerate(tables):
        for part in range(2):
            half = table.slice(part * ROWS // 2, ROWS // 2)
            pq.write_table(half, folder / "many" / f"{number}-{part}.parquet")
    return folder


def _rides(generator: np.random.Generator, start_us: int) -> pa.Table:
    steps = generator.integers(0, 3 * SECOND_US // 2, ROWS)
    times = start_us + np.cumsum(steps)
    late = generator.random(ROWS) < 0.02
    times[late] -= generator.integers(4, 40, int(late.sum())) * SECOND_US
    timeless = generator.random(ROWS) < 0.01
    routes = generator.integers(0, 12, ROWS)
    return pa.table(
        {
            "at": pa.array(times, pa.int64(), mask=timeless).cast(TIME),
            "route": pa.array([None if r == 0 else f"r{r}" for r in routes.tolist()], pa.string()),
            "fare": pa.array(generator.normal(10, 3, ROWS), mask=generator.random(ROWS) < 0.05),
            "seats": pa.array(generator.integers(0, 5, ROWS)),
        }
    )


def _write_csv(table: pa.Table, path: Path) -> None:
    lines = ["at,route,fare,seats"]
    for number, row in enumerate(table.to_pylist()):
        cells = ["" if v is None else str(v) for v in row.values()]
        if number % 61 == 50:
            cells.append("extra")
        lines.append(",".join(cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_json(table: pa.Table, path: Path) -> None:
    lines = []
    for number, row in enumerate(table.to_pylist()):
        line = json.dumps({k: str(v) if k == "at" and v else v for k, v in row.items()})
        lines.append(line if number % 73 != 60 else line[:20])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
