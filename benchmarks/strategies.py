"""A query cut into subqueries in three ways, on as many instances in all: StreamCloud's figure 14.

    python benchmarks/strategies.py                     the three strategies, interleaved
    python benchmarks/strategies.py --rows 200000       a short look

The query is over call records and has three stateful operators, as in StreamCloud's evaluation, and
four others: calls with their duration, pairs of calls from one number within a minute and how far
apart they were made, the numbers with several such pairs, and how many of them each district has.
Every strategy must give as many rows. Speeds are those of the batches after the first ones, without
the last; each run is a process of its own. The time of the cores is divided into

    processing     what operators do in tasks: read and evaluate, fold, match, close, state
    distribution   what handing on costs in tasks: deal, write and merge parcels, order, take
    idle           the rest of batch time * cores: waiting, and what the driver and the JVM do

Processing and distribution are times of tasks by their own clocks; `cpu` is their processor time.
Results go to benchmarks/results/strategies.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measure import (
    CORES,
    MASTER,
    Batch,
    check_count,
    common_arguments,
    give,
    in_child,
    medians,
    middle,
    rows_written,
    speed,
    write_report,
)

STRATEGIES = ("operator-set", "query-cloud", "operator-cloud")
ROWS, BATCH_ROWS, PER_SECOND, INSTANCES = 2_000_000, 250_000, 2_000, 7
WARM = 2
DISTRIBUTION = {
    "map take",
    "map deal",
    "map ship",
    "instance merge",
    "instance order",
    "instance ship",
}
QUERY = """
CREATE STREAM calls FROM 'generator:calls?rows={rows}&rate={rate}' TIME ts;
CREATE STREAM timed AS
SELECT src, district, lat, lon, start_time, unix_millis(end_time) - unix_millis(start_time) AS ms
FROM calls;
CREATE STREAM pairs AS
SELECT a.src, a.district, a.ms + b.ms AS ms, hypot(a.lat - b.lat, a.lon - b.lon) AS degrees
FROM timed AS a [RANGE 60 SECONDS] JOIN timed AS b [RANGE 60 SECONDS]
ON a.src = b.src AND a.start_time < b.start_time;
CREATE STREAM movers AS
SELECT src, district, COUNT(*) AS n, MAX(degrees) AS degrees, SUM(ms) AS ms
FROM pairs [RANGE 60 SECONDS SLIDE 10 SECONDS] WHERE degrees > 0.1
GROUP BY src, district HAVING n > 1;
SELECT district, COUNT(*) AS movers, MAX(degrees) AS degrees, AVG(ms) AS ms
FROM movers [RANGE 60 SECONDS] GROUP BY district;
"""


def child(arguments: argparse.Namespace) -> None:
    """One run with one strategy, in the process made for it."""
    import tidegate as tg
    from tidegate.plan.lower import lower
    from tidegate.plan.strategy import Layout, Weights, spread

    work, strategy = Path(arguments.work), arguments.child
    session = tg.Session(master=MASTER)
    query = session.sql(QUERY.format(rows=arguments.rows, rate=PER_SECOND))
    plan = lower(query.node, strategy=strategy)
    layout = Layout.of(plan, spread(plan, arguments.instances))
    running = query.start(
        sink=tg.sink.files(str(work / "out")),
        checkpoint=str(work / "checkpoint"),
        batch_rows=arguments.batch_rows,
        instances=layout.total if strategy == "query-cloud" else dict(layout.instances),
        strategy=strategy,
    )
    reports = running.wait().reports
    batches: list[Batch] = [
        {
            "rows": r.rows_in,
            "seconds": r.seconds,
            "spans_ms": dict(r.spans_ms),
            "tasks_ms": dict(r.tasks_ms),
            "cpu_ms": sum(c["cpu_us"] + c.get("map_cpu_us", 0) for c in r.instance_counts) / 1e3,
        }
        for r in reports
    ]
    give(
        {
            "batches": batches,
            "rows_out": rows_written(work / "out"),
            "instances": dict(layout.instances),
            "hops": layout.hops,
            "fan_out": layout.fan_out,
            "cost": layout.cost(Weights()),
        }
    )


def shares(batches: list[Batch]) -> dict[str, float]:
    """What part of the cores' time went where, over all these batches."""
    whole = sum(b["seconds"] for b in batches) * 1e3 * CORES
    spent = {"processing": 0.0, "distribution": 0.0}
    for batch in batches:
        for name, ms in batch["tasks_ms"].items():
            if name.startswith(("map ", "instance ")):
                spent["distribution" if name in DISTRIBUTION else "processing"] += ms
    found = {name: ms / whole for name, ms in spent.items()}
    found["idle"] = 1 - sum(found.values())
    found["cpu"] = sum(b["cpu_ms"] for b in batches) / whole
    return found


def measure(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Interleave the strategies; all must give as many rows as the first run."""
    given = ["--rows", "--batch-rows", "--instances"]
    values = (arguments.rows, arguments.batch_rows, arguments.instances)
    chosen = [w for o, v in zip(given, values, strict=True) for w in (o, str(v))]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in STRATEGIES}
    wanted: int | None = None
    for number in range(arguments.rounds):
        for name in STRATEGIES:
            done = in_child(__file__, "--child", name, *chosen)
            wanted = done["rows_out"] if wanted is None else wanted
            check_count(f"{name} round {number}", wanted, done["rows_out"])
            batches = done.pop("batches")
            warm = [b for b in batches[WARM:-1] if b["rows"]]
            run = {**speed(warm), "shares": shares(warm), **done}
            run["spans_ms"], run["tasks_ms"] = (medians(warm, w) for w in ("spans_ms", "tasks_ms"))
            runs[name].append(run)
            print(f"round {number} {name}: {_line(run)}", flush=True)
    return runs


def _line(run: Mapping[str, Any]) -> str:
    parts = ", ".join(f"{what} {share:.0%}" for what, share in run["shares"].items())
    return f"{run['rows_per_second']:,.0f} rows/s, batch {run['batch_ms_median']:.0f} ms; {parts}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--batch-rows", type=int, default=BATCH_ROWS)
    parser.add_argument("--instances", type=int, default=INSTANCES, help="in all")
    parser.add_argument("--dry", action="store_true", help="write no results")
    common_arguments(parser, rounds=3)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    runs = measure(arguments)
    speeds = {n: middle([r["rows_per_second"] for r in runs[n]]) for n in STRATEGIES}
    divided = {
        n: {w: middle([r["shares"][w] for r in runs[n]]) for w in runs[n][0]["shares"]}
        for n in STRATEGIES
    }
    first = speeds[STRATEGIES[0]]["median"]
    ratio = {n: first / speeds[n]["median"] for n in STRATEGIES[1:]}
    print(f"{STRATEGIES[0]} beside the others: {json.dumps(ratio)}")
    if not arguments.dry:
        setup = {k: getattr(arguments, k) for k in ("rows", "batch_rows", "instances", "rounds")}
        write_report(
            "strategies",
            {
                **setup,
                "query": QUERY,
                "wanted_ratio": 1,
                "ratio": ratio,
                "rows_per_second": speeds,
                "shares": divided,
                "runs": runs,
            },
        )


if __name__ == "__main__":
    main()
