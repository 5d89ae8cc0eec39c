"""Run the programs of docs/papers/, one after the other, and write pages and tables anew.

    python benchmarks/paper_runs.py                       those that two cores can do
    python benchmarks/paper_runs.py --cores 16            those that need more, up to 16
    python benchmarks/paper_runs.py --only stretch-5      those of some figures, on any cores
    python benchmarks/paper_runs.py --list                what would run, and how long it takes
    python benchmarks/paper_runs.py --lanes 8 --minutes 9     those of two cores on 16, for so long
    python benchmarks/paper_runs.py --cores 16 --minutes 9    those of 16, most wanted first
    python benchmarks/paper_runs.py --quick               all on tiny input; no result is kept
    python benchmarks/paper_take.py FILE.tar.gz           take the results of another machine

Interrupt it at any time and start it again: before a program starts, a marker is written, and one
whose results are all newer than its marker is skipped. `--again` forgets the markers. A program
that fails does not stop the others.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import paper_value
from measure import HERE, RESULTS
from paper_lanes import Lanes, lanes_of
from paper_list import Program, programs, programs_by_figure, rows_of

ROOT = HERE.parent
MARKERS = ROOT / "build" / "papers"


def chosen(cores: int, only: Sequence[str]) -> list[Program]:
    """The programs of these figures, or those for so many cores, in the order of the list."""
    if only:
        found = programs_by_figure()
        wanted = set[str]().union(
            *(of for figure, of in found.items() if any(_is(figure, one) for one in only))
        )
        if not wanted:
            names = ", ".join(found)
            raise SystemExit(f"--only: must name figures with a program; got {only}: {names}")
        return [program for program in programs().values() if program.name in wanted]
    least = 1 if cores <= 2 else 3
    return [program for program in programs().values() if least <= program.cores <= cores]


def quick_ones(only: Sequence[str]) -> list[Program]:
    """Those of these figures, or all, whatever cores they need."""
    return chosen(2, only) if only else list(programs().values())


def _is(id_: str, asked: str) -> bool:
    """`stretch-5` is all of stretch-5a, stretch-5b, ...; a document's name is all of it."""
    rest = id_.removeprefix(asked)
    return rest != id_ and (not rest or rest[0] == "-" or rest[0].isalpha())


def is_done(program: Program, markers: Path, results: Path) -> bool:
    """Whether all results of a program are newer than the last time it was started."""
    marker = markers / program.name
    files = [results / f"{name}.json" for name in program.results]
    if not marker.exists() or not all(file.exists() for file in files):
        return False
    return min(file.stat().st_mtime_ns for file in files) > marker.stat().st_mtime_ns


def run_all(
    wanted: Iterable[Program], markers: Path, results: Path, minutes: float = math.inf
) -> list[str]:
    """Run what is not done and the time suffices for; the names of those that failed."""
    until = time.monotonic() + 60 * minutes
    left = [program for program in wanted if not is_done(program, markers, results)]
    markers.mkdir(parents=True, exist_ok=True)
    failed = []
    for number, program in enumerate(left, start=1):
        if time.monotonic() + 60 * program.minutes > until:
            print(f"{program.name}: needs about {program.minutes:g} minutes, left for later")
            continue
        more = sum(p.minutes for p in left[number - 1 :])
        print(
            f"[{number}/{len(left)}] about {more:.0f} minutes left: {program.command}", flush=True
        )
        (markers / program.name).touch()
        began = time.perf_counter()
        done = subprocess.run([sys.executable, *program.arguments], cwd=ROOT, check=False)
        took = (time.perf_counter() - began) / 60
        if done.returncode or not is_done(program, markers, results):
            failed.append(program.name)
        print(f"{program.name}: {took:.1f} minutes, ended with {done.returncode}", flush=True)
    return failed


def run_quick(program: Program) -> str:
    """Run a program on tiny input and read from its results all that the pages read.

    What went wrong is returned, and nothing where all is well.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-quick-") as folder:
        done = subprocess.run(
            [sys.executable, *program.arguments, *shlex.split(program.quick)],
            cwd=ROOT,
            env={**os.environ, "TIDEGATE_BENCH_RESULTS": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        wrong = done.stderr[-2000:] if done.returncode else _unread(program, Path(folder))
    print(f"{program.name}: {wrong or 'well'}", flush=True)
    return wrong


def _unread(program: Program, folder: Path) -> str:
    """What a figure of this program wants of its results and does not find."""
    found = {name: paper_value.report(name, folder) for name in program.results}
    try:
        for ours, paths, result in rows_of(program.name):
            paper_value.told(ours, result, found)
            for path in paths:
                paper_value.read(path, result, found)
    except (KeyError, ValueError) as error:
        return f"{error}"
    return ""


def write_pages() -> None:
    """Tables and pages anew, from the results that are there now."""
    for program in ("tables.py", "paper_pages.py"):
        subprocess.run([sys.executable, f"benchmarks/{program}"], cwd=ROOT, check=True)


def in_lanes(wanted: Iterable[Program], lanes: int, minutes: float) -> list[str]:
    """Run what is not done and the time suffices for, several at once."""
    left = [program for program in wanted if not is_done(program, MARKERS, RESULTS)]
    MARKERS.mkdir(parents=True, exist_ok=True)
    cores = lanes_of(sorted(os.sched_getaffinity(0)), lanes)

    def begin(program: Program) -> None:
        (MARKERS / program.name).touch()

    return Lanes(cores, minutes, MARKERS).run(left, begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, default=2, help="of this machine (default: 2)")
    parser.add_argument("--only", nargs="*", default=[], metavar="FIGURE", help="as stretch-5")
    parser.add_argument("--real", metavar="FOLDER", help="where real streams are: run those too")
    parser.add_argument("--again", action="store_true", help="run also what is done")
    parser.add_argument("--lanes", type=int, default=0, help="programs at once, on two cores each")
    parser.add_argument("--minutes", type=float, default=1e4, help="at most, by estimate")
    parser.add_argument("--quick", action="store_true", help="tiny input, results to nowhere")
    parser.add_argument("--list", action="store_true", help="run nothing")
    asked = parser.parse_args()
    asked_for = quick_ones(asked.only) if asked.quick else chosen(asked.cores, asked.only)
    wanted = [p for one in asked_for if (p := one.on(asked.real))]
    for one in asked_for:
        if one.on(asked.real) is None:
            print(f"{one.name}: needs --real FOLDER, left out")
    for program in wanted:
        if asked.again and not asked.list:
            (MARKERS / program.name).unlink(missing_ok=True)
        if asked.list:
            done = "done, " if is_done(program, MARKERS, RESULTS) else ""
            print(f"{program.name}: {done}about {program.minutes:g} minutes: {program.command}")
    if asked.list:
        return
    if asked.quick:
        failed = [one.name for one in wanted if run_quick(one)]
    elif asked.lanes:
        failed = in_lanes(wanted, asked.lanes, asked.minutes)
    else:
        failed = run_all(wanted, MARKERS, RESULTS, asked.minutes)
        write_pages()
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
