"""What partitioners make of streams of keys: imbalance, aggregation cost, memory, time to decide.

    python benchmarks/partitioners.py
    python benchmarks/partitioners.py --only taxi --instances 8
    python benchmarks/partitioners.py --file rides.parquet:PULocationID

Every tuple is a unit, windows tumble after so many tuples, and one source decides, in batches. Of
each window, with L_j the tuples of instance j and C_j its keys: the imbalance of tuples max L_j -
mean L_j and that of keys (equations 3.1 and 3.6 of the dissertation), both as shares of their mean,
that of both (3.10), and the aggregation cost, the sum of C_j, as a multiple of the keys there are
(3.2). What is shown is the mean over windows. Times are of the CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from measure import common_arguments, write_report

from tidegate.route.choice_loop import by_load
from tidegate.route.ledger import Ledger
from tidegate.route.load_aware import LoadAware
from tidegate.route.mapping import Mapping, even
from tidegate.route.partitioner import Units
from tidegate.route.registry import partitioner_of
from tidegate.source.uri import open_uri

BUCKETS, WINDOW_ROWS, BATCH_ROWS, WINDOWS = 64, 300_000, 50_000, 4
DECISIONS = 2_000_000
INSTANCES = (8, 16, 32)
NAMES = (
    "hash",
    "shuffle",
    "pk",
    "pk?d=5",
    "cm",
    "cm?keys=hll",
    "am",
    "am?d=5",
    "am?keys=hll",
    "cam",
    "cam?d=5",
    "cam?keys=hll",
    "lm",
    "lm?keys=hll",
)


@dataclass(frozen=True)
class Case:
    """A generator, and the columns that are the key."""

    uri: str
    columns: tuple[str, ...]


CASES = {
    "taxi, 62,500 routes": Case("taxi?keys=62500", ("route",)),
    "taxi, 360,000 routes": Case("taxi?keys=360000", ("route",)),
    "cluster, 4 classes": Case("tasks", ("scheduling_class",)),
    "cluster, 600,000 jobs": Case("tasks", ("job_id",)),
    "TPC-H Q1, 4 groups": Case("lineitem", ("l_returnflag", "l_linestatus")),
    "TPC-H Q3, orders": Case("lineitem", ("l_orderkey",)),
}


def keys_of(case: Case) -> list[pa.Array]:
    rows = WINDOW_ROWS * WINDOWS
    mark = "&" if "?" in case.uri else "?"
    source: Any = open_uri(f"generator:{case.uri}{mark}rows={rows}", "s", None, False)
    table = source.reader(0, rows).read(list(case.columns)).table
    return [table.column(name).combine_chunks() for name in case.columns]


def keys_in(path: str, column: str) -> list[pa.Array]:
    return [pq.read_table(path, columns=[column]).column(0).combine_chunks()]


@dataclass(frozen=True)
class Window:
    """The keys of its tuples by column, and a number for each, equal where the keys are."""

    keys: list[pa.Array]
    codes: npt.NDArray[np.int64]


def windows_of(keys: list[pa.Array]) -> Iterator[Window]:
    """Windows of equal size, as many as there are rows for."""
    rows = min(len(keys[0]), WINDOW_ROWS * WINDOWS)
    size = min(WINDOW_ROWS, max(rows // WINDOWS, 1))
    for start in range(0, rows - size + 1, size):
        part = [key.slice(start, size) for key in keys]
        yield Window(part, codes_of(part))


def codes_of(keys: list[pa.Array]) -> npt.NDArray[np.int64]:
    """Numbers from 0 on."""
    codes = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        indices = key.dictionary_encode().indices.fill_null(-1).to_numpy()
        codes = codes * (int(indices.max()) + 2) + indices + 1
    return np.unique(codes, return_inverse=True)[1]


def placed(name: str, keys: list[pa.Array], mapping: Mapping) -> tuple[Any, float, int]:
    """The instance of each tuple of a window, the seconds that took, and the bytes it needed."""
    partitioner, rows = partitioner_of(name), len(keys[0])
    kind = partitioner.keys if isinstance(partitioner, LoadAware) else None
    ledger, found, spent = Ledger.begun(mapping, kind), [], 0.0
    for start in range(0, rows, BATCH_ROWS):
        part = [key.slice(start, BATCH_ROWS) for key in keys]
        began = time.process_time()
        found.append(partitioner.buckets(Units(part, len(part[0]), ledger=ledger), mapping))
        spent += time.process_time() - began
    return mapping.owner_array[np.concatenate(found)], spent, ledger.nbytes


def scaled(loads: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    low, high = loads.min(), loads.max()
    return (loads - low) / (high - low) if high > low else np.zeros(len(loads))


def figures(codes: npt.NDArray[np.int64], to: Any, instances: int) -> dict[str, float]:
    """The equations of the dissertation, for one window."""
    keys = int(codes.max()) + 1
    tuples = np.bincount(to, minlength=instances)
    there = np.zeros((keys, instances), np.bool_)
    there[codes, to] = True
    per_instance, per_key = there.sum(axis=0), there.sum(axis=1)
    both = 0.5 * scaled(tuples) + 0.5 * scaled(per_instance)
    return {
        "tuple_imbalance": float(tuples.max() / tuples.mean() - 1),
        "key_imbalance": float(per_instance.max() / per_instance.mean() - 1),
        "hybrid_imbalance": float(both.max() - both.mean()),
        "aggregation_cost": float(per_key.sum()) / keys,
        "keys_split": float((per_key > 1).mean()),
        "keys": keys,
    }


def measured(name: str, windows: list[Window], instances: int) -> dict[str, float]:
    mapping, found = even(BUCKETS, instances), []
    for window in windows:
        to, seconds, nbytes = placed(name, window.keys, mapping)
        cost = {"ns_per_tuple": seconds / len(to) * 1e9, "bytes": float(nbytes)}
        found.append(figures(window.codes, to, instances) | cost)
    return {what: float(np.mean([f[what] for f in found])) for what in found[0]}


def speeds(instances: int) -> dict[str, dict[str, float]]:
    """Million decisions a second of a core, with 100,000 keys that are hashed already."""
    chance = np.random.default_rng(1)
    words = chance.integers(0, 2**63, 100_000).astype(np.uint64)
    found: dict[str, dict[str, float]] = {}
    for law, codes in (
        ("zipf 1.2", chance.zipf(1.2, DECISIONS) % 100_000),
        ("uniform", chance.integers(0, 100_000, DECISIONS)),
    ):
        units, ones = words[codes], np.ones(DECISIONS, np.int64)
        for name in NAMES:
            partitioner = partitioner_of(name)
            if not isinstance(partitioner, LoadAware):
                continue
            tally = Ledger.begun(even(BUCKETS, instances), partitioner.keys).tally(0)
            rule, began = partitioner.rule(instances), time.process_time()
            if tally.keys is None:
                by_load()(units, ones, rule.d, tally.loads)
            else:
                tally.keys.place(units, ones, rule, tally.loads, None)
            seconds = time.process_time() - began
            found.setdefault(name, {})[law] = round(DECISIONS / seconds / 1e6, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    common_arguments(parser, 1)
    parser.add_argument("--only", default="", help="the cases with this text in their names")
    parser.add_argument("--instances", type=int, nargs="*", default=INSTANCES)
    parser.add_argument("--file", action="append", default=[], metavar="PARQUET:COLUMN")
    asked = parser.parse_args()
    streams = {n: keys_of(c) for n, c in CASES.items() if asked.only in n}
    for text in asked.file:
        path, _, column = text.rpartition(":")
        streams[f"{Path(path).stem}, {column}"] = keys_in(path, column)
    warm = [pa.array([1])]
    for name in NAMES:
        placed(name, warm, even(BUCKETS, 2))  # compiled before it is measured
    results: dict[str, Any] = {}
    for case, keys in streams.items():
        windows = list(windows_of(keys))
        for instances in asked.instances:
            print(f"\n{case}, {instances} instances")
            print(f"{'':14}tuples    keys    both    cost   split  ns/tuple     bytes")
            for name in NAMES:
                f = measured(name, windows, instances)
                results.setdefault(case, {}).setdefault(str(instances), {})[name] = f
                shares = (f["tuple_imbalance"], f["key_imbalance"], f["hybrid_imbalance"])
                line = "".join(f"{share:8.3f}" for share in shares)
                line += f"{f['aggregation_cost']:8.3f}{f['keys_split']:8.3f}"
                print(f"{name:12}{line}{f['ns_per_tuple']:10.0f}{f['bytes']:10,.0f}", flush=True)
    rates = speeds(INSTANCES[0])
    print(f"\nmillion decisions a second, {INSTANCES[0]} instances, 100,000 keys")
    for name, rate in rates.items():
        print(f"{name:14}" + "  ".join(f"{law} {number:5.1f}" for law, number in rate.items()))
    content = {"window_rows": WINDOW_ROWS, "cases": results, "million_decisions_per_s": rates}
    write_report("partitioners", content)


if __name__ == "__main__":
    main()
