"""How fast each generator makes rows, all columns, in one thread.

    python benchmarks/generators.py                    every generator
    python benchmarks/generators.py taxi trades        some of them

A round makes the rows of all generators one after the other, in ranges of the size that tasks
read. The best round is the speed, because others may be using the machine; the median and the load
are noted beside it. Results go to benchmarks/results/generators.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

from measure import write_report

from tidegate.execute.splits import SPLIT_ROWS
from tidegate.source.generator import names, open_generator

WANTED = 5_000_000


def measure(name: str, rows: int) -> dict[str, float]:
    """Rows per second of wall time and of this process's time."""
    source = open_generator(f"generator:{name}?rows={rows}&seed=1", "benchmark", None)
    source.reader(0, SPLIT_ROWS).read(source.schema.names)
    wall, used = time.perf_counter(), time.process_time()
    for start in range(0, rows, SPLIT_ROWS):
        stop = min(start + SPLIT_ROWS, rows)
        made = source.reader(start, stop).read(source.schema.names)
        assert len(made.seq) == stop - start
    return {
        "rows_per_second": rows / (time.perf_counter() - wall),
        "rows_per_cpu_second": rows / (time.process_time() - used),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=names())
    parser.add_argument("--rows", type=int, default=2**21)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    load_before = os.getloadavg()
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in arguments.names}
    for _ in range(arguments.rounds):
        for name in arguments.names:
            rounds[name].append(measure(name, arguments.rows))
    results: dict[str, dict[str, Any]] = {}
    for name, runs in rounds.items():
        best = {key: max(run[key] for run in runs) for key in runs[0]}
        median = statistics.median(run["rows_per_second"] for run in runs)
        schema = open_generator(f"generator:{name}", "benchmark", None).schema
        results[name] = {"columns": len(schema), "best": best, "median": median, "rounds": runs}
        print(
            f"{name:10} {len(schema):2} columns {best['rows_per_second'] / 1e6:6.1f} million rows/s"
            f" (median {median / 1e6:.1f}; {best['rows_per_cpu_second'] / 1e6:.1f} per CPU second)"
            + ("" if best["rows_per_second"] >= WANTED else f"   below {WANTED:,}")
        )
    if arguments.names == names():
        content = {"rows": arguments.rows, "load_before": load_before, "generators": results}
        write_report("generators", content)


if __name__ == "__main__":
    main()
