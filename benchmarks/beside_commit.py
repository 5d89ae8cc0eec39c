"""CPU time of this tree beside an earlier commit, in interleaved pairs of runs.

    .venv/bin/python benchmarks/beside_commit.py --before REV [--rounds 7] [--run RUN ...]

Each round runs the command line of both trees on the same files, one after the other, and takes
the CPU seconds of the process and of all its children. CPU time of a pair is compared because it
depends little on what else the machine does. A ratio above 1 says that this tree needs less time.
The interval is that of the median of the rounds' ratios (binomial, at least 95 percent with seven
rounds or more). The rows of both trees must be the same bytes.
Results go to benchmarks/results/beside_commit.json.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import write_band, write_events, write_keyed
from measure import DATA, MASTER, trees_beside, write_report

WANTED = 0.97
"""No slower than before: the interval of the ratio must reach this."""

_WINDOWS = """
CREATE STREAM e FROM '{data}' TIME ts;
SELECT key, AVG(value) AS mean, COUNT(*) AS n FROM e [RANGE 60 SECONDS SLIDE {slide} SECONDS]
GROUP BY key;
"""
_EQUAL = """
CREATE STREAM l FROM '{data}/left' TIME ts;
CREATE STREAM r FROM '{data}/right' TIME ts;
SELECT l.key, l.value AS left_value, r.value AS right_value
FROM l [RANGE 60 SECONDS] JOIN r [RANGE 60 SECONDS] ON l.key = r.key;
"""
_BAND = """
CREATE STREAM r FROM '{data}/r.parquet' TIME ts;
CREATE STREAM s FROM '{data}/s.parquet' TIME ts;
SELECT r.x, r.y, s.a, s.b FROM r [RANGE 60 SECONDS] JOIN s [RANGE 60 SECONDS]
ON r.x BETWEEN s.a - 10 AND s.a + 10 AND r.y BETWEEN s.b - 10 AND s.b + 10;
"""


@dataclass(frozen=True)
class Run:
    """One query over files that `write` makes in a folder named after `data`."""

    data: str
    write: Callable[[Path], None]
    query: str
    options: tuple[str, ...] = ()


def _events(rows: int, file_rows: int, per_second: int) -> Callable[[Path], None]:
    return lambda folder: write_events(folder, rows, file_rows, 20_000, per_second)


_MANY, _FEW = "beside-events-4000000", "beside-events-60000"
_ONE_PROCESS = ("--master", "none", "--instances", "2")
RUNS = {
    "sliding": Run(
        _MANY,
        _events(4_000_000, 500_000, 10_000),
        _WINDOWS.replace("{slide}", "10"),
        (*_ONE_PROCESS, "--batch-rows", "500000"),
    ),
    "tumbling": Run(
        _MANY,
        _events(4_000_000, 500_000, 10_000),
        _WINDOWS.replace("{slide}", "60"),
        (*_ONE_PROCESS, "--batch-rows", "500000"),
    ),
    "tiny-batches": Run(
        _FEW,
        _events(60_000, 1_000, 100),
        _WINDOWS.replace("{slide}", "10"),
        (*_ONE_PROCESS, "--batch-rows", "200"),
    ),
    "tiny-batches-spark": Run(
        _FEW,
        _events(60_000, 1_000, 100),
        _WINDOWS.replace("{slide}", "10"),
        ("--master", MASTER, "--instances", "2", "--batch-rows", "500"),
    ),
    "equality": Run(
        "beside-keyed-1000000",
        lambda folder: write_keyed(folder, 1_000_000, 50_000, 50_000),
        _EQUAL,
        (*_ONE_PROCESS, "--batch-rows", "100000"),
    ),
    "equality-unasked": Run(
        "beside-keyed-1000000",
        lambda folder: write_keyed(folder, 1_000_000, 50_000, 50_000),
        _EQUAL,
        _ONE_PROCESS,
    ),
    "band": Run(
        "beside-band-300000",
        lambda folder: write_band(folder, 300_000, 1_000, 10_000),
        _BAND,
        (*_ONE_PROCESS, "--batch-rows", "50000"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, help="a commit to compare with")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--run", nargs="+", choices=[*RUNS], default=[*RUNS])
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    arguments = parser.parse_args()
    with trees_beside(arguments.before) as trees:
        found = {
            name: compared(name, trees, arguments.rounds, Path(arguments.data))
            for name in arguments.run
        }
    write_report("beside_commit", {"before": arguments.before, "wanted": WANTED, "runs": found})


def compared(name: str, trees: dict[str, Path], rounds: int, data: Path) -> dict[str, Any]:
    """CPU seconds of both trees, one run of each in turn, and the ratios of the pairs."""
    run = RUNS[name]
    folder = data / run.data
    run.write(folder)
    outputs = {tree: measured(run, trees[tree], folder)[1] for tree in trees}  # compiles loops
    seconds: dict[str, list[float]] = {tree: [] for tree in trees}
    for number in range(rounds):
        for tree in sorted(trees, reverse=bool(number % 2)):
            seconds[tree].append(measured(run, trees[tree], folder)[0])
        before, now = seconds["before"][-1], seconds["now"][-1]
        print(f"{name} round {number}: {before:.2f} s before, {now:.2f} s now", flush=True)
    ratios = [b / n for b, n in zip(seconds["before"], seconds["now"], strict=True)]
    low, high = interval(ratios)
    ratio = statistics.median(ratios)
    print(f"{name}: {ratio:.3f} times as fast as before ({low:.3f} to {high:.3f})", flush=True)
    return {
        "cpu_seconds": seconds,
        "ratio": ratio,
        "interval": [low, high],
        "no_slower": high >= WANTED,
        "same_output": outputs["before"] == outputs["now"],
    }


def measured(run: Run, tree: Path, data: Path) -> tuple[float, str]:
    """The CPU seconds of one run of a tree, and a digest of what it wrote."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as work:
        query = Path(work) / "query.sql"
        query.write_text(run.query.format(data=data))
        out = Path(work) / "out"
        command = [sys.executable, "-m", "tidegate", "run", str(query), "--out", str(out)]
        command += ["--checkpoint", f"{work}/checkpoint", *run.options]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        environment["PYSPARK_PYTHON"] = sys.executable
        spent = _children_seconds()
        done = subprocess.run(
            command, check=False, env=environment, cwd=work, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
        return _children_seconds() - spent, _digest(out)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _digest(folder: Path) -> str:
    """Of the bytes of all data files, in the order of their names."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("part-*")):
        found.update(path.read_bytes())
    return found.hexdigest()


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The order statistics that hold the median with at least 95 percent, or all of them."""
    ordered, n = sorted(ratios), len(ratios)
    outside, k = 0.0, 0
    while k < n // 2:
        outside += 2 * math.comb(n, k) / 2**n
        if outside > 0.05:
            break
        k += 1
    cut = max(k - 1, 0)
    return ordered[cut], ordered[n - 1 - cut]


if __name__ == "__main__":
    main()
