"""Pathway: tables that its Rust engine keeps up to date, with the windows of `pw.temporal`.

Files that are there are read in its static mode, which takes them all in one commit; files that
come, in its streaming mode with a commit each 100 ms. A window is put out once then, 100 ms after
its end: rows of one commit are in no order, and those of two windows can be in one. A median is
Python's, of the values of a window, which a reducer sorts. No persistence, which is its default.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pathway as pw


class Event(pw.Schema):
    ts: int
    key: int
    value: float


def read(folder: Path, **how: Any) -> Any:
    """CSV files whose times are whole microseconds."""
    return pw.io.csv.read(str(folder), schema=Event, **(how or {"mode": "static"}))


def query(job: dict[str, Any]) -> Any:
    data, case = Path(job["data"], "numbers"), job["case"]
    if case == "equality":
        left, right = read(data / "left"), read(data / "right")
        near = pw.temporal.interval(-60_000_000, 60_000_000)
        joined = left.interval_join(right, left.ts, right.ts, near, left.key == right.key)
        return joined.select(left.key, a=left.value, b=right.value)
    if case == "asof":
        left, right = read(data / "left"), read(data / "right")
        how = {"how": pw.JoinMode.LEFT}  # it has no inner one
        joined = left.asof_join(right, left.ts, right.ts, left.key == right.key, **how)
        found = joined.select(key=left.key, a=left.value, b=right.value)
        return found.filter(found.b.is_not_none())
    if case == "latency":
        events = read(Path(job["data"]), mode="streaming", autocommit_duration_ms=100)
        window, once = sliding(1, 10), {"behavior": pw.temporal.exactly_once_behavior(100_000)}
    else:
        events, once = read(data / "events"), {}
        window = sliding(60 if case == "tumbling" else 10, 60)
    grouped = events.windowby(events.ts, window=window, instance=events.key, **once)
    of = {"end_us": pw.this._pw_window_end, "key": pw.this._pw_instance}
    if case == "median":
        values = grouped.reduce(**of, values=pw.reducers.sorted_tuple(pw.this.value))
        middle = pw.apply_with_type(statistics.median, float, pw.this.values)
        return values.select(pw.this.end_us, pw.this.key, m=middle)
    return grouped.reduce(**of, mean=pw.reducers.avg(pw.this.value), n=pw.reducers.count())


def sliding(slide_s: int, range_s: int) -> Any:
    return pw.temporal.sliding(hop=slide_s * 1_000_000, duration=range_s * 1_000_000)


def run(job: dict[str, Any]) -> dict[str, Any]:
    pw.io.csv.write(query(job), f"{job['work']}/table.csv")
    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - began
    lines = Path(job["work"], "table.csv").read_text().splitlines()[1:]
    # Two columns are of its own: the time of a change, and whether it adds a row.
    rows = [line.rsplit(",", 2)[0] for line in lines]
    Path(job["work"], "rows.csv").write_text("\n".join(rows) + "\n")
    return {"seconds": seconds, **about(job)}


def about(job: dict[str, Any]) -> dict[str, str]:
    mode = "commits each 100 ms" if job["case"] == "latency" else "static mode"
    return {
        "version": version("pathway"),
        "settings": f"{job['cores']} threads, {mode}, no persistence, CSV",
    }


if __name__ == "__main__":
    os.environ.setdefault("PATHWAY_TELEMETRY_SERVER", "")
    asked = json.loads(sys.argv[1])
    print("ABOUT", json.dumps(about(asked)), flush=True)
    print("RESULT", json.dumps(run(asked)), flush=True)
