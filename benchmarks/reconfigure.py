"""What a switch costs a running join, by the size of its state, beside Spark's way to rescale.

    python benchmarks/reconfigure.py                              10, 100 and 1,000 MB, three rounds
    python benchmarks/reconfigure.py --sizes 10 --rounds 1 --cycles 1
    python benchmarks/reconfigure.py --share 0.001 --rounds 1 --cycles 1    a quick look
    python benchmarks/reconfigure.py --engines spark --sizes 10 100
    python benchmarks/reconfigure.py --engines static managed --sizes 10

A band join of two streams is filled by large batches until its state has the size, and then goes on
with small ones. It runs on one host with tasks that stay, and is scaled from 2 instances to 4,
back, to 3, back, to 1 and back. For each switch: how much longer its batch took than the median of
five batches before and five after it; from the request, which comes in the middle of a batch, to
the first batch that has the new mapping, and to the commit of that one; and how many bytes of state
instances wrote apart from the new tuples.

Beside it an equality join of Spark, which has no others, with state of the same size in RocksDB: it
is stopped, its checkpoint is rewritten for twice as many partitions, and it is started again, until
the first batch after that is done. And the same join of Tidegate that is never switched, without a
policy and with one that observes and decides after every batch and may change nothing. Results go
to benchmarks/results/reconfigure.json, with the engines beside ours in the name.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from data import START_US
from latency_spark import ROCKSDB
from measure import (
    CORES,
    MASTER,
    Batch,
    batches_of,
    common_arguments,
    give,
    in_child,
    medians,
    middle,
    spark_session,
    speed,
    write_report,
)

SIZES_MB = (10, 100, 1_000)
ENGINES = ("tidegate", "spark", "static", "managed")
IDLE, IDLE_RATIO = 300, 0.98
"""Batches that are measured without a switch, and how fast they are to be with a policy, beside
those without one."""
ROW_BYTES = {"tidegate": 61, "spark": 100}
"""What a stored tuple takes, with what finds it."""
FILL_ROWS, FILL_BATCHES = 1_000_000, 8
"""The most rows of a batch while the state is filled, and the fewest batches that fill it."""
BATCH_ROWS, WARM, GAP, NEAR = 2_000, 24, 16, 5
"""Rows of a batch then, batches before the first switch and from one to the next, and how many
neighbours on either side a batch with a switch is compared with."""
CYCLE = (4, 2, 3, 2, 1, 2)
WANTED = {"extra_ms": 40.0, "extra_share": 0.10, "bytes_moved": 0}
"""One of the first two is enough."""
SPARK_MOST_MB = 100
"""Filling more of Spark's state takes longer than the rest together: ask for it alone. A policy
costs the same whatever the state."""
RATE = 10_000
QUERY = """
CREATE STREAM r FROM 'generator:r?rows={rows}&rate={rate}&domain=16777216&seed=7' TIME ts;
CREATE STREAM s FROM 'generator:s?rows={rows}&rate={rate}&domain=16777216&seed=7' TIME ts;
SELECT r.x, r.y, r.z, s.a, s.b, s.c, s.d FROM r [RANGE 30 DAYS] JOIN s [RANGE 30 DAYS]
ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 1000 AND s.b + 1000;
"""


class Course:
    """What happens to one run: it is filled, goes on with small batches, and is switched."""

    def __init__(self, fill_batches: int, cycles: int) -> None:
        self.fill_batches = fill_batches
        first = fill_batches + WARM
        asked = [n for _ in range(cycles) for n in CYCLE]
        self.switches = {first + GAP * i: n for i, n in enumerate(asked)}
        """The instances that are asked for, by the first batch that has them."""
        self.batches = first + GAP * len(asked)
        self.query: Any = None
        self.times: dict[tuple[str, int], float] = {}
        self.segments: dict[int, dict[str, tuple[int, int]]] = {}
        """The rows and bytes of what instances wrote and the state still has, after each batch."""

    def __call__(self, step: str, batch: int) -> None:
        """Called by the loop, in its thread, at each step of a batch."""
        self.times[step, batch] = time.perf_counter()
        loop = None if self.query is None else self.query._loop
        if step == "before gate" and loop is not None and batch not in self.segments:
            self.segments[batch - 1] = {
                s.name: (s.rows, s.bytes)
                for s in loop.manifest.segments()
                if "-compact-" not in s.name
            }
        if step == "after operate" and batch + 1 in self.switches:
            self.times["asked", batch + 1] = time.perf_counter()
            self.query.scale(self.switches[batch + 1])
        if step == "after publish" and loop is not None:
            if batch + 1 == self.fill_batches:
                from tidegate.driver.batch_limit import BatchLimit

                loop.pipeline.limit = BatchLimit(BATCH_ROWS)
            if batch + 1 == self.batches:
                loop.stop()

    def moved(self, batch: int, new_rows: int) -> int:
        """The bytes of state that the instances wrote in a batch apart from its new tuples."""
        now, before = self.segments[batch], self.segments[batch - 1]
        written = [size for name, size in now.items() if name not in before]
        rows, size = sum(rows for rows, _ in written), sum(size for _, size in written)
        return size * max(rows - new_rows, 0) // max(rows, 1)


def run_tidegate(
    size: int, cycles: int, work: Path, idle: int = 0, managed: bool = False
) -> dict[str, Any]:
    """One run with state of so many bytes, and what each of its switches cost.

    Without cycles its speed over so many `idle` batches.
    """
    import tidegate as tg

    fill = size // ROW_BYTES["tidegate"]
    fill_rows = min(FILL_ROWS, -(-fill // FILL_BATCHES))
    course = Course(-(-fill // fill_rows), cycles)
    if not cycles:
        course.batches += idle
    rows = fill + fill_rows + BATCH_ROWS * course.batches
    stream = tg.Session(master=MASTER).sql(QUERY.format(rows=rows // 2, rate=RATE))

    def run() -> None:
        course.query = stream.start(
            sink=tg.sink.files(str(work / "out")),
            checkpoint=str(work / "checkpoint"),
            batch_rows=fill_rows,
            instances=CORES,
            execution="resident",
            observer=course,
            policy=_idle_policy() if managed else None,
        )
        course.query.wait()

    batches = batches_of(run)
    filled = batches[course.fill_batches - 1]
    if not cycles:
        steady = batches[course.fill_batches + WARM : course.batches]
        return {"state_bytes": filled["state_bytes"], **speed(steady)}
    return {
        "state_bytes": filled["state_bytes"],
        "state_rows": filled["state_rows"],
        "fill_s": round(sum(b["seconds"] for b in batches[: course.fill_batches]), 1),
        "switches": [measured(course, batches, batch) for batch in course.switches],
    }


def _idle_policy() -> Any:
    """One that looks at every batch, and has nothing to choose."""
    import tidegate as tg

    return tg.policy.threshold(minimum=CORES, maximum=CORES, imbalance=1e9)


def measured(course: Course, batches: list[Batch], batch: int) -> dict[str, Any]:
    """What one switch cost, beside the batches around it."""
    before, after = batches[batch - NEAR : batch], batches[batch + 1 : batch + 1 + NEAR]
    at, near = batches[batch], [*before, *after]
    usual_ms, took_ms = _median_ms(near), at["seconds"] * 1e3
    asked = course.times["asked", batch]
    was = course.switches.get(batch - GAP, CORES)
    return {
        "switch": f"{was} to {course.switches[batch]}",
        "batch_ms": round(took_ms, 3),
        "before_ms": round(_median_ms(before), 3),
        "after_ms": round(_median_ms(after), 3),
        "extra_ms": round(took_ms - usual_ms, 3),
        "extra_share": round((took_ms - usual_ms) / usual_ms, 4),
        "asked_to_active_ms": round((course.times["after gate", batch] - asked) * 1e3, 3),
        "asked_to_committed_ms": round((course.times["after commit", batch] - asked) * 1e3, 3),
        "bytes_moved": course.moved(batch, at["state_rows"] - batches[batch - 1]["state_rows"]),
        "tasks_ms": {
            name: round(value - usual, 2)
            for name, value in at["tasks_ms"].items()
            if abs(value - (usual := medians(near, "tasks_ms").get(name, 0.0))) >= 0.5
        },
    }


def _median_ms(batches: list[Batch]) -> float:
    return statistics.median(b["seconds"] for b in batches) * 1e3


def write_keyed(folder: Path, name: str, file: int, first: int, rows: int) -> None:
    """Rows of one side of Spark's join; keys that hardly ever meet."""
    generator = np.random.default_rng([file, len(name)])
    (folder / name).mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "ts": pa.array(
                START_US + np.arange(first, first + rows) * 100, pa.timestamp("us", "UTC")
            ),
            "key": generator.integers(0, 2**40, rows),
            "value": generator.random(rows),
            "text": np.char.mod("%020d", generator.integers(0, 2**40, rows)),
        }
    )
    pq.write_table(table, folder / name / f"part-{file:05d}.parquet")


