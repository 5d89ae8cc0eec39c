"""Latency at a fixed rate for `peers.py`: files come into a folder, rows come out at a sink.

Ten files a second with the rows that were due since the file before, put in place by a rename; a
mean and a count of 1,000 keys over 10 s, each second. The latency of a window is from the file that
has the first row after its end to the moment when all its rows can be read: in files that the
engine's sink has named (Tidegate, Spark, Flink), or that it has written (Bytewax, Pathway).
Windows that lack rows, which an engine took for late, are counted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from measure import percentiles
from peer_engine import Engine

RATE, FILES_PER_S, KEYS, RANGE_S = 5_000, 10, 1_000, 10
WARM_S, SECONDS = 25, 20
_LOOK_S, _ENDING_S, _STARTING_S = 0.005, 5.0, 60.0
_PER_FILE = RATE // FILES_PER_S

Seen = dict[int, tuple[float, int]]
"""The end of a window, when its last row could be read, and how many rows went into it."""


def write_csv(rows: pa.Table, times: pa.DataType, target: Path) -> None:
    """Times as Flink reads them, or as numbers, of which the names of columns come first."""
    if times == pa.int64():
        moments = rows["ts"].cast(times)
    else:
        millis = rows["ts"].cast(pa.timestamp("ms"), safe=False)
        moments = pc.strftime(millis, "%Y-%m-%d %H:%M:%S")
    options = pcsv.WriteOptions(include_header=times == pa.int64(), quoting_style="none")
    pcsv.write_csv(rows.set_column(0, "ts", moments), target, options)


def _to_numbers(rows: pa.Table, target: Path) -> None:
    write_csv(rows, pa.int64(), target)


def _to_texts(rows: pa.Table, target: Path) -> None:
    write_csv(rows, pa.string(), target)


class Lines:
    """Rows that an engine writes to one growing file: `end_us, ..., n` and what `more` follows."""

    def __init__(self, name: str, more: int) -> None:
        self._name, self._more = name, more
        self.seen: Seen = {}
        self._rest, self._at = b"", 0

    def look(self, work: Path) -> None:
        """Take what is new; called until the engine is stopped."""
        file = work / self._name
        if not file.exists():
            return
        with file.open("rb") as opened:
            opened.seek(self._at)
            new = opened.read()
        if not new:
            return
        now, self._at = time.time(), self._at + len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            cells = line.replace(b'"', b"").split(b",")
            if cells[0].isdigit():
                number = int(cells[-1 - self._more])
                self.seen[int(cells[0])] = _later(self.seen, int(cells[0]), now, number)


def _later(seen: Seen, end_us: int, at_s: float, rows: int) -> tuple[float, int]:
    before_s, many = seen.get(end_us, (0.0, 0))
    return max(before_s, at_s), many + rows


def _no_look(work: Path) -> None:
    """Files that are named at once tell later when that was."""


def _of_files(files: Iterator[tuple[float, pa.Table]]) -> Seen:
    """Of tables with `end_us` and `n`, and the times when they were named."""
    seen: Seen = {}
    for named_s, table in files:
        found = table.group_by("end_us").aggregate([("n", "sum")])
        for end_us, rows in zip(*(found[c].to_pylist() for c in ("end_us", "n_sum")), strict=True):
            seen[end_us] = _later(seen, end_us, named_s, rows)
    return seen


def _tidegate(work: Path) -> Seen:
    """A batch's folder is renamed when it is published."""

    def files() -> Iterator[tuple[float, pa.Table]]:
        for folder in work.glob("out/batch=*"):
            table = ds.dataset(folder, format="parquet").to_table(["window_end", "n"])
            ends = table["window_end"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            yield folder.stat().st_ctime, table.append_column("end_us", ends)

    return _of_files(files())


def _spark(work: Path) -> Seen:
    """A file counts once the log of the sink names it."""
    logs = [f for f in work.glob("out/_spark_metadata/*") if f.name.split(".")[0].isdigit()]
    known: set[str] = set()

    def files() -> Iterator[tuple[float, pa.Table]]:
        for log in sorted(logs, key=lambda f: int(f.name.split(".")[0])):
            named = {json.loads(line)["path"] for line in log.read_text().splitlines()[1:]}
            for name in sorted(named - known):
                yield log.stat().st_mtime, pq.read_table(name.removeprefix("file://"))
            known.update(named)

    return _of_files(files())


def _flink(work: Path) -> Seen:
    """A checkpoint renames the files that it completes."""
    options = pcsv.ReadOptions(column_names=["end_us", "key", "mean", "n"])
    files = (f for f in work.glob("out/part-*") if f.stat().st_size)
    return _of_files((f.stat().st_ctime, pcsv.read_csv(f, options)) for f in files)


@dataclass(frozen=True)
class _Live:
    """How an engine takes files, what is looked at meanwhile, and what is read in the end."""

    suffix: str
    write: Callable[[pa.Table, Path], None]
    look: Callable[[Path], None]
    seen: Callable[[Path], Seen]


def _files(suffix: str, write: Callable[..., None], seen: Callable[[Path], Seen]) -> _Live:
    return _Live(suffix, write, _no_look, seen)


def _lines(suffix: str, write: Callable[..., None], lines: Lines) -> _Live:
    return _Live(suffix, write, lines.look, lambda work: lines.seen)


ENGINES: Mapping[str, Callable[[], _Live]] = {
    "tidegate": lambda: _files("parquet", pq.write_table, _tidegate),
    "spark": lambda: _files("parquet", pq.write_table, _spark),
    "flink": lambda: _files("csv", _to_texts, _flink),
    "bytewax": lambda: _lines("parquet", pq.write_table, Lines("rows.csv", 0)),
    "pathway": lambda: _lines("csv", _to_numbers, Lines("table.csv", 2)),
}


def run(engine: Engine, job: dict[str, Any], work: Path) -> dict[str, Any]:
    """One run; it ends the engine, which would wait for more files."""
    folder, live = work / "live", ENGINES[engine.name]()
    folder.mkdir()
    # A file that is there says which columns the others will have: a row of a window before all.
    live.write(_rows(0, time.time() - 100)[:1], folder / f"part-00000.{live.suffix}")
    told, errors = work / "told", work / "errors"
    with told.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            engine.command(json.dumps({**job, "data": str(folder)})),
            env=engine.environment(job["cores"]),
            cwd=work,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    try:
        if (about := _about(process, told)) is None:
            return _failed("it did not begin", errors)
        late_ms, begun_s = _feed(process, folder, live, work)
    finally:
        _end(process)
    if process.returncode > 0:
        return _failed(f"it ended with {process.returncode}", errors)
    return {**about, **_figures(live.seen(work), begun_s), "feed_ms": late_ms}


def _failed(why: str, errors: Path) -> dict[str, Any]:
    return {"failed": why, "errors": errors.read_text(errors="replace")[-3000:]}


def _about(process: subprocess.Popen[bytes], told: Path) -> dict[str, Any] | None:
    """What the program says of its engine before it begins; None if it ends or takes too long."""
    until_s = time.monotonic() + _STARTING_S
    while time.monotonic() < until_s and process.poll() is None:
        for line in told.read_text(errors="replace").splitlines(keepends=True):
            if line.startswith("ABOUT ") and line.endswith("\n"):
                found: dict[str, Any] = json.loads(line.removeprefix("ABOUT "))
                return found
        time.sleep(_LOOK_S)
    return None


def _feed(
    process: subprocess.Popen[bytes], folder: Path, live: _Live, work: Path
) -> tuple[dict[str, float], float]:
    """Put each file in place when its last row is due; how late, and when the first row is due."""
    begun_s = float(int(time.time()) + 2)
    late_ms = []
    for number in range((WARM_S + SECONDS + 2) * FILES_PER_S):
        made = work / f"made.{live.suffix}"
        live.write(_rows(number, begun_s), made)
        due_s = begun_s + (number + 1) / FILES_PER_S
        while time.time() < due_s and process.poll() is None:
            live.look(work)
            time.sleep(_LOOK_S)
        os.rename(made, folder / f"part-{number + 1:05d}.{live.suffix}")
        late_ms.append((time.time() - due_s) * 1e3)
    until_s = time.time() + _ENDING_S
    while time.time() < until_s and process.poll() is None:
        live.look(work)
        time.sleep(_LOOK_S)
    return percentiles(late_ms), begun_s


def _rows(number: int, begun_s: float) -> pa.Table:
    place = np.arange(number * _PER_FILE, (number + 1) * _PER_FILE)
    ts = round(begun_s) * 1_000_000 + place * 1_000_000 // RATE
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "key": place * 977 % KEYS,
            "value": (place % 1_000).astype(float),
        }
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """It and what it has started: they are a session of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _figures(seen: Seen, begun_s: float) -> dict[str, Any]:
    """Percentiles over the windows after the start, and how many lacked rows that came too late."""
    first_s = int(begun_s) + WARM_S
    wanted = [end_s * 1_000_000 for end_s in range(first_s, first_s + SECONDS)]
    there = [seen[end_us] for end_us in wanted if end_us in seen]
    if len(there) < SECONDS:
        return {"failed": f"{SECONDS - len(there)} of {SECONDS} windows did not come in time"}
    # The first row after a window is in the file that ends a tenth of a second later.
    took = [(seen[end_us][0] - end_us / 1e6 - 1 / FILES_PER_S) * 1e3 for end_us in wanted]
    lacking = sum(rows != RATE * RANGE_S for _, rows in there)
    return {"latency_ms": percentiles(took), "rate": RATE, "lacking": lacking}
