"""Bytewax: windows on its event clock, folded in Python row by row, which is its way.

One process with as many workers as cores; no recovery, which is its default. Its clock adds the
wall time since the newest row of a key to that row's time, which is meant for live rows. Rows that
are replayed have no such time: its `now_getter` stands still then, as its documentation provides
for, and a window of a key closes by the key's next row, or when the input ends.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.run import cli_main

Row = tuple[str, tuple[datetime, float]]
START = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ROWS = 10_000
WAIT = timedelta(milliseconds=300)
"""How long live windows wait: three times as long as rows are under way to a file."""


class _Part(StatelessSourcePartition):  # type: ignore[misc]
    """A worker reads its share of the keys: rows of a key come in the order of their times."""

    def __init__(self, tables: Iterator[Any], share: tuple[int, int]) -> None:
        self._tables, (self._worker, self._workers) = tables, share
        self._awake: datetime | None = None

    def next_batch(self) -> list[Row]:
        table = next(self._tables)
        self._awake = datetime.now(UTC) + SECOND / 100 if table is None else None
        return [] if table is None else self._rows(table)

    def next_awake(self) -> datetime | None:
        return self._awake

    def _rows(self, table: Any) -> list[Row]:
        key = table["key"]
        rest = pc.subtract(key, pc.multiply(pc.divide(key, self._workers), self._workers))
        table = table.filter(pc.equal(rest, self._worker))
        # It takes Python's own UTC alone.
        ts = [t.replace(tzinfo=UTC) for t in pc.local_timestamp(table["ts"]).to_pylist()]
        keys = map(str, table["key"].to_pylist())
        return list(zip(keys, zip(ts, table["value"].to_pylist(), strict=True), strict=True))


def _parts(folder: Path) -> Iterator[Any]:
    for file in sorted(folder.glob("*.parquet")):
        table = pq.read_table(file)
        for first in range(0, len(table), ROWS):
            yield table.slice(first, ROWS)


def _new_files(folder: Path) -> Iterator[Any]:
    """Tables of the files as they come, and None for each look that finds none."""
    done: set[Path] = set()
    while True:
        new = sorted(set(folder.glob("*.parquet")) - done)
        yield from map(pq.read_table, new)
        done.update(new)
        if not new:
            yield None


class _Source(DynamicSource):  # type: ignore[misc]
    def __init__(self, tables: Callable[[Path], Iterator[Any]], folder: Path) -> None:
        self._tables, self._folder = tables, folder

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Part:
        return _Part(self._tables(self._folder), (worker_index, worker_count))


def _mean(rows: Any, clock: Any, windower: Any) -> Any:
    return win.fold_window(
        "fold",
        rows,
        clock,
        windower,
        lambda: (0.0, 0),
        lambda state, row: (state[0] + row[1], state[1] + 1),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
    )


def _mean_text(state: tuple[float, int]) -> str:
    return f"{state[0] / state[1]!r},{state[1]}"


def _values(rows: Any, clock: Any, windower: Any) -> Any:
    return win.collect_window("collect", rows, clock, windower)


def _median_text(rows: list[tuple[datetime, float]]) -> str:
    return repr(statistics.median(value for _, value in rows))


CASES: dict[str, tuple[int, int, Any, Any]] = {
    "tumbling": (60, 60, _mean, _mean_text),
    "sliding": (60, 10, _mean, _mean_text),
    "median": (60, 10, _values, _median_text),
    "latency": (10, 1, _mean, _mean_text),
}


def _flow(job: dict[str, Any]) -> Dataflow:
    length, slide, aggregate, text = CASES[job["case"]]
    windower = win.SlidingWindower(length=length * SECOND, offset=slide * SECOND, align_to=START)
    if job["case"] == "latency":
        source = _Source(_new_files, Path(job["data"]))
        clock = win.EventClock(lambda row: row[0], wait_for_system_duration=WAIT)
    else:
        source = _Source(_parts, Path(job["data"], "events"))
        clock = win.EventClock(
            lambda row: row[0],
            wait_for_system_duration=timedelta(0),
            now_getter=lambda: START,
            to_system_utc=lambda _: None,
        )
    flow = Dataflow("peer")
    found = aggregate(op.input("in", flow, source), clock, windower)

    def line(keyed: Any) -> tuple[str, str]:
        key, (window, state) = keyed
        return key, f"{(window * slide + length) * 1_000_000},{key},{text(state)}"

    op.output("out", op.map("line", found.down, line), FileSink(Path(job["work"], "rows.csv")))
    return flow


def run(job: dict[str, Any]) -> dict[str, Any]:
    flow = _flow(job)
    began = time.perf_counter()
    cli_main(flow, workers_per_process=job["cores"])
    return {"seconds": time.perf_counter() - began, **about(job)}


def about(job: dict[str, Any]) -> dict[str, str]:
    return {
        "version": version("bytewax"),
        "settings": f"{job['cores']} workers in one process, no recovery",
    }


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print("ABOUT", json.dumps(about(asked)), flush=True)
    print("RESULT", json.dumps(run(asked)), flush=True)
