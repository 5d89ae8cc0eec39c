"""A budget of memory for a run: kept to, and whatever it is, the same results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import _MockFileSystem

from tests.driver.scene import COUNTS, Location, csv, drain, loop_of, opened, plan_of, rows_of
from tests.driver.test_compactor import SPEC, partials
from tests.driver.test_join_state import BANDS, STREAMS
from tidegate.driver.compactor import Compactor
from tidegate.driver.options import RunOptions
from tidegate.driver.report.metrics import BatchReport
from tidegate.memory import MEMORY, Allowance
from tidegate.operate.aggregate.state import PaneKeeper
from tidegate.plan.lowering.lower import lower
from tidegate.query.output import single
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script
from tidegate.state.store import Store

BUDGETS = (0, 1, 20_000, 80_000)


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    """A process that keeps nothing yet, and that the next test finds as it was."""
    MEMORY.resize(0)
    yield
    MEMORY.resize(None)


def joined(place: Location, memory_bytes: int | None) -> pa.Table:
    """A join with an index over stored tuples; with what it keeps watched after every batch."""
    script = read_script(STREAMS.format(rows=24_000, rate=2_000, domain=10_000) + BANDS)
    plan = lower(single(bind(script, streams_of(script))))
    options = RunOptions(instances=2, batch_rows=6_000, memory=Allowance(cache_bytes=memory_bytes))
    sink, held = MemorySink(), []

    def watch(report: BatchReport) -> None:
        held.append(MEMORY.bytes)

    loop = prepare(plan, Place("none"), {None: sink}, options, place, on_batch=watch)
    loop.run()
    assert len(held) >= 8
    assert max(held) <= MEMORY.limit_bytes
    if memory_bytes is None:
        assert max(held) > max(BUDGETS), "the budgets must be short"
    else:
        assert MEMORY.limit_bytes == memory_bytes
    return sink.table()


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_a_join_within_any_budget(kind: str, tmp_path: Path) -> None:
    def place(name: str) -> Location:
        return str(tmp_path / name) if kind == "local" else (_MockFileSystem(), name)

    expected = joined(place("none"), None)
    assert expected.num_rows > 50
    for budget in BUDGETS:
        assert joined(place(str(budget)), budget).equals(expected)


@pytest.mark.parametrize("budget", BUDGETS)
def test_files_within_any_budget(budget: int, tmp_path: Path) -> None:
    rows = [(t, "abc"[t % 3], t) for t in range(3_000)]
    uri = csv(tmp_path / "s.csv", *rows)
    found = []
    for memory_bytes in (budget, None):
        sink = MemorySink()
        loop = loop_of(
            plan_of(COUNTS),
            [opened(uri, follow=False)],
            (_MockFileSystem(), "c"),
            sink,
            batch_rows=400,
            memory=Allowance(cache_bytes=memory_bytes),
        )
        assert drain(loop) >= 8
        assert MEMORY.bytes <= MEMORY.limit_bytes
        loop.close()
        found.append(rows_of(sink))
    assert found[0] == found[1]
    assert len(found[0]) == 900


def test_who_rewrites_state_keeps_to_it_too(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.create({})
    compactor = Compactor(store, PaneKeeper(SPEC), memory=Allowance(cache_bytes=77))
    compactor.consider(3, [partials(store, f"{i}", [20], 0) for i in range(4)], 0)
    compactor.wait()
    compactor.close()
    assert MEMORY.limit_bytes == 77
