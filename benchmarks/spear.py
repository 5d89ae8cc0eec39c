"""Windows answered within an error, beside our exact path, Spark's, and a scan of the window.

    python benchmarks/spear.py                         every case at 50,000 to 1 million tuples
    python benchmarks/spear.py --case median --window 200000 --rounds 1
    python benchmarks/spear.py --case scan             the baseline of the dissertation (6.8)

A case is a tumbling window of so many tuples, in five batches, and some such windows; each run is a
process of its own on Spark. Of each: how long the batches that close a window take, how long all
batches take for each window, the work of tasks in these, and the most bytes of state. `within` is
WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT. Results go to benchmarks/results/spear-CASE.json.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from data import write_events
from measure import (
    MASTER,
    Batch,
    batches_of,
    common_arguments,
    give,
    in_child,
    middle,
    spark_session,
    write_report,
)

import tidegate as tg

ERROR, CONFIDENCE = 0.10, 0.95
PER_SECOND = 10_000
BATCHES = 5
WINDOWS = (50_000, 200_000, 1_000_000)
ENGINES = ("within", "exact", "spark")


class Calibrated(tg.Aggregator):
    """The mean of readings whose calibration curve is inverted tuple by tuple, in Python.

    An aggregate whose work is what costs, some microseconds for each tuple.
    """

    state: ClassVar = {"total": pa.int64(), "n": pa.int64()}
    result = pa.float64()
    mean_like = True

    def init(self, n: int) -> dict[str, Any]:
        return {"total": np.zeros(n, np.int64), "n": np.zeros(n, np.int64)}

    def fold(self, state: dict[str, Any], groups: Any, x: pa.Array) -> dict[str, Any]:
        total, counts = state["total"].tolist(), state["n"].tolist()
        for group, reading in zip(groups.tolist(), x.to_pylist(), strict=True):
            value = reading
            for _ in range(12):
                value -= (value + 1e-4 * value**3 - reading) / (1 + 3e-4 * value**2)
            total[group] += round(value * 1_000_000)
            counts[group] += 1
        return {"total": np.array(total, np.int64), "n": np.array(counts, np.int64)}

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        for name, column in state.items():
            np.add.at(column, groups, other[name])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        return pa.array(state["total"] / np.maximum(state["n"], 1) / 1_000_000)


@dataclass(frozen=True)
class Case:
    """One aggregate; `spark` is the same in Spark's words, where it has one for streams."""

    ours: Callable[[], Any]
    spark: str | None = None


CASES = {
    "median": Case(lambda: tg.median("value"), "percentile(value, 0.5)"),
    "own": Case(lambda: tg.aggregate(Calibrated(), "value")),
    "mean": Case(lambda: tg.mean("value"), "avg(value)"),
    "sum": Case(lambda: tg.sum("value"), "sum(value)"),
}


def run_tidegate(case: Case, tuples: int, data: Path, work: Path, within: bool) -> list[Batch]:
    session = tg.Session(master=MASTER)
    events = session.stream(str(data), time="ts")
    asked = events.window(f"{tuples // PER_SECOND} seconds").agg(a=case.ours())
    asked = asked.within(error=ERROR, confidence=CONFIDENCE) if within else asked

    def run() -> None:
        asked.start(
            sink=tg.sink.files(str(work / "out")),
            checkpoint=str(work / "checkpoint"),
            batch_rows=tuples // BATCHES,
            instances=2,
        ).wait()

    return [
        {
            "seconds": b["seconds"],
            "task_ms": sum(b["tasks_ms"].values()),
            "state_bytes": b["state_bytes"],
            "closes": b["out"] > 0,
        }
        for b in batches_of(run)
    ]


def run_spark(case: Case, tuples: int, data: Path, work: Path) -> list[Batch]:
    """The same in Spark's own words; a batch closes a window where rows leave the state."""
    from pyspark.sql import functions as F

    spark = spark_session({})
    schema = spark.read.parquet(str(data / "part-00000.parquet")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(data))
    window = F.window("ts", f"{tuples // PER_SECOND} seconds")
    assert case.spark is not None
    result = (
        stream.withWatermark("ts", "0 seconds").groupBy(window).agg(F.expr(case.spark).alias("a"))
    )
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
            "task_ms": None,
            "state_bytes": p["stateOperators"][0]["memoryUsedBytes"],
            "closes": p["stateOperators"][0]["numRowsRemoved"] > 0,
        }
        for p in query.recentProgress
        if p["numInputRows"]
    ]


