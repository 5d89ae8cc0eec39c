"""The steps of graphs of operators, and ways to run them.

A graph is a list of steps. Each takes relations that are there, the streams first, and adds what
it makes of them; every relation has the integer columns k and v, so that any step can follow any
other. The texts of steps are SQL expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import sqlglot
from sqlglot import exp

from tidegate.operate.process.definition import Process
from tidegate.plan.join.method import AUTO
from tidegate.plan.physical import OPERATOR_SET
from tidegate.query.aggregate import AggregateCall
from tidegate.query.expression import Expression
from tidegate.query.stream import Stream, Windowed
from tidegate.schema import TIME

SCHEMA = pa.schema([("ts", TIME), ("k", pa.int64()), ("v", pa.int64())])

BUCKETS = 8

PAUSE = timedelta(microseconds=3)

Line = tuple[int, int | None, int | None]
Call = tuple[str, str | None]
"""The kind of an aggregate and its argument."""


class Step(Protocol):
    """One operator of a graph."""

    def add(self, pool: list[Stream]) -> None:
        """Put what it makes of the relations at their end."""


@dataclass(frozen=True)
class Where:
    of: int
    condition: str

    def add(self, pool: list[Stream]) -> None:
        pool.append(pool[self.of].where(sql(self.condition)))


@dataclass(frozen=True)
class Select:
    of: int
    k: str
    v: str

    def add(self, pool: list[Stream]) -> None:
        pool.append(pool[self.of].select(k=sql(self.k), v=sql(self.v)))


@dataclass(frozen=True)
class Split:
    """Adds a relation for each condition and one for the rest."""

    of: int
    conditions: tuple[str, ...]

    def add(self, pool: list[Stream]) -> None:
        pool.extend(pool[self.of].split(*(sql(c) for c in self.conditions)))


@dataclass(frozen=True)
class UnionAll:
    of: tuple[int, ...]

    def add(self, pool: list[Stream]) -> None:
        sides = [pool[i] for i in self.of]
        narrow = [s.select("k", "v") if "w" in s.columns else s for s in sides]
        pool.append(narrow[0].union(*narrow[1:]))


@dataclass(frozen=True)
class Groups:
    """What an aggregate computes: v, k where it is no key, and sometimes w, which may be a key."""

    key: str | None
    calls: tuple[tuple[str, Call], ...]
    time: str | None = None

    def of(self, windows: Windowed) -> Stream:
        keys = {"k": self.key, "w": self.time}
        grouped = windows.group_by(**{n: sql(e) for n, e in keys.items() if e is not None})
        return grouped.agg(**{name: call_of(call) for name, call in self.calls})


@dataclass(frozen=True)
class Windows:
    of: int
    range_us: int
    slide_us: int
    groups: Groups

    def add(self, pool: list[Stream]) -> None:
        windows = pool[self.of].window(f"{self.range_us} us", slide=f"{self.slide_us} us")
        pool.append(self.groups.of(windows))


@dataclass(frozen=True)
class TupleWindows:
    of: int
    rows: int
    slide: int
    groups: Groups

    def add(self, pool: list[Stream]) -> None:
        pool.append(self.groups.of(pool[self.of].window(rows=self.rows, slide=self.slide)))


@dataclass(frozen=True)
class First:
    """The first rows of each window, or all of them in another order."""

    of: int
    limit: int | None
    by: str
    descending: bool

    def add(self, pool: list[Stream]) -> None:
        stream = pool[self.of]
        if self.limit is None:
            pool.append(stream.order_by(sql(self.by), descending=self.descending))
        else:
            pool.append(stream.top(self.limit, sql(self.by), self.descending))


@dataclass(frozen=True)
class Pairs:
    """A join; each side has a window of time in microseconds, or of rows."""

    left: int
    right: int
    within_us: tuple[int | None, int | None]
    rows: tuple[int | None, int | None]
    on: str
    k: str
    v: str
    how: str = "inner"

    def add(self, pool: list[Stream]) -> None:
        times = [None if us is None else f"{us} us" for us in self.within_us]
        joined = pool[self.left].join(
            pool[self.right],
            on=sql(self.on),
            within=(times[0], times[1]),
            rows=self.rows,
            how=self.how,
        )
        pool.append(joined.select(k=sql(self.k), v=sql(self.v)))


class Changes(Process):
    """How much the value of a key differs from the one before it, which is soon forgotten."""

    output: ClassVar = {"k": "bigint", "v": "bigint"}

    def __init__(self) -> None:
        self.last = self.state.map("last", ttl="4 us")

    def on_tuple(self, tuple: Any, keys: Sequence[int | None]) -> Iterator[dict[str, Any]]:
        for key in keys:
            before = self.last.get(str(key), 0)
            if tuple.v is not None and tuple.v != before:
                self.last[str(key)] = tuple.v
                yield {"k": key, "v": tuple.v - before}


class Pauses(Process):
    """How many tuples of a bucket came before a pause, told by a timer."""

    output: ClassVar = {"k": "bigint", "v": "bigint"}

    def __init__(self) -> None:
        self.count = 0
        self.newest: datetime | None = None

    def on_tuple(self, tuple: Any, keys: Sequence[int | None]) -> None:
        self.count += 1
        self.newest = tuple.ts
        self.wake(tuple.ts + PAUSE)

    def on_frontier(self, ts: datetime) -> Iterator[dict[str, Any]]:
        if self.newest is not None and ts - self.newest == PAUSE:
            yield {"k": self.bucket, "v": self.count}
            self.count = 0


class Dealt(Process):
    """Each bucket keeps every so many-th of all tuples, and compares all with the newest kept."""

    output: ClassVar = {"k": "bigint", "v": "bigint"}

    def __init__(self) -> None:
        self.seen = 0
        self.kept = self.state.value("kept", ttl="6 us")

    def on_tuple(self, tuple: Any, keys: Sequence[int | None]) -> Iterator[dict[str, Any]]:
        if self.kept.get() is not None and self.kept.get() == tuple.k:
            yield {"k": tuple.k, "v": tuple.v}
        if self.seen % self.buckets == self.bucket:
            self.kept.update(tuple.k)
        self.seen += 1


@dataclass(frozen=True)
class Own:
    """An operator of the user's own."""

    of: int
    factory: type[Process]
    key: str | None

    def add(self, pool: list[Stream]) -> None:
        pool.append(pool[self.of].process(self.factory, keys=self.key))


