"""State kept in memory: the same rows and the same bytes as state that is read in every batch."""

from __future__ import annotations

import gc
import itertools
import pickle
import random
import tracemalloc
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.operate.process.stream import (
    Row,
    Seen,
    SeenByBatch,
    Silence,
    Window,
    WindowByBatch,
    router_of,
    spec_of,
)
from tests.operate.process.stream import table_of as tuples_of
from tests.operate.process.test_advance import TOTAL, at, rows_of
from tests.operate.process.test_programs import OPERATIONS, Program
from tidegate.batch import MAX_US, MIN_US
from tidegate.memory import MEMORY
from tidegate.operate.process import entry, operator, segment_rows
from tidegate.operate.process.advance import advance, assign
from tidegate.operate.process.definition import Process, ProcessSpec
from tidegate.operate.process.entry import StateRow, newest
from tidegate.operate.process.hot import HotState
from tidegate.operate.process.key import span_of
from tidegate.operate.process.segment_rows import StoredState

MUCH = 2**30
ROOM = st.lists(st.sampled_from([MUCH, 8_000, 3_000, 500, None]), min_size=1, max_size=6)
"""By batch, how many bytes may be kept; None where the worker that runs it is a new one."""


def courses(
    spec: ProcessSpec,
    rows: Sequence[Row],
    cuts: Sequence[int],
    room: Sequence[int | None],
    seed: int,
) -> list[tuple[pa.Table, pa.Table]]:
    """What every batch gives and writes; nothing is kept where `room` is empty."""
    chance = np.random.default_rng(seed)
    buckets = range(TOTAL)
    layers: list[pa.Table] = []
    hot: HotState | None = None
    found = []
    bounds = [MIN_US, *sorted(set(cuts)), MAX_US]
    for batch, (previous, frontier) in enumerate(itertools.pairwise(bounds)):
        news = assign(
            spec,
            tuples_of([r for r in rows if previous <= r["ts"] < frontier]),
            router_of(spec, TOTAL),
        )
        there = list(layers)

        def opened(layers: list[pa.Table] = there) -> StoredState:
            return StoredState(layers, buckets)

        most = room[batch % len(room)] if room else None
        if hot is None or most is None:
            hot = HotState(buckets)
        hot.begin(opened, MUCH if most is None else most, previous)
        made, written = advance(spec, buckets, hot, news, previous, frontier, "test", total=TOTAL)
        assert hot.rest() <= (MUCH if most is None else most)
        found.append((made, written))
        layers += [written] if written.num_rows else []
        if len(layers) > 2 and chance.integers(0, 2):
            first = int(chance.integers(0, len(layers) - 1))
            layers[first : first + 2] = [newest(pa.concat_tables(layers[first : first + 2]))]
    return found


class Forgetful(Process):
    """Relies on all that does not come back when an object is restored, and tells it."""

    __slots__ = ("here",)
    output = {"told": "string"}  # noqa: RUF012

    def __init__(self, given: list[int] | None = None) -> None:
        self.here = 0
        self.one = self.two = (1.5, "text")
        self.lists = self.state.map("lists")
        self.numbers = self.state.map("numbers")
        self.order = self.state.map("order")

    def on_tuple(self, tuple: Any, keys: list[Any]) -> list[dict[str, str]]:
        self.here += 1
        nan = float("nan")
        told = [self.one is self.two, self.here, nan in [*self.numbers.values()]]
        for key in keys:
            told += [self.numbers.get(key) is self.numbers.get((key, 0))]
            self.numbers[key] = self.numbers[key, 0] = nan if tuple.v == 1 else (tuple.v, key)
            self.lists.setdefault(key, []).append(self.here)
            told += [len(self.lists[key]), self.order.pop(key, None), list(self.order)]
            self.order[key] = self.here
        return [{"told": repr(told)}]


class Cached:
    """Forgets its cache when it is pickled, and comes back otherwise than it was."""

    def __init__(self) -> None:
        self.count, self.cache = 0, 0

    def __getstate__(self) -> dict[str, int]:
        return {"count": self.count + 1, "cache": 0}


class Pickled(Process):
    output = {"told": "string"}  # noqa: RUF012
    pickle = True

    def __init__(self) -> None:
        self.cached = self.again = Cached()

    def on_tuple(self, tuple: Any, keys: list[Any]) -> tuple[str]:
        self.cached.cache += 1
        return (f"{self.cached.count} {self.cached.cache} {self.cached is self.again}",)


