"""Windows answered within an error, beside our exact path, Spark's, and a scan of the window.

    python benchmarks/spear.py                         every case, about 8 minutes
    python benchmarks/spear.py --cases median --window 250000 --rounds 3
    python benchmarks/spear.py --cases scan            the baseline of the dissertation (6.8)
    python benchmarks/spear.py --share 0.01            a hundredth of the tuples: a quick look

A case is an aggregate over tumbling windows of so many tuples, each in five batches; each run is a
process of its own on Spark. What a window takes, without the first, in which everything starts:

- `watermark_ms`: the work of tasks once a window is complete, until it has a row. It is what the
  dissertation calls the processing time of a window.
- `work_ms`: all work of tasks for a window, without reading its tuples, which is the same for all:
  folding, sending, merging, writing state, and the above. `read_ms` is the reading.
- `window_ms`: the time that its batches take, end to end.
- `state_bytes`: the most state.

Of Spark there are the last two, and as `work_ms` the time of its jobs, with reading in it. `within`
is WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT; `alone` is the same for an aggregate of which only
the sample is kept; `scan` keeps the window and looks at it tuple by tuple.
Results go to benchmarks/results/spear.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from data import write_events
from measure import (
    HERE,
    MASTER,
    Batch,
    batches_of,
    beside,
    beside_argument,
    common_arguments,
    give,
    in_child,
    middle,
    spark_session,
    write_report,
)
from spear_aggregates import (
    Calibrated,
    CalibratedAlone,
    ScannedMean,
    ScannedMedian,
    Trimmed,
    TrimmedAlone,
    calibrated,
    scanned_mean,
    scanned_median,
    trimmed,
)

import tidegate as tg
from tidegate.testing import sampled_means

ERROR, CONFIDENCE = 0.10, 0.95
PER_SECOND = 10_000
BATCHES = 5
SMALL, MIDDLE, LARGE = 50_000, 250_000, 1_000_000

WITHIN, ALONE, EXACT, SCAN = "within", "alone", "exact", "scan"
SPARK, SPARK_SKETCH = "spark", "spark sketch"
ENGINES = (WITHIN, ALONE, EXACT, SCAN, SPARK, SPARK_SKETCH)

TASKS = ("map ", "instance ")
READING = ("map read",)
AT_THE_WATERMARK = (
    "instance read state",
    "instance seal",
    "instance close",
    "instance finish",
    "map take",
    "instance answer",
)
"""Spans of tasks from the last tuple of a window to its row."""


@dataclass(frozen=True)
class Case:
    """An aggregate by the engines that compute it, in the words of each, and sizes of windows.

    What Spark does in two steps has `after`: what becomes of the result.
    """

    sizes: tuple[int, ...]
    ours: dict[str, Callable[[], Any]]
    spark: dict[str, str] = field(default_factory=dict)
    after: str | None = None

    @property
    def engines(self) -> list[str]:
        return [*self.ours, *self.spark]


@dataclass(frozen=True)
class Window:
    """One of so many tuples, or of a share of them over the same time."""

    tuples: int
    share: float

    @property
    def span(self) -> str:
        return f"{self.tuples // PER_SECOND} seconds"

    @property
    def rows(self) -> int:
        return round(self.tuples * self.share)


def _both(call: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    return {WITHIN: call, EXACT: call}


CASES = {
    "median": Case(
        (SMALL, MIDDLE, LARGE),
        _both(lambda: tg.median("value")) | {SCAN: lambda: tg.aggregate(ScannedMedian(), "value")},
        {SPARK: "percentile(value, 0.5)", SPARK_SKETCH: "approx_percentile(value, 0.5, 10)"},
    ),
    "quantile 0.95": Case(
        (MIDDLE,),
        _both(lambda: tg.quantile("value", 0.95)),
        {SPARK: "percentile(value, 0.95)", SPARK_SKETCH: "approx_percentile(value, 0.95, 10)"},
    ),
    "trimmed mean": Case(
        (SMALL, MIDDLE),
        {
            WITHIN: lambda: tg.aggregate(Trimmed(), "value"),
            ALONE: lambda: tg.aggregate(TrimmedAlone(), "value"),
            EXACT: lambda: tg.aggregate(Trimmed(), "value"),
        },
        {SPARK: "collect_list(value)"},
        after="trimmed",
    ),
    "costly": Case(
        (SMALL, MIDDLE),
        {
            WITHIN: lambda: tg.aggregate(Calibrated(), "value"),
            ALONE: lambda: tg.aggregate(CalibratedAlone(), "value"),
            EXACT: lambda: tg.aggregate(Calibrated(), "value"),
        },
        {SPARK: "avg(calibrated(value))"},
    ),
    "mean": Case(
        (MIDDLE,),
        _both(lambda: tg.mean("value")) | {SCAN: lambda: tg.aggregate(ScannedMean(), "value")},
        {SPARK: "avg(value)"},
    ),
    "sum": Case((MIDDLE,), _both(lambda: tg.sum("value")), {SPARK: "sum(value)"}),
}


def run_tidegate(case: Case, engine: str, window: Window, data: Path, work: Path) -> list[Batch]:
    session = tg.Session(master=MASTER)
    events = session.stream(str(data), time="ts")
    asked = events.window(window.span).agg(a=case.ours[engine]())
    if engine in (WITHIN, ALONE):
        asked = asked.within(error=ERROR, confidence=CONFIDENCE)

    def run() -> None:
        with sampled_means():
            query = asked.start(
                sink=tg.sink.files(str(work / "out")),
                checkpoint=str(work / "checkpoint"),
                batch_rows=window.rows // BATCHES,
                instances=2,
            )
        query.wait()

    return [
        {
            "seconds": b["seconds"],
            "read_ms": sum(b["tasks_ms"].get(name, 0.0) for name in READING),
            "work_ms": sum(
                ms
                for name, ms in b["tasks_ms"].items()
                if name.startswith(TASKS) and name not in READING
            ),
            "watermark_ms": sum(b["tasks_ms"].get(name, 0.0) for name in AT_THE_WATERMARK),
            "state_bytes": b["state_bytes"],
            "closes": b["out"] > 0,
        }
        for b in batches_of(run)
    ]


def run_spark(case: Case, engine: str, window: Window, data: Path, work: Path) -> list[Batch]:
    """The same in Spark's own words; a batch closes a window where rows leave the state."""
    from pyspark.sql import functions as F

    spark = spark_session({})
    spark.udf.register("calibrated", calibrated, "double")
    spark.udf.register("trimmed", lambda values: trimmed(np.array(values)), "double")
    schema = spark.read.parquet(str(data / "part-00000.parquet")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(data))
    result = (
        stream.withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", window.span))
        .agg(F.expr(case.spark[engine]).alias("a"))
    )
    if case.after is not None:
        result = result.select("window", F.expr(f"{case.after}(a)").alias("a"))
    query = (
        result.writeStream.format("parquet")
        .option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [
        {
            "seconds": p["durationMs"]["triggerExecution"] / 1e3,
            "work_ms": p["durationMs"]["addBatch"],
            "state_bytes": p["stateOperators"][0]["memoryUsedBytes"],
            "closes": p["stateOperators"][0]["numRowsRemoved"] > 0,
        }
        for p in query.recentProgress
        if p["numInputRows"]
    ]


def reduced(batches: Sequence[Batch]) -> dict[str, float]:
    """What a window takes in a run, without its first window, in which everything starts."""
    closing = [i for i, b in enumerate(batches) if b["closes"]]
    if len(closing) < 3:
        raise SystemExit("at least three windows must close: more rows are needed.")
    windows = [batches[first + 1 : last + 1] for first, last in pairwise(closing)]
    found = {
        "window_ms": statistics.median(sum(b["seconds"] for b in w) for w in windows) * 1e3,
        "state_bytes": max(b["state_bytes"] for w in windows for b in w),
    }
    for name in ("read_ms", "work_ms", "watermark_ms"):
        if name in batches[0]:
            found[name] = statistics.median(sum(b[name] for b in w) for w in windows)
    return found


def compare(
    name: str, tuples: int, asked: argparse.Namespace, cpus: Sequence[int] | None
) -> dict[str, Any]:
    """One case at one size, engines interleaved."""
    share, windows, rounds = asked.share, asked.windows, asked.rounds
    folder = Path(asked.data) / f"spear-{tuples}-{windows}-{share:g}"
    rows = Window(tuples, share).rows
    write_events(folder, rows * windows, rows // BATCHES, 20, round(PER_SECOND * share))
    case = CASES[name]
    engines = [one for one in case.engines if one in asked.engines]
    runs: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    for number in range(rounds):
        for engine in engines:
            batches = in_child(
                __file__, "--child", engine, "--cases", name, "--window", str(tuples),
                "--share", str(share), "--data", str(folder), cpus=cpus,
            )  # fmt: skip
            runs[engine].append(reduced(batches))
            print(f"{name} {tuples:,} round {number} {engine}: {runs[engine][-1]}", flush=True)
    found = {
        engine: {figure: middle([run[figure] for run in of]) for figure in of[0]}
        for engine, of in runs.items()
    }
    return {"case": name, "tuples": tuples, "engines": found}


def table(cases: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/approximation.md, in Markdown."""
    yield (
        "| aggregate | tuples | engine | at the watermark | work | reading | end to end | state "
        "| times the work | times the state |"
    )
    yield "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    for case in cases:
        least = case["engines"].get(ALONE, case["engines"][WITHIN])
        for engine, found in case["engines"].items():
            yield f"| {case['case']} | {case['tuples']:,} | {engine} | {_cells(found, least)} |"


def _cells(found: dict[str, Any], least: dict[str, Any]) -> str:
    def ms(name: str) -> str:
        return f"{found[name]['median']:,.1f} ms" if name in found else ""

    def times(name: str) -> str:
        return f"{found[name]['median'] / least[name]['median']:,.1f}"

    state = f"{found['state_bytes']['median'] / 1e3:,.1f} kB"
    taken = [ms(name) for name in ("watermark_ms", "work_ms", "read_ms", "window_ms")]
    return " | ".join([*taken, state, times("work_ms"), times("state_bytes")])


def scans(repeats: int = 100) -> list[dict[str, Any]]:
    """A window answered from its sample, against looking at each of its tuples (section 6.8).

    The samples are of the sizes there, 1,000 tuples for the mean and 150 for the median; the first
    window is that of the DEC workload, 47,000 packets on average. Once tuple by tuple, as an engine
    does that calls a function with each, and once over an array at once, as ours would.
    """
    found = []
    for tuples in (47_000, MIDDLE, LARGE):
        values = np.random.default_rng(6).gamma(2.0, 250.0, tuples)
        for name, (size, by_tuple, at_once) in _SCANNED.items():
            window, sample = values.tolist(), values[:size]
            times = {
                "scan_us": _timed(partial(by_tuple, window), 5),
                "scan_at_once_us": _timed(partial(at_once, values), 9),
                "sample_us": _timed(partial(at_once, sample), repeats),
                "sample_by_tuple_us": _timed(partial(by_tuple, sample.tolist()), repeats),
            }
            by = times["scan_us"] / times["sample_by_tuple_us"]
            once = times["scan_at_once_us"] / times["sample_us"]
            print(f"scan, {name}, {tuples:,}: {by:.0f} times, {once:.1f} at once", flush=True)
            sizes = {"case": name, "tuples": tuples, "sample": size}
            found.append({**sizes, **times, "times": by, "times_at_once": once})
    return found


_SCANNED = {
    "mean": (1_000, scanned_mean, np.mean),
    "median": (150, scanned_median, np.median),
}


def scan_table(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The scans of docs/measured/approximation.md, in Markdown."""
    yield (
        "| aggregate | tuples | sample | scan, tuple by tuple | sample, tuple by tuple | times "
        "| times, over an array at once |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for one in found:
        cells = [
            one["case"],
            f"{one['tuples']:,}",
            f"{one['sample']:,}",
            f"{one['scan_us'] / 1e3:,.2f} ms",
            f"{one['sample_by_tuple_us'] / 1e3:,.4f} ms",
            f"{one['times']:,.0f}",
            f"{one['times_at_once']:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _timed(call: Callable[[], object], repeats: int) -> float:
    """The median time of a call, in microseconds."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6


def child(asked: argparse.Namespace) -> None:
    """One run of one engine, in the process made for it."""
    # Tasks find the aggregates where this file is.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    (name,), engine = asked.cases, asked.child
    run = run_spark if engine in CASES[name].spark else run_tidegate
    window = Window(asked.window, asked.share)
    give(run(CASES[name], engine, window, Path(asked.data), Path(asked.work)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=[*CASES, SCAN], default=[*CASES, SCAN])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--share", type=float, default=1.0, help="of the tuples of each window")
    parser.add_argument(
        "--window", type=int, help="tuples of a window; those of the case unless given"
    )
    parser.add_argument("--windows", type=int, default=4, help="how many windows a run has")
    common_arguments(parser, rounds=1)
    beside_argument(parser)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    sizes = {
        f"{name}, {size}": (name, size)
        for name in arguments.cases
        if name != SCAN
        for size in ([arguments.window] if arguments.window else CASES[name].sizes)
    }

    def one(named: str, cpus: Sequence[int] | None) -> dict[str, Any]:
        return compare(*sizes[named], arguments, cpus)

    cases = beside(arguments.beside, one, list(sizes))
    scanned = scans() if SCAN in arguments.cases else []
    single = arguments.cases if len(arguments.cases) == 1 else []
    name = "-".join(["spear", *single]).replace(" ", "-")
    write_report(name, {"beside": arguments.beside, "cases": cases, "scans": scanned})
    print("\n".join([*table(cases), "", *scan_table(scanned)]))


if __name__ == "__main__":
    main()
