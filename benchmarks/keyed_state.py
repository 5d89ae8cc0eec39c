"""What a batch costs that touches few keys of a large state: processes and windows of tuples.

    python benchmarks/keyed_state.py

Every key is put into the state first; then come batches of 1,000 rows, each with 1,000 keys. What a
batch takes and writes should depend on these and not on how many keys there are. Each run is a
process of its own, without Spark, interleaved. Results go to benchmarks/results/keyed_state.json.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from measure import batches_of, common_arguments, give, in_child, medians, middle, write_report

import tidegate as tg
from tidegate.schema import TIME
from tidegate.state.files import LocalFiles

KEYS = (10_000, 100_000)
BUCKETS, BATCH_ROWS, BATCHES = 64, 1_000, 100


class Longest(tg.Process):
    """The longest ride of every driver, looked up by key."""

    output: ClassVar = {"driver": "string", "seconds": "bigint"}

    def __init__(self) -> None:
        self.longest = self.state.map("longest")

    def on_tuple(self, ride: Any, drivers: list[str]) -> Iterator[dict[str, Any]]:
        for driver in drivers:
            if ride.v > self.longest.get(driver, 0):
                self.longest[driver] = ride.v
                yield {"driver": driver, "seconds": ride.v}


class Newest(tg.Process):
    """The newest five rides of every driver: values that are changed in place."""

    output: ClassVar = {"driver": "string", "seconds": "bigint"}

    def __init__(self) -> None:
        self.rides = self.state.map("rides")

    def on_tuple(self, ride: Any, drivers: list[str]) -> Iterator[dict[str, Any]]:
        for driver in drivers:
            rides = self.rides.setdefault(driver, [])
            rides.append(ride.v)
            del rides[:-5]
            yield {"driver": driver, "seconds": sum(rides)}


class LongestWhole(Longest):
    """The same with a plain attribute, which is read and written as a whole."""

    def __init__(self) -> None:
        self.longest: dict[str, int] = {}


CASES = {
    "process": lambda stream: stream.process(Longest, keys="k"),
    "process of lists": lambda stream: stream.process(Newest, keys="k"),
    "process with an attribute": lambda stream: stream.process(LongestWhole, keys="k"),
    "tumbling windows": lambda stream: stream.window(rows=10).group_by("k").agg(v=tg.sum("v")),
    "sliding windows": lambda stream: (
        stream.window(rows=10, slide=2).group_by("k").agg(v=tg.sum("v"))
    ),
}


def rides(keys: int) -> pa.Table:
    """Every key once, then batches of different keys; one row a millisecond."""
    chance = np.random.default_rng(7)
    chosen = [chance.permutation(keys)]
    chosen += [chance.choice(keys, BATCH_ROWS, replace=False) for _ in range(BATCHES)]
    number = np.concatenate(chosen)
    names = pa.array(np.char.add("driver-", number.astype(str)))
    times = pa.array(np.arange(len(number)) * 1_000).cast(TIME)
    return pa.table({"ts": times, "k": names, "v": pa.array(np.arange(len(number)))})


@contextmanager
def bytes_written(found: dict[str, list[int]]) -> Iterator[None]:
    """Note the sizes of segments as they are written, by batches and by compaction."""
    create = LocalFiles.create

    @contextmanager
    def counted(self: LocalFiles, name: str) -> Iterator[Any]:
        with create(self, name) as out:
            yield out
        if name.startswith("segment/"):
            found["compaction" if "compact" in name else "batch"].append(out.bytes)

    LocalFiles.create = counted  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        LocalFiles.create = create  # type: ignore[method-assign]


def child(case: str, keys: int, work: Path) -> None:
    """One run, in the process made for it."""
    source = tg.MemorySource(rides(keys), time="ts")
    source.end()
    stream = CASES[case](tg.Session(master="none").stream(source, time="ts"))
    sizes: dict[str, list[int]] = {"batch": [], "compaction": []}
    options: dict[str, Any] = {"buckets": BUCKETS, "instances": 1, "batch_rows": BATCH_ROWS}

    def run() -> None:
        sink = tg.sink.files(str(work / "out"))
        stream.start(sink=sink, checkpoint=str(work / "checkpoint"), **options).wait()

    with bytes_written(sizes):
        batches = batches_of(run)
    counted = batches[-BATCHES - 1 : -1]
    give(
        {
            "batch_ms": statistics.median(b["seconds"] for b in counted) * 1e3,
            "batch_ms_p90": float(np.percentile([b["seconds"] for b in counted], 90)) * 1e3,
            "batch_bytes": statistics.median(sizes["batch"][-BATCHES - 1 : -1]),
            "compacted_bytes": sum(sizes["compaction"]),
            "state_rows": counted[-1]["state_rows"],
            "state_bytes": counted[-1]["state_bytes"],
            "tasks_ms": medians(counted, "tasks_ms"),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common_arguments(parser, rounds=3)
    parser.add_argument("--keys", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.keys, Path(arguments.work))
        return
    runs: dict[str, list[dict[str, Any]]] = {f"{c}, {k:,} keys": [] for c in CASES for k in KEYS}
    for number in range(arguments.rounds):
        for case in CASES:
            for keys in KEYS:
                found = in_child(__file__, "--child", case, "--keys", str(keys))
                runs[f"{case}, {keys:,} keys"].append(found)
                print(
                    f"round {number} {case}, {keys:,} keys: {found['batch_ms']:.1f} ms, "
                    f"{found['batch_bytes']:,.0f} bytes a batch",
                    flush=True,
                )
    names = ("batch_ms", "batch_ms_p90", "batch_bytes", "state_bytes")
    write_report(
        "keyed_state",
        {
            "buckets": BUCKETS,
            "batch_rows": BATCH_ROWS,
            "batches": BATCHES,
            "medians": {
                case: {name: middle([r[name] for r in found]) for name in names}
                for case, found in runs.items()
            },
            "runs": runs,
        },
    )


if __name__ == "__main__":
    main()
