"""The input of all engines: three streams of two sources each, from a seed, in files.

A source is in the order in which its rows arrive. Those of `trades` and `quotes` ascend in time;
of `late` some rows come up to 3 s after their time, which every engine allows for also where their
source is behind the other, and a few 25 s after it, which none does. Both sources of a stream have
rows of the same instants.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

SEED = 7
SECONDS = 120
STEP_MS = 50
KEYS = 8
ALLOWED_S = 10
"""What every engine is told that rows may be late by."""
CHUNK_S = 3
"""What arrives at once, from one source: less than a third of what is allowed for."""
STREAMS = ("trades", "quotes", "late")
SOURCES = ("a", "b")
ARRIVALS = ("in step", "b behind", "b first")
START_MS = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 1_000
_FILE_AGE_S = 1_700_000_000
_SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.string()),
        ("price", pa.float64()),
        ("qty", pa.int64()),
        ("id", pa.int64()),
    ]
)


def source(stream: str, name: str) -> pa.Table:
    """The rows of one source, in the order of their arrival."""
    number = 2 * STREAMS.index(stream) + SOURCES.index(name)
    random = np.random.default_rng((SEED, number))
    step = STEP_MS * (2 if stream == "quotes" else 1)
    rows = SECONDS * 1_000 // step
    arrives = np.arange(rows) * step
    # An id comes twice: in the other source up to two seconds later, or at the same instant.
    ids = np.arange(rows) - (random.integers(0, 2_000 // step, rows) if name == "b" else 0)
    delay = np.zeros(rows, np.int64)
    if stream == "late":
        delay = np.where(random.random(rows) < 0.08, random.integers(0, 30, rows) * 100, 0)
        delay = np.where(random.random(rows) < 0.03, 25_000, delay)
    times = (START_MS + arrives - delay) * 1_000
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")).cast(_SCHEMA.field("ts").type),
            "k": np.array(list("abcdefgh"))[random.integers(0, KEYS, rows)],
            "price": random.random(rows) * 100,
            "qty": random.integers(1, 4, rows),
            "id": ids,
        },
        schema=_SCHEMA,
    )


def chunks(stream: str, arrival: str) -> Iterator[tuple[str, pa.Table]]:
    """What arrives one after the other, with its name: the source, and its number in there.

    `in step`: three seconds of one source, then those of the other. `b behind`: the second source
    is three more seconds behind. `b first`: the second source is before the first one.
    """
    tables = {name: source(stream, name) for name in SOURCES}
    first = "b" if arrival == "b first" else "a"
    other = "a" if first == "b" else "b"
    behind = 1 if arrival == "b behind" else 0
    count = SECONDS // CHUNK_S
    for turn in range(count + behind):
        for name, number in ((first, turn), (other, turn - behind)):
            if 0 <= number < count:
                rows = tables[name].num_rows // count
                yield f"{name}-{number:03}", tables[name].slice(number * rows, rows)


def write(folder: Path) -> None:
    """All input: whole sources, and for each arrival a file for each chunk, ever newer."""
    for stream in STREAMS:
        for name in SOURCES:
            table = source(stream, name)
            place = folder / "whole" / f"{stream}-{name}"
            place.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, place.with_suffix(".parquet"))
            _write_csv(table, place.with_suffix(".csv"))
        for arrival in ARRIVALS:
            into = folder / arrival.replace(" ", "-") / stream
            into.mkdir(parents=True, exist_ok=True)
            for number, (name, table) in enumerate(chunks(stream, arrival)):
                file = into / f"{name}.parquet"
                pq.write_table(table, file)
                os.utime(file, (_FILE_AGE_S + number, _FILE_AGE_S + number))
            arrived = pa.concat_tables([table for _, table in chunks(stream, arrival)])
            _write_csv(arrived, into.with_suffix(".csv"))


def _write_csv(table: pa.Table, file: Path) -> None:
    """Without a header, and times without a zone, as Flink's format reads them."""
    plain = table.set_column(0, "ts", table.column("ts").cast(pa.timestamp("ms")).cast(pa.string()))
    pc.write_csv(plain, file, pc.WriteOptions(include_header=False, quoting_style="none"))
