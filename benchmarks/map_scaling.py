"""A map and a product over windows of tuples by instances: figures 16b and 17 of StreamCloud.

    python benchmarks/map_scaling.py --instances 1,4,16
    python benchmarks/map_scaling.py --rows 20000 --product-rows 2000 --window 200 --rounds 1

map       StreamCloud's Map alone: the duration of each call, from its start and end. Tasks of the
          map evaluate it, as many as there are cores, so cores go up with the instances.
product   StreamCloud's Cartesian product, whose predicate is whether two calls of a number overlap
          in time, over windows of the last so many calls. Tuples and comparisons a second.

Each run is on Spark in a process of its own, with `local[n]` for n instances; the rows that it
gives are counted, and must be the same for each n. Results go to
benchmarks/results/map_scaling-sweep.json.
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
    run_sql,
)
from sweep import sweep_arguments, swept

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


class Measured:
    """A query with each number of instances; all must give as many rows, and some."""

    def __init__(self, name: str, asked: argparse.Namespace) -> None:
        sizes = {"rows": asked.rows, "product-rows": asked.product_rows, "window": asked.window}
        self._name, self._rows_out = name, None
        self._options = [word for n, v in sizes.items() for word in (f"--{n}", str(v))]

    def __call__(self, instances: int, cores: int) -> dict[str, Any]:
        words = ("--child", self._name, *self._options)
        did = in_child(__file__, *words, instances=instances, cores=cores)
        self._rows_out = self._rows_out or did["rows_out"]
        check_count(f"{self._name}, {instances}", self._rows_out, did["rows_out"])
        if not did["rows_out"]:
            raise SystemExit(f"{self._name}: rows must come out; got none. More are needed.")
        warm = [batch for batch in did["batches"][WARM:] if batch["rows"]]
        compared = sum(batch["compared"] or 0 for batch in did["batches"])
        return {**figures_of(warm), "rows_out": did["rows_out"], "compared": compared}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the map")
    parser.add_argument("--product-rows", type=int, default=PRODUCT_ROWS, help="of each side")
    parser.add_argument("--window", type=int, default=WINDOW, help="tuples in a window")
    sweep_arguments(parser, [1, CORES])
    asked = parser.parse_args()
    if asked.child:
        child(asked)
        return
    swept("map_scaling", {name: Measured(name, asked) for name in QUERIES}, asked)


if __name__ == "__main__":
    main()
