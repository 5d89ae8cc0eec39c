"""Band joins whose band attribute is uneven: how even the work of instances is, and what it costs.

    python benchmarks/skew.py                                  five inputs, 1 and 2 instances
    python benchmarks/skew.py --cores 16 --instances 1,16 --window-rows 40000 --batch-rows 160000
    python benchmarks/skew.py --inputs uniform equal --batches 3 --window-rows 4000
    python benchmarks/skew.py --one-process --instances 1,4,16

uniform   all values alike
zipf      Zipf's law with exponent 1.1: value 0 has an eighth of the tuples, its neighbours follow
hot       a tenth of the tuples have one value, the others are uniform
equal     all tuples have the same value: every pair of the windows is a candidate
drift     values lie in a tenth of the domain, which moves through all of it while the run lasts

Both sides have a window of `--window-rows` tuples. A second, one-sided condition lets about one
candidate of a million pass, so that what is measured is the search and not the output; it is no
band, and so no index. Measured are batches after the windows filled, each run in a process of its
own, and the number of results must be that of a count without Tidegate. Of each input: the busiest
instance beside the mean, by pairs compared and by CPU time; nanoseconds of matching for a pair that
was compared, beside `uniform`; and CPU time at n instances beside the least n. Where instances run
side by side the time of matching is that of a clock on the wall: it also counts what else the cores
did. With `--one-process` they run one after the other, without Spark, and it is the CPU time of
their thread: so total work can be told on any machine. Results go to benchmarks/results/skew.json,
or to skew-one-process.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from count import bounded_pairs, kept
from data import START_US, zipf_bounds
from measure import (
    CORES,
    CORES_GIVEN,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    run_sql,
    steady,
    write_report,
)
from sweep import sweep_arguments

PER_SECOND, DOMAIN, BAND, PASSING = 2_000, 10_000, 10, 1.4e-3
"""Tuples a second of each side; values; half the band's width; and y <= b of (PASSING ** 2) / 2."""
WANTED = {"busiest": 1.2, "speed_of_uniform": 0.5, "match_cpu": 1.5}
"""At most, at least and at most."""
QUERY = """
CREATE STREAM r FROM '{data}/r.parquet' TIME ts;
CREATE STREAM s FROM '{data}/s.parquet' TIME ts;
SELECT r.x, r.y, s.a, s.b FROM r [RANGE {range} MILLISECONDS] JOIN s [RANGE {range} MILLISECONDS]
ON r.x BETWEEN s.a - {band} AND s.a + {band} AND r.y <= s.b;
"""
Draw = Callable[[np.random.Generator, int], np.ndarray[Any, Any]]