def reduced(batches: Sequence[Batch]) -> dict[str, float]:
    """What a run comes to, without its first window, in which everything starts."""
    closing = [i for i, b in enumerate(batches) if b["closes"]]
    if len(closing) < 3:
        raise SystemExit("at least three windows must close: more rows are needed.")
    warm = batches[closing[0] + 1 : closing[-1] + 1]
    closes = [b for b in warm if b["closes"]]
    found = {
        "closing_ms": statistics.median(b["seconds"] for b in closes) * 1e3,
        "window_ms": sum(b["seconds"] for b in warm) / len(closes) * 1e3,
        "state_bytes": max(b["state_bytes"] for b in warm),
    }
    if warm[0]["task_ms"] is not None:
        found["closing_task_ms"] = statistics.median(b["task_ms"] for b in closes)
        found["window_task_ms"] = sum(b["task_ms"] for b in warm) / len(closes)
    return found


def compare(name: str, tuples: int, rounds: int, data: Path, windows: int) -> dict[str, Any]:
    """One case at one size, engines interleaved; and how many times less `within` takes."""
    folder = data / f"spear-{tuples}-{windows}"
    write_events(folder, tuples * windows, tuples // BATCHES, 20, PER_SECOND)
    engines = [e for e in ENGINES if e != "spark" or CASES[name].spark]
    runs: dict[str, list[dict[str, float]]] = {e: [] for e in engines}
    for number in range(rounds):
        for engine in engines:
            batches = in_child(
                __file__, "--child", engine, "--case", name, "--window", str(tuples),
                "--data", str(folder),
            )  # fmt: skip
            runs[engine].append(reduced(batches))
            print(f"{name} {tuples:,} round {number} {engine}: {runs[engine][-1]}", flush=True)
    found = {
        engine: {figure: middle([run[figure] for run in of]) for figure in of[0]}
        for engine, of in runs.items()
    }
    less = {
        engine: {
            figure: round(of[figure]["median"] / found["within"][figure]["median"], 2)
            for figure in of
        }
        for engine, of in found.items()
        if engine != "within"
    }
    print(f"{name} {tuples:,}: times less than {less}", flush=True)
    return {"case": name, "tuples": tuples, "engines": found, "times_less": less}


def scans(repeats: int = 200) -> list[dict[str, Any]]:
    """A window answered from its sample, against looking at each of its tuples (section 6.8).

    The window is that of the DEC workload, 47,000 packets on average, and the samples are of the
    sizes there: 1,000 tuples for the mean and 150 for the median. Once tuple by tuple, as an
    engine does that calls a function with each, and once over an array at once, as ours would.
    """
    values = np.random.default_rng(6).gamma(2.0, 250.0, 47_000)
    cases = {"mean": (1_000, _mean, np.mean), "median": (150, _median, np.median)}
    found = []
    for name, (size, by_tuple, at_once) in cases.items():
        window, sample = values.tolist(), values[:size]
        times = {
            "scan_us": _timed(partial(by_tuple, window), max(repeats // 20, 3)),
            "scan_at_once_us": _timed(partial(at_once, values), repeats),
            "sample_us": _timed(partial(at_once, sample), repeats),
            "sample_by_tuple_us": _timed(partial(by_tuple, sample.tolist()), repeats),
        }
        by = times["scan_us"] / times["sample_by_tuple_us"]
        once = times["scan_at_once_us"] / times["sample_us"]
        print(f"scan, {name}: {by:.0f} times tuple by tuple, {once:.1f} times at once", flush=True)
        found.append({"case": name, "sample": size, **times, "times": by, "times_at_once": once})
    return found


def _mean(window: list[float]) -> float:
    total, n = 0.0, 0
    for value in window:
        total += value
        n += 1
    return total / n


def _median(window: list[float]) -> float:
    held: list[float] = []
    for value in window:
        held.append(value)
    held.sort()
    return held[len(held) // 2]


def _timed(call: Callable[[], object], repeats: int) -> float:
    """The median time of a call, in microseconds."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="all", choices=[*CASES, "scan", "all"])
    parser.add_argument("--window", type=int, help="tuples of a window; several unless given")
    parser.add_argument("--windows", type=int, default=6, help="how many windows a run has")
    common_arguments(parser, rounds=3)
    arguments = parser.parse_args()
    if arguments.child:
        case, data, work = CASES[arguments.case], Path(arguments.data), Path(arguments.work)
        if arguments.child == "spark":
            give(run_spark(case, arguments.window, data, work))
        else:
            within = arguments.child == "within"
            give(run_tidegate(case, arguments.window, data, work, within))
        return
    names = [n for n in CASES if arguments.case in (n, "all")]
    sizes = [arguments.window] if arguments.window else WINDOWS
    data, rounds, windows = Path(arguments.data), arguments.rounds, arguments.windows
    cases = [compare(n, size, rounds, data, windows) for n in names for size in sizes]
    scanned = scans() if arguments.case in ("scan", "all") else []
    write_report(f"spear-{arguments.case}", {"cases": cases, "scans": scanned})


if __name__ == "__main__":
    main()
