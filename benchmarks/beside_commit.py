"""Other benchmarks on this tree and on an earlier commit, in interleaved runs.

    .venv/bin/python benchmarks/beside_commit.py --before REV [--rounds 3] [--run RUN ...]

Each run is one round of a benchmark of that tree, with its own source before the installed one.
What is compared are rows a second.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import DATA, trees_beside, write_report

RUNS = {
    "window-sliding": ("window_aggregate", "sliding", ("--engines", "tidegate")),
    "window-tumbling": ("window_aggregate", "tumbling", ("--engines", "tidegate")),
    "window-median": ("window_aggregate", "median", ("--engines", "tidegate")),
    "window-few-keys": ("window_aggregate", "few-keys", ("--engines", "tidegate")),
    "window-many-keys": ("window_aggregate", "many-keys", ("--engines", "tidegate")),
    "window-small-batches": ("window_aggregate", "small-batches", ("--engines", "tidegate")),
    "window-tiny-batches": ("window_aggregate", "tiny-batches", ("--engines", "tidegate")),
    "join-band-small": ("join_band", "small", ()),
    "join-scan-sparse": ("join_scan", "sparse", ()),
}
SPEED = "rows_per_second"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="a commit to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run", nargs="+", choices=[*RUNS], default=[*RUNS])
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    arguments = parser.parse_args()
    with trees_beside(arguments.before) as trees:
        found = {
            name: compared(name, trees, arguments.rounds, arguments.data) for name in arguments.run
        }
    write_report("beside_commit", {"before": arguments.before, "wanted": 0.95, "runs": found})


def compared(name: str, trees: dict[str, Path], rounds: int, data: str) -> dict[str, Any]:
    """Speeds of both trees, one round of each in turn, and the ratio of their medians."""
    speeds: dict[str, list[float]] = {tree: [] for tree in trees}
    for number in range(rounds):
        for tree in sorted(trees, reverse=bool(number % 2)):
            speeds[tree].append(measured(name, trees[tree], data))
            print(f"{name} round {number} {tree}: {speeds[tree][-1]:,.0f}", flush=True)
    medians = {tree: statistics.median(found) for tree, found in speeds.items()}
    ratio = medians["now"] / medians["before"]
    print(f"{name}: {ratio:.3f} times as fast as before", flush=True)
    return {"speeds": speeds, "medians": medians, "ratio": ratio}


def measured(name: str, tree: Path, data: str) -> float:
    """One round of a benchmark of a tree."""
    program, case, more = RUNS[name]
    path = tree / "benchmarks" / f"{program}.py"
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    kept = {p: p.read_bytes() for p in (tree / "benchmarks/results").glob(f"{program}-*.json")}
    command = [sys.executable, str(path), "--case", case, "--rounds", "1", "--data", data, *more]
    try:
        subprocess.run(command, check=True, env=environment, cwd=tree, stdout=subprocess.DEVNULL)
        result = json.loads((tree / "benchmarks/results" / f"{program}-{case}.json").read_text())
    finally:
        for report, content in kept.items():
            report.write_bytes(content)
    return statistics.median(numbers(result["cases"]))


def numbers(found: Any) -> list[float]:
    """The speeds that a report has, wherever they are."""
    if isinstance(found, list):
        return [n for one in found for n in numbers(one)]
    if not isinstance(found, dict):
        return []
    if isinstance(found.get(SPEED), int | float):
        return [float(found[SPEED])]
    return [n for one in found.values() for n in numbers(one)]


if __name__ == "__main__":
    main()
