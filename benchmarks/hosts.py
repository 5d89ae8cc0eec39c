"""What a batch costs on several hosts: tasks that stay beside the shuffle, and beside one host.

    python benchmarks/hosts.py                                          two executors, two sizes
    python benchmarks/hosts.py --executors 16 --batch-rows 1000 3000000 sixteen
    python benchmarks/hosts.py --cases aggregate --ways resident shuffle --rounds 1

A standalone cluster runs on this machine: as many workers of one core as there are executors, and
one more for the slot that stays free. Executors have temporary folders of their own and read no
files of each other (`spark.shuffle.readHostLocalDisk=false`), so that all tuples go over TCP. The
query has as many instances as executors; on one host it runs on `local[N]`. Every run is in a
process of its own; the first batches and the last one are left out. Results go to
benchmarks/results/hosts.json.
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measure import (
    HERE,
    batches_of,
    check_count,
    common_arguments,
    give,
    in_child,
    medians,
    middle,
    percentiles,
    rows_written,
    speed,
    write_report,
)

WAYS = ("one host", "resident", "shuffle")
FILE_ROWS, KEYS = 250_000, 20_000

WARM = 5
BATCHES = {"one host": 40, "resident": 40, "shuffle": 12}
MOST_ROWS = 24_000_000
"""Rows of a run with large batches."""

CASES = {
    "aggregate": "SELECT key, AVG(value) AS mean, COUNT(*) AS n "
    "FROM l [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY key;",
    "join": "SELECT l.key, l.value AS a, r.value AS b "
    "FROM l [RANGE 60 SECONDS] JOIN r [RANGE 60 SECONDS] ON l.key = r.key;",
}


@contextmanager
def cluster(executors: int) -> Iterator[str]:
    """The URL of a master that ends with the block."""
    import sys

    sys.path.insert(0, str(HERE.parent))
    from tools.cluster import Standalone

    with tempfile.TemporaryDirectory(prefix="tidegate-hosts-") as folder:
        made = Standalone(Path(folder) / "cluster")
        try:
            made.start_master()
            made.start_workers({f"w{n}": False for n in range(executors + 1)})
            yield made.url
        finally:
            made.stop()


def settings(executors: int) -> dict[str, str]:
    """Spark's, for a query on so many executors and the slot that stays free."""
    return {
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        "spark.cores.max": str(executors + 1),
        "spark.shuffle.readHostLocalDisk": "false",  # which would see that they are on one host
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }


def child(arguments: argparse.Namespace) -> None:
    """One run, in the process made for it."""
    from data import write_keyed

    import tidegate as tg

    case, way, batch_rows = arguments.child.split(",")
    batches = max(min(BATCHES[way], MOST_ROWS // int(batch_rows)), WARM + 3)
    rows = int(batch_rows) * batches
    data = Path(arguments.data) / f"hosts-{rows}"
    write_keyed(data, rows, FILE_ROWS, KEYS)
    conf = settings(arguments.executors)
    here = way == WAYS[0]
    master = f"local[{arguments.executors}]" if here else arguments.at
    session = tg.Session(master=master, conf={} if here else conf)
    streams = (
        f"CREATE STREAM {n} FROM '{data}/{f}' TIME ts;" for n, f in (("l", "left"), ("r", "right"))
    )
    stream = session.sql("\n".join([*streams, CASES[case]]))
    out = Path(arguments.work) / "out"

    def run() -> None:
        stream.start(
            sink=tg.sink.files(str(out)),
            checkpoint=str(Path(arguments.work) / "checkpoint"),
            batch_rows=int(batch_rows),
            instances=arguments.executors,
            exchange="shuffle" if way == "shuffle" else "auto",
        ).wait()

    done = batches_of(run)[WARM:-1]
    give(
        {
            **speed(done),
            "batch_ms": percentiles([b["seconds"] * 1e3 for b in done]),
            "rows_out": rows_written(out),
            "spans_ms": medians(done, "spans_ms"),
            "tasks_ms": medians(done, "tasks_ms"),
        }
    )


def table(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The table of docs/cluster.md, in Markdown."""
    ways = [way for way in WAYS if any(way in by for by in found.values())]
    yield f"| query, rows a batch | {' | '.join(ways)} |"
    yield "|---" * (1 + len(ways)) + "|"
    for case, by in found.items():
        yield f"| {case} | {' | '.join(_cell(by[w]) if w in by else '-' for w in ways)} |"


def _cell(run: Mapping[str, Any]) -> str:
    batch_ms, rate = run["batch_ms"]["median"], run["rows_per_second"]["median"]
    return f"{batch_ms:,.0f} ms, {rate:,.0f} rows/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=2)
    parser.add_argument("--executors", type=int, default=2)
    parser.add_argument("--batch-rows", type=int, nargs="+", default=[1_000, 200_000])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--at", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the cluster ends with it
    runs: dict[str, dict[str, list[Any]]] = {}
    with cluster(arguments.executors) as at:
        options = ("--at", at, "--executors", str(arguments.executors), "--data", arguments.data)
        for _ in range(arguments.rounds):
            for case in arguments.cases:
                for rows in arguments.batch_rows:
                    by = runs.setdefault(f"{case}, {rows:,}", {})
                    for way in arguments.ways:
                        done = in_child(__file__, "--child", f"{case},{way},{rows}", *options)
                        by.setdefault(way, []).append(done)
                        print(
                            f"{case}, {rows:,}, {way}: {json.dumps(done['batch_ms'])}", flush=True
                        )
                    counts = {w: d[-1]["rows_out"] for w, d in by.items() if w != "shuffle"}
                    for count in counts.values():
                        check_count(case, next(iter(counts.values())), count)
    found = {
        case: {
            way: {
                "batch_ms": middle([d["batch_ms_median"] for d in done]),
                "rows_per_second": middle([d["rows_per_second"] for d in done]),
                "tasks_ms": done[-1]["tasks_ms"],
                "spans_ms": done[-1]["spans_ms"],
            }
            for way, done in by.items()
        }
        for case, by in runs.items()
    }
    print("\n".join(table(found)))
    write_report("hosts", {"executors": arguments.executors, "cases": found})


if __name__ == "__main__":
    main()
