"""Bytewax: windows on its event clock, folded in Python row by row, which is its way.

One process with as many workers as cores; no recovery, which is its default.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow.parquet as pq
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.run import cli_main

Row = tuple[str, tuple[datetime, float]]
START = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE, SLIDE = timedelta(minutes=1), timedelta(seconds=10)


class _Part(StatelessSourcePartition):  # type: ignore[misc]
    def __init__(self, files: list[Path], keep: tuple[int, int]) -> None:
        self._batches = self._read(files)
        self._worker, self._workers = keep

    def _read(self, files: list[Path]) -> Iterator[list[Row]]:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(10_000):
                ts, key, value = (batch.column(n).to_pylist() for n in ("ts", "key", "value"))
                times = [t.replace(tzinfo=UTC) for t in ts]  # it takes Python's own UTC alone
                rows = zip(times, key, value, strict=True)
                # A worker reads what it keeps: rows of a key come in the order of their times.
                yield [(str(k), (t, v)) for t, k, v in rows if k % self._workers == self._worker]

    def next_batch(self) -> list[Row]:
        return next(self._batches)


class _Source(DynamicSource):  # type: ignore[misc]
    def __init__(self, files: list[Path]) -> None:
        self._files = files

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Part:
        return _Part(self._files, (worker_index, worker_count))


def _flow(job: dict[str, Any]) -> Dataflow:
    sliding = job["case"] == "sliding"
    windower: Any = (
        win.SlidingWindower(length=MINUTE, offset=SLIDE, align_to=START)
        if sliding
        else win.TumblingWindower(length=MINUTE, align_to=START)
    )
    step_us = int((SLIDE if sliding else MINUTE).total_seconds() * 1e6)
    # Its clock goes on by wall time beside the data: rows that are replayed more slowly than they
    # once came would be late. So windows wait, and close when the input ends.
    clock = win.EventClock(lambda row: row[0], wait_for_system_duration=timedelta(hours=1))
    flow = Dataflow("peer")
    rows = op.input("in", flow, _Source(sorted(Path(job["data"], "events").glob("*.parquet"))))
    folded = win.fold_window(
        "fold",
        rows,
        clock,
        windower,
        lambda: (0.0, 0),
        lambda state, row: (state[0] + row[1], state[1] + 1),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
    )

    def line(keyed: Any) -> tuple[str, str]:
        key, (window, (total, count)) = keyed
        end_us = window * step_us + 60_000_000
        return key, f"{end_us},{key},{total / count!r},{count}"

    op.output("out", op.map("line", folded.down, line), FileSink(Path(job["work"], "rows.csv")))
    return flow


def run(job: dict[str, Any]) -> dict[str, Any]:
    flow = _flow(job)
    began = time.perf_counter()
    cli_main(flow, workers_per_process=job["cores"])
    return {
        "seconds": time.perf_counter() - began,
        "version": version("bytewax"),
        "settings": f"{job['cores']} workers in one process, no recovery, windows wait for an hour",
    }


if __name__ == "__main__":
    print("RESULT", json.dumps(run(json.loads(sys.argv[1]))), flush=True)
