"""Histories in files and tables beside topics of the tests' broker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from tools.kafka import Broker

from tests.kafka.topic import START, send
from tests.oracle.backfill import Record

SQL = "SELECT v, _partition, _offset FROM r"
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("v", pa.int64()),
        ("_partition", pa.int64()),
        ("_offset", pa.int64()),
    ]
)


def records(numbers: Sequence[int], partitions: int) -> dict[int, list[Record]]:
    """Numbered records in turn to all partitions, a second apart by their numbers."""
    found: dict[int, list[Record]] = {p: [] for p in range(partitions)}
    for n in numbers:
        own = found[n % partitions]
        own.append(Record(START + timedelta(seconds=n), n, n % partitions, len(own)))
    return found


def fill(broker: Broker, topic: str, by_partition: dict[int, list[Record]]) -> None:
    broker.create(topic, len(by_partition), retention_ms="-1")
    rows = [row for own in by_partition.values() for row in own]
    more(broker, topic, rows)


def more(broker: Broker, topic: str, rows: Sequence[Record]) -> None:
    send(broker, topic, [(r.partition, body(r)) for r in rows])


def body(row: Record) -> bytes:
    return json.dumps({"ts": row.ts.isoformat(), "v": row.v}).encode()


def table(rows: Sequence[Record]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"ts": r.ts, "v": r.v, "_partition": r.partition, "_offset": r.offset} for r in rows],
        schema=SCHEMA,
    )


def write_files(folder: Path, files: Sequence[Sequence[Record]]) -> str:
    folder.mkdir()
    for number, rows in enumerate(files):
        pq.write_table(table(rows), folder / f"{number:03}.parquet", row_group_size=7)
    return str(folder)


def write_delta(folder: Path, files: Sequence[Sequence[Record]]) -> str:
    for rows in files:
        write_deltalake(str(folder), table(rows), mode="append")
    return f"delta:{folder}"


def in_time(rows: Sequence[Record]) -> list[Record]:
    return sorted(rows, key=lambda r: (r.ts, r.partition))


def read(rows: Sequence[dict[str, Any]]) -> list[Record]:
    return [Record(r["ts"], r["v"], r["_partition"], r["_offset"]) for r in rows]
