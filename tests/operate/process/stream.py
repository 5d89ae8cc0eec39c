"""Classes of users, and how a test runs one: over batches, buckets and instances as it likes."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.process.advance import advance, assign
from tidegate.operate.process.definition import TRIGGER, Process, ProcessSpec
from tidegate.operate.process.entry import STATE, newest
from tidegate.operate.process.hot import HotState
from tidegate.operate.process.key import prefix_of
from tidegate.operate.process.operator import UserProcess
from tidegate.operate.process.segment_rows import StoredState
from tidegate.operate.process.snapshot import read
from tidegate.operate.process.value_json import encode
from tidegate.route.mapping import even
from tidegate.route.partitioner import Router

Row = Mapping[str, Any]
COLUMNS = (("k", pa.list_(pa.string())), ("v", pa.int64()), ("src", pa.string()))
US = timedelta(microseconds=1)


class Seen(Process):
    """For every key, how many tuples there were, what came before, and the values in a set."""

    output = {"key": "string", "n": "bigint", "before": "bigint", "sum": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.counts: dict[str | None, int] = {}
        self.last: dict[tuple[str | None, int], int | None] = {}
        self.values: set[int] = set()

    def on_tuple(self, tuple: Any, keys: list[str | None]) -> Iterator[dict[str, Any]]:
        if tuple.v is not None:
            self.values.add(tuple.v)
        for key in keys:
            n = self.counts[key] = self.counts.get(key, 0) + 1
            before = self.last.get((key, n - 1))
            self.last = {**{p: v for p, v in self.last.items() if p[0] != key}, (key, n): tuple.v}
            yield {"key": key, "n": n, "before": before, "sum": sum(self.values)}


class Silence(Process):
    """Says which keys were silent for 3 us, and goes on asking a few times."""

    output = {"key": "string", "since": "timestamp", "asked": "int"}  # noqa: RUF012

    def __init__(self) -> None:
        self.at: dict[str | None, datetime] = {}
        self.asked = 0

    def on_tuple(self, tuple: Any, keys: list[str | None]) -> list[tuple[Any, ...]]:
        for key in keys:
            self.at[key] = tuple.ts
        self.wake(tuple.ts + 3 * US)
        if tuple.v == 1:
            self.wake(tuple.ts)
        return [(keys[0], tuple.ts, -1)] if tuple.v == 2 else []

    def on_frontier(self, ts: datetime) -> Iterator[dict[str, Any]]:
        for key, since in self.at.items():
            if ts - since >= 3 * US:
                self.asked += 1
                yield {"key": key, "since": since, "asked": self.asked}
        if self.asked % 3 and self.at:
            self.at.pop(next(iter(self.at)))
            self.wake(ts + 2 * US)


class Recent(Process):
    """What is known of a key from the last 4 us, of a bucket from the last 6, and since ever."""

    output = {"key": "string", "n": "bigint", "before": "bigint", "keys": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.counts = self.state.map("counts")
        self.last = self.state.map("last", ttl="4 us")
        self.first = self.state.value("first", ttl=6 * US)
        self.calls = 0

    def on_tuple(self, tuple: Any, keys: list[str | None]) -> Iterator[dict[str, Any]]:
        self.calls += 1
        if not self.first.exists():
            self.first.update(self.calls)
            self.wake(tuple.ts + 2 * US)
        for key in keys:
            n = self.counts[key] = self.counts.get(key, 0) + 1
            yield {"key": key, "n": n, "before": self.last.get(key), "keys": len(self.last)}
            if tuple.v is None:
                self.last.pop(key, None)
            else:
                self.last[key] = tuple.v

    def on_frontier(self, ts: datetime) -> Iterator[dict[str, Any]]:
        for key in self.last:
            yield {"key": key, "n": self.first.get(), "before": -1, "keys": len(self.counts)}


class Window(Process):
    """How many values came in the last 5 us and since ever, their sums, and what was cleared."""

    output = {"n": "bigint", "sum": "bigint", "ever": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.values = self.state.columns("values", {"v": "int"}, ttl=5 * US)
        self.ever = self.state.columns("ever", {"v": pa.int64(), "odd": "boolean"})

    def on_tuple(self, tuple: Any, keys: list[str | None]) -> list[tuple[int, int, int]]:
        ts = np.array([tuple.ts.replace(tzinfo=None)], "M8[us]")
        v = np.array([tuple.v or 0])
        self.values.append({"ts": ts, "v": v.astype(np.int32)})
        if tuple.v == 3:
            self.ever.clear()
        if tuple.v is not None:
            self.ever.append({"v": v, "odd": v % 2 == 1, "ts": ts})
        odd = sum(v for v, odd in zip(self.ever["v"], self.ever["odd"]) if odd)
        return [(len(self.values), int(sum(self.values["v"])), int(odd) * 100 + len(self.ever))]


class WindowByBatch(Process):
    """The greatest value of the 5 us before each tuple, which looks at the times itself."""

    output = {"most": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.values = self.state.columns("values", {"v": "bigint"}, ttl="5 us")

    def process(self, batch: pa.Table) -> pa.Table:
        ts, v = batch["ts"].to_numpy(), batch["v"].fill_null(0).to_numpy()
        before = len(self.values)
        self.values.append(pa.table({"v": v, "ts": batch["ts"]}))
        first = np.searchsorted(self.values["ts"], ts - np.timedelta64(5, "us"), "right")
        spans = zip(first, before + np.arange(len(ts)))
        most = [int(self.values["v"][a : b + 1].max()) for a, b in spans]
        return pa.table({"most": most, "row": np.arange(len(ts))})


class Dealt(Process):
    """Every bucket sees all tuples, keeps every so-manieth, and compares the next with those."""

    output = {"one": "bigint", "other": "bigint"}  # noqa: RUF012

    def __init__(self, most: int = 5) -> None:
        self.count = 0
        self.kept: deque[Any] = deque(maxlen=most)

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Iterator[tuple[Any, ...]]:
        assert keys == []
        for kept in self.kept:
            if kept["v"] != tuple["v"]:
                yield kept["v"], tuple["v"]
        if self.count % self.buckets == self.bucket:
            self.kept.append({"v": tuple["v"]})
        self.count += 1


class SeenByBatch(Process):
    """As many tuples for every key as `Seen` says, by whole columns."""

    output = {"key": "string", "n": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.counts: dict[str | None, int] = {}

    def process(self, batch: pa.Table) -> pa.Table:
        numbers = []
        for key in batch["key"].to_pylist():
            self.counts[key] = self.counts.get(key, 0) + 1
            numbers.append(self.counts[key])
        backwards = np.arange(len(numbers))[::-1]
        table = pa.table({"n": numbers, "key": batch["key"], "row": np.arange(len(numbers))})
        return table.take(pa.array(backwards))


class TimedByBatch(SeenByBatch):
    """Sums per event time in numpy, told a moment later; memory that is lent changes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.total = np.zeros(1, np.int64)

    def process(self, batch: pa.Table) -> pa.Table | None:
        assert len(batch["ts"].unique()) == 1
        self.total += batch.num_rows
        self.wake(batch["ts"][0].as_py() + US)
        lent = pa.array(self.total)
        return pa.table({"key": ["now"], "n": lent, "row": pa.array([0], pa.int8())})

    def on_frontier(self, ts: datetime) -> pa.Table:
        return pa.table({"key": ["later"], "n": pa.array(self.total)})


