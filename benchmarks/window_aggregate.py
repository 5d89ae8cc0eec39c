"""Windowed aggregates on the same files: Tidegate beside Spark's own, in interleaved runs.

    python benchmarks/window_aggregate.py                      the main case, three rounds
    python benchmarks/window_aggregate.py --case tumbling      another case (see CASES)
    python benchmarks/window_aggregate.py --case all --rounds 3
    python benchmarks/window_aggregate.py --case large --instances 1,4,16    a sweep: see sweep.py

Each run is a process of its own; the speed is that of the batches after the first ones, by each
engine's own account of its batches. Results go to benchmarks/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from data import write_events
from measure import (
    CORES,
    MASTER,
    Batch,
    batches_of,
    common_arguments,
    figures_of,
    give,
    in_child,
    middle,
    progress_of,
    spark_session,
    speed,
    write_report,
)
from sweep import is_sweep, sweep_arguments, swept

ENGINES = ("tidegate", "spark", "spark-rocksdb")


@dataclass(frozen=True)
class Case:
    """One workload; rows come in files of `file_rows`, `batch_rows` of them to a batch."""

    range_s: int = 60
    slide_s: int = 10
    keys: int = 20_000
    rows: int = 8_000_000
    file_rows: int = 500_000
    batch_rows: int = 1_000_000
    per_second: int = 10_000
    median: bool = False
    warm_batches: int = 3


CASES = {
    "sliding": Case(),
    "tumbling": Case(slide_s=60),
    "median": Case(median=True, rows=4_000_000),
    "few-keys": Case(keys=10),
    "many-keys": Case(keys=500_000),
    "small-batches": Case(rows=2_000_000, file_rows=100_000, batch_rows=100_000),
    "tiny-batches": Case(rows=60_000, file_rows=1_000, batch_rows=1_000, per_second=100),
    "large": Case(rows=24_000_000, file_rows=250_000, batch_rows=3_000_000),
    "large-median": Case(rows=24_000_000, file_rows=250_000, batch_rows=3_000_000, median=True),
}


def run_tidegate(
    case: Case, data: Path, work: Path, instances: int = CORES, **options: Any
) -> list[Batch]:
    import tidegate as tg
    from tidegate.query.aggregate import count, mean, median

    session = tg.Session(master=MASTER)
    events = session.stream(str(data), time="ts")
    window = events.window(f"{case.range_s} seconds", slide=f"{case.slide_s} seconds")
    calls = {"m": median("value")} if case.median else {"mean": mean("value"), "n": count()}
    result = window.group_by("key").agg(**calls)
    where = {"sink": tg.sink.files(str(work / "out")), "checkpoint": str(work / "checkpoint")}
    size = {"batch_rows": case.batch_rows, "instances": instances}
    return batches_of(lambda: result.start(**where, **size, **options).wait())


def run_spark(case: Case, data: Path, work: Path, rocksdb: bool) -> list[Batch]:
    """The same query in Spark's own words, on the same master, with as many partitions as cores."""
    from pyspark.sql import functions as F

    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {"spark.sql.streaming.stateStore.providerClass": provider} if rocksdb else {}
    spark = spark_session(settings)
    schema = spark.read.parquet(str(data / "part-00000.parquet")).schema
    files = max(case.batch_rows // case.file_rows, 1)
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(data))
    window = F.window("ts", f"{case.range_s} seconds", f"{case.slide_s} seconds")
    calls = [F.percentile("value", 0.5)] if case.median else [F.avg("value"), F.count("*")]
    names = ["m"] if case.median else ["mean", "n"]
    result = (
        stream.withWatermark("ts", "0 seconds")
        .groupBy(window, "key")
        .agg(*[c.alias(n) for c, n in zip(calls, names, strict=True)])
    )
    query = (
        result.writeStream.format("parquet")
        .option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return progress_of(query)


def child(arguments: argparse.Namespace) -> None:
    """One run of one engine, in the process made for it."""
    case, data, work = CASES[arguments.case], Path(arguments.data), Path(arguments.work)
    if arguments.child == "tidegate":
        give(run_tidegate(case, data, work, arguments.instances[0]))
    else:
        give(run_spark(case, data, work, arguments.child == "spark-rocksdb"))


def measure(
    engine: str, name: str, data: Path, instances: int = CORES, cores: int = CORES
) -> dict[str, Any]:
    """Run one engine and reduce its batches to rows a second."""
    case = CASES[name]
    folder = data / f"{case.rows}-{case.file_rows}-{case.keys}-{case.per_second}"
    write_events(folder, case.rows, case.file_rows, case.keys, case.per_second)
    options = ("--child", engine, "--case", name, "--data", str(folder))
    batches = in_child(__file__, *options, instances=instances, cores=cores)
    warm = batches[min(case.warm_batches, len(batches) - 1) :]
    found = (figures_of if engine == "tidegate" else speed)(warm)
    run = {**found, "batches": len(batches)}
    print(
        f"{name} {engine}: {run['rows_per_second']:,.0f} rows/s, "
        f"batch {run['batch_ms_median']:.0f} ms",
        flush=True,
    )
    return run


def compare(name: str, rounds: int, engines: list[str], data: Path) -> dict[str, Any]:
    """Interleave the engines, and report medians, spreads and ratios."""
    runs: dict[str, list[dict[str, Any]]] = {e: [] for e in engines}
    for _ in range(rounds):
        for engine in engines:
            runs[engine].append(measure(engine, name, data))
    result: dict[str, Any] = {"case": name, **vars(CASES[name]), "runs": runs, "median": {}}
    for engine in engines:
        found = middle([r["rows_per_second"] for r in runs[engine]])
        result["median"][engine] = {
            "rows_per_second": found.pop("median"),
            **found,
            "batch_ms": statistics.median(r["batch_ms_median"] for r in runs[engine]),
        }
    speeds = {engine: of["rows_per_second"] for engine, of in result["median"].items()}
    ours = speeds.pop("tidegate", None)
    result["ratio"] = {engine: ours / of for engine, of in speeds.items()} if ours else {}
    print(f"{name}: ratios {json.dumps(result['ratio'])}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="sliding", choices=[*CASES, "all"])
    parser.add_argument("--engines", default=",".join(ENGINES))
    common_arguments(parser, rounds=3)
    sweep_arguments(parser, [CORES])
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    names = list(CASES) if arguments.case == "all" else [arguments.case]
    engines, data = arguments.engines.split(","), Path(arguments.data)
    if is_sweep(arguments):
        cases = {f"{name}-{e}": partial(measure, e, name, data) for name in names for e in engines}
        swept("window_aggregate", cases, arguments)
        return
    cases = [compare(n, arguments.rounds, engines, data) for n in names]
    write_report(f"window_aggregate-{arguments.case}", {"cases": cases})


if __name__ == "__main__":
    main()
