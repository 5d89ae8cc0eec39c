"""Is the promise kept? Of windows that samples answer, how many are off by more than was allowed.

    python benchmarks/promise.py
    python benchmarks/promise.py --file taxi.parquet:fare_amount --file packets.parquet:wire_len
    python benchmarks/promise.py --windows 200 --rows 5000

For errors of 1, 5, 10 and 15 percent and confidences of 90, 95 and 99 percent, over 1,000 windows
of each distribution, for means (and so sums), deviations and medians. Of each: the share of all
windows that the sample answered with a larger error than was allowed, which must be at most
1 - confidence and 1.5 points; the share that it answered at all; and what share of their tuples it
looked at. Windows of a file slide over its rows in their order. This is the decision as the engine
takes it, without the engine; nothing depends on the speed of the machine. Results go to
benchmarks/results/promise.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from measure import HERE, write_report

sys.path.insert(0, str(HERE.parent))

from tests.approx.simulation import (
    CONFIDENCES,
    DISTRIBUTIONS,
    ERRORS,
    SLACK,
    Drawn,
    Outcome,
)
from tidegate.approx.array import Floats
from tidegate.approx.bound import Kind
from tidegate.approx.decision import Promise
from tidegate.approx.error import rank_error
from tidegate.approx.rank import quantiles, rank_rows
from tidegate.source.generator import open_generator

GENERATED = {"taxi-like": ("taxi", "fare"), "packet-like": ("packets", "size")}
KINDS = (Kind.MEAN, Kind.DEVIATION)
MEDIAN = "median"

Cell = tuple[str, str, float, float]


def windows_of(values: Floats, windows: int, rows: int) -> list[Floats]:
    """So many windows of so many values, one after the other or, if there are fewer, sliding."""
    values = values[np.isfinite(values)]
    rows = min(rows, len(values) // 10)
    starts = np.linspace(0, len(values) - rows, windows).astype(np.int64)
    return [values[start : start + rows] for start in starts]


def generated(name: str, column: str, count: int) -> Floats:
    source = open_generator(f"generator:{name}?rows={count}&seed=1", "promise", None)
    made = source.reader(0, count).read([column])
    return np.asarray(made.table.column(column).to_numpy(), np.float64)


def streams(asked: argparse.Namespace) -> Iterator[tuple[str, Drawn]]:
    """The windows of every distribution, generator and file."""
    shape = asked.windows, asked.rows
    for name, distribution in DISTRIBUTIONS.items():
        chance = np.random.default_rng(asked.seed)
        yield name, Drawn.of(list(distribution(chance, shape)), asked.seed)
    for name, (generator, column) in GENERATED.items():
        values = generated(generator, column, asked.windows * asked.rows)
        yield name, Drawn.of(windows_of(values, *shape), asked.seed)
    for text in asked.file:
        path, _, column = text.rpartition(":")
        found = pq.read_table(path, columns=[column]).column(column).to_numpy()
        yield (
            f"{Path(path).stem}, {column}",
            Drawn.of(windows_of(found.astype(np.float64), *shape), asked.seed),
        )


def median(drawn: Drawn, ordered: list[Floats], promise: Promise) -> Outcome:
    """The same for the rank of a median; a window smaller than the sample is exact."""
    need = rank_rows(promise.error, promise.confidence)
    codes, _, values = drawn.rows(need)
    found = quantiles(codes, values, drawn.tuples, fraction=0.5, confidence=promise.confidence)
    answered = drawn.tuples > need
    off = [
        is_answered and rank_error(own, 0.5, value) > promise.error
        for own, value, is_answered in zip(ordered, found.value, answered, strict=True)
    ]
    rows = need * answered.sum() / max(drawn.tuples[answered].sum(), 1)
    return Outcome(float(answered.mean()), float(np.mean(off)), float(rows))


def grid(drawn: Drawn) -> Iterator[tuple[str, float, float, Outcome]]:
    parts = np.split(drawn.values, np.cumsum(drawn.tuples)[:-1])
    ordered = [np.sort(part) for part in parts]
    for error in ERRORS:
        for confidence in CONFIDENCES:
            promise = Promise(error, confidence)
            for kind in KINDS:
                yield kind.value, error, confidence, drawn.outcome(kind, promise)
            yield MEDIAN, error, confidence, median(drawn, ordered, promise)


def table(cells: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each stream and function: percent of windows off, at the worst of the errors."""
    heads = [f"off at {c:.0%}" for c in CONFIDENCES]
    heads += [f"answered, {e:.0%} at 95%" for e in ERRORS]
    yield "| stream | function | " + " | ".join(heads) + " |"
    yield "|---|---|" + "---:|" * len(heads)
    by_line: dict[tuple[str, str], dict[tuple[float, float], dict[str, Any]]] = {}
    for cell in cells:
        line = by_line.setdefault((cell["stream"], cell["function"]), {})
        line[cell["confidence"], cell["error"]] = cell
    for (stream, function), line in by_line.items():
        off = [max(line[c, e]["exceeded"] for e in ERRORS) for c in CONFIDENCES]
        answered = [_answered(line[0.95, e]) for e in ERRORS]
        shown = [f"{100 * share:.1f}%" for share in off]
        yield f"| {stream} | {function} | " + " | ".join(shown + answered) + " |"


def _answered(cell: dict[str, Any]) -> str:
    """How many windows, and from how many of their tuples."""
    if cell["answered"] < 0.005:
        return "none"
    return f"{cell['answered']:.0%} from {cell['rows']:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=5_000, help="tuples in a window")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", action="append", default=[], metavar="PARQUET:COLUMN")
    asked = parser.parse_args()
    cells = []
    for stream, drawn in streams(asked):
        for function, error, confidence, outcome in grid(drawn):
            place = {"stream": stream, "function": function}
            cells.append(place | {"error": error, "confidence": confidence} | asdict(outcome))
        print(f"{stream}: done", flush=True)
    print("\n".join(table(cells)))
    broken = [c for c in cells if c["exceeded"] > 1 - c["confidence"] + SLACK]
    for cell in broken:
        print("broken:", cell)
    write_report("promise", {"windows": asked.windows, "rows": asked.rows, "cells": cells})
    if broken:
        raise SystemExit(f"{len(broken)} of {len(cells)} promises are not kept")
    print(f"all {len(cells)} promises are kept")


if __name__ == "__main__":
    main()
