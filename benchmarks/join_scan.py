"""The exhaustive comparison of ScaleJoin end to end on Spark, and its kernel alone.

    python benchmarks/join_scan.py                   x, y, a, b in 1..10000: one match in 250,000
    python benchmarks/join_scan.py --case dense      in 1..200: one pair of a hundred matches
    python benchmarks/join_scan.py --case kernel     the compiled loop alone, one core
    python benchmarks/join_scan.py --share 0.01      a hundredth of the rows: a quick look
    python benchmarks/join_scan.py --instances 1,4,16    a sweep: see sweep.py

Both streams have a window of `window_rows` tuples; a batch brings `batch_rows` of each. Speeds are
those of the batches after the windows filled: pairs that the definition compares, by wall time and
core. Every run is a process of its own and its results are counted. Results go to
benchmarks/results/join_scan-CASE.json.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from count import band_pairs, kept, near_pairs
from data import write_band
from measure import (
    CORES,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    middle,
    run_sql,
    steady,
    write_report,
)
from sweep import is_sweep, sweep_arguments, swept

BAND = 10
WANTED = {"sparse": 3e9, "kernel": 6e9}
QUERY = """
CREATE STREAM r FROM '{data}/r.parquet' TIME ts;
CREATE STREAM s FROM '{data}/s.parquet' TIME ts;
SELECT r.x, r.y, s.a, s.b FROM r [RANGE {range} MILLISECONDS] JOIN s [RANGE {range} MILLISECONDS]
ON r.x BETWEEN s.a - {band} AND s.a + {band} AND r.y BETWEEN s.b - {band} AND s.b + {band};
"""


@dataclass(frozen=True)
class Case:
    """Rows are of each side; `measured` batches follow those that fill the windows."""

    domain: int = 10_000
    window_rows: int = 200_000
    batch_rows: int = 20_000
    measured: int = 8
    per_second: int = 10_000

    @property
    def window_us(self) -> int:
        return self.window_rows * 1_000_000 // self.per_second

    @property
    def rows(self) -> int:
        return self.window_rows + (self.measured + 2) * self.batch_rows

    def part(self, share: float) -> Case:
        """With so many rows in the same time."""
        names = ("window_rows", "batch_rows", "per_second")
        return replace(self, **{name: round(getattr(self, name) * share) for name in names})


CASES = {"sparse": Case(), "dense": Case(200, 20_000, 2_000, per_second=1_000)}


def run_case(case: Case, data: Path, work: Path, instances: int) -> dict[str, Any]:
    """One run through the command line."""
    sql = QUERY.format(data=data, range=case.window_us // 1_000, band=BAND)
    options = ("--method", "scan", "--batch-rows", 2 * case.batch_rows)
    return run_sql(sql, work, *options, instances=instances)


def run_kernel(case: Case) -> dict[str, float]:
    """The pairs a second of the compiled loop, for one batch of one side."""
    import numpy as np

    from tidegate.operate.kernels.join.pair import find

    generator = np.random.default_rng(4)

    def draw(rows: int) -> Any:
        return generator.integers(1, case.domain + 1, rows).astype(np.float32)

    probes = [draw(case.batch_rows) for _ in range(2)]
    stored = [draw(case.window_rows) for _ in range(2)]
    first, last = np.zeros(case.batch_rows, np.int64), np.full(case.batch_rows, case.window_rows)
    lows = [p - np.float32(BAND) for p in probes]
    highs = [p + np.float32(BAND) for p in probes]
    begin = time.perf_counter()
    find(first[:1], last[:1], [v[:1] for v in lows], [v[:1] for v in highs], stored)
    ready = time.perf_counter() - begin
    begin = time.perf_counter()
    p, s = find(first, last, lows, highs, stored)
    seconds = time.perf_counter() - begin
    wanted = sum(_matches(lows, highs, stored, i) for i in range(0, case.batch_rows, 100))
    check_count("kernel, every hundredth probe", wanted, int(np.count_nonzero(p % 100 == 0)))
    assert len(p) == len(s)
    compared = case.batch_rows * case.window_rows
    return {"comparisons_per_second": compared / seconds, "ready_seconds": ready, "hits": len(p)}


def _matches(lows: Any, highs: Any, stored: Any, probe: int) -> int:
    passing = True
    for low, high, values in zip(lows, highs, stored, strict=True):
        passing &= (values >= low[probe]) & (values <= high[probe])
    return int(passing.sum())


def measured(
    name: str, data: Path, share: float, instances: int = CORES, cores: int = CORES
) -> dict[str, Any]:
    """Run a case, check its rows and comparisons, and report comparisons a second and core."""
    case = CASES[name].part(share)
    folder = data / f"band-{case.rows}-{case.per_second}-{case.domain}"
    write_band(folder, case.rows, case.per_second, case.domain)
    wanted = kept(
        folder, f"{case.window_us}", lambda: band_pairs(folder, case.window_us, BAND, BAND)
    )
    options = ("--data", str(folder), "--share", str(share))
    done = in_child(__file__, "--child", name, *options, instances=instances, cores=cores)
    batches = done["batches"]
    check_count(name, wanted, done["rows_out"])
    implied = near_pairs(folder, case.window_us)
    check_count(f"{name}, comparisons", implied, sum(b["comparisons"] for b in batches))
    full = steady(batches, batches[0]["frontier_us"] + case.window_us)
    seconds = sum(b["seconds"] for b in full)
    made = sum(b["comparisons"] for b in full) / seconds
    run = {
        **figures_of(full),
        "comparisons_per_second": made,
        "comparisons_per_second_per_core": made / cores,
        "rows_out_per_second": sum(b["out"] for b in full) / seconds,
        "pairs": wanted,
    }
    print(
        f"{name}: {made / cores / 1e9:.2f} billion comparisons/s per core, "
        f"batch {run['batch_ms_median']:.0f} ms, {wanted:,} pairs",
        flush=True,
    )
    return run


def measure(name: str, rounds: int, data: Path, share: float) -> dict[str, Any]:
    """The same several times."""
    runs = [measured(name, data, share) for _ in range(rounds)]
    speeds = [r["comparisons_per_second_per_core"] for r in runs]
    return {"case": name, **vars(CASES[name].part(share)), "runs": runs, "per_core": middle(speeds)}


def measure_kernel(rounds: int, share: float) -> dict[str, Any]:
    """The kernel alone, for both densities."""
    result: dict[str, Any] = {"case": "kernel"}
    for name, case in CASES.items():
        child = ("--child", f"kernel-{name}", "--share", str(share))
        runs = [in_child(__file__, *child) for _ in range(rounds)]
        speeds = [r["comparisons_per_second"] for r in runs]
        result[name] = {**vars(case.part(share)), "runs": runs, "per_core": middle(speeds)}
        print(f"kernel {name}: {max(speeds) / 1e9:.2f} billion comparisons/s", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="sparse", choices=[*CASES, "kernel", "all"])
    common_arguments(parser, rounds=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the rows of each case")
    sweep_arguments(parser, [CORES])
    arguments = parser.parse_args()
    data, share = Path(arguments.data), arguments.share
    if arguments.child:
        if arguments.child.startswith("kernel-"):
            give(run_kernel(CASES[arguments.child.removeprefix("kernel-")].part(share)))
        else:
            case, work = CASES[arguments.child].part(share), Path(arguments.work)
            give(run_case(case, data, work, arguments.instances[0]))
        return
    names = [*CASES, "kernel"] if arguments.case == "all" else [arguments.case]
    if is_sweep(arguments):
        cases = {n: partial(measured, n, data, share) for n in names if n in CASES}
        swept("join_scan", cases, arguments, "comparisons_per_second", "comparisons/s")
        return
    results = [
        measure_kernel(arguments.rounds, share)
        if name == "kernel"
        else measure(name, arguments.rounds, data, share)
        for name in names
    ]
    write_report(f"join_scan-{arguments.case}", {"wanted_per_core": WANTED, "cases": results})


if __name__ == "__main__":
    main()
