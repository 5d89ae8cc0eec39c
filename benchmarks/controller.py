"""A latency target of 2 seconds: `auto` beside other controllers, over 26 loads; simulated.

    python benchmarks/controller.py [--jobs 2] [--real FOLDER] [LOAD]...

No query runs and no clock is read (`elastic/simulated_query.py`): batches follow one another, a
batch costs 20 ms and a switch 100 ms more, at most 36 instances run at once. Every controller
begins with the instances that the first second needs. A window is a second: it holds the target if
the tuple at its end is answered within 2 seconds.

- auto: `policy auto`, with an error allowance of 10 percent where the query can shed
- exact: the same without the allowance
- model, threshold: the policies with their defaults
- flink, databricks: the published rules of others (`controller_rules.py`)
- clairvoyant: knows the load; for each 30 seconds the fewest instances that hold the target

Half of the bursty loads are from seeds that were not used while `auto` was made. `--real` adds the
rates of real streams, from a folder as `public_streams.py` makes it. Results go to
benchmarks/results/controller.json; without `--real`, those of real streams stay as they were.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from controller_loads import REAL, NamedLoad, every_load, real_loads
from controller_rules import DatabricksRule, FlinkRule
from measure import RESULTS, write_report

from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.by_model import ByModel
from tidegate.elastic.policy import Policy
from tidegate.elastic.simulated_query import (
    SimulatedBatch,
    SimulatedQuery,
    SimulatedState,
    instance_seconds,
    latencies,
    share_seconds,
)
from tidegate.elastic.threshold import Threshold

TARGET_S, ERROR = 2.0, 0.1
BLOCK_S = 30.0
MOST = 36
REVERSAL_S = 30.0
"""Two switches of opposite ways that are nearer than this are one too many."""


def policies(query: SimulatedQuery) -> dict[str, Policy]:
    sheds = query.most_share is not None
    return {
        "auto": ByTarget(latency=TARGET_S, error=ERROR if sheds else None, cost=MOST),
        **({"exact": ByTarget(latency=TARGET_S, cost=MOST)} if sheds else {}),
        "model": ByModel(maximum=MOST, latency=TARGET_S),
        "threshold": Threshold(maximum=MOST),
        "flink": FlinkRule(maximum=MOST),
        "databricks": DatabricksRule(maximum=MOST),
    }


def clairvoyant(query: SimulatedQuery, first: int) -> list[SimulatedBatch]:
    """By blocks of 30 seconds the fewest instances that hold the target to the end of the block."""
    state, found = query.start(first), list[SimulatedBatch]()
    while not state.over:
        until_s = (state.now_s // BLOCK_S + 1) * BLOCK_S
        seconds = slice(int(state.now_s), max(int(until_s), int(state.now_s) + 1))
        least = max(int(query.load.work_s[seconds].mean() * 0.8), 1)
        for instances in range(min(least, MOST), MOST + 1):
            after, batches = rolled(state.scaled(instances), until_s)
            if all(batch.end_s - batch.after_s <= TARGET_S for batch in batches):
                break
        state = after
        found += batches
    return found


def rolled(state: SimulatedState, until_s: float) -> tuple[SimulatedState, list[SimulatedBatch]]:
    batches = []
    while not state.over and state.now_s < until_s:
        state, batch = state.step()
        batches.append(batch)
    return state, batches


def judged(query: SimulatedQuery, batches: Sequence[SimulatedBatch]) -> dict[str, Any]:
    late = latencies(batches, len(query.load))
    known = late[np.isfinite(late) & (query.load.tuples > 0)]
    counts = [batch.instances for batch in batches]
    steps = [
        (after.start_s, after.instances - before.instances)
        for before, after in pairwise(batches)
        if before.instances != after.instances
    ]
    shed = [
        (after.start_s, after.share - before.share)
        for before, after in pairwise(batches)
        if before.share != after.share
    ]
    turns = _turns(steps)
    shares = share_seconds(batches)
    most = shares["most"]
    error = query.half_error * float(np.sqrt(most / (1 - most)))
    return {
        "held": round(float((known <= TARGET_S).mean()), 4),
        "worst_s": round(float(known.max()), 3),
        "p99_s": round(float(np.quantile(known, 0.99)), 3),
        "instance_seconds": round(instance_seconds(batches)),
        "switches": len(steps),
        "turns": len(turns),
        "reversals": sum(apart_s < REVERSAL_S for apart_s in turns),
        "share_reversals": sum(apart_s < REVERSAL_S for apart_s in _turns(shed)),
        "most_instances": max(counts),
        "shed_most": round(most, 3),
        "shed_mean": round(shares["mean"], 4),
        "error_most": round(error, 4),
    }


def _turns(changes: Sequence[tuple[float, float]]) -> list[float]:
    """How far apart changes of opposite ways are, one after the other."""
    return [b - a for (a, up), (b, down) in pairwise(changes) if (up > 0) != (down > 0)]


def run(load: NamedLoad) -> dict[str, Any]:
    query = load.query
    first = max(int(np.ceil(query.load.work_s[0] / 0.9)), 1)
    found = {
        name: judged(query, query.run(of, instances=first)) for name, of in policies(query).items()
    }
    found["clairvoyant"] = judged(query, clairvoyant(query, first))
    least = found["clairvoyant"]["instance_seconds"]
    for one in found.values():
        one["times_clairvoyant"] = round(one["instance_seconds"] / least, 3)
    return {"held_out": load.held_out, "controllers": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", help="names of loads, or words of them; all without")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="where real streams are")
    asked = parser.parse_args()
    loads = every_load() + (real_loads(asked.real) if asked.real else [])
    chosen = [one for one in loads if not asked.loads or any(w in one.name for w in asked.loads)]
    with ProcessPoolExecutor(asked.jobs) as pool:
        content: dict[str, Any] = {}
        for load, found in zip(chosen, pool.map(run, chosen), strict=True):
            content[load.name] = found
            for name, one in found["controllers"].items():
                print(f"{load.name:<15}{name:<12}{line(one)}", flush=True)
    if not asked.loads:
        content = {**content, **_kept_real(content)}
        write_report("controller", {"target_s": TARGET_S, "error": ERROR, "loads": content})


def _kept_real(content: dict[str, Any]) -> dict[str, Any]:
    """The results over real streams of an earlier run, where this one had none."""
    path = RESULTS / "controller.json"
    before = json.loads(path.read_text(encoding="utf-8"))["loads"] if path.exists() else {}
    return {name: before[name] for name in REAL if name in before and name not in content}


def line(one: dict[str, Any]) -> str:
    return (
        f"held {one['held']:.2%}  worst {one['worst_s']:6.2f} s {one['times_clairvoyant']:5.2f} x  "
        f"switches {one['switches']:3d}, reversals {one['reversals']:3d}  "
        f"shed {one['shed_mean']:.1%}, error {one['error_most']:.1%}"
    )


def table(report: dict[str, Any]) -> Iterator[str]:
    """Windows that hold the target, and instance seconds as times of those of the clairvoyant."""
    names = ["auto", "exact", "model", "threshold", "flink", "databricks"]
    yield f"| load | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for load, found in report["loads"].items():
        cells = []
        for name in names:
            one = found["controllers"].get(name)
            cells.append("-" if one is None else _cell(one))
        mark = " *" if found["held_out"] else ""
        yield f"| {load}{mark} | {' | '.join(cells)} |"


def _cell(one: dict[str, Any]) -> str:
    return f"{one['held']:.1%}, {one['times_clairvoyant']:.2f} ({one['reversals']})"


if __name__ == "__main__":
    main()
