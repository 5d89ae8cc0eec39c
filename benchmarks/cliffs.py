"""Queries that a user may write and that must not fall off a cliff: each in a bounded time.

    python benchmarks/cliffs.py
    python benchmarks/cliffs.py --case "join, IN" --case "join, OR of equalities"

Every case is a command of its own on one core, without Spark. What counts is its CPU time from the
start of Python to the end, the least of the rounds (the first may have to compile), beside the
reference case of the same run: a case fails where that ratio is three times its budget. The rows
that come out are counted by other means. Ends with 1 where a case fails. Results go to
benchmarks/results/cliffs.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cliff_cases import CASES, REFERENCE, write_streams
from measure import check_count, rows_written, write_report

TOLERANCE = 3
PATIENCE_SECONDS = 60
"""A case is ended when it takes so much more than ten times its budget."""

PROGRAM = "from tidegate.cli.main import main; main()"

Figures = dict[str, Any]


def one_run(name: str) -> Figures | None:
    """What a run takes; None where it took far too long."""
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="tidegate-cliffs-") as folder:
        work = Path(folder)
        streams = case.write(work)
        named = write_streams(streams, work)
        (work / "query.sql").write_text(case.script)
        places = ("--out", work / "out", "--checkpoint", work / "checkpoint")
        command = ["run", work / "query.sql", *named, "--master", "none", *places, *case.options]
        patience = int(PATIENCE_SECONDS + 10 * case.seconds)
        figures = on_one_core([str(c) for c in command], work / "log", patience)
        if figures is not None:
            check_count(name, case.rows(streams), rows_written(work / "out"))
        return figures


def on_one_core(arguments: list[str], log: Path, patience: int) -> Figures | None:
    """Run Tidegate's command line in a new process: its CPU time and its peak of memory."""
    process = os.fork()
    if process == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        resource.setrlimit(resource.RLIMIT_CPU, (patience, patience + 5))
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, *arguments])
    _, status, used = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    if code:
        raise SystemExit(f"{' '.join(arguments)} ended with {code}:\n{log.read_text()[-4000:]}")
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}


def verdict(name: str, runs: list[Figures | None], reference: float) -> dict[str, Any]:
    """What a case took beside the reference, and whether that is within its budget."""
    case = CASES[name]
    allowed = case.seconds / CASES[REFERENCE].seconds
    found: dict[str, Any] = {"case": name, "budget_ratio": allowed, "runs": runs}
    done = [run for run in runs if run is not None]
    if len(done) < len(runs):
        return found | {"passed": False}
    cpu = min(run["cpu_seconds"] for run in done)
    peak = max(run["peak_mb"] for run in done)
    lean = case.memory_mb is None or peak <= case.memory_mb
    figures = {"cpu_seconds": cpu, "ratio": cpu / reference, "peak_mb": peak}
    return found | figures | {"passed": lean and cpu / reference <= TOLERANCE * allowed}


def line_of(found: dict[str, Any]) -> str:
    budget = f"budget {found['budget_ratio']:.2f}x the reference"
    if "ratio" not in found:
        return f"{found['case']}: not done in time, {budget}: FAILED"
    figures = f"{found['cpu_seconds']:.2f} s, {found['ratio']:.2f}x, {found['peak_mb']:.0f} MB"
    return f"{found['case']}: {figures}, {budget}{'' if found['passed'] else ': FAILED'}"


def table(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """CPU seconds of each query, and how often those of the reference, in Markdown."""
    yield "| query | CPU s | of the reference | allowed |"
    yield "|---|---|---|---|"
    for of in cases:
        ratio = f"{of['ratio']:.1f}" if "ratio" in of else "not done in time"
        seconds = f"{of['cpu_seconds']:.1f}" if "cpu_seconds" in of else "-"
        yield f"| {of['case']} | {seconds} | {ratio} | {of['budget_ratio'] * TOLERANCE:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only these")
    arguments = parser.parse_args()
    names = [REFERENCE, *(n for n in arguments.case or CASES if n != REFERENCE)]
    runs: dict[str, list[Figures | None]] = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            runs[name].append(one_run(name))
    reference = min(run["cpu_seconds"] for run in runs[REFERENCE] if run)
    cases = [verdict(name, runs[name], reference) for name in names]
    print("\n".join(map(line_of, cases)))
    if arguments.case is None:
        write_report("cliffs", {"tolerance": TOLERANCE, "cases": cases})
    if not all(found["passed"] for found in cases):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
