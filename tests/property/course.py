"""Runs of one query that differ in all that must not matter: arrival, cut, instances, crashes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.oracle.query import PlainStream
from tests.property.queries import SCHEMA
from tidegate.driver.loop import Connection, Loop
from tidegate.driver.options import RunOptions
from tidegate.elastic import request
from tidegate.execute.local import LocalRunner
from tidegate.plan.physical import Plan
from tidegate.sink.memory import MemorySink
from tidegate.source.memory import MemorySource
from tidegate.source.table import MOST_BYTES
from tidegate.state.store import Store

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
BUCKETS = 8


@dataclass(frozen=True)
class Append:
    """The next rows of a source arrive."""

    source: int
    rows: int


@dataclass(frozen=True)
class End:
    """The rest of a source arrives, and it ends."""

    source: int


@dataclass(frozen=True)
class Step:
    """The loop is asked for a batch; there may be nothing to do."""


@dataclass(frozen=True)
class Scale:
    """Another number of instances is asked for while the query runs."""

    instances: int


@dataclass(frozen=True)
class Restart:
    """The process ends between two batches and a new one continues."""

    instances: int | None


@dataclass(frozen=True)
class Crash:
    """The next batch fails at a step of it, and a new process continues."""

    step: str
    instances: int | None


Event = Append | End | Step | Scale | Restart | Crash


@dataclass(frozen=True)
class Course:
    """One way for a run to go; after the last event all that is left arrives, and it ends."""

    batch_rows: int
    events: tuple[Event, ...] = ()
    instances: int | None = 1
    switches: tuple[tuple[int, int], ...] = ()
    handover: str = "auto"
    whole_table_bytes: int = MOST_BYTES


AT_ONCE = Course(1_000_000)
"""Everything is there at the start: one batch, one instance."""


@dataclass(frozen=True)
class Result:
    """What a run gave: rows in order, side outputs in the order they came, and the counters."""

    rows: list[tuple[Any, ...]]
    late: list[tuple[Any, ...]]
    rejected: list[tuple[Any, ...]]
    counters: dict[str, int]


class _Crashed(Exception):
    """The process is taken to be dead."""


class _Run:
    """One query over memory sources, going a course."""

    def __init__(
        self, plan: Plan, streams: Sequence[PlainStream], course: Course, folder: str
    ) -> None:
        self.plan = plan
        self.course = course
        self.folder = folder
        given = once(streams)
        self.rows = [table_of(rows) for s in given for rows in s.sources]
        self.arrived = [0] * len(self.rows)
        self.sources = [
            MemorySource(time="ts", schema=SCHEMA, id=f"{s.name}/{place}")
            for s in given
            for place in range(len(s.sources))
        ]
        positions = [p for p, s in enumerate(given) for _ in s.sources]
        self.connections = [Connection(p, s) for p, s in zip(positions, self.sources, strict=True)]
        self.sink = MemorySink()
        self.fails_at: str | None = None
        self.restart_with: int | None = None
        self.loop = self.start(course.instances)

    def start(self, instances: int | None) -> Loop:
        options = RunOptions(
            instances=instances,
            buckets=BUCKETS,
            batch_rows=self.course.batch_rows,
            switches=dict(self.course.switches),
            handover=self.course.handover,
            whole_table_bytes=self.course.whole_table_bytes,
        )
        store = Store.open(self.folder)
        return Loop(
            self.plan,
            self.connections,
            store,
            {None: self.sink},
            LocalRunner(),
            options,
            observer=self.observe,
        )

    def observe(self, step: str, batch: int) -> None:
        if step == self.fails_at:
            raise _Crashed

    def go(self) -> None:
        for event in self.course.events:
            self.meet(event)
        for place in range(len(self.sources)):
            self.meet(End(place))
        while not self.loop.manifest.finished:
            batch = self.loop.manifest.batch
            self.step()
            assert self.loop.manifest.batch == batch + 1
        self.loop.close()

    def meet(self, event: Event) -> None:
        match event:
            case Append(source, rows):
                self.append(source % len(self.sources), rows)
            case End(source):
                place = source % len(self.sources)
                self.append(place, self.rows[place].num_rows)
                self.sources[place].end()
            case Step() if not self.loop.manifest.finished:
                self.step()
            case Scale(instances) if not self.loop.manifest.finished:
                self.loop.controls.ask(request.Request(request.Scale(instances)))
            case Restart(instances):
                self.restart(instances)
            case Crash(step, instances):
                self.fails_at = step
                self.restart_with = instances

    def append(self, place: int, rows: int) -> None:
        news = self.rows[place].slice(self.arrived[place], rows)
        self.arrived[place] += news.num_rows
        if news.num_rows:
            self.sources[place].append(news)

    def step(self) -> None:
        """One batch; one that failed before its commit is done again by the new process."""
        batch = self.loop.manifest.batch
        try:
            self.loop.step()
        except _Crashed:
            self.fails_at = None
            self.restart(self.restart_with)
            if self.loop.manifest.batch == batch:
                self.loop.step()
        self.fails_at = None

    def restart(self, instances: int | None) -> None:
        self.loop.close()
        self.loop = self.start(instances)


def once(streams: Sequence[PlainStream]) -> list[PlainStream]:
    """The streams of a query's inputs; one that is there several times is read once."""
    return list({s.name: s for s in streams}.values())


def run(plan: Plan, streams: Sequence[PlainStream], course: Course) -> Result:
    """Run a query to its end along a course."""
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=IN_MEMORY) as folder:
        one = _Run(plan, streams, course, folder)
        one.go()
        outputs = [one.sink.batches[b] for b in sorted(one.sink.batches)]
        late = [
            (name, *line)
            for o in outputs
            for name, table in o.late.items()
            for line in lines(table)
        ]
        rejected = [line for o in outputs if o.rejected is not None for line in lines(o.rejected)]
        counters = {k: v for k, v in one.loop.manifest.counters.items() if k != "batches"}
        return Result(lines(one.sink.table()), late, rejected, counters)


def table_of(rows: Sequence[Any]) -> pa.Table:
    """The rows of a source; event times are numbers of microseconds."""
    raw = pa.schema([SCHEMA.field(0).with_type(pa.int64()), *list(SCHEMA)[1:]])
    table = pa.Table.from_pylist([dict(r) for r in rows], schema=raw)
    return table.set_column(0, SCHEMA.field(0), table.column(0).cast(SCHEMA.field(0).type))


def lines(table: pa.Table) -> list[tuple[Any, ...]]:
    """A table as tuples, times in microseconds."""
    columns = [
        (c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c).to_pylist()
        for c in table.columns
    ]
    return list(zip(*columns, strict=True)) if table.num_rows else []
