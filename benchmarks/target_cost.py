"""What a query that may shed costs while it sheds nothing: processor time, in pairs, without Spark.

    python benchmarks/target_cost.py
    python benchmarks/target_cost.py --rounds 3 --sizes tiny

A mean, a deviation and a count over 20,000 keys in windows of 5 seconds, in one process with one
instance. Each round runs the query without a clause twice, and with each of the clauses; every run
is compared with the first of its round. The second run without a clause says how far equal
work lies apart. Results go to benchmarks/results/target_cost.json.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from controller_engine import QUERIES, rows_of
from measure import common_arguments, middle, write_report

import tidegate as tg

SIZES = {"large": (12_000_000, 200_000, 48.0), "tiny": (60_000, 300, 12.0)}
"""Rows, rows of a batch, and seconds of event time."""

FAR_S = 1_000.0
"""A target that is never missed."""

CASES: Mapping[str, Callable[[tg.Stream], tg.Stream]] = {
    "nothing": lambda stream: stream,
    "nothing again": lambda stream: stream,
    "SHED UP TO": lambda stream: stream.shed(up_to=0.95),
    "LATENCY": lambda stream: stream.latency(FAR_S, cost=1),
    "LATENCY ERROR": lambda stream: stream.latency(FAR_S, error=0.1, cost=1),
}


def cpu_s(case: str, rows: int, batch_rows: int, seconds: float) -> float:
    """Processor time of this process from the first batch to the last."""
    source = tg.MemorySource(rows_of(0.0, seconds, rows), time="t")
    source.end()
    stream = tg.Session(master="none").stream(source, time="t")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as work:
        how: dict[str, Any] = {"sink": tg.sink.memory(), "checkpoint": f"{work}/checkpoint"}
        asked = CASES[case](QUERIES["mean"](stream))
        query = asked.start(instances=1, batch_rows=batch_rows, **how)
        begin = time.process_time()
        query.wait()
        return time.process_time() - begin


def measured(size: str, rounds: int) -> dict[str, Any]:
    """By case: processor time, as times that of the first run of its round."""
    rows, batch_rows, seconds = SIZES[size]
    for case in CASES:
        cpu_s(case, rows // 10, batch_rows, seconds)
    found: dict[str, list[float]] = {case: [] for case in CASES}
    for number in range(rounds):
        for case in list(CASES)[:: 1 if number % 2 else -1]:
            found[case].append(cpu_s(case, rows, batch_rows, seconds))
    first = found["nothing"]
    ratios = {c: [a / b for a, b in zip(s, first, strict=True)] for c, s in found.items()}
    return {c: {"cpu_s": middle(found[c]), "ratio": middle(ratios[c])} for c in CASES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser, rounds=9)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    asked = parser.parse_args()
    sizes = {}
    for size in asked.sizes:
        sizes[size] = measured(size, asked.rounds)
        for case, one in sizes[size].items():
            ratio = {name: round(value, 3) for name, value in one["ratio"].items()}
            print(f"{size:<6} {case:<14} {one['cpu_s']['median']:.3f} s, {ratio}", flush=True)
    write_report("target_cost", {"rounds": asked.rounds, "sizes": sizes})


if __name__ == "__main__":
    main()
