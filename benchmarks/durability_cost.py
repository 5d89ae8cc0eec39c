"""What durability costs without Spark: text counted by windows in large batches and in small ones.

    .venv/bin/python benchmarks/durability_cost.py --before REV [--rounds 5]

This tree beside an earlier commit, in interleaved runs, with a checkpoint and results on disk. Of
large batches rows a second are compared, of small ones the milliseconds that one takes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

from measure import CORES, DATA, give, in_child, trees_beside, write_report

ROWS = 2_000_000
CASES = {"large batches": 500_000, "small batches": 1_000}
SMALL_ROWS = 200_000

QUERY = """
CREATE STREAM s FROM '{path}' TIME ts;
SELECT name, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 60 SECONDS] GROUP BY name;
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="a commit to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        give(run(arguments.child, Path(arguments.data), Path(arguments.work)))
        return
    if arguments.before is None:
        parser.error("--before is needed")
    with trees_beside(arguments.before) as trees:
        found = {case: compared(case, trees, arguments) for case in CASES}
    write_report("durability_cost", {"before": arguments.before, "cases": found})


def compared(case: str, trees: dict[str, Path], arguments: argparse.Namespace) -> dict[str, Any]:
    """Rows a second, and milliseconds of a batch, of both trees, one round of each in turn."""
    runs: dict[str, list[dict[str, float]]] = {tree: [] for tree in trees}
    for number in range(arguments.rounds):
        for tree in sorted(trees, reverse=bool(number % 2)):
            os.environ["PYTHONPATH"] = str(trees[tree] / "src")
            runs[tree].append(in_child(__file__, "--child", case, "--data", arguments.data))
            print(f"{case} round {number} {tree}: {runs[tree][-1]}", flush=True)
    medians = {
        measure: {tree: statistics.median(r[measure] for r in of) for tree, of in runs.items()}
        for measure in ("rows_per_second", "batch_ms", "cpu_ms_per_batch")
    }
    speed, batch = medians["rows_per_second"], medians["batch_ms"]
    print(
        f"{case}: {speed['now'] / speed['before']:.3f} times as fast as before, "
        f"a batch {batch['now'] - batch['before']:+.2f} ms",
        flush=True,
    )
    return {"runs": runs, "medians": medians}


def run(case: str, data: Path, work: Path) -> dict[str, float]:
    """One run in this process, with all that its start costs."""
    from tidegate.cli.main import invoke

    rows = ROWS if CASES[case] > SMALL_ROWS else SMALL_ROWS
    query = work / "query.sql"
    query.write_text(QUERY.format(path=written(data, rows)), encoding="utf-8")
    summary = work / "summary.json"
    words = ["run", query, "--master", "none", "--out", work / "out", "--checkpoint", work / "ckpt"]
    words += ["--batch-rows", CASES[case], "--summary", summary, "--instances", CORES]
    cpu, started = time.process_time(), time.perf_counter()
    if invoke([str(w) for w in words]):
        raise SystemExit("the run has failed")
    seconds, batches = time.perf_counter() - started, rows / CASES[case]
    return {
        "rows_per_second": rows / seconds,
        "batch_ms": seconds * 1e3 / batches,
        "cpu_ms_per_batch": (time.process_time() - cpu) * 1e3 / batches,
    }


def written(data: Path, rows: int) -> Path:
    """A CSV of so many events, ten a second, of a hundred names."""
    path = data / f"durable-{rows}.csv"
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".part")
        with aside.open("w", encoding="utf-8") as file:
            file.write("ts,v,name\n")
            for number in range(rows):
                second, tenth = divmod(number, 10)
                minutes, second = divmod(second, 60)
                hours, minutes = divmod(minutes, 60)
                day, hours = divmod(hours, 24)
                file.write(
                    f"2024-01-{1 + day:02d} {hours:02d}:{minutes:02d}:{second:02d}.{tenth}00000,"
                    f"{number},name {number % 100}\n"
                )
        aside.rename(path)
    return path


if __name__ == "__main__":
    main()
