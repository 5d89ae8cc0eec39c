"""Equality joins on the same files: Tidegate beside Spark's own stream-stream join.

    python benchmarks/join_equi.py                   both engines, interleaved
    python benchmarks/join_equi.py --case exchange   shared files against a shuffle, at 1 and 2
    python benchmarks/join_equi.py --instances 1,4,16    a sweep: see sweep.py

Two streams of 500,000 rows, a row a millisecond, 50,000 keys, pairs at most 60 s apart. Each run is
a process of its own and its results are counted; speeds are those of the batches after the first
ones. The second case deals tuples round-robin, so that every instance must see every tuple, and
sets the speeds beside the model of STRETCH (its section 8), with the costs of its table 1.
Results go to benchmarks/results/join_equi-CASE.json.
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any

from count import equal_pairs, kept
from data import write_keyed
from measure import (
    CORES,
    Batch,
    check_count,
    common_arguments,
    figures_of,
    give,
    in_child,
    middle,
    progress_of,
    rows_written,
    run_sql,
    spark_session,
    speed,
    write_report,
)
from sweep import is_sweep, sweep_arguments, swept

ROWS, FILE_ROWS, KEYS, BOUND_S = 500_000, 50_000, 50_000, 60
WARM = 3
BATCH_ROWS = 2 * FILE_ROWS
WANTED_RATIO = 4
ENGINES = ("tidegate", "spark")
EXCHANGES = ("shared", "shuffle")
QUERY = """
CREATE STREAM l FROM '{data}/left' TIME ts;
CREATE STREAM r FROM '{data}/right' TIME ts;
SELECT l.key, l.value AS left_value, r.value AS right_value
FROM l [RANGE {bound} SECONDS] JOIN r [RANGE {bound} SECONDS] ON l.key = r.key;
"""


def run_tidegate(
    data: Path, work: Path, *options: Any, instances: int = CORES, batch_rows: int = BATCH_ROWS
) -> dict[str, Any]:
    """One run through the command line."""
    sql = QUERY.format(data=data, bound=BOUND_S)
    return run_sql(sql, work, "--batch-rows", batch_rows, *options, instances=instances)


def run_spark(data: Path, work: Path) -> list[Batch]:
    """The same join in Spark's own words, a file of each side to a batch."""
    from pyspark.sql import functions as F

    spark = spark_session({})
    sides = []
    for name in ("left", "right"):
        schema = spark.read.parquet(str(data / name / "part-00000.parquet")).schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frame = stream.parquet(str(data / name)).withWatermark("ts", "0 seconds")
        sides.append(frame.select(*[F.col(c).alias(f"{name}_{c}") for c in frame.columns]))
    near = F.expr(
        f"left_key = right_key AND right_ts BETWEEN left_ts - INTERVAL {BOUND_S} SECONDS "
        f"AND left_ts + INTERVAL {BOUND_S} SECONDS"
    )
    joined = sides[0].join(sides[1], near)
    ts = F.greatest("left_ts", "right_ts").alias("ts")
    query = (
        joined.select(ts, "left_key", "left_value", "right_value")
        .writeStream.format("parquet")
        .option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return progress_of(query)


def child(arguments: argparse.Namespace) -> None:
    """One run of one engine, in the process made for it."""
    name, data, work = arguments.child, Path(arguments.data), Path(arguments.work)
    if name == "spark":
        give({"batches": run_spark(data, work), "rows_out": rows_written(work / "out")})
        return
    chosen = [] if name == "tidegate" else ["--exchange", name, "--routing", "round-robin"]
    size = {"instances": arguments.instances[0], "batch_rows": arguments.batch_rows}
    give(run_tidegate(data, work, *chosen, **size))


def model(instances: int, exchange: str) -> float:
    """Tuples a second of STRETCH's model, in units of what its input thread can bring.

    Table 1: processing takes 16 times as long as input, output as long as input. Pure
    shared-nothing (shuffle) routes each tuple at a cost that grows with the instances, and merges
    in one thread; virtual shared-nothing (shared) does both for a tenth.
    """
    unit = 0.1 if exchange == "shuffle" else 0.01
    route, merge = unit * instances, unit * instances * math.log(instances)
    return 1 / max(1 + route, 16 / instances, 1 + merge)


def measure(
    name: str, arguments: argparse.Namespace, instances: int = CORES, cores: int = CORES
) -> dict[str, Any]:
    """One run whose number of results is checked."""
    rows, batch_rows = arguments.rows, arguments.batch_rows
    folder = Path(arguments.data) / f"keyed-{rows}-{FILE_ROWS}-{KEYS}"
    write_keyed(folder, rows, FILE_ROWS, KEYS)
    wanted = kept(folder, f"{BOUND_S}", lambda: equal_pairs(folder, BOUND_S))
    options = ("--child", name, "--data", str(folder), "--batch-rows", str(batch_rows))
    done = in_child(__file__, *options, instances=instances, cores=cores)
    check_count(name, wanted, done["rows_out"])
    warm = [b for b in done["batches"][WARM:] if name == "spark" or b["rows"] == batch_rows]
    run: dict[str, Any] = {**(speed if name == "spark" else figures_of)(warm), "pairs": wanted}
    print(
        f"{name}, {instances}: {run['rows_per_second']:,.0f} rows/s, "
        f"batch {run['batch_ms_median']:.0f} ms, {wanted:,} pairs",
        flush=True,
    )
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="engines", choices=["engines", "exchange"])
    parser.add_argument("--rows", type=int, default=ROWS, help="of each side")
    parser.add_argument("--batch-rows", type=int, default=BATCH_ROWS)
    common_arguments(parser, rounds=3)
    sweep_arguments(parser, [CORES])
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    if is_sweep(arguments):
        ways = ["tidegate"] if arguments.case == "engines" else list(EXCHANGES)
        swept("join_equi", {way: partial(measure, way, arguments) for way in ways}, arguments)
        return
    names = [(name, CORES) for name in ENGINES]
    if arguments.case == "exchange":
        names = [(exchange, n) for n in (1, 2) for exchange in EXCHANGES]
    runs: dict[str, list[dict[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for name, n in names:
            key = name if arguments.case == "engines" else f"{name}-{n}"
            runs.setdefault(key, []).append(measure(name, arguments, n))
    speeds = {n: middle([r["rows_per_second"] for r in done]) for n, done in runs.items()}
    setup = {"rows": arguments.rows, "file_rows": FILE_ROWS, "keys": KEYS, "bound_s": BOUND_S}
    report: dict[str, Any] = {**setup, "runs": runs, "rows_per_second": speeds}
    if arguments.case == "engines":
        report["wanted_ratio"] = WANTED_RATIO
        report["ratio"] = speeds["tidegate"]["median"] / speeds["spark"]["median"]
        print(f"{report['ratio']:.1f} times Spark's own join")
    else:
        report["scale"] = _scale(speeds)
        for name, scale in report["scale"].items():
            print(f"{name}: {scale['measured']:.2f} measured, {scale['model']:.2f} by the model")
    write_report(f"join_equi-{arguments.case}", report)


def _scale(speeds: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Speed relative to the shuffle with one instance, measured and by the model."""
    base, origin = speeds["shuffle-1"]["median"], model(1, "shuffle")
    scale = {}
    for name, found in speeds.items():
        exchange, instances = name.split("-")
        scale[name] = {
            "measured": found["median"] / base,
            "model": model(int(instances), exchange) / origin,
        }
    return scale


if __name__ == "__main__":
    main()
