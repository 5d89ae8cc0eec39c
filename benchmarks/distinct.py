"""COUNT(DISTINCT x) beside APPROX_COUNT_DISTINCT(x): folding, merging and closing on one core.

    python benchmarks/distinct.py
    python benchmarks/distinct.py --rounds 9

The times are of the CPU, the least of the rounds, in which both take turns. Rows a second are of
all three steps together: fold a million rows in four batches, merge the panes, close the windows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from measure import common_arguments, write_report

from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close, fold, merge
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.route.hash import BY_HASH
from tidegate.route.mapping import even
from tidegate.route.partitioner import Router

ROWS, BATCHES, BUCKETS = 1_000_000, 4, 64
FUNCTIONS = ("distinct", "approx_count_distinct")


@dataclass(frozen=True)
class Case:
    """So many groups, values and panes; a window has six panes."""

    groups: int
    values: int
    panes: int = 12
    text: bool = False


CASES = {
    "1 group, 1,000,000 values": Case(1, 1_000_000),
    "100 groups, 100,000 values": Case(100, 100_000),
    "20,000 groups, 1,000 values": Case(20_000, 1_000),
    "20,000 groups, 1,000,000 values": Case(20_000, 1_000_000),
    "100 groups, 100,000 texts": Case(100, 100_000, text=True),
}


def batches(case: Case) -> list[pa.Table]:
    """The rows in time order, cut into batches."""
    chance = np.random.default_rng(1)
    numbers = chance.integers(0, case.values, ROWS)
    names = pa.array([f"device-{n}" for n in range(case.values)]) if case.text else None
    values = pa.array(numbers * 7919) if names is None else names.take(pa.array(numbers))
    ts = np.arange(ROWS) * case.panes * 10 // ROWS
    rows = pa.table({"ts": ts, "k": chance.integers(0, case.groups, ROWS), "x": values})
    size = ROWS // BATCHES
    return [rows.slice(start, size) for start in range(0, ROWS, size)]


def timed(step: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = step()
    return time.process_time() - began, result


def measure(kind: str, rows: list[pa.Table]) -> dict[str, float]:
    """The seconds of each step, and the bytes of the panes that a checkpoint would hold."""
    function = Function("n", kind, ("x",), (rows[0].schema.field("x").type,))
    spec = AggregateSpec(PaneWindow(60, 10), (("k", pa.int64()),), (function,))
    router = Router(BY_HASH, even(BUCKETS, 1))
    folding, parts = timed(lambda: [fold(spec, part, router) for part in rows])
    merging, panes = timed(lambda: merge(spec, parts))
    closing, _ = timed(lambda: close(spec, panes, MIN_US, MAX_US))
    return {"fold": folding, "merge": merging, "close": closing, "bytes": float(panes.nbytes)}


def compare(name: str, rounds: int) -> dict[str, Any]:
    rows = batches(CASES[name])
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in FUNCTIONS}
    for _ in range(rounds):
        for kind in FUNCTIONS:
            runs[kind].append(measure(kind, rows))
    least = {
        k: {step: min(r[step] for r in found) for step in found[0]} for k, found in runs.items()
    }
    for kind, found in least.items():
        speed = ROWS / (found["fold"] + found["merge"] + found["close"])
        steps = ", ".join(f"{s} {found[s] * 1e3:.0f} ms" for s in ("fold", "merge", "close"))
        print(f"{name}: {kind} {speed:,.0f} rows/s ({steps}), {found['bytes'] / 1e6:.1f} MB")
    return {"case": name, **vars(CASES[name]), "rows": ROWS, "least": least, "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=5)
    arguments = parser.parse_args()
    cases = [compare(name, arguments.rounds) for name in CASES]
    write_report("distinct", {"cases": cases})


if __name__ == "__main__":
    main()