def _hot(generator: np.random.Generator, rows: int) -> np.ndarray[Any, Any]:
    values = generator.integers(0, DOMAIN, rows)
    return np.where(generator.random(rows) < 0.1, DOMAIN // 2, values)


def _drift(generator: np.random.Generator, rows: int) -> np.ndarray[Any, Any]:
    moved = np.linspace(0, 0.9 * DOMAIN, rows).astype(np.int64)
    return generator.integers(0, DOMAIN // 10, rows) + moved


INPUTS: dict[str, Draw] = {
    "uniform": lambda generator, rows: generator.integers(0, DOMAIN, rows),
    "zipf": lambda generator, rows: np.searchsorted(zipf_bounds(DOMAIN), generator.random(rows)),
    "hot": _hot,
    "equal": lambda generator, rows: np.full(rows, DOMAIN // 2),
    "drift": _drift,
}


def write_input(folder: Path, name: str, rows: int) -> None:
    """Both sides of an input, once."""
    if (folder / "s.parquet").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    ts = START_US + np.arange(rows) * 1_000_000 // PER_SECOND
    for side, (file, value, bound, low) in enumerate(
        (("r", "x", "y", 0.0), ("s", "a", "b", PASSING - 1))
    ):
        generator = np.random.default_rng([28, side])
        columns = {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            value: INPUTS[name](generator, rows).astype(np.int64),
            bound: generator.random(rows) + low,
        }
        pq.write_table(pa.table(columns), folder / f"{file}.parquet")


def run(data: Path, work: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run through the command line."""
    sql = QUERY.format(data=data, range=_window_us(arguments) // 1_000, band=BAND)
    instances = arguments.instances[0]
    if arguments.one_process:
        _count_cpu_time()
    return run_sql(sql, work, "--batch-rows", arguments.batch_rows, instances=instances)


def _count_cpu_time() -> None:
    """Run without Spark from here on, by a clock that only goes on while the thread computes."""
    from tidegate.clock import SystemClock

    measure.MASTER = "none"
    SystemClock.now = lambda self: time.thread_time()  # type: ignore[method-assign]


def _window_us(arguments: argparse.Namespace) -> int:
    return int(arguments.window_rows * 1_000_000 // PER_SECOND)


def measured(name: str, arguments: argparse.Namespace, instances: int) -> dict[str, Any]:
    """One checked run of an input, reduced to work by instance."""
    rows = arguments.window_rows + (arguments.batches + 2) * arguments.batch_rows // 2
    folder = Path(arguments.data) / f"skew-{name}-{rows}"
    write_input(folder, name, rows)
    window_us = _window_us(arguments)
    wanted = kept(folder, f"{window_us}", lambda: bounded_pairs(folder, window_us, BAND))
    sizes = ("--window-rows", str(arguments.window_rows), "--batch-rows", str(arguments.batch_rows))
    options = ["--child", name, "--data", str(folder), *sizes]
    options += ["--one-process"] if arguments.one_process else []
    done = in_child(__file__, *options, instances=instances, cores=CORES_GIVEN or instances)
    check_count(f"{name}, {instances}", wanted, done["rows_out"])
    full = steady(done["batches"], done["batches"][0]["frontier_us"] + window_us)
    compared = [sum(of) for of in zip(*(b["per_instance"]["compared"] for b in full), strict=True)]
    cpu_us = [sum(of) for of in zip(*(b["per_instance"]["cpu_us"] for b in full), strict=True)]
    match_ms = sum(b["tasks_ms"].get("instance match", 0.0) for b in full)
    found = {
        **figures_of(full),
        "instances": instances,
        "pairs": wanted,
        "compared": sum(compared),
        "compared_by_instance": compared,
        "cpu_s_by_instance": [us / 1e6 for us in cpu_us],
        "busiest_compared": busiest(compared),
        "busiest_cpu": busiest(cpu_us),
        "match_s": match_ms / 1e3,
        "match_ns_per_compared": match_ms * 1e6 / max(sum(compared), 1),
        "cpu_s": sum(b["cpu_us"] for b in full) / 1e6,
    }
    print(
        f"{name}, {instances}: {found['rows_per_second']:,.0f} rows/s, busiest "
        f"{found['busiest_compared']:.2f} of the mean ({found['busiest_cpu']:.2f} by CPU), "
        f"{found['match_ns_per_compared']:.2f} ns a pair compared",
        flush=True,
    )
    return found


def busiest(work: Sequence[float]) -> float:
    """How many times the mean the most is; 1 where there is nothing."""
    return max(work) * len(work) / sum(work) if sum(work) else 1.0


def reduced(runs: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Each input with the most instances beside the uniform one and beside the fewest."""
    found: dict[str, Any] = {}
    for name, by in runs.items():
        fewest, most = by[min(by)], by[max(by)]
        uniform = runs["uniform"][max(by)] if "uniform" in runs else most
        pace = uniform["match_ns_per_compared"] / (most["match_ns_per_compared"] or 1.0)
        of = {
            "busiest": most["busiest_compared"],
            "speed_of_uniform": pace,
            "match_cpu": most["match_s"] / (fewest["match_s"] or 1.0),
            "cpu": most["cpu_s"] / (fewest["cpu_s"] or 1.0),
        }
        kept_to = {
            "busiest": of["busiest"] <= WANTED["busiest"],
            "speed_of_uniform": of["speed_of_uniform"] >= WANTED["speed_of_uniform"],
            "match_cpu": of["match_cpu"] <= WANTED["match_cpu"],
        }
        found[name] = {**of, "kept": kept_to}
    return found


def table(found: Mapping[str, Mapping[str, Any]], runs: Mapping[str, Any]) -> Iterator[str]:
    """In Markdown."""
    yield "| input | instances | rows/s | busiest | speed of uniform | match CPU | CPU |"
    yield "|---|---|---|---|---|---|---|"
    for name, of in found.items():
        most = max(runs[name])
        rate = runs[name][most]["rows_per_second"]
        figures = (of[key] for key in ("busiest", "speed_of_uniform", "match_cpu", "cpu"))
        yield f"| {name} | {most} | {rate:,.0f} | {' | '.join(f'{v:.2f}' for v in figures)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", nargs="+", choices=INPUTS, default=list(INPUTS))
    parser.add_argument("--window-rows", type=int, default=20_000, help="of each side")
    parser.add_argument("--batch-rows", type=int, default=40_000, help="of both sides together")
    parser.add_argument("--batches", type=int, default=8, help="to measure")
    parser.add_argument("--one-process", action="store_true", help="one instance after the other")
    common_arguments(parser, rounds=1)
    sweep_arguments(parser, [1, CORES])
    arguments = parser.parse_args()
    if arguments.child:
        give(run(Path(arguments.data), Path(arguments.work), arguments))
        return
    runs = {
        name: {n: measured(name, arguments, n) for n in arguments.instances}
        for name in arguments.inputs
    }
    found = reduced(runs)
    print("\n".join(table(found, runs)))
    sizes = {key: getattr(arguments, key) for key in ("window_rows", "batch_rows", "batches")}
    name = "skew-one-process" if arguments.one_process else "skew"
    write_report(name, {**sizes, "wanted": WANTED, "inputs": found, "runs": runs})


if __name__ == "__main__":
    main()
