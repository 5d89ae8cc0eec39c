"""A map and a product over windows of tuples by instances: figures 16b and 17 of StreamCloud.

    python benchmarks/map_scaling.py --cores 16 --instances 1 4 16
    python benchmarks/map_scaling.py --rows 20000 --product-rows 2000 --window 200 --rounds 1

map       StreamCloud's Map alone: the duration of each call, from its start and end. Tasks of the
          map evaluate it, as many as there are cores, so cores go up with the instances.
product   StreamCloud's Cartesian product, whose predicate is whether two calls of a number overlap
          in time, over windows of the last so many calls. Tuples and comparisons a second.

Each run is on Spark in a process of its own, with `local[n]` for n instances; the rows that it
gives are counted, and must be the same for each n. Results go to
benchmarks/results/map_scaling.json, of other than two cores to map_scaling-N.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from measure import (
    CORES,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    middle,
    run_sql,
    write_report,
)

ROWS, PRODUCT_ROWS, WINDOW, RATE = 8_000_000, 120_000, 20_000, 10_000
BATCHES, WARM = 8, 2
QUERIES = {
    "map": """
CREATE STREAM calls FROM 'generator:calls?rows={rows}&rate={rate}' TIME ts;
SELECT src, dst, unix_millis(end_time) - unix_millis(start_time) AS ms FROM calls;
""",
    "product": """
CREATE STREAM calls FROM 'generator:calls?rows={rows}&rate={rate}&seed=1' TIME ts;
CREATE STREAM others FROM 'generator:calls?rows={rows}&rate={rate}&seed=2' TIME ts;
SELECT a.src, a.dst, b.src AS other FROM calls AS a [ROWS {window}]
JOIN others AS b [ROWS {window}] ON a.start_time < b.start_time AND b.start_time < a.end_time
AND hypot(a.lat - b.lat, a.lon - b.lon) < 0.005;
""",
}


def child(asked: argparse.Namespace) -> None:
    name, rows = asked.child, asked.product_rows if asked.child == "product" else asked.rows
    sql = QUERIES[name].format(rows=rows, rate=RATE, window=asked.window)
    sides = 2 if name == "product" else 1
    size = ["--batch-rows", rows * sides // BATCHES]
    give(run_sql(sql, Path(asked.work), *size, instances=asked.instances[0]))


def measured(name: str, did: dict[str, Any]) -> dict[str, Any]:
    warm = [batch for batch in did["batches"][WARM:] if batch["rows"]]
    found = figures_of(warm)
    if name == "product":
        seconds = sum(batch["seconds"] for batch in warm)
        found["comparisons_per_second"] = sum(batch["compared"] for batch in warm) / seconds
        found["comparisons"] = sum(batch["compared"] for batch in did["batches"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("--instances", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, default=ROWS, help="of the map")
    parser.add_argument("--product-rows", type=int, default=PRODUCT_ROWS, help="of each side")
    parser.add_argument("--window", type=int, default=WINDOW, help="tuples in a window")
    asked = parser.parse_args()
    if asked.child:
        child(asked)
        return
    sizes = {"rows": asked.rows, "product_rows": asked.product_rows, "window": asked.window}
    options = [w for n, v in sizes.items() for w in (f"--{n.replace('_', '-')}", str(v))]
    found: dict[str, Any] = {}
    for name in QUERIES:
        runs: dict[str, list[dict[str, Any]]] = {}
        wanted = None
        for _ in range(asked.rounds):
            for count in asked.instances:
                did = in_child(__file__, "--child", name, *options, instances=count, cores=count)
                wanted = wanted or did["rows_out"]
                check_count(f"{name}, {count}", wanted, did["rows_out"])
                runs.setdefault(str(count), []).append(measured(name, did))
                speed = runs[str(count)][-1]["rows_per_second"]
                print(f"{name}, {count}: {speed:,.0f} rows/s, {wanted:,} rows", flush=True)
        speeds = ("rows_per_second", "comparisons_per_second")
        found[name] = {"rows_out": wanted} | {
            speed: {n: middle([one[speed] for one in of]) for n, of in runs.items()}
            for speed in speeds
            if all(speed in one for of in runs.values() for one in of)
        }
        if name == "product":
            found[name]["comparisons"] = {n: of[0]["comparisons"] for n, of in runs.items()}
    name = "map_scaling" if CORES == 2 else f"map_scaling-{CORES}"
    write_report(name, {**sizes, "rounds": asked.rounds, "cases": found})


if __name__ == "__main__":
    main()