def run_spark(size: int, work: Path) -> dict[str, Any]:
    """Fill, stop, rewrite the checkpoint for twice as many partitions, start, one small batch."""
    fill = size // ROW_BYTES["spark"] // 2
    for name in ("left", "right"):
        for file in range(FILL_BATCHES):
            write_keyed(work, name, file, file * fill // FILL_BATCHES, fill // FILL_BATCHES)
    spark = spark_session(
        {**ROCKSDB, "spark.sql.streaming.join.stateFormatVersion": "3", "spark.driver.memory": "4g"}
    )
    started = time.perf_counter()
    _until_done(spark, work)
    fill_s = time.perf_counter() - started
    for name in ("left", "right"):
        write_keyed(work, name, FILL_BATCHES, fill, BATCH_ROWS // 2)
    begun = time.perf_counter()
    progress = _until_done(spark, work)
    batch_s = time.perf_counter() - begun
    checkpoint = work / "checkpoint"
    for name in ("left", "right"):
        write_keyed(work, name, FILL_BATCHES + 1, fill + BATCH_ROWS, BATCH_ROWS // 2)
    files = [f for f in (checkpoint / "state").rglob("*") if f.is_file()]
    state_bytes = sum(f.stat().st_size for f in files)
    times = [time.perf_counter()]
    spark._streamingCheckpointManager.repartition(str(checkpoint), 2 * CORES)
    times.append(time.perf_counter())
    _until_done(spark, work)
    times.append(time.perf_counter())
    states = progress["stateOperators"]
    return {
        "state_rows": sum(s["numRowsTotal"] for s in states),
        "state_bytes": state_bytes,
        "memory_bytes": sum(s["memoryUsedBytes"] for s in states),
        "fill_s": round(fill_s, 1),
        "start_and_batch_s": round(batch_s, 3),
        "repartition_s": round(times[1] - times[0], 3),
        "restart_s": round(times[2] - times[1], 3),
        "switch_s": round(times[2] - times[0], 3),
    }


def _until_done(spark: Any, work: Path) -> dict[str, Any]:
    """Run Spark's join over the files that there are; the progress of its last batch."""
    from pyspark.sql import functions as F

    sides = []
    for name in ("left", "right"):
        schema = spark.read.parquet(str(work / name / "part-00000.parquet")).schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frame = stream.parquet(str(work / name)).withWatermark("ts", "0 seconds")
        sides.append(frame.select(*[F.col(c).alias(f"{name}_{c}") for c in frame.columns]))
    near = F.expr(
        "left_key = right_key AND right_ts BETWEEN left_ts - INTERVAL 30 DAYS "
        "AND left_ts + INTERVAL 30 DAYS"
    )
    query = (
        sides[0]
        .join(sides[1], near)
        .writeStream.format("parquet")
        .option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found: dict[str, Any] = query.lastProgress
    return found


def child(arguments: argparse.Namespace) -> None:
    """One run of one engine, in the process made for it."""
    engine, work = arguments.child, Path(arguments.work)
    size = round(arguments.sizes[0] * 1e6 * arguments.share)
    if engine == "spark":
        give(run_spark(size, work))
    elif engine == "tidegate":
        give(run_tidegate(size, arguments.cycles, work))
    else:
        idle = max(round(IDLE * arguments.share), 10)
        give(run_tidegate(size, 0, work, idle, managed=engine == "managed"))


def reduced(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """All switches of a kind, of all rounds, and whether they keep to what is wanted."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        for switch in run["switches"]:
            kinds.setdefault(switch["switch"], []).append(switch)
    found = {}
    for kind, switches in kinds.items():
        names = [n for n, value in switches[0].items() if isinstance(value, int | float)]
        figures = {name: middle([s[name] for s in switches]) for name in names}
        extra, share = figures["extra_ms"]["median"], figures["extra_share"]["median"]
        in_time = extra <= WANTED["extra_ms"] or share <= WANTED["extra_share"]
        stays = figures["bytes_moved"]["median"] <= WANTED["bytes_moved"]
        found[kind] = {**figures, "switches": len(switches), "kept": in_time and stays}
    return found


def table(sizes: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The table of docs/measured/engine.md, in Markdown."""
    yield "| state | switch | batch | longer by | asked to active | bytes moved |"
    yield "|---|---|---|---|---|---|"
    for size, kinds in sizes.items():
        for kind, case in kinds.items():
            extra = case["extra_ms"]
            spread = f"{extra['low']:+,.0f} to {extra['high']:+,.0f}"
            yield (
                f"| {size} MB | {kind} | {case['batch_ms']['median']:,.0f} ms | "
                f"{extra['median']:+,.1f} ms ({spread}) | "
                f"{case['asked_to_active_ms']['median']:,.1f} ms | "
                f"{case['bytes_moved']['median']:,.0f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES_MB), metavar="MB")
    parser.add_argument("--share", type=float, default=1.0, help="of the state, and of the batches")
    parser.add_argument("--cycles", type=int, default=3, help="how often a run is switched about")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in arguments.engines}
    for number in range(arguments.rounds):
        for size in arguments.sizes:
            for engine in arguments.engines:
                if engine != "tidegate" and size > SPARK_MOST_MB and len(arguments.engines) > 2:
                    continue
                words = {"sizes": size, "cycles": arguments.cycles, "share": arguments.share}
                options = [word for n, v in words.items() for word in (f"--{n}", str(v))]
                run = in_child(__file__, "--child", engine, *options)
                runs[engine].setdefault(str(size), []).append(run)
                print(f"round {number} {engine}, {size} MB: {_said(engine, run)}", flush=True)
                report(runs)  # it takes long: what there is, is kept
    found = {size: reduced(done) for size, done in runs.get("tidegate", {}).items()}
    print("\n".join(table(found)))
    for size, kinds in found.items():
        missed = [kind for kind, case in kinds.items() if not case["kept"]]
        if missed:
            print(f"{size} MB: missed by {', '.join(missed)}")


def _said(engine: str, run: dict[str, Any]) -> str:
    if engine == "spark":
        return f"{run['switch_s']:.1f} s for {run['state_bytes'] / 1e6:,.0f} MB"
    if engine != "tidegate":
        return f"{run['rows_per_second']:,.0f} rows/s, batch {run['batch_ms_median']:.1f} ms"
    switches = ", ".join(f"{s['switch']} {s['extra_ms']:+.1f} ms" for s in run["switches"])
    return f"{run['state_bytes'] / 1e6:,.0f} MB: {switches}"


def idle(runs: dict[str, dict[str, list[dict[str, Any]]]], size: str) -> dict[str, Any]:
    """The speed with a policy beside the one without."""
    found = {
        name: middle([r["rows_per_second"] for r in runs[name][size]])
        for name in ("static", "managed")
        if size in runs.get(name, {})
    }
    if len(found) < 2:
        return found
    ratio = found["managed"]["median"] / found["static"]["median"]
    return {**found, "ratio": round(ratio, 4), "wanted": IDLE_RATIO, "kept": ratio >= IDLE_RATIO}


def report(runs: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    """Write what there is."""
    tidegate = runs.get("tidegate", {})
    spark = runs.get("spark", {})
    write_report(
        "-".join(["reconfigure", *(engine for engine in runs if engine != "tidegate")]),
        {
            "wanted": WANTED,
            "query": QUERY.strip(),
            "batch_rows": BATCH_ROWS,
            "neighbours": 2 * NEAR,
            "tidegate": {size: reduced(done) for size, done in tidegate.items()},
            "spark": {
                size: {name: middle([r[name] for r in done]) for name in done[0]}
                for size, done in spark.items()
            },
            "idle": {size: idle(runs, size) for size in runs.get("managed", {})},
            "runs": runs,
        },
    )


if __name__ == "__main__":
    main()
