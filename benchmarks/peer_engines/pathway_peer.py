"""Pathway: tables that its Rust engine keeps up to date; a bounded input is read as one stream.

No persistence, which is its default. Windows and interval joins are those of `pw.temporal`.
"""

from __future__ import annotations

import json
import os
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


def read(folder: Path) -> Any:
    """CSV files whose times are whole microseconds."""
    return pw.io.csv.read(str(folder), schema=Event, mode="static")


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
    window: Any = (
        pw.temporal.tumbling(duration=60_000_000)
        if case == "tumbling"
        else pw.temporal.sliding(hop=10_000_000, duration=60_000_000)
    )
    events = read(data / "events")
    grouped = events.windowby(events.ts, window=window, instance=events.key)
    return grouped.reduce(
        end_us=pw.this._pw_window_end,
        key=pw.this._pw_instance,
        mean=pw.reducers.avg(pw.this.value),
        n=pw.reducers.count(),
    )


def run(job: dict[str, Any]) -> dict[str, Any]:
    pw.io.csv.write(query(job), f"{job['work']}/table.csv")
    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    seconds = time.perf_counter() - began
    lines = Path(job["work"], "table.csv").read_text().splitlines()[1:]
    # Two columns are of its own: the time of a change, and whether it adds a row.
    rows = [line.rsplit(",", 2)[0] for line in lines]
    Path(job["work"], "rows.csv").write_text("\n".join(rows) + "\n")
    return {
        "seconds": seconds,
        "version": version("pathway"),
        "settings": f"{job['cores']} threads, no persistence, CSV in and out",
    }


if __name__ == "__main__":
    os.environ.setdefault("PATHWAY_TELEMETRY_SERVER", "")
    asked = json.loads(sys.argv[1])
    print("RESULT", json.dumps(run(asked)), flush=True)
