"""What the driver pays for state in every batch, by the number of buckets and of segments.

    python benchmarks/driver_state.py                   10,000 buckets, 1,000 segments
    python benchmarks/driver_state.py --buckets 64 --segments 100

Writes and reads a manifest whose segments share the sets of buckets of eight instances (`shared`)
or have others each (`apart`), and asks what of the state is needed and what is worth compacting.
The best round counts, because others may be using the machine. Results go to
benchmarks/results/driver_state.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tidegate.operate.process.entry import EntryKeeper
from tidegate.route.mapping import even, recorded, switched
from tidegate.state.bucket_set import BucketSet
from tidegate.state.manifest import Manifest
from tidegate.state.segment.compaction import choose
from tidegate.state.segment.segment import Segment

INSTANCES = 8


def sets_of(kind: str, buckets: int, segments: int) -> list[BucketSet]:
    if kind == "shared":
        owners = np.random.default_rng(1).permutation(np.arange(buckets) % INSTANCES)
        owned = [BucketSet.of(np.flatnonzero(owners == i)) for i in range(INSTANCES)]
        return [owned[i % INSTANCES] for i in range(segments)]
    chance = np.random.default_rng(2)
    return [BucketSet.where(chance.random(buckets) < 1 / INSTANCES) for _ in range(segments)]


def best_ms(action: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return round(min(times) * 1e3, 3)


def measured(kind: str, buckets: int, segments: int, rounds: int) -> dict[str, float]:
    made = tuple(
        Segment(f"{i:08d}-process-0123abcd-0001", 10**6, 10**8, 2**32 - 1, s, i, i, 1)
        for i, s in enumerate(sets_of(kind, buckets, segments))
    )
    mapping = even(buckets, INSTANCES)
    manifest = Manifest(5, {"process": recorded(mapping)}, 0, operators={"process/buckets": made})
    text, keeper = manifest.to_json(), EntryKeeper()
    horizon = keeper.horizon(0, 0, made)
    return {
        "manifest_bytes": len(text),
        "write_ms": best_ms(manifest.to_json, rounds),
        "read_ms": best_ms(lambda: Manifest.from_json(text, "manifest"), rounds),
        "horizon_ms": best_ms(lambda: keeper.horizon(0, 0, made), rounds),
        "live_ms": best_ms(lambda: [s for s in made if not horizon.passed(s)], rounds),
        "choose_ms": best_ms(lambda: choose(made, [s.rows for s in made]), rounds),
        "switch_ms": best_ms(lambda: switched(mapping, INSTANCES + 1), rounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buckets", type=int, default=10_000)
    parser.add_argument("--segments", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    found = {
        kind: measured(kind, asked.buckets, asked.segments, asked.rounds)
        for kind in ("shared", "apart")
    }
    load = os.getloadavg()[0]
    report = {"buckets": asked.buckets, "segments": asked.segments, "load": load, **found}
    text = json.dumps(report, indent=2) + "\n"
    print(text, end="")
    (Path(__file__).parent / "results" / "driver_state.json").write_text(text)


if __name__ == "__main__":
    main()
