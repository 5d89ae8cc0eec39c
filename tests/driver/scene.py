"""Small queries over rows of (second, key, value), run batch by batch in this process."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSystem

from tidegate.clock import Clock
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.driver.pipeline import StepSeen
from tidegate.execute.local import LocalRunner
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import Plan
from tidegate.query.node.node import StreamDef
from tidegate.query.output import single
from tidegate.schema import TIME
from tidegate.sink.memory import MemorySink
from tidegate.sink.protocol import Sink
from tidegate.source.memory import MemorySource
from tidegate.source.registry import open_uri
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store

SCHEMA = pa.schema([("ts", TIME), ("k", pa.string()), ("v", pa.int64())])
COUNTS = "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
PASSED = "SELECT k, v FROM s"

Row = tuple[float | None, str | None, int | None]
Location = str | Path | tuple[FileSystem, str]


def table(*rows: Row) -> pa.Table:
    """Rows whose times are seconds since 1970."""
    times = pa.array([None if r[0] is None else int(r[0] * 1_000_000) for r in rows], pa.int64())
    columns = [times.cast(TIME), [r[1] for r in rows], [r[2] for r in rows]]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA)], schema=SCHEMA)


def memory(*rows: Row, id: str = "memory", end: bool = False) -> MemorySource:
    source = MemorySource(table(*rows), time="ts", schema=SCHEMA, id=id)
    if end:
        source.end()
    return source


def csv(path: Path, *rows: Row, more: bool = False) -> str:
    """Write a file, or add to one; its path as a URI."""
    lines = [f"{moment(t)},{k or ''},{'' if v is None else v}\n" for t, k, v in rows]
    if more:
        with path.open("a") as file:
            file.writelines(lines)
    else:
        path.write_text("ts,k,v\n" + "".join(lines))
    return str(path)


def moment(second: float | None) -> str:
    """A time as text."""
    return "" if second is None else datetime.fromtimestamp(second, UTC).isoformat()


def plan_of(sql: str, *, disorder_s: float = 0, idle_s: float | None = None) -> Plan:
    """The plan of a query over the stream s."""
    idle_us = None if idle_s is None else int(idle_s * 1e6)
    stream = StreamDef("s", (), "ts", int(disorder_s * 1e6), idle_us, SCHEMA)
    return lower(single(bind(read_script(sql), {"s": stream})))


def opened(uri: str, follow: bool = True) -> Connection:
    return Connection(0, open_uri(uri, "s", "ts", follow), uri)


def loop_of(
    plan: Plan,
    sources: Sequence[MemorySource | Connection],
    checkpoint: Location,
    sink: Sink | None = None,
    clock: Clock | None = None,
    observer: StepSeen | None = None,
    **options: Any,
) -> Loop:
    """A loop on a checkpoint, ready to step."""
    connections = [s if isinstance(s, Connection) else Connection(0, s) for s in sources]
    chosen = RunOptions(**{"buckets": 8, "instances": 2, **options})
    store = Store.open(checkpoint)
    sinks = {None: sink or MemorySink()}
    return Loop(plan, connections, store, sinks, LocalRunner(), chosen, clock, observer)


def drain(loop: Loop) -> int:
    """Step until there is nothing to do; how many batches that took."""
    batches = 0
    while loop.step() is not None:
        batches += 1
    return batches


def run_dry(loop: Loop) -> None:
    """Step until there is nothing to do, and let go of the checkpoint."""
    drain(loop)
    loop.close()


def compacted(loop: Loop) -> None:
    """Wait for what the last batch left to others: deletions, and the rewriting of state.

    The next one takes in what was rewritten.
    """
    loop.pipeline.checkpoint.retirement.wait()
    for subquery in loop.pipeline.subqueries:
        for compactor in subquery._compactors.values():
            compactor.wait()


def rows_of(sink: Sink) -> list[tuple[Any, ...]]:
    """What a memory sink has got, in order, times as seconds."""
    assert isinstance(sink, MemorySink)
    columns = [
        [v / 1e6 for v in c.cast(pa.int64()).to_pylist()]
        if pa.types.is_timestamp(c.type)
        else c.to_pylist()
        for c in sink.table().columns
    ]
    return list(zip(*columns, strict=True))
