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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from chart import Chart, Line
from measure import MASTER, PICTURES, write_report

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
    imbalance: float
    tuples: int
    backlog: int


@dataclass
class Noted:
    """A policy that decides as another one does, and notes what it sees."""

    policy: Any
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
                float(one.utilisation.std()),
                sum(load.tuples for load in one.instances),
                one.backlog or 0,
            )
        )
        decision: Decision = self.policy.decide(observed, memory)
        return decision


@dataclass(frozen=True)
class Load:
    """For so long, how many instances tuples keep busy at a time, and the keys that they have."""

    seconds: float
    instances_at: Callable[[float], float]
    keys_at: Callable[[float, np.random.Generator, int], Any]


def ramp(seconds: float, most: float) -> Load:
    """Up and down again, each in so many seconds; all keys are alike."""
    return Load(
        2 * seconds,
        lambda at_s: IDLE + (most - IDLE) * max(1 - abs(at_s - seconds) / seconds, 0.0),
        lambda _, chance, rows: chance.integers(0, KEYS, rows),
    )


def feed(source: tg.MemorySource, began: float, load: Load) -> None:
    """Append tuples as the load has them, until it is over."""
    chance, owed, before = np.random.default_rng(21), 0.0, 0.0
    while (at_s := time.perf_counter() - began) < load.seconds:
        owed += load.instances_at(at_s) * (at_s - before) / SERVICE_S
        before, rows = at_s, int(owed)
        owed -= rows
        source.append(tuples(load.keys_at(at_s, chance, rows)))
        time.sleep(STEP_S)
    source.end()


def tuples(keys: Any) -> pa.Table:
    """Those that come now."""
    now = np.full(len(keys), time.time_ns() // 1_000)
    return pa.table({"ts": pa.array(now, pa.timestamp("us", tz="UTC")), "k": pa.array(keys)})


@dataclass(frozen=True)
class Run:
    """What a policy saw, the switches that it asked for, and the summary of the query."""

    seen: Sequence[Seen]
    switches: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]


def run(session: tg.Session, load: Load, policy: Any, instances: int, most: int) -> Run:
    """A query that begins with so many instances, of which there are `most` later."""
    source = tg.MemorySource(time="ts", schema=tuples(np.zeros(0, np.int64)).schema)
    noted = Noted(policy)
    served = session.stream(source, time="ts").process(Served, keys="k")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as work:
        noted.began = time.perf_counter()
        query = served.start(
            sink=tg.sink.memory(),
            checkpoint=work,
            instances=instances,
            buckets=BUCKETS,
            batch_rows=BATCH_ROWS * most // 2,
            trigger=TRIGGER_S,
            policy=noted,
        )
        feeding = threading.Thread(target=feed, args=(source, noted.began, load))
        feeding.start()
        summary = query.wait()
        feeding.join()
        epochs = query.status()["epochs"]
    switches = [
        {name: e[name] for name in ("batch", "before", "instances", "why", "control_ms")}
        for e in epochs
        if "by" in e
    ]
    return Run(noted.seen, switches, summary.as_dict())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ramp", type=float, default=50.0, help="seconds up, and down again")
    seconds = parser.parse_args().ramp
    session = tg.Session(master=MASTER)
    warm_up(session, instances=2)
    load = ramp(seconds, MOST)
    report(run(session, load, tg.policy.threshold(**THRESHOLDS), 1, 2), load, seconds)


def warm_up(session: tg.Session, instances: int) -> None:
    """Let Spark and its workers start before the clock runs."""
    source = tg.MemorySource(tuples(np.arange(500)), time="ts")
    source.end()
    served = session.stream(source, time="ts").process(Served, keys="k")
    served.start(sink=tg.sink.memory(), instances=instances, buckets=BUCKETS).wait()


def report(ran: Run, load: Load, ramp_s: float) -> None:
    seen = ran.seen
    offered = np.linspace(0, 2 * ramp_s, 200)
    at = [one.at_s for one in seen]
    Chart(
        f"{MASTER}: a load that grows to {MOST:g} of what an instance can do, and falls again",
        "instances, and parts of one",
        [
            Line("average utilisation", [one.utilisation for one in seen], at),
            Line("instances", [one.instances for one in seen], at, steps=True),
            Line("load", [load.instances_at(one) for one in offered], offered.tolist()),
        ],
        levels=[(word, THRESHOLDS[word]) for word in ("upper", "lower")],
        time=f"seconds; a tuple takes {SERVICE_S * 1e6:.0f} microseconds of simulated service",
    ).write(PICTURES / "elastic-ramp.svg")
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
            "switches": ran.switches,
            "mean_utilisation_of_two": round(float(np.mean(both)), 4) if both else None,
            "most_backlog_tuples": max(one.backlog for one in seen),
            "latency_ms": ran.summary["latency_ms"],
        },
    )


if __name__ == "__main__":
    main()