class Own(Seen):
    """Keeps less than it has, and wakes."""

    missing = 0

    def snapshot(self) -> Any:
        return {"counts": self.counts, "values": self.values}

    def restore(self, state: Any) -> None:
        self.counts, self.values = state["counts"], state["values"]

    def on_tuple(self, tuple: Any, keys: list[Any]) -> Any:
        self.missing += 1
        self.wake(tuple.ts)
        made = list(super().on_tuple(tuple, keys))
        return [{**row, "sum": self.missing} for row in made]

    def on_frontier(self, ts: datetime) -> Any:
        return (None, len(self.counts), self.missing, 0)


class Mixed(Process):
    """Keys that are equal and of different types, in states that lose their entries."""

    output = {"told": "string"}  # noqa: RUF012

    def __init__(self) -> None:
        self.one = self.state.map("one")
        self.two = self.state.map("two", ttl="9 us")
        self.all = self.state.value("all")

    def on_tuple(self, tuple: Any, keys: list[Any]) -> tuple[str]:
        made = {0: 1, 1: 1.0, 2: True, 3: "1", None: Decimal(1)}
        key = made[tuple.v] if len(keys) % 2 else (made[tuple.v], keys[0])
        told = [self.one.get(key), self.two.pop(key, None), self.all.get(), len(self.one)]
        self.one[key], self.two[keys[0], key] = tuple.v, [tuple.v]
        if tuple.v == 3:
            told += [list(self.one), list(self.two.items())]
            self.all.update(list(self.two))
            self.two.clear()
        if tuple.v == 2:
            del self.one[key]
        return (repr(told),)


KINDS = (Program, Seen, Silence, SeenByBatch, Mixed, Forgetful, Pickled, Own)
KINDS += (Window, WindowByBatch)


def random_rows(seed: int, most: int) -> list[Row]:
    chance = random.Random(seed)
    values = [None, 0, 1, 2, 3] if most == 3 else list(range(most + 1))
    made = [
        (chance.randrange(30), 0, chance.choices("abcdef", k=chance.randint(1, 3)), value)
        for value in chance.choices(values, k=40)
    ]
    return rows_of(made)


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=max(4, settings.default.max_examples // 8),
    phases=(Phase.reuse, Phase.generate),  # a smaller seed is not simpler
)
@given(
    seed=st.integers(0, 2**32),
    cuts=st.sets(st.integers(1, 29), min_size=8, max_size=12),
    room=ROOM,
    crowded=st.booleans(),
)
def test_what_is_kept_cannot_be_told_from_what_is_read(
    kind: Any, seed: int, cuts: set[int], room: Any, crowded: bool
) -> None:
    rows = random_rows(seed, OPERATIONS - 1 if kind is Program else 3)
    spec = spec_of(kind)
    entry_of = entry.entry_of

    def collide(name: bytes) -> int:
        first, _ = span_of(name[: name.index(b":") + 1])
        return first + entry_of(name) % 3

    with pytest.MonkeyPatch.context() as patch:
        if crowded:
            patch.setattr(entry, "entry_of", collide)
            patch.setattr(segment_rows, "entry_of", collide)
        read = courses(spec, rows, sorted(cuts), (), seed)
        kept = courses(spec, rows, sorted(cuts), room, seed)
    for one, other in zip(read, kept, strict=True):
        assert one[0].equals(other[0])
        assert one[1].equals(other[1])


def test_objects_do_not_live_on() -> None:
    """What an object does not keep is gone in the next batch, and not only after a crash."""
    rows = [at(i) for i in range(4)]
    told = [
        made["told"].to_pylist() for made, _ in courses(spec_of(Pickled), rows, (2,), (MUCH,), 0)
    ]
    assert told == [["0 1 True", "0 2 True"], ["1 1 True", "1 2 True"]]
    first, then = (
        made["told"][1].as_py() for made, _ in courses(spec_of(Forgetful), rows, (2,), (MUCH,), 0)
    )
    assert first.startswith("[True, 2,")
    assert then.startswith("[False, 2,")


class Longest(tg.Process):
    output = {"k": "string", "v": "bigint"}  # noqa: RUF012

    def __init__(self) -> None:
        self.longest = self.state.map("longest")

    def on_tuple(self, tuple: Any, keys: list[str]) -> Any:
        for key in keys:
            self.longest[key] = max(tuple.v, self.longest.get(key, 0))
            yield key, self.longest[key]


