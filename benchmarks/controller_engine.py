"""A latency target on the engine: five events, under `auto` and beside other policies.

    python benchmarks/controller_engine.py                          two cores, an hour
    python benchmarks/controller_engine.py --cores 16 --loads spike step --policies nothing auto
    python benchmarks/controller_engine.py --beside 8               on 16 cores, two for each run
    python benchmarks/controller_engine.py --query sliding --cores 16 --loads spike step
    python benchmarks/controller_engine.py --master none --seconds 20 --policies auto --loads spike

A thread appends rows to a live source. A pilot run says how many rows a second the engine does with
one instance; the base rate is the part `--base` of that. After a third of the time something
happens; where it ends, it ends after two thirds (30 s of 90):

- spike: three times the base rate, which ends; step: twice the rate, which stays
- skew: half of the tuples have one key, of a query that cannot fold them before they are sent
- slow: the busier of two executors runs for 40 percent of the time, which ends
- killed: the busier of two executors is killed; Spark starts another

`--query` is what loads other than `skew` ask for. `mean` folds rows where they are read, so reading
is its bottleneck. `sliding` is a median over windows that slide ten times: its instances are.

Each run is a process of its own: with `nothing` done, with `threshold` and `model`, which change
instances, and with `auto`, which may shed within 10 percent, and split keys. `shedding` follows the
backlog up to 95 percent. `slow` and `killed` run on a standalone cluster of two executors on this
machine. Results go to benchmarks/results/controller_engine.json: latency, backlog, instances and
share of every second, and the decisions. Pictures go to docs/auto-engine-*.svg (`--pictures DIR`).
A run that fails is in the report with what it said.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from chart import Chart, Line
from controller_faults import KilledExecutor, SlowExecutor, cluster
from measure import CORES, HERE, MASTER, beside, common_arguments, give, in_child, write_report

import tidegate as tg

SECONDS, BASE, TARGET_S, ERROR = 90.0, 0.5, 2.0, 0.1
EVERY_S = 0.1
START_US = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6)
PILOT_ROWS = 1_000_000
PILOTS = 2
BEGIN, END = 1 / 3, 2 / 3
"""When something happens, and when that ends, as parts of the time."""

KEYS, HOT_KEY = 20_000, 7

COUNTS = {
    "nothing": "fixed",
    "threshold": f"threshold?maximum={CORES}",
    "model": f"model?maximum={CORES}&latency={TARGET_S}",
    "shedding": "fixed",
}
"""Policies by their parameters; `auto` is what a query with a latency target has."""

POLICIES = (*COUNTS, "auto")


class Fault(Protocol):
    """Something that befalls an executor of a cluster, given the processes of its workers."""

    def strike(self, workers: Sequence[int], seconds: float, over: threading.Event) -> None: ...


Ask = Callable[[tg.Stream], tg.Stream]

QUERIES: Mapping[str, Ask] = {
    "mean": lambda rows: (
        rows.window("5 seconds").group_by("k").agg(a=tg.mean("v"), d=tg.stddev("v"), n=tg.count())
    ),
    "median": lambda rows: (
        rows.window("5 seconds").group_by("k").agg(m=tg.median("v"), n=tg.count())
    ),
    "sliding": lambda rows: (
        rows.window("5 seconds", slide="500 milliseconds")
        .group_by("k")
        .agg(m=tg.median("v"), n=tg.count())
    ),
}


@dataclass(frozen=True)
class EngineLoad:
    """What comes and what happens, at a part of the time."""

    times_base: Callable[[float], float] = lambda at: 1.0
    hot: Callable[[float], float] = lambda at: 0.0
    """The part of the tuples that have one key."""
    query: str | None = None
    """The one of QUERIES that the load is for; None: any."""
    instances: int = 1
    fault: Fault | None = None

    def asks(self, usual: str) -> str:
        return self.query or usual

    def site(self, usual: str) -> str:
        """Loads of one site have the same rate of the pilot."""
        return f"{self.asks(usual)}-{'cluster' if self.fault else 'local'}"


def _during(at: float) -> bool:
    return BEGIN <= at < END


LOADS: Mapping[str, EngineLoad] = {
    "spike": EngineLoad(times_base=lambda at: 3.0 if _during(at) else 1.0),
    "step": EngineLoad(times_base=lambda at: 2.0 if at >= BEGIN else 1.0),
    "skew": EngineLoad(hot=lambda at: 0.5 if at >= BEGIN else 0.0, query="median", instances=2),
    "slow": EngineLoad(instances=2, fault=SlowExecutor()),
    "killed": EngineLoad(instances=2, fault=KilledExecutor()),
}


def rows_of(start_s: float, seconds: float, count: int, hot: float = 0.0) -> pa.Table:
    ts = START_US + (np.linspace(start_s, start_s + seconds, count, endpoint=False) * 1e6)
    numbers = np.arange(count)
    keys = numbers * 7919 % KEYS
    keys[numbers % 100 < round(hot * 100)] = HOT_KEY
    columns = {
        "t": pa.array(ts.astype(np.int64), pa.timestamp("us", "UTC")),
        "k": pa.array(keys),
        "v": pa.array((numbers % 101).astype(np.float64)),
    }
    return pa.table(columns)


@contextmanager
def site(load: EngineLoad, master: str, work: Path) -> Iterator[tuple[str, list[int]]]:
    """The master that a load runs on, and the workers that a fault may strike."""
    if load.fault is None:
        yield master, []
        return
    with cluster(work / "cluster", CORES) as found:
        yield found


def started(
    master: str, load: EngineLoad, query: str, policy: str, work: Path
) -> tuple[tg.MemorySource, tg.RunningQuery]:
    """A query that has answered its first batch: code is loaded, tasks are there."""
    source = tg.MemorySource(rows_of(0.0, 0.01, 1_000), time="t")
    session = tg.Session(master=master)
    asked = QUERIES[load.asks(query)](session.stream(source, time="t"))
    how: dict[str, Any] = {"sink": tg.sink.memory(), "checkpoint": str(work / "checkpoint")}
    if policy == "shedding":
        asked = asked.shed(up_to=0.95)
    if policy == "auto":
        asked = asked.latency(TARGET_S, error=ERROR, cost=CORES)
    else:
        how["policy"] = COUNTS[policy]
    running = asked.start(instances=load.instances, **how)
    while running.status()["batch"] < 0:
        time.sleep(0.1)
    return source, running


def pilot(name: str, usual: str, master: str, work: Path) -> float:
    """Rows a second of the engine with the instances that runs begin with."""
    load = next(load for load in LOADS.values() if load.site(usual) == name)
    with site(load, master, work) as (where, _):
        source, query = started(where, load, usual, "nothing", work)
        source.append(rows_of(0.02, 1.0, PILOT_ROWS))
        taken(query, PILOT_ROWS)
        begin = time.monotonic()
        for again in range(PILOTS):
            source.append(rows_of(1.1 * (again + 1), 1.0, PILOT_ROWS))
        taken(query, (1 + PILOTS) * PILOT_ROWS)
        seconds = time.monotonic() - begin
        source.end()
        query.wait()
    return PILOTS * PILOT_ROWS / seconds


def taken(query: tg.RunningQuery, rows: int) -> None:
    """Wait until so many rows were answered; an error if the query fails first."""
    while query.status()["rows_in"] < rows:
        query.wait(0.02)


def run(name: str, policy: str, rate: float, asked: argparse.Namespace) -> dict[str, Any]:
    load, work = LOADS[name], Path(asked.work)
    with site(load, asked.master, work) as (where, workers):
        source, query = started(where, load, asked.query, policy, work)
        return watched(source, query, load, rate, asked.seconds, workers)


def watched(
    source: tg.MemorySource,
    query: tg.RunningQuery,
    load: EngineLoad,
    rate: float,
    seconds: float,
    workers: Sequence[int],
) -> dict[str, Any]:
    """The course of one run, by seconds."""
    begin, over = time.monotonic(), threading.Event()

    def feed() -> None:
        fed_s = 0.0
        while fed_s < seconds and not over.is_set():
            over.wait(max(begin + fed_s - time.monotonic(), 0.0))
            at = fed_s / seconds
            count = round(rate * EVERY_S * load.times_base(at))
            source.append(rows_of(1.0 + fed_s, EVERY_S, count, load.hot(at)))
            fed_s += EVERY_S

    def strike(fault: Fault) -> None:
        if not over.wait(begin + BEGIN * seconds - time.monotonic()):
            fault.strike(workers, (END - BEGIN) * seconds, over)

    threads = [threading.Thread(target=feed)]
    if load.fault is not None:
        threads.append(threading.Thread(target=strike, args=[load.fault]))
    for thread in threads:
        thread.start()
    course = []
    with ThreadPoolExecutor(1) as pool:
        summary = pool.submit(query.wait)
        while threads[0].is_alive() and not summary.done():  # done before it has all: it failed
            time.sleep(1.0)
            course.append(seen(query, time.monotonic() - begin))
        over.set()
        for thread in threads:
            thread.join()
        source.end()
        told = summary.result().as_dict()
    late = [one["latency_s"] for one in course if one["latency_s"] is not None]
    return {
        "held": round(float(np.mean([s <= TARGET_S for s in late])), 4),
        "worst_s": max(late),
        "instance_seconds": sum(one["instances"] for one in course),
        "latency_ms": {k: float(v) for k, v in (told["latency_later_batches_ms"] or {}).items()},
        "rows_shed": told.get("rows_shed", 0),
        "windows": told["windows"],
        "partitioner_changes": told.get("partitioner_changes"),
        "controller": told["controller"],
        "course": course,
    }


def seen(query: tg.RunningQuery, at_s: float) -> dict[str, Any]:
    """A second of a course."""
    status = query.status()
    newest, shedding = status["newest_latency_ms"], list(status["shedding"].values())
    return {
        "at_s": round(at_s, 2),
        "latency_s": None if newest is None else round(float(newest["p99"]) / 1e3, 4),
        "backlog_rows": (status["backlog"] or {}).get("rows"),
        "instances": status["instances"],
        "share": shedding[0]["share"] if shedding else 0.0,
    }


def draw(loads: Mapping[str, Mapping[str, Any]], folder: Path, seconds: float, lead: str) -> None:
    """Latency, backlog, instances and share of each load over time, one line a policy."""
    for load, policies in loads.items():
        happens = [(BEGIN * seconds, load)]
        for name, title, unit, levels in (
            ("latency_s", "Latency, the slowest hundredth of a batch", "seconds", [TARGET_S]),
            ("backlog_rows", "Input that waits", "rows", []),
            ("instances", "Instances", "instances", []),
            ("share", "What is shed", "share of the rows", []),
        ):
            lines = []
            for policy, one in policies.items():
                known = [at for at in one.get("course", ()) if at[name] is not None]
                values = [at[name] for at in known]
                if values:
                    lines.append(Line(policy, values, [at["at_s"] for at in known]))
            if not any(any(line.values) for line in lines):
                continue
            file = folder / f"{lead}-{load}-{name.removesuffix('_s')}.svg"
            aims = [("target", level) for level in levels]
            Chart(f"{title}: {load}", unit, lines, aims, happens).write(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--base", type=float, default=BASE)
    parser.add_argument("--master", default=MASTER, help="of loads without a fault")
    parser.add_argument("--query", choices=QUERIES, default="mean", help="of loads without one")
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    usual = [name for name in POLICIES if name != "shedding"]
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=usual)
    parser.add_argument("--pictures", type=Path, default=HERE.parent / "docs")
    parser.add_argument(
        "--beside", type=int, default=1, help="how many run at once, each on cores of its own"
    )
    asked = parser.parse_args()
    if asked.child:
        return give(child(asked))
    options = ["--seconds", str(asked.seconds), "--master", asked.master]
    options += ["--query", asked.query]
    limit_s = 2 * asked.seconds + 120

    def one(name: str, cpus: Sequence[int] | None) -> Any:
        try:
            return in_child(__file__, "--child", name, *options, cpus=cpus, limit_s=limit_s)
        except (Exception, SystemExit) as error:
            return {"failed": str(error)[-1500:]}

    def shown(name: str, cpus: Sequence[int] | None) -> dict[str, Any]:
        rate = rates[LOADS[name.partition("=")[0]].site(asked.query)] * asked.base
        ran: dict[str, Any] = one(f"{name}={rate}", cpus)
        told = f"FAILED: {ran['failed'][-300:]}" if "failed" in ran else _line(ran)
        print(f"{name:<18} {told}", flush=True)
        return ran

    sites = list(dict.fromkeys(LOADS[load].site(asked.query) for load in asked.loads))
    found = beside(min(asked.beside, len(sites)), one, [f"pilot={name}" for name in sites])
    rates = dict(zip(sites, found, strict=True))
    print({name: rate if isinstance(rate, dict) else round(rate) for name, rate in rates.items()})
    failed = [rate for rate in rates.values() if isinstance(rate, dict)]
    if failed:
        raise SystemExit(f"a pilot failed: {failed[0]['failed']}")
    names = [f"{load}={policy}" for load in asked.loads for policy in asked.policies]
    ran = dict(zip(names, beside(asked.beside, shown, names), strict=True))
    loads = {load: {p: ran[f"{load}={p}"] for p in asked.policies} for load in asked.loads}
    report = {"seconds": asked.seconds, "rows_per_s": rates, "base": asked.base}
    report |= {"target_s": TARGET_S, "error": ERROR, "beside": asked.beside, "cores": CORES}
    other = "" if asked.query == "mean" else f"-{asked.query}"
    write_report(f"controller_engine{other.replace('-', '_')}", {**report, "loads": loads})
    draw(loads, asked.pictures, asked.seconds, f"auto-engine{other}")


def child(asked: argparse.Namespace) -> Any:
    """What a process of its own does: a pilot, or a run."""
    first, name, *rate = asked.child.split("=")
    if first == "pilot":
        return pilot(name, asked.query, asked.master, Path(asked.work))
    return run(first, name, float(rate[0]), asked)


def table(report: Mapping[str, Any]) -> Iterator[str]:
    """The share of seconds that hold the target, the worst latency and the instance seconds."""
    names = list(next(iter(report["loads"].values())))
    yield f"| load | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for load, found in report["loads"].items():
        yield f"| {load} | {' | '.join(_cell(found[name]) for name in names)} |"


def _cell(ran: Mapping[str, Any]) -> str:
    if "failed" in ran:
        return "failed"
    return f"{ran['held']:.0%}, {ran['worst_s']:.1f} s, {ran['instance_seconds']}"


def _line(ran: Mapping[str, Any]) -> str:
    return (
        f"held {ran['held']:.1%}, worst {ran['worst_s']:.2f} s, "
        f"{ran['instance_seconds']} instance seconds, {ran['rows_shed']:,} rows shed"
    )


if __name__ == "__main__":
    main()
