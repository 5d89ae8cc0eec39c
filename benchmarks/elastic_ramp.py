"""Figure 21 of StreamCloud on Spark itself: a ramp that one instance cannot do, and back.

    python benchmarks/elastic_ramp.py

A query runs on local[2] with `threshold`, which gives it one instance or two, and tuples arrive in
real time. What a tuple costs is simulated: its object keeps a core busy for a fixed service time.
So two cores can show that instances follow the load, and what a tuple waits meanwhile; the driver
has its part of them too. For more instances than cores see benchmarks/elastic_figures.py.

Takes two minutes and the whole machine. Results go to benchmarks/results/elastic_ramp.json, the
plot to docs/elastic-ramp.svg.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from chart import Chart, Line
from measure import HERE, MASTER, write_report

import tidegate as tg
from tidegate.policy import Decision, Observation

SERVICE_S = 400e-6
IDLE, MOST = 0.1, 1.3
"""The load at both ends and in the middle of the ramp, in instances."""
BUCKETS, KEYS, STEP_S, TRIGGER_S, BATCH_ROWS = 64, 997, 0.02, 0.25, 1_000
THRESHOLDS = {"upper": 0.9, "target": 0.6, "lower": 0.5, "maximum": 2}


class Served(tg.Process):
    """Keeps a core busy for a while with each tuple, and tells of every thousandth of its own."""

    output: ClassVar = {"count": "bigint"}

    def __init__(self) -> None:
        self.count = 0

    def on_tuple(self, tuple: Any, keys: Sequence[int]) -> Iterator[dict[str, int]]:
        until = time.thread_time() + SERVICE_S
        while time.thread_time() < until:
            pass
        self.count += 1
        if self.count % 1_000 == 0:
            yield {"count": self.count}


@dataclass(frozen=True)
class Seen:
    """One batch: when it was committed, and what a policy knew of it then."""

    at_s: float
    instances: int
    utilisation: float
    tuples: int
    backlog: int


@dataclass
class Noted:
    """A policy that decides as `threshold` does, and notes what it sees."""

    began: float = 0.0
    seen: list[Seen] = field(default_factory=list)
    name: str = "threshold"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        (one,) = observed
        self.seen.append(
            Seen(
                time.perf_counter() - self.began,
                one.mapping.instances,
                float(one.utilisation.mean()),
                sum(load.tuples for load in one.instances),
                one.backlog or 0,
            )
        )
        return tg.policy.threshold(**THRESHOLDS).decide(observed, memory)


def load_at(at_s: float, ramp_s: float) -> float:
    """How many instances the tuples that arrive now keep busy."""
    return IDLE + (MOST - IDLE) * max(1 - abs(at_s - ramp_s) / ramp_s, 0.0)


def feed(source: tg.MemorySource, began: float, ramp_s: float) -> None:
    """Append tuples as the ramp has them, until it is over."""
    chance, owed, before = np.random.default_rng(21), 0.0, 0.0
    while (at_s := time.perf_counter() - began) < 2 * ramp_s:
        owed += load_at(at_s, ramp_s) * (at_s - before) / SERVICE_S
        before, rows = at_s, int(owed)
        owed -= rows
        source.append(tuples(chance, rows))
        time.sleep(STEP_S)
    source.end()


def tuples(chance: np.random.Generator, rows: int) -> pa.Table:
    now = np.full(rows, time.time_ns() // 1_000)
    return pa.table(
        {
            "ts": pa.array(now, pa.timestamp("us", tz="UTC")),
            "k": pa.array(chance.integers(0, KEYS, rows)),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ramp", type=float, default=50.0, help="seconds up, and down again")
    ramp_s = parser.parse_args().ramp
    session = tg.Session(master=MASTER)
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as work:
        warm_up(session)
        empty = tuples(np.random.default_rng(0), 0)
        source, policy = tg.MemorySource(time="ts", schema=empty.schema), Noted()
        served = session.stream(source, time="ts").process(Served, keys="k")
        policy.began = time.perf_counter()
        query = served.start(
            sink=tg.sink.memory(),
            checkpoint=work,
            instances=1,
            buckets=BUCKETS,
            batch_rows=BATCH_ROWS,
            trigger=TRIGGER_S,
            policy=policy,
        )
        feeding = threading.Thread(target=feed, args=(source, policy.began, ramp_s))
        feeding.start()
        summary = query.wait()
        feeding.join()
        epochs = query.status()["epochs"]
    report(policy.seen, epochs, summary.as_dict(), ramp_s)


def warm_up(session: tg.Session) -> None:
    """Let Spark and its workers start before the clock runs."""
    source = tg.MemorySource(tuples(np.random.default_rng(1), 500), time="ts")
    source.end()
    served = session.stream(source, time="ts").process(Served, keys="k")
    served.start(sink=tg.sink.memory(), instances=2, buckets=BUCKETS).wait()


def report(
    seen: Sequence[Seen],
    epochs: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
    ramp_s: float,
) -> None:
    offered = np.linspace(0, 2 * ramp_s, 200)
    at = [one.at_s for one in seen]
    Chart(
        f"{MASTER}: a load that grows to {MOST:g} of what an instance can do, and falls again",
        "instances, and parts of one",
        [
            Line("average utilisation", [one.utilisation for one in seen], at),
            Line("instances", [one.instances for one in seen], at, steps=True),
            Line("load", [load_at(one, ramp_s) for one in offered], offered.tolist()),
        ],
        levels=[(word, THRESHOLDS[word]) for word in ("upper", "lower")],
        time=f"seconds; a tuple takes {SERVICE_S * 1e6:.0f} microseconds of simulated service",
    ).write(HERE.parent / "docs" / "elastic-ramp.svg")
    both = [one.utilisation for one in seen if one.instances == 2]
    write_report(
        "elastic_ramp",
        {
            "simulated": {"service_s_per_tuple": SERVICE_S},
            "ramp_s": ramp_s,
            "trigger_s": TRIGGER_S,
            "thresholds": THRESHOLDS,
            "tuples": sum(one.tuples for one in seen),
            "batches": len(seen),
            "switches": [
                {name: e[name] for name in ("batch", "before", "instances", "why", "control_ms")}
                for e in epochs
                if "by" in e
            ],
            "mean_utilisation_of_two": round(float(np.mean(both)), 4) if both else None,
            "most_backlog_tuples": max(one.backlog for one in seen),
            "latency_ms": summary["latency_ms"],
        },
    )


if __name__ == "__main__":
    main()
