"""What people ask in their first week, beside Spark's own on the same files, in interleaved runs.

    python benchmarks/first_week.py                     all cases, three rounds
    python benchmarks/first_week.py --case dedup left   some of them (see CASES)

Each run is a process of its own; speeds are those of the batches after the first ones, by each
engine's own account of them. Spark has no as-of join of streams: that case is a speed alone. Its
`dropDuplicatesWithinWatermark` remembers a key until the watermark is past it by the horizon, and
forgets keys between batches only, so it drops more tuples than KEEP FIRST WITHIN asks for. A join
with a table is set beside the same query without it: the same groups, of the same columns of the
stream. One with a table that is read by key is set beside the same with the table held in memory.
Results go to results/first_week.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from data import write_events, write_keyed
from measure import (
    CORES,
    Batch,
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

ROWS, FILE_ROWS, KEYS, WARM = 4_000_000, 250_000, 20_000, 3
LARGE_ROWS = 5_000_000
EVENTS = "CREATE STREAM e FROM '{data}/events' TIME ts;"
PLAIN = EVENTS + "SELECT key, SUM(value) AS total FROM e [RANGE 10 SECONDS] GROUP BY key"
SIDES = "CREATE STREAM l FROM '{data}/left' TIME ts; CREATE STREAM r FROM '{data}/right' TIME ts;"
JOIN_ROWS, JOIN_FILE_ROWS, JOIN_KEYS = 500_000, 50_000, 50_000


def _events(spark: Any, data: Path, watermark: str) -> Any:
    folder = data / "events"
    schema = spark.read.parquet(str(folder / "part-00000.parquet")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(folder))
    return stream.withWatermark("ts", watermark)


def spark_dedup(spark: Any, data: Path) -> Any:
    return _events(spark, data, "60 seconds").dropDuplicatesWithinWatermark(["key"])


def spark_session_window(spark: Any, data: Path) -> Any:
    from pyspark.sql import functions as F

    window = F.session_window("ts", "5 seconds")
    grouped = _events(spark, data, "0 seconds").groupBy(window, "key")
    return grouped.agg(F.count("*").alias("n"), F.avg("value").alias("mean"))


def spark_left(spark: Any, data: Path) -> Any:
    from pyspark.sql import functions as F

    sides = []
    for name in ("left", "right"):
        schema = spark.read.parquet(str(data / name / "part-00000.parquet")).schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frame = stream.parquet(str(data / name)).withWatermark("ts", "0 seconds")
        sides.append(frame.select(*[F.col(c).alias(f"{name}_{c}") for c in frame.columns]))
    near = F.expr(
        "left_key = right_key AND right_ts BETWEEN left_ts - INTERVAL 60 SECONDS "
        "AND left_ts + INTERVAL 60 SECONDS"
    )
    return sides[0].join(sides[1], near, "leftOuter")


def spark_table(spark: Any, data: Path) -> Any:
    table = spark.read.parquet(str(data / "rates.parquet"))
    return _events(spark, data, "0 seconds").join(table, "key")


def rated(on: str, table: str = "rates") -> str:
    """The query of `PLAIN` with values times a rate, which comes from a table."""
    return (
        EVENTS + f"CREATE TABLE rates FROM '{{data}}/{table}.parquet';"
        "CREATE STREAM rated AS SELECT e.key, e.value * r.rate AS value FROM e "
        f"JOIN rates AS r ON {on};"
        "SELECT key, SUM(value) AS total FROM rated [RANGE 10 SECONDS] GROUP BY key"
    )


@dataclass(frozen=True)
class Case:
    """One question: its SQL, the same in Spark's words, and what is wanted of the ratio.

    `without` is the query that ours is set beside where that is not Spark's, run without `options`.
    """

    sql: str
    spark: Callable[[Any, Path], Any] | None = None
    without: str | None = None
    wanted: float | None = None
    batch_rows: int = 2 * FILE_ROWS
    options: tuple[str, ...] = ()


CASES = {
    "left": Case(
        SIDES + "SELECT l.key, l.value AS a, r.value AS b FROM l [RANGE 60 SECONDS] "
        "LEFT JOIN r [RANGE 60 SECONDS] ON l.key = r.key",
        spark_left,
        wanted=5,
        batch_rows=2 * JOIN_FILE_ROWS,
    ),
    "dedup": Case(
        EVENTS + "SELECT DISTINCT ON (key) key, value FROM e KEEP FIRST WITHIN '60 seconds'",
        spark_dedup,
        wanted=5,
    ),
    "session": Case(
        EVENTS + "SELECT key, COUNT(*) AS n, AVG(value) AS mean FROM e [SESSION GAP 5 SECONDS] "
        "GROUP BY key",
        spark_session_window,
        wanted=5,
    ),
    "asof": Case(
        SIDES + "SELECT l.key, l.value AS a, r.value AS b FROM l ASOF JOIN r "
        "MATCH_CONDITION (l.ts >= r.ts) ON l.key = r.key",
        batch_rows=4 * JOIN_FILE_ROWS,
    ),
    "table": Case(rated("e.key = r.key"), spark_table, without=PLAIN, wanted=0.8),
    "table_range": Case(
        rated("e.key BETWEEN r.low AND r.high"),
        without=PLAIN,
        wanted=0.8,
    ),
    "table_by_key": Case(
        rated("e.key = r.key", "large"),
        without=rated("e.key = r.key", "large"),
        options=("--memory-limit", "600MB"),  # an index of the table needs more than a third of it
    ),
}


def write_data(folder: Path) -> None:
    """The input of all cases, written once."""
    write_events(folder / "events", ROWS, FILE_ROWS, KEYS, 10_000)
    write_keyed(folder, JOIN_ROWS, JOIN_FILE_ROWS, JOIN_KEYS)
    rates = folder / "rates.parquet"
    if not rates.exists():
        keys = range(KEYS)
        ends = {"low": keys, "high": keys}
        pq.write_table(pa.table({"key": keys, **ends, "rate": [k % 7 / 4 for k in keys]}), rates)
    large = folder / "large.parquet"
    if not large.exists():
        numbers = np.arange(LARGE_ROWS)
        pq.write_table(pa.table({"key": numbers, "rate": numbers % 7 / 4, "x": numbers}), large)


def run_spark(case: Case, data: Path, work: Path) -> list[Batch]:
    assert case.spark is not None
    query = (
        case.spark(spark_session({}), data)
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
    case, data, work = CASES[arguments.case[0]], Path(arguments.data), Path(arguments.work)
    if arguments.child == "spark":
        give({"batches": run_spark(case, data, work), "rows_out": rows_written(work / "out")})
        return
    ours = arguments.child == "tidegate"
    sql, options = (case.sql, case.options) if ours else (case.without, ())
    assert sql is not None
    sql = sql.replace("{data}", str(data))
    give(run_sql(sql, work, "--batch-rows", case.batch_rows, *options))


def measure(engine: str, name: str, data: Path) -> dict[str, Any]:
    options = ("--child", engine, "--case", name, "--data", str(data))
    done = in_child(__file__, *options)
    warm = done["batches"][WARM:-1]
    found = (speed if engine == "spark" else figures_of)(warm)
    print(f"{name} {engine}: {found['rows_per_second']:,.0f} rows/s, {done['rows_out']:,} rows out")
    return {**found, "rows_out": done["rows_out"]}


def compare(name: str, rounds: int, data: Path) -> dict[str, Any]:
    """Interleave the engines, and report medians, spreads and ratios."""
    case = CASES[name]
    others = [e for e, there in (("spark", case.spark), ("without", case.without)) if there]
    runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ("tidegate", *others)}
    for _ in range(rounds):
        for engine, done in runs.items():
            done.append(measure(engine, name, data))
    speeds = {e: middle([r["rows_per_second"] for r in done]) for e, done in runs.items()}
    ratios = {
        e: middle(
            [a["rows_per_second"] / b["rows_per_second"] for a, b in zip(runs["tidegate"], runs[e])]
        )
        for e in others
    }
    for engine, ratio in ratios.items():
        print(f"{name}: {ratio['median']:.2f} times as fast as {engine}", flush=True)
    return {"case": name, "sql": case.sql, "wanted": case.wanted, "instances": CORES} | {
        "rows_per_second": speeds,
        "ratio": ratios,
        "runs": runs,
    }


def table(cases: list[dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    yield "| case | rows/s | beside Spark | beside the same without |"
    yield "|---|---|---|---|"
    for case in cases:
        speed = case["rows_per_second"]["tidegate"]
        beside = (case["ratio"].get(engine) for engine in ("spark", "without"))
        yield (
            f"| {case['case']} | {_spread(speed, ',.0f')} | "
            + " | ".join("-" if ratio is None else _spread(ratio, ".2f") for ratio in beside)
            + " |"
        )


def _spread(of: dict[str, float], form: str) -> str:
    return f"{of['median']:{form}} ({of['low']:{form}} to {of['high']:{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", default=list(CASES), choices=list(CASES))
    common_arguments(parser, rounds=3)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    data = Path(arguments.data) / "first-week"
    write_data(data)
    cases = [compare(name, arguments.rounds, data) for name in arguments.case]
    write_report("first_week", {"cases": cases})


if __name__ == "__main__":
    main()
