"""How many tuples a second go through the gate object, for appending threads and readers.

    python benchmarks/gate.py                                  all cases, five rounds
    python benchmarks/gate.py --appenders 4 --readers 2        one case
    python benchmarks/gate.py --instances 1,2,4,8,16           a sweep: n appending and n reading

Each appending thread feeds one source with batches made beforehand, each reader takes what is ready
until all sources have ended. Every reader must get every tuple in the total order, or the run
fails. The best round is the speed, because others may be using the machine; the median and the load
are noted beside it. Results go to benchmarks/results/gate.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
from measure import write_report
from sweep import is_sweep, sweep_arguments, swept

from tidegate.gate.gate import Gate
from tidegate.schema import TIME

CASES = [(1, 1), (2, 1), (2, 2), (4, 1), (4, 4), (8, 2)]
AHEAD_BATCHES = 16
"""How many batches an appending thread may be ahead of the slowest one, as live sources are."""


def batches_of(source: int, sources: int, rows: int, batch_rows: int) -> list[pa.Table]:
    """Batches of (ts, source, seq, value), times shared by all sources, with ties."""
    draw = np.random.default_rng(source)
    times = np.sort(draw.integers(0, rows * sources // 2, rows))
    made = pa.table(
        {
            "ts": pa.array(times).cast(TIME),
            "source": np.full(rows, source, np.int64),
            "seq": np.arange(rows),
            "value": draw.random(rows),
        }
    )
    return [made.slice(start, batch_rows) for start in range(0, rows, batch_rows)]


def check_order(tables: list[pa.Table], rows: int) -> None:
    """Fail unless these are all tuples, each once, strictly in the total order."""
    found = pa.concat_tables(tables)
    ts = found.column("ts").cast(pa.int64()).to_numpy()
    source, seq = found.column("source").to_numpy(), found.column("seq").to_numpy()
    place = source * rows + seq
    rises = (ts[1:] > ts[:-1]) | ((ts[1:] == ts[:-1]) & (place[1:] > place[:-1]))
    if len(found) != rows * len(np.unique(source)) or not rises.all():
        raise SystemExit(f"the gate lost tuples or their order: {len(found)} read")


def measure(appenders: int, readers: int, rows: int, batch_rows: int) -> dict[str, float]:
    """One run: million tuples a second from the first append to the last read."""
    feeds = [batches_of(s, appenders, rows // appenders, batch_rows) for s in range(appenders)]
    sources, names = [f"s{s}" for s in range(appenders)], [f"r{r}" for r in range(readers)]
    gate = Gate(time="ts", schema=feeds[0][0].schema, sources=sources, readers=names)
    got: dict[str, list[pa.Table]] = {name: [] for name in names}
    start, pace = threading.Barrier(appenders + readers + 1), threading.Barrier(appenders)

    def append(source: str, batches: list[pa.Table]) -> None:
        start.wait()
        for number, batch in enumerate(batches):
            if number % AHEAD_BATCHES == 0:
                pace.wait()
            gate.append(source, batch)
        gate.end(source)

    def read(reader: str) -> None:
        start.wait()
        while gate.wait(reader):
            got[reader].append(gate.next_ready(reader))

    threads = [threading.Thread(target=append, args=pair) for pair in zip(sources, feeds)]
    threads += [threading.Thread(target=read, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    used = time.process_time()
    start.wait()
    wall = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds, cpu = time.perf_counter() - wall, time.process_time() - used
    for tables in got.values():
        check_order(tables, rows // appenders)
    merged = rows // appenders * appenders
    return {
        "tuples_per_second": merged / seconds,
        "tuples_read_per_second": merged * readers / seconds,
        "tuples_per_cpu_second": merged / cpu,
        "reads": float(sum(len(t) for t in got.values())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--appenders", type=int)
    parser.add_argument("--readers", type=int, default=1)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--cores", type=int, help="of a sweep (default: as many as threads of a kind)"
    )
    sweep_arguments(parser)
    arguments = parser.parse_args()
    size = (arguments.rows, arguments.batch_rows)
    if is_sweep(arguments):
        here = sorted(os.sched_getaffinity(0))

        def measured(n: int, cores: int) -> dict[str, float]:
            os.sched_setaffinity(0, here[:cores])
            return measure(n, n, *size)

        swept("gate", {"threads": measured}, arguments, "tuples_read_per_second", "tuples read/s")
        return
    one = arguments.appenders is not None
    cases = [(arguments.appenders, arguments.readers)] if one else CASES
    results = []
    for appenders, readers in cases:
        runs = [measure(appenders, readers, *size) for _ in range(arguments.rounds)]
        best = max(runs, key=lambda run: run["tuples_per_second"])
        median = statistics.median(run["tuples_per_second"] for run in runs)
        case: dict[str, Any] = {"appenders": appenders, "readers": readers}
        results.append({**case, "best": best, "median": median, "rounds": runs})
        print(
            f"{appenders} appending, {readers} reading: {best['tuples_per_second'] / 1e6:5.1f} "
            f"million tuples/s (median {median / 1e6:.1f}), "
            f"{best['tuples_read_per_second'] / 1e6:.1f} read",
            flush=True,
        )
    if not one:
        write_report("gate", {"rows": size[0], "batch_rows": size[1], "cases": results})


if __name__ == "__main__":
    main()
