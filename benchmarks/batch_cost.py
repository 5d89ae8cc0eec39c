"""What a batch costs apart from its rows: queries with one and with two stateful operators.

    python benchmarks/batch_cost.py

Batches of 100 generated rides, so that what is measured is the fixed cost of a batch: jobs, state,
commit. Each run is a process of its own, interleaved; the first batches are left out. Results go to
benchmarks/results/batch_cost.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from measure import (
    CORES,
    MASTER,
    common_arguments,
    give,
    in_child,
    medians,
    middle,
    run_command,
    speed,
    write_report,
)

BATCH_ROWS, BATCHES, WARM = 100, 120, 20
WANTED_RATIO = 1.6
_RIDES = f"""
CREATE STREAM rides FROM 'generator:taxi?rows={BATCH_ROWS * BATCHES}&rate=10&seed=7'
TIME dropoff_time;
CREATE STREAM near AS SELECT l.route, l.fare, r.fare AS other
FROM rides [RANGE 5 SECONDS] AS l JOIN rides [RANGE 5 SECONDS] AS r ON l.route = r.route;
CREATE STREAM busy AS SELECT route, COUNT(*) AS rides, AVG(fare) AS fare
FROM rides [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY route;
"""
QUERIES = {
    "aggregate": "SELECT * FROM busy;",
    "aggregate of aggregate": "SELECT COUNT(*) AS routes, MAX(rides) AS most "
    "FROM busy [RANGE 60 SECONDS SLIDE 10 SECONDS];",
    "join": "SELECT * FROM near;",
    "aggregate of join": "SELECT route, COUNT(*) AS pairs "
    "FROM near [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY route;",
}
PAIRS = {"aggregate of aggregate": "aggregate", "aggregate of join": "join"}


def child(name: str, work: Path) -> None:
    """One run of one query, in the process made for it."""
    query = work / "query.sql"
    query.write_text(_RIDES + QUERIES[name])
    arguments = ["run", query, "--out", work / "out", "--checkpoint", work / "checkpoint"]
    arguments += ["--master", MASTER, "--instances", CORES, "--batch-rows", BATCH_ROWS]
    give(run_command(arguments))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=3)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, Path(arguments.work))
        return
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in QUERIES}
    for number in range(arguments.rounds):
        for name, found in runs.items():
            batches = in_child(__file__, "--child", name)[WARM:-1]
            run = {**speed(batches), "spans_ms": medians(batches, "spans_ms")}
            found.append({**run, "tasks_ms": medians(batches, "tasks_ms")})
            print(f"round {number} {name}: {run['batch_ms_median']:.0f} ms a batch", flush=True)
    costs = {n: middle([r["batch_ms_median"] for r in found]) for n, found in runs.items()}
    ratios = {
        two: middle(
            [
                a["batch_ms_median"] / b["batch_ms_median"]
                for a, b in zip(runs[two], runs[one], strict=True)
            ]
        )
        for two, one in PAIRS.items()
    }
    for two, ratio in ratios.items():
        print(f"{two}: {ratio['median']:.2f} times {PAIRS[two]}")
    write_report(
        "batch_cost",
        {
            "batch_rows": BATCH_ROWS,
            "batches": BATCHES,
            "wanted_ratio": WANTED_RATIO,
            "batch_ms": costs,
            "ratio": ratios,
            "runs": runs,
        },
    )


if __name__ == "__main__":
    main()
