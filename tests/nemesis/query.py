"""The query under the nemesis, what it reads, and what its three outputs must have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

import tidegate as tg
from tests.kafka.reading import Record
from tests.oracle.graph import interpret

PARTITIONS = 3
START = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(milliseconds=50)
END = START + timedelta(days=3650)
"""The time of the last record of each partition: it lets all others be ready, and never is."""

STREAM = """
CREATE STREAM r (ts TIMESTAMP, k STRING, v BIGINT)
FROM 'kafka://{kafka}/in' TIME ts OPTIONS (format 'json');
"""
OUTPUTS = """
INSERT INTO counts
SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY k;

INSERT INTO pairs
SELECT a.k, a.v AS one, b.v AS other
FROM r [RANGE 50 MILLISECONDS] AS a JOIN r [RANGE 50 MILLISECONDS] AS b
ON a.k = b.k AND a.v < b.v;

INSERT INTO odd SELECT k, v FROM r WHERE v % 2 = 1;
"""
NAMES = ("counts", "pairs", "odd")
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64())])

Row = dict[str, Any]


def body(number: int) -> bytes:
    """The value of a record; each partition gets one at the same time as the others."""
    ts = START + number // PARTITIONS * STEP
    return _json(ts, f"k{number * 7919 % 5}", number)


def last_body() -> bytes:
    return _json(END, "end", -1)


def _json(ts: datetime, k: str, v: int) -> bytes:
    return json.dumps({"ts": ts.isoformat(), "k": k, "v": v}).encode()


def meant(records: Sequence[Record]) -> dict[str, list[Row]]:
    """The rows of each output in order, by the interpreter, from what is in the topic."""
    parts = [[r.row for r in records if r.partition == p] for p in range(PARTITIONS)]
    tables = [table([row for row in rows if row["k"] != "end"]) for rows in parts]
    source = tg.MemorySource(SCHEMA.empty_table(), time="ts")
    session = tg.Session(master="none")
    stream = session.stream(source, time="ts", name="r")
    nodes = {name: s.node for name, s in session.queries(OUTPUTS, r=stream).items()}
    found = interpret(nodes, {"r": tables})
    return {name: [plain(row) for row in rows] for name, rows in found.items()}


def table(rows: Sequence[Row]) -> pa.Table:
    columns = {
        "ts": [datetime.fromisoformat(row["ts"]) for row in rows],
        "k": [row["k"] for row in rows],
        "v": [row["v"] for row in rows],
    }
    return pa.table(columns, schema=SCHEMA)


def plain(row: Mapping[str, Any]) -> Row:
    """A row, whoever has read it: times are microseconds."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value[:2] == "20":  # of all texts only times begin so
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
    return value


def difference(found: Mapping[str, list[Row]], wanted: Mapping[str, list[Row]]) -> str | None:
    """The first row that is not as it must be, None if all are."""
    for name in NAMES:
        pairs = zip(found[name], wanted[name], strict=False)
        odd = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
        if odd is not None:
            return f"{name}: row {odd} must be {wanted[name][odd]}; got {found[name][odd]}"
        if len(found[name]) > len(wanted[name]):
            return f"{name}: must have {len(wanted[name])} rows; got {len(found[name])}"
    return None
