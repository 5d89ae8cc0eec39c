"""What a batch costs apart from its rows, with tasks that stay, with jobs, and without Spark.

    python benchmarks/batch_cost.py                                     100 rows, two rounds
    python benchmarks/batch_cost.py --batch-rows 100 1000 10000         three sizes
    python benchmarks/batch_cost.py --cases join process --rounds 1

Queries with one and with two stateful operators over generated rides. In each round every query
runs with `--execution resident`, with `--execution jobs` and in the local runner, each run in a
process of its own; the first batches and the last one are left out. Results go to
benchmarks/results/batch_cost.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from measure import (
    CORES,
    MASTER,
    batches_of,
    common_arguments,
    give,
    in_child,
    medians,
    middle,
    percentiles,
    speed,
    write_report,
)

import tidegate as tg

WARM = 20
RUNS = {"resident": 320, "jobs": 70, "local": 220}
"""Batches of each way to run; a jobs batch takes several times as long as the others."""
MOST_ROWS = 400_000
"""Rows of a run with large batches."""
SMALL_ROWS = 100
WANTED = {
    "median_ms": 20.0,
    "p99_ms": 60.0,
    "jobs_over_resident": 5.0,
    "jobs_over_resident_larger": 3.0,
}
"""Of resident batches of 100 rows, and how many times as long as those of jobs take; the last is
for larger batches."""
_RIDES = """
CREATE STREAM rides FROM 'generator:taxi?rows={rows}&rate=10&seed=7{more}' TIME dropoff_time;
CREATE STREAM near AS SELECT l.route, l.fare, r.fare AS other
FROM rides [RANGE 5 SECONDS] AS l JOIN rides [RANGE 5 SECONDS] AS r ON l.route = r.route;
CREATE STREAM busy AS SELECT route, COUNT(*) AS rides, AVG(fare) AS fare
FROM rides [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY route;
"""
QUERIES = {
    "aggregate": "SELECT * FROM busy;",
    "join": "SELECT * FROM near;",
    "aggregate of join": "SELECT route, COUNT(*) AS pairs "
    "FROM near [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY route;",
    "aggregate of aggregate": "SELECT COUNT(*) AS routes, MAX(rides) AS most "
    "FROM busy [RANGE 60 SECONDS SLIDE 10 SECONDS];",
}


class Fares(tg.Process):
    """Rides that cost more than twice the mean of their route so far, from the fifth on."""

    output: ClassVar = {"route": "string", "fare": "double", "mean": "double"}

    def __init__(self) -> None:
        self.rides = self.state.map("rides")
        self.total = self.state.map("total")

    def on_tuple(self, ride: Any, routes: list[str]) -> Iterator[dict[str, Any]]:
        for route in routes:
            rides, total = self.rides.get(route, 0), self.total.get(route, 0.0)
            if rides >= 4 and ride.fare * rides > 2 * total:
                yield {"route": route, "fare": ride.fare, "mean": total / rides}
            self.rides[route], self.total[route] = rides + 1, total + ride.fare


Make = Callable[..., Any]
"""A query of a session over so many rides, with more parameters of their generator."""


def of_sql(name: str) -> Make:
    """One of the queries in SQL."""

    def make(session: tg.Session, rows: int, more: str = "") -> Any:
        return session.sql(_RIDES.format(rows=rows, more=more) + QUERIES[name])

    return make


def process(session: tg.Session, rows: int, more: str = "") -> Any:
    """Every ride looks up and changes what is known of its route."""
    uri = f"generator:taxi?rows={rows}&rate=10&seed=7{more}"
    return session.stream(uri, time="dropoff_time").process(Fares, keys="route")


CASES: dict[str, Make] = {name: of_sql(name) for name in QUERIES} | {"process": process}


def child(case: str, how: str, batch_rows: int, work: Path) -> None:
    """One run of one query, in the process made for it."""
    batches = max(min(RUNS[how], MOST_ROWS // batch_rows), WARM + 20)
    session = tg.Session(master="none" if how == "local" else MASTER)
    stream = CASES[case](session, batch_rows * batches)
    where = {"sink": tg.sink.files(str(work / "out")), "checkpoint": str(work / "checkpoint")}
    options: dict[str, Any] = {"instances": CORES, "batch_rows": batch_rows}
    if how != "local":
        options["execution"] = how
    give(batches_of(lambda: stream.start(**where, **options).wait()))


def measured(case: str, how: str, batch_rows: int) -> dict[str, Any]:
    """One run, reduced to its steady batches."""
    options = ("--how", how, "--batch-rows", str(batch_rows))
    batches = in_child(__file__, "--child", case, *options)[WARM:-1]
    times_ms = [b["seconds"] * 1e3 for b in batches]
    return {
        **speed(batches),
        **{f"{name}_ms": value for name, value in percentiles(times_ms).items()},
        "spans_ms": medians(batches, "spans_ms"),
        "tasks_ms": medians(batches, "tasks_ms"),
    }


def reduced(runs: dict[str, list[dict[str, Any]]], batch_rows: int) -> dict[str, Any]:
    """The rounds of one case side by side, and whether it keeps to what is wanted."""
    found: dict[str, Any] = {
        how: {name: middle([r[f"{name}_ms"] for r in rounds]) for name in ("p50", "p95", "p99")}
        for how, rounds in runs.items()
    }
    pairs = zip(runs["jobs"], runs["resident"], strict=True)
    found["jobs_over_resident"] = middle([j["p50_ms"] / r["p50_ms"] for j, r in pairs])
    resident, times = found["resident"], found["jobs_over_resident"]["median"]
    if batch_rows == SMALL_ROWS:
        found["kept"] = {
            "median_ms": resident["p50"]["median"] <= WANTED["median_ms"],
            "p99_ms": resident["p99"]["median"] <= WANTED["p99_ms"],
            "jobs_over_resident": times >= WANTED["jobs_over_resident"],
        }
    else:
        found["kept"] = {"jobs_over_resident": times >= WANTED["jobs_over_resident_larger"]}
    return found


def table(cases: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    yield "| query, rows a batch | resident: median, p95, p99 | jobs | local | jobs / resident |"
    yield "|---|---|---|---|---|"
    for name, found in cases.items():
        cells = [
            ", ".join(f"{found[how][p]['median']:.0f}" for p in ("p50", "p95", "p99"))
            for how in RUNS
        ]
        ratio = found["jobs_over_resident"]
        times = f"{ratio['median']:.1f} ({ratio['low']:.1f} to {ratio['high']:.1f})"
        yield f"| {name} | {' | '.join(cells)} | {times} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=2)
    parser.add_argument("--batch-rows", type=int, nargs="+", default=[SMALL_ROWS])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--how", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.how, arguments.batch_rows[0], Path(arguments.work))
        return
    asked = [(case, rows) for rows in arguments.batch_rows for case in arguments.cases]
    runs: dict[tuple[str, int], dict[str, list[dict[str, Any]]]]
    runs = {key: {how: [] for how in RUNS} for key in asked}
    for number in range(arguments.rounds):
        for case, rows in asked:
            for how in RUNS:
                run = measured(case, how, rows)
                runs[case, rows][how].append(run)
                shown = ", ".join(f"{p} {run[f'{p}_ms']:.1f}" for p in ("p50", "p95", "p99"))
                print(f"round {number} {case}, {rows:,} rows, {how}: {shown} ms", flush=True)
    found = {f"{c}, {r:,} rows": reduced(runs[c, r], r) for c, r in asked}
    print("\n".join(table(found)))
    for name, case in found.items():
        missed = [bar for bar, kept in case["kept"].items() if not kept]
        if missed:
            print(f"{name}: missed {', '.join(missed)}")
    write_report(
        "batch_cost",
        {
            "master": MASTER,
            "instances": CORES,
            "warm_batches": WARM,
            "wanted": WANTED,
            "cases": found,
            "runs": {f"{c}, {r:,} rows": runs[c, r] for c, r in asked},
        },
    )


if __name__ == "__main__":
    main()
