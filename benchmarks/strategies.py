"""A query cut into subqueries in three ways, on as many instances in all: StreamCloud's figure 14.

    python benchmarks/strategies.py                     the three strategies, interleaved
    python benchmarks/strategies.py --rows 200000       a short look
    python benchmarks/strategies.py --instances 4,8,16  a sweep over instances in all: see sweep.py

`strategy_costs.py` runs the same query on a cluster of several executors.

The query is over call records and has three stateful operators, as in StreamCloud's evaluation, and
four others: calls with their duration, pairs of calls from one number within a minute and how far
apart they were made, the numbers with several such pairs, and how many of them each district has.
Every strategy must give as many rows. Speeds are those of the batches after the first ones, without
the last; each run is a process of its own. The time of the cores is divided into

    processing     what operators do in tasks: read and evaluate, fold, match, close, state
    distribution   what handing on costs in tasks: route, write, fetch, merge, order, take
    idle           the rest of batch time * cores: waiting, and what the driver and the JVM do

Processing and distribution are times of tasks by their own clocks; `cpu` is their processor time.
Results go to benchmarks/results/strategies.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from measure import (
    CORES,
    MASTER,
    Batch,
    batches_of,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    middle,
    rows_written,
    write_report,
)
from sweep import is_sweep, sweep_arguments, swept

STRATEGIES = ("operator-set", "query-cloud", "operator-cloud")
ROWS, BATCH_ROWS, PER_SECOND, INSTANCES = 2_000_000, 250_000, 2_000, 7
WARM = 2
DISTRIBUTION = {
    "map take",
    "map route",
    "map ship",
    "instance load",
    "instance fetch",
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


def run(
    session: Any, strategy: str, work: Path, *, rows: int, batch_rows: int, instances: int
) -> dict[str, Any]:
    """One run with one strategy in this process; instances are those of all subqueries."""
    import tidegate as tg
    from tidegate.plan.lowering.lower import lower
    from tidegate.plan.strategy import Layout, Weights, spread

    query = session.sql(QUERY.format(rows=rows, rate=PER_SECOND))
    plan = lower(query.node, strategy=strategy)
    layout = Layout.of(plan, spread(plan, instances))
    where = {"sink": tg.sink.files(str(work / "out")), "checkpoint": str(work / "checkpoint")}
    options: dict[str, Any] = {"batch_rows": batch_rows, "strategy": strategy}
    options["instances"] = layout.total if strategy == "query-cloud" else dict(layout.instances)
    batches = batches_of(lambda: query.start(**where, **options).wait())
    return {
        "batches": batches,
        "rows_out": rows_written(work / "out"),
        "instances": dict(layout.instances),
        "hops": layout.hops,
        "fan_out": layout.fan_out,
        "cost": layout.cost(Weights()),
    }


def child(arguments: argparse.Namespace) -> None:
    """One run with one strategy, in the process made for it."""
    import tidegate as tg

    size = {"rows": arguments.rows, "batch_rows": arguments.batch_rows}
    work, instances = Path(arguments.work), arguments.instances[0]
    session = tg.Session(master=MASTER)
    give(run(session, arguments.child, work, instances=instances, **size))


def shares(batches: list[Batch], cores: int) -> dict[str, float]:
    """What part of the cores' time went where, over all these batches."""
    whole = sum(b["seconds"] for b in batches) * 1e3 * cores
    spent = {"processing": 0.0, "distribution": 0.0}
    for batch in batches:
        for name, ms in batch["tasks_ms"].items():
            if name.startswith(("map ", "instance ")):
                spent["distribution" if name in DISTRIBUTION else "processing"] += ms
    found = {name: ms / whole for name, ms in spent.items()}
    found["idle"] = 1 - sum(found.values())
    found["cpu"] = sum(b["cpu_us"] for b in batches) / 1e3 / whole
    return found


def measured(done: dict[str, Any], cores: int) -> dict[str, Any]:
    """Figures of what `run` gave, of its batches after the first ones and without the last."""
    warm = [b for b in done.pop("batches")[WARM:-1] if b["rows"]]
    return {**figures_of(warm), "shares": shares(warm, cores), "warm": warm, **done}


def measure(
    name: str, arguments: argparse.Namespace, instances: int, cores: int = CORES
) -> dict[str, Any]:
    """One run with a strategy and its time of the cores; all must give as many rows."""
    options = ("--rows", str(arguments.rows), "--batch-rows", str(arguments.batch_rows))
    done = in_child(__file__, "--child", name, *options, instances=instances, cores=cores)
    arguments.wanted = arguments.wanted or done["rows_out"]
    check_count(name, arguments.wanted, done["rows_out"])
    found = measured(done, cores)
    del found["warm"]
    print(f"{name}, {instances}: {line(found)}", flush=True)
    return found


def line(run: Mapping[str, Any]) -> str:
    parts = ", ".join(f"{what} {share:.0%}" for what, share in run["shares"].items())
    return f"{run['rows_per_second']:,.0f} rows/s, batch {run['batch_ms_median']:.0f} ms; {parts}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--batch-rows", type=int, default=BATCH_ROWS)
    parser.add_argument("--dry", action="store_true", help="write no results")
    common_arguments(parser, rounds=3)
    sweep_arguments(parser, [INSTANCES])
    arguments = parser.parse_args()
    arguments.wanted = None
    if arguments.child:
        child(arguments)
        return
    if is_sweep(arguments):
        swept("strategies", {n: partial(measure, n, arguments) for n in STRATEGIES}, arguments)
        return
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in STRATEGIES}
    for _ in range(arguments.rounds):
        for name in STRATEGIES:
            runs[name].append(measure(name, arguments, arguments.instances[0]))
    speeds = {n: middle([r["rows_per_second"] for r in runs[n]]) for n in STRATEGIES}
    divided = {
        n: {w: middle([r["shares"][w] for r in runs[n]]) for w in runs[n][0]["shares"]}
        for n in STRATEGIES
    }
    first = speeds[STRATEGIES[0]]["median"]
    ratio = {n: first / speeds[n]["median"] for n in STRATEGIES[1:]}
    print(f"{STRATEGIES[0]} beside the others: {json.dumps(ratio)}")
    if not arguments.dry:
        setup = {k: getattr(arguments, k) for k in ("rows", "batch_rows", "rounds")}
        setup["instances"] = arguments.instances[0]
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