def spec_of(factory: Any, keys: Any = ("k",), filter: Any = None) -> ProcessSpec:
    """A process over the columns of the tests."""
    output = {"string": pa.string(), "bigint": pa.int64(), "int": pa.int32()}
    output["timestamp"] = pa.timestamp("us", tz="UTC")
    made = factory()
    types = tuple((name, output[type_]) for name, type_ in made.output.items())
    return ProcessSpec(factory, COLUMNS, keys, types, filter, type(made).__name__)


def opened(layers: Sequence[pa.Table], buckets: Sequence[int]) -> HotState:
    """The state of buckets at the begin of a batch of which nothing is in memory."""
    state, there = HotState(buckets), list(layers)
    state.begin(lambda: StoredState(there, buckets), 2**30)
    return state


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Tuples as the engine has them: ts, src, seq, and the columns by position."""
    order = [pa.array([r[name] for r in rows], pa.int64()) for name in ("ts", "src", "seq")]
    columns = [
        pa.array([r["k"] for r in rows], COLUMNS[0][1]),
        pa.array([r["v"] for r in rows], pa.int64()),
        pa.array(["x" for _ in rows], pa.string()),
    ]
    return pa.table([*order, *columns], names=["ts", "src", "seq", "p0", "p1", "p2"])


def run(
    spec: ProcessSpec,
    rows: Sequence[Row],
    frontiers: Sequence[int] = (),
    instances: Sequence[int] = (1,),
    total: int = 5,
    seed: int = 0,
    state: list[pa.Table] | None = None,
) -> list[tuple[Any, ...]]:
    """The output over batches that end at the frontiers, each row with its time first.

    Batch i runs on `instances[i % len]` instances, and its rows come to them in any order. What
    is written is added to `state`, and sometimes neighbours in it are merged.
    """
    chance = np.random.default_rng(seed)
    state = [] if state is None else state
    output: list[tuple[Any, ...]] = []
    bounds = [MIN_US, *sorted(set(frontiers)), MAX_US]
    for batch, (previous, frontier) in enumerate(itertools.pairwise(bounds)):
        taken = table_of([r for r in rows if previous <= r["ts"] < frontier])
        news = assign(spec, taken, router_of(spec, total))
        news = news.take(pa.array(chance.permutation(news.num_rows)))
        count = instances[batch % len(instances)]
        owners = chance.integers(0, count, total)
        parts, written = [], []
        for instance in range(count):
            mine = np.flatnonzero(owners == instance).tolist()
            owned = news if spec.keys is None else _of(news, mine)
            stored = opened(state, mine)
            made, changed = advance(
                spec, mine, stored, owned, previous, frontier, "test", total=total
            )
            assert made.schema == spec.result
            assert changed.schema == STATE
            assert set(changed["bucket"].to_pylist()) <= set(mine)
            written.append(changed)
            parts.append(made)
        state += [rows for rows in written if rows.num_rows]
        if len(state) > 2 and chance.integers(0, 2):
            first = int(chance.integers(0, len(state) - 1))
            state[first : first + 2] = [newest(pa.concat_tables(state[first : first + 2]))]
        table = pa.concat_tables(parts)
        for part in parts:
            assert part.equals(part.sort_by([(c, "ascending") for c in TRIGGER]))
        table = table.sort_by([(c, "ascending") for c in TRIGGER])
        names = [name for name, _ in spec.output]
        columns = [table["trigger_ts"], *(table[n] for n in names)]
        output += list(zip(*(c.to_pylist() for c in columns)))
        assert opened(state, range(total)).due(frontier) == []
    return output


def objects_in(
    state: Sequence[pa.Table], total: int = 5, names: Sequence[str] = ()
) -> dict[int, Any]:
    """Timers, attributes and declared state of all buckets that have an object, as bytes."""
    stored, found = StoredState(state, range(total)), {}
    for number in sorted(set(range(total)) - set(stored.new())):
        bucket = stored.bucket(number)
        kept = read(bucket.head, False, "test")
        entries = [sorted(bucket.load(prefix_of(name)).items()) for name in names]
        found[number] = (kept.timers, kept.count, encode(kept.state, ""), entries)
    return found


def router_of(spec: ProcessSpec, total: int) -> Router:
    """Where the keys of a process go, with so many buckets of one instance."""
    return Router(UserProcess(spec).partitioner, even(total, 1))


def _of(news: pa.Table, buckets: list[int]) -> pa.Table:
    return news.filter(pa.array(np.isin(news["bucket"].to_numpy(), buckets)))
