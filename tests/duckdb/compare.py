"""Both engines over the same rows, and how their answers are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tidegate as tg
from tests.duckdb.batch import load, rewrite
from tests.duckdb.join import is_join, rewrite_join
from tidegate.sink.memory import MemorySink

RELATIVE = 1e-9
"""How far floats may differ: the engines add in different orders."""

BESIDE_ZERO = 1e-12
"""How far they may differ of the largest of their column."""


@dataclass(frozen=True)
class Streamed:
    """A stream as tables, one per source in its own order; the disorder it promises."""

    sources: Sequence[pa.Table]
    time: str = "ts"
    disorder_us: int = 0


@dataclass(frozen=True)
class Answer:
    """What Tidegate gave: the output sequence, and late and rejected tuples."""

    rows: pa.Table
    late: Mapping[str, pa.Table] = field(default_factory=dict)
    rejected: pa.Table | None = None


def check(text: str, streams: Mapping[str, Streamed | pa.Table], **options: Any) -> pa.Table:
    """Assert that both engines give the same columns, types and rows in the same order."""
    given = {n: s if isinstance(s, Streamed) else Streamed([s]) for n, s in streams.items()}
    wanted = by_duckdb(text, given)
    got = by_tidegate(text, given, **options)
    found = differences(got.rows, wanted)
    assert not found, f"{text}\n" + "\n".join(found)
    return got.rows


def by_duckdb(text: str, streams: Mapping[str, Streamed]) -> pa.Table:
    """The answer of DuckDB to the query as a batch query."""
    connection = database()
    for name, stream in streams.items():
        load(connection, name, stream.sources, stream.time, stream.disorder_us)
    if is_join(text):
        return connection.sql(rewrite_join(text)).to_arrow_table()
    columns = {n for stream in streams.values() for n in stream.sources[0].column_names}
    return connection.sql(rewrite(text, columns)).to_arrow_table()


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One database in memory for a whole run; a stream of the same name replaces the one before."""
    return duckdb.connect(config={"threads": 1})


def by_tidegate(
    text: str, streams: Mapping[str, Streamed], spark: Any = None, **options: Any
) -> Answer:
    """The answer of Tidegate, without Spark unless a session is given."""
    session = tg.Session(spark) if spark is not None else tg.Session(master="none")
    opened = {}
    for name, stream in streams.items():
        sources = []
        for number, table in enumerate(stream.sources):
            source = tg.MemorySource(table, time=stream.time, id=f"{name}/{number:02d}")
            source.end()
            sources.append(source)
        disorder = f"{stream.disorder_us} microseconds"
        opened[name] = session.stream(sources, time=stream.time, name=name, disorder=disorder)
    sink = MemorySink()
    session.sql(text, **opened).start(sink=sink, **options).wait()
    outputs = [sink.batches[b] for b in sorted(sink.batches)]
    late = {
        name: pa.concat_tables([o.late[name] for o in outputs if name in o.late])
        for name in streams
        if any(name in o.late for o in outputs)
    }
    rejected = [o.rejected for o in outputs if o.rejected is not None]
    return Answer(sink.table(), late, pa.concat_tables(rejected) if rejected else None)


def differences(got: pa.Table, wanted: pa.Table, places: int = 3) -> list[str]:
    """What differs, in words; empty where the answers are equal."""
    if got.column_names != wanted.column_names:
        return [f"columns {got.column_names} instead of {wanted.column_names}"]
    found = [
        f"{name} is {ours.type} where DuckDB has {theirs.type}"
        for name, ours, theirs in zip(got.column_names, got.columns, wanted.columns)
        if family(ours.type) != family(theirs.type) and not _mean_of_decimals(ours, theirs)
    ]
    if found:
        return found
    if got.num_rows != wanted.num_rows:
        found.append(f"{got.num_rows} rows instead of {wanted.num_rows}")
        got, wanted = got.slice(0, wanted.num_rows), wanted.slice(0, got.num_rows)
    for name, ours, theirs in zip(got.column_names, got.columns, wanted.columns):
        bad = np.flatnonzero(~_equal(ours, theirs))
        found += [f"{name}[{i}] is {ours[i]} instead of {theirs[i]}" for i in bad[:places]]
        if len(bad) > places:
            found.append(f"{name} differs in {len(bad)} rows")
    if found:
        first = min(got.num_rows, 3)
        found += [f"got {got.slice(0, first).to_pylist()}"]
        found += [f"wanted {wanted.slice(0, first).to_pylist()}"]
    return found


def family(type_: pa.DataType) -> str:
    """The kind of a type, by which both engines must agree; widths may differ.

    DuckDB sums integers as HUGEINT, which arrives as decimal(38, 0).
    """
    kinds = pa.types
    if kinds.is_integer(type_) or (kinds.is_decimal(type_) and type_.scale == 0):
        return "integer"
    if kinds.is_decimal(type_):
        return f"decimal of scale {type_.scale}"
    if kinds.is_floating(type_):
        return "float"
    return "timestamp" if kinds.is_timestamp(type_) else str(type_)


def _mean_of_decimals(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> bool:
    """DuckDB averages decimals as DOUBLE, Spark as a decimal with four more places."""
    return pa.types.is_decimal(ours.type) and pa.types.is_floating(theirs.type)


def _equal(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> np.ndarray:
    missing = ours.is_null().to_numpy(), theirs.is_null().to_numpy()
    if pa.types.is_floating(theirs.type):
        same = _close(_floats(ours), _floats(theirs), _half_place(ours.type))
    else:
        shared = ours.type if not pa.types.is_timestamp(ours.type) else pa.timestamp("us")
        if pa.types.is_decimal(theirs.type) and not pa.types.is_decimal(ours.type):
            shared = theirs.type
        if pa.types.is_integer(shared):
            shared = pa.int64()
        if pa.types.is_decimal(shared):
            shared = pa.decimal128(38, shared.scale)
        same = pc.equal(ours.cast(shared), theirs.cast(shared)).fill_null(True).to_numpy()
    return (missing[0] == missing[1]) & (missing[0] | same)


def _half_place(type_: pa.DataType) -> float:
    """What rounding to the scale of a decimal may change."""
    return 0.500001 * 10.0**-type_.scale if pa.types.is_decimal(type_) else 0.0


def _floats(column: pa.ChunkedArray) -> np.ndarray:
    return column.cast(pa.float64()).fill_null(0.0).to_numpy()


def _close(ours: np.ndarray, theirs: np.ndarray, rounding: float) -> np.ndarray:
    """Equal to RELATIVE; beside 0, where cancelling leaves no digits, to a part of the column."""
    finite = np.abs(theirs[np.isfinite(theirs)])
    floor = BESIDE_ZERO * max(finite.max(initial=0.0), 1.0) + rounding
    with np.errstate(invalid="ignore"):
        near = np.abs(ours - theirs) <= RELATIVE * np.abs(theirs) + floor
    near &= np.isfinite(ours) & np.isfinite(theirs)
    return near | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
