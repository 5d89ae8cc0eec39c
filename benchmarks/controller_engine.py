"""A latency target on the engine: a spike and a lasting step of an aggregate that may shed.

    python benchmarks/controller_engine.py                          two cores, some six minutes
    python benchmarks/controller_engine.py --cores 16 --seconds 120
    python benchmarks/controller_engine.py --beside 8               on 16 cores, two for each run
    python benchmarks/controller_engine.py --master none --seconds 20 --policies auto --loads spike

A thread appends rows to a live source. A pilot run says how many rows a second the engine does; the
base rate is the part `--base` of that. `spike` has three times the base rate for a quarter of the
time (30 s of 120), `step` from a third of the time on. Each run is a process of its own: with
nothing done (`fixed`), `shedding` as the backlog grows, up to 95 percent, with `threshold` and
`model`, which change instances alone, and with `auto`, which may shed within 10 percent. Results go
to benchmarks/results/controller_engine.json: latency, backlog, instances and share of every
second. Pictures of them go to docs/auto-engine-*.svg.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from chart import Chart, Line
from measure import CORES, HERE, MASTER, beside, common_arguments, give, in_child, write_report

import tidegate as tg

SECONDS, BASE, TARGET_S = 120.0, 0.5, 2.0
EVERY_S = 0.1
START_US = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6)
PILOT_ROWS = 2_000_000
POLICIES = {
    "fixed": "fixed",
    "shedding": "fixed",
    "threshold": f"threshold?maximum={CORES}",
    "model": f"model?maximum={CORES}&latency={TARGET_S}",
    "auto": f"auto?latency={TARGET_S}&error=0.1&cost={CORES}",
}
MAY_SHED = ("shedding", "auto")
LOADS = ("spike", "step")


def times_base(load: str, at: float) -> float:
    """How many times the base rate, at a part of the time."""
    if load == "spike":
        return 3.0 if 0.25 <= at < 0.5 else 1.0
    return 2.0 if at >= 1 / 3 else 1.0


def rows_of(start_s: float, seconds: float, count: int) -> pa.Table:
    ts = START_US + (np.linspace(start_s, start_s + seconds, count, endpoint=False) * 1e6)
    numbers = np.arange(count)
    columns = {
        "t": pa.array(ts.astype(np.int64), pa.timestamp("us", "UTC")),
        "k": pa.array(numbers * 7919 % 1000),
        "v": pa.array((numbers % 101).astype(np.float64)),
    }
    return pa.table(columns)


def started(master: str, policy: str) -> tuple[tg.MemorySource, Any]:
    """A query that has answered its first batch: code is loaded, tasks are there."""
    source = tg.MemorySource(rows_of(0.0, 0.01, 1_000), time="t")
    stream = tg.Session(master=master).stream(source, time="t").window("5 seconds").group_by("k")
    asked = stream.agg(a=tg.mean("v"), d=tg.stddev("v"), n=tg.count())
    if policy in MAY_SHED:
        asked = asked.shed(up_to=0.95)
    query = asked.start(sink=tg.sink.memory(), policy=POLICIES[policy], instances=1)
    while query.status()["batch"] < 0:
        time.sleep(0.1)
    return source, query


def pilot(master: str) -> float:
    """Rows a second of the engine with one instance."""
    source, query = started(master, "fixed")
    source.append(rows_of(0.02, 1.0, PILOT_ROWS))
    time.sleep(1.0)
    begin = time.monotonic()
    source.append(rows_of(1.1, 1.0, PILOT_ROWS))
    while query.status()["rows_in"] < 2 * PILOT_ROWS:
        time.sleep(0.02)
    seconds = time.monotonic() - begin
    source.end()
    query.wait()
    return PILOT_ROWS / seconds


def run(master: str, load: str, policy: str, rate: float, seconds: float) -> dict[str, Any]:
    source, query = started(master, policy)
    begin, over = time.monotonic(), threading.Event()

    def feed() -> None:
        fed_s = 0.0
        while fed_s < seconds:
            over.wait(max(begin + fed_s - time.monotonic(), 0.0))
            count = round(rate * EVERY_S * times_base(load, fed_s / seconds))
            source.append(rows_of(1.0 + fed_s, EVERY_S, count))
            fed_s += EVERY_S

    thread = threading.Thread(target=feed)
    thread.start()
    course = []
    while thread.is_alive():
        time.sleep(1.0)
        status = query.status()
        newest, shedding = status["newest_latency_ms"], list(status["shedding"].values())
        course.append(
            {
                "at_s": round(time.monotonic() - begin, 2),
                "latency_s": None if newest is None else round(float(newest["p99"]) / 1e3, 4),
                "backlog_rows": (status["backlog"] or {}).get("rows"),
                "instances": status["instances"],
                "share": shedding[0]["share"] if shedding else 0.0,
            }
        )
    source.end()
    summary = query.wait()
    told = summary.as_dict()
    late = [one["latency_s"] for one in course if one["latency_s"] is not None]
    return {
        "held": round(float(np.mean([s <= TARGET_S for s in late])), 4),
        "worst_s": max(late),
        "latency_ms": {k: float(v) for k, v in (told["latency_later_batches_ms"] or {}).items()},
        "rows_shed": told.get("rows_shed", 0),
        "windows": told["windows"],
        "controller": told["controller"],
        "course": course,
    }


def draw(loads: Mapping[str, Mapping[str, Any]]) -> None:
    """Latency and instances of each load over time, one line a policy."""
    for load, policies in loads.items():
        for name, title, unit in (
            ("latency_s", "Latency, the slowest hundredth of a batch", "seconds"),
            ("instances", "Instances", "instances"),
        ):
            lines = []
            for policy, one in policies.items():
                seen = [at for at in one["course"] if at[name] is not None]
                lines.append(Line(policy, [at[name] for at in seen], [at["at_s"] for at in seen]))
            file = HERE.parent / "docs" / f"auto-engine-{load}-{name.removesuffix('_s')}.svg"
            Chart(f"{title}: {load}", unit, lines).write(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--base", type=float, default=BASE)
    parser.add_argument("--master", default=MASTER)
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument(
        "--beside", type=int, default=1, help="how many run at once, each on cores of its own"
    )
    asked = parser.parse_args()
    if asked.child == "pilot":
        return give(pilot(asked.master))
    if asked.child:
        load, policy, rate = asked.child.split("=")
        return give(run(asked.master, load, policy, float(rate), asked.seconds))
    options = ["--seconds", str(asked.seconds), "--master", asked.master]
    fastest = in_child(__file__, "--child", "pilot", *options)
    print(f"{fastest:,.0f} rows/s with one instance", flush=True)

    def one(name: str, cpus: Sequence[int] | None) -> dict[str, Any]:
        child = f"{name}={fastest * asked.base}"
        ran: dict[str, Any] = in_child(__file__, "--child", child, *options, cpus=cpus)
        told = f"held {ran['held']:.1%}, worst {ran['worst_s']:.2f} s"
        print(f"{name:<16} {told}, {ran['rows_shed']:,} rows shed", flush=True)
        return ran

    names = [f"{load}={policy}" for load in asked.loads for policy in asked.policies]
    ran = dict(zip(names, beside(asked.beside, one, names), strict=True))
    found = {load: {p: ran[f"{load}={p}"] for p in asked.policies} for load in asked.loads}
    draw(found)
    report = {"seconds": asked.seconds, "rows_per_s": fastest, "base": asked.base}
    write_report("controller_engine", {**report, "beside": asked.beside, "loads": found})


if __name__ == "__main__":
    main()
