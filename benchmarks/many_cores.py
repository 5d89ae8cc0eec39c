"""Speed by instances on a machine with many cores, on one host and across executors.

    python benchmarks/many_cores.py --instances 1,4,16
    python benchmarks/many_cores.py --cases aggregate band --ways hosts --instances 16
    python benchmarks/many_cores.py --share 0.01      a hundredth of the rows: a quick look

Large batches: 3 million rows for windows, 400,000 for joins, 80,000 for the exhaustive one. Each
run is a process of its own with `local[n]`, or with n + 1 executors of one core each (`hosts`),
which exchange rows over sockets. Warm batches count: not the first three, and not the last. With
`--peers` also Spark's own aggregate and join, and DuckDB over the same files at once, on as many
cores; they and `hosts` run with the most instances only. The total work is in `cpu_s`: CPU seconds
of tasks for a million rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import measure as m
from data import write_band, write_events, write_keyed
from sweep import sweep_arguments, swept

EVENTS, FILE_ROWS, BATCH_ROWS = 24_000_000, 250_000, 3_000_000
KEYED, KEYED_FILE, KEYS = 3_000_000, 50_000, 50_000
WARM = 3
WAYS = ("host", "hosts")
SLIDING = "SELECT key, {what} FROM e [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY key;"
BAND = (
    "SELECT r.x, r.y, s.a, s.b FROM r [RANGE {s} SECONDS] JOIN s [RANGE {s} SECONDS] "
    "ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10;"
)
EQUALITY = (
    "SELECT l.key, l.value AS a, r.value AS b "
    "FROM l [RANGE 60 SECONDS] JOIN r [RANGE 60 SECONDS] ON l.key = r.key;"
)
QUERIES: dict[str, tuple[dict[str, str], str, int, Sequence[str]]] = {
    "aggregate": (
        {"e": "events"},
        SLIDING.format(what="AVG(value) AS mean, COUNT(*) AS n"),
        BATCH_ROWS,
        (),
    ),
    "median": ({"e": "events"}, SLIDING.format(what="MEDIAN(value) AS m"), BATCH_ROWS, ()),
    "equality": ({"l": "keyed/left", "r": "keyed/right"}, EQUALITY, 400_000, ()),
    "band": ({"r": "band/r.parquet", "s": "band/s.parquet"}, BAND.format(s=60), 400_000, ()),
    "scan": (
        {"r": "scan/r.parquet", "s": "scan/s.parquet"},
        BAND.format(s=20),
        80_000,
        ("--method", "scan"),
    ),
}
"""By case the streams, the query, the rows of a batch, and more options."""

Part = Callable[[int], int]
"""What is left of so many rows."""
INPUTS: dict[str, Callable[[Path, Part], None]] = {
    "events": lambda to, of: write_events(to, of(EVENTS), of(FILE_ROWS), 20_000, of(10_000)),
    "keyed": lambda to, of: write_keyed(to, of(KEYED), of(KEYED_FILE), KEYS),
    "band": lambda to, of: write_band(to, of(2_400_000), of(10_000), 100_000),
    "scan": lambda to, of: write_band(to, of(680_000), of(10_000), 10_000),
}
"""Writes a stream with that share of its rows, in the same event time but for `keyed`."""


def run_tidegate(name: str, of: Part, data: Path, work: Path, instances: int) -> Any:
    case, _, way = name.partition(",")
    streams, query, batch_rows, options = QUERIES[case]
    if way == "hosts":
        m.MASTER = f"local-cluster[{instances + 1},1,2048]"
    made = [f"CREATE STREAM {name} FROM '{data}/{at}' TIME ts;" for name, at in streams.items()]
    sizes = ("--batch-rows", of(batch_rows))
    return m.run_sql("\n".join([*made, query]), work, *sizes, *options, instances=instances)


def spark_aggregate(data: Path, work: Path, of: Part) -> list[m.Batch]:
    from window_aggregate import Case, run_spark

    sizes = Case(rows=of(EVENTS), file_rows=of(FILE_ROWS), batch_rows=of(BATCH_ROWS))
    return run_spark(sizes, data / "events", work, rocksdb=False)


def spark_equality(data: Path, work: Path, _: Part) -> list[m.Batch]:
    """The same join in Spark's own words, with batches of the same size."""
    from pyspark.sql import functions as F

    spark, sides = m.spark_session({}), []
    for name in ("left", "right"):
        folder = data / "keyed" / name
        schema = spark.read.parquet(str(folder / "part-00000.parquet")).schema
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 4)
        stream = files.parquet(str(folder)).withWatermark("ts", "0 seconds")
        sides.append(stream.select(*[F.col(c).alias(f"{name}_{c}") for c in stream.columns]))
    near = "right_ts BETWEEN left_ts - INTERVAL 60 SECONDS AND left_ts + INTERVAL 60 SECONDS"
    joined = sides[0].join(sides[1], F.expr(f"left_key = right_key AND {near}"))
    writer = joined.writeStream.format("parquet").option("path", str(work / "out"))
    writer = writer.option("checkpointLocation", str(work / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return m.progress_of(query)


def duckdb_aggregate(data: Path, work: Path, of: Part) -> list[m.Batch]:
    """All windows at once, from panes, in a file in the same order."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {m.CORES}")
    begin = time.perf_counter()
    connection.execute(f"""
        COPY (
          WITH pane AS (SELECT key, time_bucket(INTERVAL 10 SECONDS, ts) AS b, sum(value) AS s,
                               count(*) AS c FROM '{data}/events/*.parquet' GROUP BY ALL),
               part AS (SELECT key, b + k * INTERVAL 10 SECONDS AS w, s, c
                        FROM pane, range(-5, 1) t(k))
          SELECT w, key, sum(s) / sum(c), sum(c) FROM part GROUP BY ALL ORDER BY ALL
        ) TO '{work}/out.parquet' (FORMAT parquet)""")
    return [{"rows": of(EVENTS), "seconds": time.perf_counter() - begin}]


PEERS = {
    "aggregate-spark": ("events", spark_aggregate),
    "equality-spark": ("keyed", spark_equality),
    "aggregate-duckdb": ("events", duckdb_aggregate),
}


def part(share: float, rows: int) -> int:
    return max(round(rows * share), 1)


def child(arguments: argparse.Namespace) -> None:
    """One run in the process made for it."""
    data, work, of = Path(arguments.data), Path(arguments.work), partial(part, arguments.share)
    name = arguments.child
    if name in PEERS:
        m.give({"batches": PEERS[name][1](data, work, of)})
    else:
        m.give(run_tidegate(name, of, data, work, arguments.instances[0]))


def measure(data: Path, share: float, name: str, instances: int, cores: int) -> dict[str, Any]:
    """One run of a case, which is `CASE,WAY`, or of a peer: the medians of its warm batches."""
    case = name.partition(",")[0]
    streams = [PEERS[case][0]] if case in PEERS else QUERIES[case][0].values()
    for folder in dict.fromkeys(at.partition("/")[0] for at in streams):
        INPUTS[folder](data / folder, partial(part, share))
    options = ("--child", name, "--data", str(data), "--share", str(share))
    batches = m.in_child(__file__, *options, instances=instances, cores=cores)["batches"]
    warm = batches[WARM:-1] if len(batches) > WARM + 2 else batches
    if case in PEERS:
        return m.speed(warm)
    found = m.figures_of(warm)
    rows, seconds = sum(b["rows"] for b in warm), sum(b["seconds"] for b in warm)
    found["cpu_s"] = sum(b["cpu_us"] for b in warm) / rows
    if compared := sum(b["comparisons"] or 0 for b in warm):
        found["comparisons_per_second"] = compared / seconds
    return found


def table(report: Any) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    most = max(p["instances"] for points in report["cases"].values() for p in points)
    fewer = sorted({p["instances"] for of in report["cases"].values() for p in of} - {most})
    heads = [*(f"{n} instance{'s' * (n > 1)}" for n in (*fewer, most)), "speed-up", "CPU"]
    yield f"| rows/s | {' | '.join(heads)} |"
    yield "|---" * (1 + len(heads)) + "|"
    for case, points in sorted(report["cases"].items()):
        by = {p["instances"]: p for p in points}
        rates = [f"{by[n]['rate']:,.0f}" if n in by else "-" for n in (*fewer, most)]
        cpu = [
            f"{median(run['cpu_s'] for run in report['runs'][case][str(n)]):.2f}"
            for n in sorted({min(by), max(by)})
            if "cpu_s" in report["runs"][case][str(n)][0]
        ]
        speed_up = f"{by[most]['speed_up']:.1f}" if len(by) > 1 else "-"
        yield f"| {case} | {' | '.join([*rates, speed_up, ' to '.join(cpu) or '-'])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["host"])
    parser.add_argument("--share", type=float, default=1.0, help="of the rows of all streams")
    parser.add_argument("--peers", action="store_true", help="Spark's own and DuckDB as well")
    m.common_arguments(parser, rounds=1)
    sweep_arguments(parser, [1, m.CORES])
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    names = [f"{case},{way}" for way in arguments.ways for case in arguments.cases]
    names += PEERS if arguments.peers else ()
    data, share = Path(arguments.data) / f"many-cores-{arguments.share:g}", arguments.share
    cases = {name.replace(",", "-"): partial(measure, data, share, name) for name in names}
    once = [case for case in cases if case in PEERS or case.endswith("-hosts")]
    swept("many_cores", cases, arguments, with_most=once)


if __name__ == "__main__":
    main()
