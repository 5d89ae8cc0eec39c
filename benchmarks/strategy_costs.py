"""The three strategies on a cluster: where its cores' time goes, and what channels and hops cost.

    python benchmarks/strategy_costs.py                    as many executors as cores, less two
    python benchmarks/strategy_costs.py --executors 4 --instances 7 --rounds 1
    python benchmarks/strategy_costs.py --batch-rows 4000 500 --rounds 1 --dry    a short look

The query and the strategies are those of `strategies.py`, on the cluster of `hosts.py`: executors
of one core with folders of their own, all tuples over TCP. One session runs everything: each
strategy with so many instances in all and with batches of each size, `--batches` of them. The first
two and the last are left out. All runs with one size must give as many rows.

What is counted in a batch explains two times of it, by least squares of relative errors:

    handing on   all tasks' time for distribution (figure 14 of StreamCloud):
                 alpha * channels + beta * tuples taken + a constant
    a batch      from start to commit: the same, a cost of every row, one of every hop however few
                 tuples make it, and a constant

`alpha` and `beta` are those of StreamCloud's cost model, which has no constants. Channels are those
that `tidegate explain --strategy all` counts; tuples taken are counted while the query runs, with
those that the first subqueries take from the tasks that read. Results go to
benchmarks/results/strategy_costs.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hosts import cluster, settings
from least_squares import explained
from measure import Batch, check_count, common_arguments, middle, write_report
from strategies import DISTRIBUTION, STRATEGIES, line, measured, run

BATCHES, BATCH_ROWS, INSTANCES, ROUNDS = 8, [40_000, 5_000], [7, 14], 2
COSTS = {
    "distribution_s": ("alpha", "beta", "batch"),
    "seconds": ("alpha", "beta", "row", "hop", "batch"),
}
TITLES = {"distribution_s": "handing on, all tasks", "seconds": "a batch"}
SHARES = ("processing", "distribution", "idle")


def counted(run: Mapping[str, Any], batch: Batch) -> dict[str, float]:
    """How often a batch has each cost, and its two times."""
    handed_ms = sum(batch["tasks_ms"].get(name, 0.0) for name in DISTRIBUTION)
    return {
        "alpha": run["fan_out"],
        "beta": batch["taken"],
        "row": batch["rows"],
        "hop": run["hops"],
        "batch": 1,
        "seconds": batch["seconds"],
        "distribution_s": handed_ms / 1e3,
    }


def fitted(batches: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The costs in seconds that explain each of the two times best; `error` is the median error."""
    found = {}
    for time, names in COSTS.items():
        work = np.array([[float(batch[name]) for name in names] for batch in batches])
        seconds = np.array([batch[time] for batch in batches])
        costs = explained(work, seconds)
        off = np.abs(work @ np.array(costs) / seconds - 1)
        found[time] = {**dict(zip(names, costs, strict=True)), "error": float(np.median(off))}
    return found


def costs_table(fits: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Both fits, in Markdown."""
    yield (
        "| time | a channel (alpha), us | a tuple taken (beta), us | tuples that cost as much as a "
        "channel | a row, us | a hop of a batch, ms | a batch, ms | median error |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for time, title in TITLES.items():
        of = fits[time]
        cells = [f"{of['alpha'] * 1e6:,.1f}", f"{of['beta'] * 1e6:.3f}"]
        cells += [f"{of['alpha'] / of['beta']:,.0f}" if of["beta"] else "-"]
        cells += [f"{of['row'] * 1e6:.3f}" if "row" in of else "-"]
        cells += [f"{of[name] * 1e3:.1f}" if name in of else "-" for name in ("hop", "batch")]
        yield f"| {title} | {' | '.join(cells)} | {of['error']:.0%} |"


def shares_table(cases: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Speeds, and figure 14: where the time of the cores went, in Markdown."""
    yield "| strategy, instances, rows a batch | rows/s | processing | distribution | idle |"
    yield "|---|---|---|---|---|"
    for name, of in cases.items():
        shares = " | ".join(f"{of['shares'][what]['median']:.0%}" for what in SHARES)
        yield f"| {name} | {of['rows_per_second']['median']:,.0f} | {shares} |"


def run_all(session: Any, arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """By case: its runs, one of each round."""
    runs: dict[str, list[dict[str, Any]]] = {}
    rows_out: dict[int, int] = {}
    for _ in range(arguments.rounds):
        for batch_rows in arguments.batch_rows:
            size = {"rows": batch_rows * arguments.batches, "batch_rows": batch_rows}
            for instances in arguments.instances:
                for name in STRATEGIES:
                    case = f"{name}, {instances}, {batch_rows:,}"
                    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as work:
                        done = run(session, name, Path(work), instances=instances, **size)
                    wanted = rows_out.setdefault(batch_rows, done["rows_out"])
                    check_count(case, wanted, done["rows_out"])
                    found = measured(done, arguments.executors)
                    found["counted"] = [counted(found, batch) for batch in found.pop("warm")]
                    print(f"{case}: {line(found)}", flush=True)
                    runs.setdefault(case, []).append(found)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=ROUNDS)
    most = max(2, (os.cpu_count() or 2) - 2)
    parser.add_argument("--executors", type=int, default=most, help="default: cores less two")
    parser.add_argument("--instances", type=int, nargs="+", default=INSTANCES, help="in all")
    parser.add_argument("--batch-rows", type=int, nargs="+", default=BATCH_ROWS)
    parser.add_argument("--batches", type=int, default=BATCHES, help="of each run")
    parser.add_argument("--dry", action="store_true", help="write no results")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the cluster ends with it
    import tidegate as tg

    with cluster(arguments.executors) as at:
        session = tg.Session(master=at, conf=settings(arguments.executors))
        runs = run_all(session, arguments)
    fits = fitted([batch for every in runs.values() for of in every for batch in of["counted"]])
    cases = {
        case: {
            "rows_per_second": middle([of["rows_per_second"] for of in every]),
            "shares": {w: middle([of["shares"][w] for of in every]) for w in every[0]["shares"]},
            "runs": every,
        }
        for case, every in runs.items()
    }
    print("\n".join([*costs_table(fits), "", *shares_table(cases)]))
    if not arguments.dry:
        asked = ("executors", "instances", "batch_rows", "batches", "rounds")
        setup = {name: getattr(arguments, name) for name in asked}
        write_report("strategy_costs", {**setup, "costs": fits, "cases": cases})


if __name__ == "__main__":
    main()
