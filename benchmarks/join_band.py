"""Band joins through the index, end to end on Spark, with results written.

    python benchmarks/join_band.py                   5-minute window, 15,000 tuples/s per side
    python benchmarks/join_band.py --case shrinking  ten times the window, a tenth of the band
    python benchmarks/join_band.py --case small      300,000 tuples per stream, 60 s window
    python benchmarks/join_band.py --case large --instances 1,4,16    a sweep: see sweep.py

Speeds are those of the batches after the windows filled, rows of both sides together. Every run is
a process of its own and its results are counted. Results go to
benchmarks/results/join_band-CASE.json.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from count import band_pairs, kept
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

QUERY = """
CREATE STREAM r FROM '{data}/r.parquet' TIME ts;
CREATE STREAM s FROM '{data}/s.parquet' TIME ts;
SELECT r.x, r.y, s.a, s.b FROM r [RANGE {range} SECONDS] JOIN s [RANGE {range} SECONDS]
ON {predicate};
"""


@dataclass(frozen=True)
class Case:
    """`seconds` of event time at `per_second` tuples a side; measured from `from_s` on.

    Without `x_band` there is one band, on the real columns.
    """

    range_s: int
    per_second: int
    seconds: int
    batch_rows: int
    from_s: int
    x_band: float | None = 10
    y_band: float = 10
    domain: int = 10_000

    @property
    def rows(self) -> int:
        """Of each side."""
        return self.per_second * self.seconds

    @property
    def predicate(self) -> str:
        y = f"r.y BETWEEN s.b - {self.y_band} AND s.b + {self.y_band}"
        if self.x_band is None:
            return y
        return f"r.x BETWEEN s.a - {self.x_band} AND s.a + {self.x_band} AND {y}"


CASES = {
    "window": Case(300, 15_000, 345, 150_000, 300),
    "shrinking-1": Case(30, 2_000, 350, 50_000, 300, None, 0.5),
    "shrinking-10": Case(300, 2_000, 350, 50_000, 300, None, 0.05),
    "small": Case(60, 2_000, 150, 60_000, 60),
    "large": Case(60, 10_000, 240, 400_000, 100, domain=100_000),
}
GROUPS = {
    "window": ["window"],
    "shrinking": ["shrinking-1", "shrinking-10"],
    "small": ["small"],
    "large": ["large"],
    "all": list(CASES),
}
WANTED = {
    "window": "rows_per_second of at least 30,000, both sides together",
    "shrinking": "cost per tuple at ten times the window at most 1.5 times",
    "small": "rows_per_second of at least 100,000",
}


def run_case(
    case: Case, data: Path, work: Path, *options: Any, instances: int = CORES
) -> dict[str, Any]:
    """One run through the command line."""
    sql = QUERY.format(data=data, range=case.range_s, predicate=case.predicate)
    return run_sql(sql, work, "--batch-rows", case.batch_rows, *options, instances=instances)


def measure(name: str, data: Path, instances: int = CORES, cores: int = CORES) -> dict[str, Any]:
    """One checked run, reduced to its speed once the window is full."""
    case = CASES[name]
    folder = data / f"band-{case.rows}-{case.per_second}-{case.domain}"
    write_band(folder, case.rows, case.per_second, case.domain)
    wanted = kept(
        folder,
        f"{case.range_s}-{case.x_band}-{case.y_band}",
        lambda: band_pairs(folder, case.range_s * 1_000_000, case.x_band, case.y_band),
    )
    done = in_child(
        __file__, "--child", name, "--data", str(folder), instances=instances, cores=cores
    )
    batches = done["batches"]
    check_count(name, wanted, done["rows_out"])
    full = steady(batches, batches[-2]["frontier_us"] - (case.seconds - case.from_s) * 1_000_000)
    rows, seconds = sum(b["rows"] for b in full), sum(b["seconds"] for b in full)
    run = {
        **figures_of(full),
        "whole_rows_per_second": sum(b["rows"] for b in batches)
        / sum(b["seconds"] for b in batches),
        "pairs": wanted,
        "us_per_row": seconds / rows * 1e6,
        "compared_per_row": sum(b["compared"] for b in full) / rows,
        "state_bytes_per_row": full[-1]["state_bytes"] / full[-1]["state_rows"],
    }
    print(
        f"{name}: {run['rows_per_second']:,.0f} rows/s with a full window "
        f"({run['whole_rows_per_second']:,.0f} from Spark's start to the end), "
        f"batch {run['batch_ms_median']:.0f} ms, "
        f"{run['compared_per_row']:,.0f} compared a row, {wanted:,} pairs",
        flush=True,
    )
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="window", choices=GROUPS)
    common_arguments(parser, rounds=2)
    sweep_arguments(parser, [CORES])
    arguments = parser.parse_args()
    names, data = GROUPS[arguments.case], Path(arguments.data)
    if arguments.child:
        case, work = CASES[arguments.child], Path(arguments.work)
        give(run_case(case, data, work, instances=arguments.instances[0]))
        return
    if is_sweep(arguments):
        swept("join_band", {name: partial(measure, name, data) for name in names}, arguments)
        return
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            runs[name].append(measure(name, data))
    cases = [
        {
            "case": name,
            **vars(CASES[name]),
            "runs": runs[name],
            "rows_per_second": middle([r["rows_per_second"] for r in runs[name]]),
            "us_per_row": middle([r["us_per_row"] for r in runs[name]]),
        }
        for name in names
    ]
    report: dict[str, Any] = {"wanted": WANTED, "cases": cases}
    if "shrinking-10" in runs:
        cost = {c["case"]: c["us_per_row"]["median"] for c in cases}
        report["shrinking_ratio"] = cost["shrinking-10"] / cost["shrinking-1"]
        print(f"ten times the window costs {report['shrinking_ratio']:.2f} times per tuple")
    write_report(f"join_band-{arguments.case}", report)


if __name__ == "__main__":
    main()