def rides(low: int, high: int) -> tg.MemorySource:
    source = tg.MemorySource(
        [
            {"ts": datetime(2024, 1, 1, 0, 0, i), "k": f"k{i % 7}", "v": i % 11}
            for i in range(low, high)
        ],
        time="ts",
    )
    source.end()
    return source


def test_segments_are_read_at_the_start_and_not_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    opened: list[int] = []
    open_ = operator._stored

    def counted(work: Any, mine: Any) -> StoredState:
        opened.append(work.batch)
        return open_(work, mine)

    monkeypatch.setattr(operator, "_stored", counted)
    source, sink = rides(0, 60), tg.sink.memory()
    stream = tg.Session(master="none").stream(source, time="ts").process(Longest, keys="k")
    options: Any = {"checkpoint": str(tmp_path / "c"), "batch_rows": 3, "buckets": 4}
    stream.start(sink=sink, instances=2, **options).wait()
    assert sink.table().num_rows == 60
    assert opened == [0, 0]


def test_a_restart_reads_the_rows_that_are_asked_for_once() -> None:
    spec = spec_of(Program)
    rows = rows_of([(i, 0, ["abcde"[i % 5], None], (0, 1, 2, 8)[i % 4]) for i in range(40)])
    layers = [written for _, written in courses(spec, rows, range(1, 40, 4), (), 0)]
    opened = []

    def open_() -> StoredState:
        opened.append(1)
        return StoredState(layers, range(TOTAL))

    hot = HotState(range(TOTAL))
    for batch in range(40, 60):
        opened.clear()
        hot.begin(open_, MUCH)
        news = assign(
            spec, tuples_of([at(batch, ["a", "b", "c", "d", "e"], 8)]), router_of(spec, TOTAL)
        )
        _, written = advance(spec, range(TOTAL), hot, news, batch, batch + 1, "test", total=TOTAL)
        layers.append(written)
        assert hot.rest() > 0
        assert bool(opened) == (batch == 40)


def state_of(entries: int) -> tuple[HotState, list[StateRow]]:
    hot = HotState([0, 1])
    rows = [StateRow.head(MAX_US, b"head")]
    rows += [StateRow(i + 1, i, MAX_US, b"name-%d" % i, b"%d" % i) for i in range(entries)]
    return hot, rows


def test_what_is_kept_is_bounded_and_told_as_it_is() -> None:
    hot, rows = state_of(20_000)
    hot.begin(lambda: StoredState([], [0, 1]), MUCH)
    assert hot.bucket(1).head is None
    data = pickle.dumps([tuple(row) for row in rows])
    gc.collect()
    tracemalloc.start()
    # Read from bytes, as a batch reads them: no number and no name is shared with the test.
    hot.changed(1, [StateRow(*row) for row in pickle.loads(data)])
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.5 * taken < hot.rest() < 2 * taken
    hot.begin(lambda: StoredState([], [0, 1]), 100_000)
    assert 20_000 < hot.rest() <= 100_000
    hot.begin(lambda: StoredState([], [0, 1]), 100)
    assert hot.rest() == 0, "not even the head fits"


def test_what_has_expired_does_not_stay_in_memory() -> None:
    hot = HotState([0])
    for batch in range(1_000):
        hot.begin(lambda: StoredState([], [0]), MUCH, since_us=batch)
        bucket = hot.bucket(0)
        live = {b"x:%d" % n for n in range(max(0, batch - 19), batch)}
        assert live <= set(bucket.load(b"x:"))
        rows = [StateRow(1, 1, batch + 20, b"x:%d" % batch, b""), StateRow.head(MAX_US, b"")]
        hot.changed(0, rows)
        assert len(bucket.load(b"x:")) <= 200
        hot.rest()


def test_the_bound_is_part_of_the_memory_for_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    told: list[int] = []
    rest = HotState.rest

    def noted(self: HotState) -> int:
        told.append(rest(self))
        return told[-1]

    monkeypatch.setattr(HotState, "rest", noted)
    stream = tg.Session(master="none").stream(rides(0, 50), time="ts").process(Longest, keys="k")
    sink = tg.sink.memory()
    options: Any = {"checkpoint": str(tmp_path / "c"), "batch_rows": 5, "instances": 2}
    before = MEMORY.limit_bytes
    try:
        MEMORY.resize(8 * 1_000)
        monkeypatch.setattr(MEMORY, "resize", lambda limit: None)
        stream.start(sink=sink, **options).wait()
    finally:
        monkeypatch.undo()
        MEMORY.resize(before)
    assert sink.table().num_rows == 50
    assert 0 < max(told) <= 1_000