@dataclass(frozen=True)
class Graph:
    """Streams, the steps over them, and which relations are put out."""

    streams: tuple[tuple[tuple[Line, ...], ...], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def tables(self) -> dict[str, list[pa.Table]]:
        """The sources of each stream by its name."""
        return {
            f"s{i}": [table_of(lines) for lines in sources]
            for i, sources in enumerate(self.streams)
        }

    def build(self, streams: Sequence[Stream]) -> dict[str, Stream]:
        """The outputs by name, over these streams."""
        pool = list(streams)
        for step in self.steps:
            step.add(pool)
        return {f"out{i}": pool[i] for i in self.outputs}


@dataclass(frozen=True)
class Way:
    """One way to run a graph; at a step of a batch, `crash`, it may fail and be started again.

    `strategy` cuts it into subqueries; joins are done by `method`.
    """

    batch_rows: int
    instances: int
    switches: tuple[tuple[int, int], ...] = ()
    crash: tuple[str, int] | None = None
    strategy: str = OPERATOR_SET
    method: str = AUTO


def sql(text: str) -> Expression:
    return Expression(sqlglot.parse_one(text, dialect="spark"))


def call_of(call: Call) -> AggregateCall:
    kind, argument = call
    arguments: tuple[exp.Expression, ...] = () if argument is None else (sql(argument).node,)
    return AggregateCall(kind, arguments, (0.5,) if kind == "quantile" else ())


def table_of(lines: Sequence[Line]) -> pa.Table:
    """The rows of a source; event times are numbers of microseconds."""
    columns = [[line[i] for line in lines] for i in range(3)]
    times = pa.array(columns[0], pa.int64()).cast(TIME)
    return pa.table([times, *(pa.array(c, pa.int64()) for c in columns[1:])], schema=SCHEMA)
