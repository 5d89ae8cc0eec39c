"""Outer joins as they run: grids that change, other routings after restarts, the size of state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.property.course import lines
from tests.property.steps import sql
from tidegate.operate.join.placement.grid import GridKeeper
from tidegate.operate.operator import InstanceWork
from tidegate.schema import TIME

ROWS, RANGE = 400, 30
BAND = "abs(left.x - right.x) <= 1.0"


@pytest.fixture
def restless_cells() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("EVERY", 1), ("LEAST_TUPLES", 3), ("UNEVEN", 1.0), ("BETTER", 1.0)):
            patch.setattr(f"tidegate.operate.join.placement.survey.{name}", value)
        yield


class Stopped(Exception):
    pass


def streams(session: tg.Session) -> list[tg.Stream]:
    """Values that drift, so that other cells become better; some tuples have no partner."""
    chance, found = np.random.default_rng(5), []
    for name in ("a", "b"):
        times = np.sort(chance.integers(0, 10 * ROWS, ROWS))
        drift = chance.normal(times / 40, np.where(times < 5 * ROWS, 1, 40))
        table = pa.table(
            {
                "ts": pa.array(times).cast(TIME),
                "x": pa.array(drift),
                "k": pa.array(chance.integers(0, 30, ROWS)),
            }
        )
        source = tg.MemorySource(table, time="ts", id=name)
        source.end()
        found.append(session.stream(source, time="ts", name=name))
    return found


def run(how: str, on: str, within: tuple[str, str] | None = None, **options: Any) -> list[Any]:
    session = tg.Session(master="none")
    a, b = streams(session)
    joined = a.join(b, on=sql(on), within=within or f"{RANGE} us", how=how)
    items = {"x": sql("left.x"), "k": sql("left.k")}
    items |= {} if how in ("semi", "anti") else {"y": sql("right.x"), "l": sql("right.k")}
    sink = tg.sink.memory()
    stop_at = options.pop("stop_at", None)

    def observe(step: str, batch: int) -> None:
        if (step, batch) == ("after publish", stop_at):
            raise Stopped

    for routing in options.pop("routings", (options.pop("routing", "auto"),)):
        query = joined.select(**items).start(
            sink=sink, observer=observe, routing=routing, buckets=8, **options
        )
        with suppress(Stopped):
            query.wait()
            assert stop_at is None, "it did not stop"
        stop_at = None
    return lines(sink.table())


@pytest.mark.usefixtures("restless_cells")
@pytest.mark.parametrize("how", ["left", "right", "semi", "anti"])
def test_a_home_has_the_partners_that_came_before_its_cells(how: str, tmp_path: Path) -> None:
    kept: list[Any] = []
    real = GridKeeper.write

    def noted(self: GridKeeper, work: InstanceWork, epochs: Any) -> Any:
        kept.append([e.grid for e in epochs])
        return real(self, work, epochs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GridKeeper, "write", noted)
        rows = run(how, BAND, routing="range", instances=4, batch_rows=20, checkpoint=str(tmp_path))
    assert len({grid for grids in kept for grid in grids}) > 2, "the cells never changed"
    assert rows == run(how, BAND, routing="round-robin", instances=1, batch_rows=10_000)


@pytest.mark.parametrize(
    "routings", [("round-robin", "key"), ("key", "round-robin"), ("range", "key")]
)
@pytest.mark.parametrize("how", ["inner", "left", "right", "anti"])
def test_marks_hold_after_a_restart_that_places_tuples_otherwise(
    how: str, routings: tuple[str, str], tmp_path: Path
) -> None:
    long = "400 us", "300 us"
    plain = run(how, "left.k = right.k", long, instances=1, batch_rows=10_000)
    found = run(
        how,
        "left.k = right.k",
        long,
        routings=routings,
        stop_at=12,
        instances=3,
        batch_rows=25,
        checkpoint=str(tmp_path),
        switches={14: 4, 16: 2},
    )
    assert found == plain


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("on", ["left.k = right.k", BAND, "left.x < right.x"])
def test_state_is_what_windows_hold_and_a_mark_for_each_at_most(how: str, on: str) -> None:
    reaches, batch_rows = (RANGE, 7), 20
    session = tg.Session(master="none")
    a, b = streams(session)
    joined = a.join(b, on=sql(on), within=(f"{reaches[0]} us", f"{reaches[1]} us"), how=how)
    query = joined.select(x=sql("left.x")).start(
        sink=tg.sink.memory(), batch_rows=batch_rows, instances=2, switches={8: 3, 20: 1}
    )
    counters = query.wait().as_dict()
    most = 0
    for stream, reach in zip((a, b), reaches, strict=True):
        times = np.array([row[0] for row in _rows(stream)])
        held = np.arange(1, len(times) + 1) - np.searchsorted(times, times - reach)
        most += int(held.max())
    # A segment is rewritten when two of five of its rows are dead; and a batch is stored whole.
    assert 0 < counters["state_rows_max"] <= 2 * most / 0.6 + batch_rows
    assert counters["state_rows_max"] < ROWS / 4


def _rows(stream: tg.Stream) -> list[Any]:
    sink = tg.sink.memory()
    stream.start(sink=sink).wait()
    return lines(sink.table())
