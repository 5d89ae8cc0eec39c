"""Types, values and tables by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Chance = np.random.Generator

WORDS = ("", "a", "b", "B", "ab", "aé", "z", "zebra", "日本", "a b", "0", "-1", "null", "%", "a'b")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Kind:
    """A type of columns: its Arrow type, its name in both dialects, and how values are drawn.

    `exact` kinds may be compared, grouped and ordered by: both engines have the same bits.
    """

    name: str
    arrow: pa.DataType
    spark: str
    duck: str
    draw: Callable[[Chance], Any]
    exact: bool = True


def whole(low: int, high: int) -> Callable[[Chance], int]:
    return lambda chance: int(chance.integers(low, high + 1))


def _eighths(chance: Chance) -> float:
    """Multiples of an eighth, so that sums are exact in any order, and now and then a NaN."""
    if chance.random() < 0.02:
        return float(chance.choice([np.nan, np.inf, -np.inf, -0.0]))
    return float(chance.integers(-400, 400)) / 8


def _real(chance: Chance) -> float:
    return float(chance.normal(0, 1) * 10.0 ** chance.integers(-6, 7))


BOOLEAN = Kind("boolean", pa.bool_(), "BOOLEAN", "BOOLEAN", lambda c: bool(c.random() < 0.5))
BYTE = Kind("byte", pa.int8(), "TINYINT", "TINYINT", whole(-128, 127))
SHORT = Kind("short", pa.int16(), "SMALLINT", "SMALLINT", whole(-40, 40))
INTEGER = Kind("integer", pa.int32(), "INT", "INTEGER", whole(-9, 9))
LONG = Kind("long", pa.int64(), "BIGINT", "BIGINT", whole(-5, 5))
FLOAT = Kind("float", pa.float32(), "FLOAT", "FLOAT", _eighths)
DOUBLE = Kind("double", pa.float64(), "DOUBLE", "DOUBLE", _eighths)
REAL = Kind("real", pa.float64(), "DOUBLE", "DOUBLE", _real, exact=False)
DECIMAL = Kind(
    "decimal",
    pa.decimal128(12, 3),
    "DECIMAL(12,3)",
    "DECIMAL(12,3)",
    lambda c: Decimal(int(c.integers(-5000, 5000))).scaleb(-3),
)
STRING = Kind("string", pa.string(), "STRING", "VARCHAR", lambda c: WORDS[c.integers(len(WORDS))])
DATE = Kind(
    "date",
    pa.date32(),
    "DATE",
    "DATE",
    lambda c: date(1970, 1, 1) + timedelta(int(c.integers(-60, 60))),
)
TIMESTAMP = Kind(
    "timestamp",
    pa.timestamp("us", "UTC"),
    "TIMESTAMP",
    "TIMESTAMP",
    lambda c: EPOCH + timedelta(microseconds=int(c.integers(-(10**13), 10**13)) // 1000 * 1000),
)
INTEGERS = (BYTE, SHORT, INTEGER, LONG)
KINDS = (BOOLEAN, *INTEGERS, FLOAT, DOUBLE, REAL, DECIMAL, STRING, DATE, TIMESTAMP)


@dataclass(frozen=True)
class Stream:
    """A stream of several sources as it is given to both engines.

    `sources` have the event time `ts` first, each in its own sequence, out of order at most by
    `disorder_us` but for rows that are late, and some without a time, which are rejected.
    """

    name: str
    sources: Sequence[pa.Table]
    kinds: dict[str, Kind]
    disorder_us: int


def stream(chance: Chance, name: str, most: int = 60) -> Stream:
    """Columns of all kinds, times in bursts around 1970 with gaps, NULL everywhere."""
    count = int(chance.integers(2, 6))
    kinds = {
        f"c{n}": KINDS[k] for n, k in enumerate(chance.choice(len(KINDS), count, replace=False))
    }
    disorder_us = int(chance.choice([0, 0, 500_000, 3_000_000]))
    nulls = float(chance.choice([0.0, 0.1, 0.5]))
    sources = [
        table(chance, kinds, int(chance.integers(0, most)), disorder_us, nulls)
        for _ in range(chance.choice([1, 1, 2, 3]))
    ]
    return Stream(name, sources, kinds, disorder_us)


CHANGES_S = (0, 1_710_054_000, 1_730_613_600, 1_712_415_600, 1_743_296_400, -130_000_000)
"""Near 1970, when clocks are changed in New York, on Lord Howe and in Berlin, and before 1970."""


def years(chance: Chance, name: str) -> Stream:
    """The same over days, weeks or months, around the time when clocks are changed."""
    given = stream(chance, name)
    factor, base_us = (
        int(chance.choice([600, 7200, 86_400])),
        1_000_000 * int(chance.choice(CHANGES_S)),
    )
    sources = []
    for source in given.sources:
        times = source["ts"].cast(pa.int64()).to_pylist()
        later = pa.array([None if t is None else t * factor + base_us for t in times], pa.int64())
        sources.append(source.set_column(0, "ts", later.cast(source.schema.field(0).type)))
    return Stream(name, sources, given.kinds, given.disorder_us * factor)


def table(
    chance: Chance, kinds: dict[str, Kind], rows: int, disorder_us: int, nulls: float
) -> pa.Table:
    ts = _times(chance, rows, disorder_us)
    columns = {"ts": pa.array(ts, pa.int64()).cast(pa.timestamp("us", "UTC"))}
    for name, kind in kinds.items():
        values = [None if chance.random() < nulls else kind.draw(chance) for _ in range(rows)]
        columns[name] = pa.array(values, kind.arrow)
    return pa.table(columns)


def _times(chance: Chance, rows: int, disorder_us: int) -> list[int | None]:
    bursts = chance.integers(-20, 20, max(1, rows // 8)) * 1_000_000
    times = np.sort(chance.choice(bursts, rows) + chance.integers(0, 6, rows) * 250_000)
    swaps = chance.random(rows) < (0.2 if disorder_us else 0.03)
    times[swaps] -= chance.integers(0, max(disorder_us, 1) * 2, int(swaps.sum()))
    missing = chance.random(rows) < 0.02
    return [None if m else int(t) for t, m in zip(times, missing, strict=True)]


def plain(kind: pa.DataType) -> pa.DataType:
    """Without a zone: for DuckDB all times are UTC."""
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def in_order(given: Stream) -> list[tuple[int, dict[str, Any]]]:
    """The tuples that count, with their times, in the total order: by time, source and sequence."""
    found = []
    for number, source in enumerate(given.sources):
        newest: int | None = None
        times = source["ts"].cast(pa.int64()).to_pylist()
        for place, (ts, row) in enumerate(zip(times, source.to_pylist(), strict=True)):
            if ts is None:
                continue
            if newest is None or ts >= newest - given.disorder_us:
                found.append(((ts, number, place), row))
            newest = ts if newest is None else max(newest, ts)
    found.sort(key=lambda pair: pair[0])
    return [(key[0], row) for key, row in found]
