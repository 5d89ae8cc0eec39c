"""Bytewax: windows on its event clock over one partition of rows in the order of their arrival.

The source says where it was and the sink is Bytewax's own for files, which both take part in its
recovery: snapshots at the end of every epoch. `fold_window` gets rows by their time.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

sys.path.insert(0, str(Path(__file__).parents[2]))

from determinism.answer import cell

Row = tuple[datetime, str, float, int]
_ALL_AT_ONCE = 1_000_000
_ALLOWED = timedelta(seconds=10)
_ALIGNED = datetime(1970, 1, 1, tzinfo=UTC)
_TEN, _FIVE = timedelta(seconds=10), timedelta(seconds=5)
_TUMBLING = win.TumblingWindower(length=_TEN, align_to=_ALIGNED)
_SLIDING = win.SlidingWindower(length=_TEN, offset=_FIVE, align_to=_ALIGNED)


class _Partition(StatefulSourcePartition):  # type: ignore[misc]
    """Rows of a file, `cut` in a batch; one to be killed ends the process in the middle."""

    def __init__(self, rows: list[Row], cut: int, at: int, kill: bool) -> None:
        self._rows, self._cut, self._at, self._kill = rows, cut, at, kill

    def next_batch(self) -> list[tuple[str, Row]]:
        if self._at >= len(self._rows):
            raise StopIteration
        if self._kill and self._at > len(self._rows) // 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rows = self._rows[self._at : self._at + self._cut]
        self._at += self._cut
        return [(row[1], row) for row in rows]

    def snapshot(self) -> int:
        return self._at


class _Source(FixedPartitionedSource):  # type: ignore[misc]
    def __init__(self, rows: list[Row], cut: int, kill: bool) -> None:
        self._rows, self._cut, self._kill = rows, cut, kill

    def list_parts(self) -> list[str]:
        return ["rows"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> _Partition:
        return _Partition(self._rows, self._cut, resume_state or 0, self._kill)


def _mean(state: list[Any], row: Row) -> list[Any]:
    return [state[0] + row[2], state[1] + 1]


def _first_last(state: list[Any], row: Row) -> list[Any]:
    return [state[0] if state else row[2], row[2]]


def _count(state: list[Any], row: Row) -> list[Any]:
    return [state[0] + 1, state[1] + row[3]]


Fold = Callable[[list[Any], Row], list[Any]]
QUERIES: dict[str, tuple[str, Any, list[Any], Fold]] = {
    "sliding_avg": ("trades", _SLIDING, [0.0, 0], _mean),
    "first_last": ("trades", _TUMBLING, [], _first_last),
    "late": ("late", _TUMBLING, [0, 0], _count),
}


def _flow(job: dict[str, Any], rows: list[Row]) -> Dataflow:
    _, windower, begin, fold = QUERIES[job["query"]]
    clock = win.EventClock(ts_getter=lambda row: row[0], wait_for_system_duration=_ALLOWED)
    flow = Dataflow(job["query"])
    source = _Source(rows, job["cut"] or _ALL_AT_ONCE, job["kill"])
    read = op.input("read", flow, source)
    merged = lambda a, b: a if a else b  # noqa: E731 - windows of sessions alone are merged
    found = win.fold_window("fold", read, clock, windower, lambda: list(begin), fold, merged)
    windows = op.map("rows", found.down, lambda kv: (kv[0], _line(job["query"], kv)))
    op.output("write", windows, FileSink(Path(job["work"], "rows")))
    return flow


def _line(query: str, keyed: tuple[str, tuple[int, list[Any]]]) -> str:
    key, (window, state) = keyed
    values = [state[0] / state[1], state[1]] if query == "sliding_avg" else state
    return json.dumps([window, key, *map(cell, values)])


def _rows(file: Path) -> list[Row]:
    with file.open() as lines:
        return [
            (datetime.fromisoformat(ts).replace(tzinfo=UTC), k, float(price), int(qty))
            for ts, k, price, qty, _ in csv.reader(lines)
        ]


def run(job: dict[str, Any]) -> None:
    stream = QUERIES[job["query"]][0]
    rows = _rows(Path(job["data"], job["arrival"].replace(" ", "-"), f"{stream}.csv"))
    state = Path(job["work"])
    if not state.exists():
        state.mkdir(parents=True)
        init_db_dir(state, 1)
    # Snapshots at the end of each epoch, which are as short as they can be.
    cli_main(
        _flow(job, rows),
        workers_per_process=job["parallelism"],
        epoch_interval=timedelta(0),
        recovery_config=RecoveryConfig(state),
    )
    Path(state, "rows").rename(job["out"])


if __name__ == "__main__":
    for each in json.loads(Path(sys.argv[1]).read_text()):
        run(each)
