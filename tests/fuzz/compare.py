"""Both engines over the same streams, and how their answers are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import tidegate as tg
from tests.fuzz.query import Script, draw_script, has_join
from tests.fuzz.row import Chance, Stream, in_order, stream

RELATIVE = 1e-9


def check_seed(seed: int) -> None:
    """Draw streams and a query from a seed; run it twice, cut differently, and by DuckDB."""
    check(seed, draw_script, family=10)


def check(seed: int, draw: Callable[[Chance, Sequence[Stream]], Script], family: int) -> None:
    """The same with queries that `draw` gives; those of another family have other streams."""
    chance = np.random.default_rng([family, seed])
    streams = [stream(chance, name) for name in ("s", "t")]
    script = draw(chance, streams)
    joins = has_join(script)
    once = by_tidegate(script.spark, streams, draw_options(chance, joins))
    options = draw_options(chance, joins)
    again = by_tidegate(script.spark, streams, options)
    told = f"seed {seed}\n{script.spark}\n{options}\n"
    assert repr(again.to_pylist()) == repr(once.to_pylist()), told
    wanted = by_duckdb(script, streams)
    problem = difference(script, once, wanted)
    assert problem is None, f"{told}{script.duck}\n{problem}"


def draw_options(chance: Chance, joins: bool) -> dict[str, Any]:
    """How a query is run, which must not matter."""
    of_joins = {
        "method": str(chance.choice(["auto", "scan"])),
        "routing": str(chance.choice(["auto", "round-robin"])),
    }
    return (of_joins if joins else {}) | {
        "batch_rows": int(chance.choice([3, 17, 50, 1000])),
        "instances": int(chance.integers(1, 4)),
        "buckets": int(chance.choice([4, 8, 64])),
        "switches": {int(chance.integers(1, 4)): int(chance.integers(1, 4))},
        "strategy": str(chance.choice(["operator-set", "query-cloud", "operator-cloud"])),
    }


def by_tidegate(text: str, streams: Sequence[Stream], options: dict[str, Any]) -> pa.Table:
    session = tg.Session(master="none")
    sink = tg.sink.memory()
    session.sql(text, **opened(session, streams)).start(sink=sink, **options).wait()
    return sink.table()


def opened(session: tg.Session, streams: Sequence[Stream]) -> dict[str, tg.Stream]:
    """The streams as a session has them, by name."""
    found = {}
    for given in streams:
        sources = []
        for number, table in enumerate(given.sources):
            source = tg.MemorySource(table, time="ts", id=f"{given.name}/{number}")
            source.end()
            sources.append(source)
        disorder = f"{given.disorder_us} microseconds"
        found[given.name] = session.stream(sources, time="ts", name=given.name, disorder=disorder)
    return found


@cache
def database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def by_duckdb(script: Script, streams: Sequence[Stream]) -> list[tuple[Any, ...]]:
    connection = database()
    for given in streams:
        tuples = in_order(given)
        columns = {
            name: pa.array([row[name] for _, row in tuples], plain(kind.arrow))
            for name, kind in given.kinds.items()
        }
        columns["~ts"] = pa.array([ts for ts, _ in tuples], pa.int64())
        columns["~seq"] = pa.array(range(len(tuples)), pa.int64())
        connection.register(given.name, pa.table(columns))
    return connection.sql(script.duck).fetchall()


def plain(kind: pa.DataType) -> pa.DataType:
    """Without a zone: for DuckDB all times are UTC."""
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def difference(script: Script, got: pa.Table, wanted: Sequence[tuple[Any, ...]]) -> str | None:
    """What differs, in words; None where nothing does."""
    assert script.output is not None
    head = ["window_start", "window_end"] if script.output.windowed else ["ts"]
    names = [*head, *script.output.columns]
    if got.column_names != names:
        return f"columns {got.column_names} instead of {names}"
    for name, kind in script.output.columns.items():
        if got.schema.field(name).type != kind.arrow:
            return f"{name} is {got.schema.field(name).type} instead of {kind.arrow}"
    rows = list(zip(*(column.to_pylist() for column in got.columns), strict=True))
    if len(rows) != len(wanted):
        return f"{len(rows)} rows instead of {len(wanted)}:\n{rows[:5]}\n{wanted[:5]}"
    for number, (ours, theirs) in enumerate(zip(rows, wanted, strict=True)):
        if not all(map(same, ours, theirs)):
            return f"row {number} is {ours} instead of {theirs}"
    return None


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=1e-9)
    if isinstance(ours, datetime) and isinstance(theirs, datetime):
        return ours.astimezone(UTC).replace(tzinfo=None) == theirs
    return bool(ours == theirs) and type(ours) is type(theirs)
