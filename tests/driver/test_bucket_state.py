"""State kept by bucket: windows of tuples and processes stay small, and survive what may come."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import SCHEMA, Row, compacted, loop_of, memory, plan_of, rows_of
from tidegate.driver.loop import Loop
from tidegate.operate.process.definition import Process
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import Plan
from tidegate.query.node.node import Input, StreamDef
from tidegate.query.node.process import process
from tidegate.sink.memory import MemorySink

GROUPS, BATCHES, BATCH_ROWS = 40, 70, 100
STOPS, SWITCHES = (3, 10, 11, 18), {0: 3, 4: 1, 7: 8, 14: 2, 18: 5}


class Latest(Process):
    """Keeps the newest ten values of each key, and tells their sum."""

    output: Mapping[str, str] = {"k": "string", "total": "bigint"}

    def __init__(self) -> None:
        self.values: MutableMapping[str, list[int]] = self.state.map("values")

    def on_tuple(self, tuple: Any, keys: Sequence[str]) -> Any:
        for key in keys:
            kept = [*self.values.get(key, []), tuple.v][-10:]
            self.values[key] = kept
            yield {"k": key, "total": sum(kept)}


class Visits(Process):
    """Tells when every third tuple of a key comes, and forgets the key: entries come and go."""

    output: Mapping[str, str] = {"k": "string", "total": "bigint"}

    def __init__(self) -> None:
        self.visits: MutableMapping[str, int] = self.state.map("visits")
        self.values: MutableMapping[tuple[str, int], int] = self.state.map("values")

    def on_tuple(self, tuple: Any, keys: Sequence[str]) -> Any:
        for key in keys:
            number = self.visits.pop(key, 0)
            self.values[key, number] = tuple.v
            if number < 2:
                self.visits[key] = number + 1
            else:
                total = sum(self.values.pop((key, i)) for i in range(3))
                yield {"k": key, "total": total}


class Whole(Latest):
    """Keeps its mapping in an attribute, which is read and written as a whole."""

    def __init__(self) -> None:
        self.values = {}


class Expiring(Latest):
    """The same with values that live for two seconds."""

    def __init__(self) -> None:
        self.values = self.state.map("values", ttl="2 seconds")


def of_process(kind: type[Process]) -> Plan:
    stream = StreamDef("s", (), "ts", 0, None, SCHEMA)
    return lower(process(Input(stream), kind, "k"))


def of_windows(window: str) -> Plan:
    return plan_of(f"SELECT k, SUM(v) AS v, FIRST(v) AS f FROM s [{window}] GROUP BY k")


PLANS = {
    "tumbling": lambda: of_windows("ROWS 10"),
    "sliding": lambda: of_windows("ROWS 10 SLIDE 3"),
    "process": lambda: of_process(Latest),
    "process that removes": lambda: of_process(Visits),
    "process that reads all": lambda: of_process(Whole),
}


def rows(count: int) -> list[Row]:
    """One tuple a millisecond; some groups come often, some seldom."""
    return [(i / 1000, f"g{(i * i) % GROUPS}", i % 97) for i in range(count)]


def run(
    plan: Plan, folder: Path, batch_rows: int = BATCH_ROWS, **options: Any
) -> tuple[Loop, MemorySink]:
    sink = MemorySink()
    source = memory(*rows(BATCHES * BATCH_ROWS), end=True)
    return loop_of(plan, [source], folder, sink, batch_rows=batch_rows, **options), sink


@pytest.mark.parametrize("name", PLANS)
def test_state_does_not_grow(name: str, tmp_path: Path) -> None:
    """However many batches: few segments, and a few times what is alive in rows and bytes."""
    loop, _ = run(PLANS[name](), tmp_path)
    sizes: list[tuple[int, int, int]] = []
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        held = loop.manifest.segments()
        sizes.append((len(held), sum(s.rows for s in held), sum(s.bytes for s in held)))
    loop.close()
    early = [max(s[i] for s in sizes[10:40]) for i in range(3)]
    late = [max(s[i] for s in sizes[45:]) for i in range(3)]
    assert all(b <= 1.5 * a for a, b in zip(early, late, strict=True)), (early, late)
    assert late[0] <= 80
    assert late[1] <= 4 * GROUPS * 10 + 2 * 1_024


def test_keys_that_never_come_again_leave_the_store(tmp_path: Path) -> None:
    """A thousand keys once, then one key: what is stored of the others goes with their time."""
    once = [(i / 1000, f"once{i}", i) for i in range(1000)]
    source = memory(*once, *((1 + i / 10, "g0", i) for i in range(60)), end=True)
    plan = of_process(Expiring)
    loop = loop_of(plan, [source], tmp_path, batch_rows=1000, buckets=4, instances=2)
    loop.step()
    assert sum(s.rows for s in loop.manifest.segments()) >= 900
    loop.close()
    loop = loop_of(plan, [source], tmp_path, batch_rows=1, buckets=4, instances=2)
    stored = []
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        stored.append(sum(s.rows for s in loop.manifest.segments()))
    loop.close()
    assert stored[10] > 900, "they have not expired yet"
    assert stored[-2] < 60, "the heads of four buckets, and one key in a few layers"


@pytest.mark.parametrize("keys", [100, 4_000])
@pytest.mark.parametrize("name", [n for n in PLANS if n != "process that reads all"])
def test_a_batch_costs_by_the_keys_it_touches(name: str, keys: int, tmp_path: Path) -> None:
    """However many there are in the state: so many rows are written for a batch of ten."""
    often = [(i / 1000, f"g{i % keys}", i % 97) for i in range(5 * keys)]
    seldom = [(10 * keys + i, f"g{i * 7 % keys}", i) for i in range(10)]
    source = memory(*often, *seldom, (20 * keys, "g0", 0), end=True)
    plan, instances = PLANS[name](), {"buckets": 4, "instances": 2}
    loop = loop_of(plan, [source], tmp_path, batch_rows=5 * keys, **instances)
    loop.step()
    loop.close()
    loop = loop_of(plan, [source], tmp_path, batch_rows=10, **instances)
    before = {s.name for s in loop.manifest.segments()}
    report = loop.step()
    assert report is not None
    assert report.rows_in == 10
    written = [s for s in loop.manifest.segments() if s.name not in before]
    assert sum(s.rows for s in loop.manifest.segments() if s.name in before) >= keys
    assert 10 <= sum(s.rows for s in written) <= 4 + 4 * 10, "heads of buckets, entries or tuples"
    loop.close()


@pytest.mark.parametrize("name", PLANS)
def test_switches_and_restarts_change_nothing(name: str, tmp_path: Path) -> None:
    """The same rows with one instance and no stop, and with many of both."""
    loop, sink = run(PLANS[name](), tmp_path / "whole", instances=1)
    loop.run()
    wanted = rows_of(sink)
    assert len(wanted) > 500
    got: list[tuple[Any, ...]] = []
    size = 3 * BATCH_ROWS
    for stop in (*STOPS, BATCHES):
        loop, sink = run(PLANS[name](), tmp_path / "pieces", size, switches=SWITCHES)
        while loop.manifest.batch < stop and not loop.manifest.finished:
            loop.step()
        instances = [epoch["instances"] for epoch in loop.manifest.epochs]
        loop.close()
        got += rows_of(sink)
    assert got == wanted
    assert instances == [*SWITCHES.values()]
