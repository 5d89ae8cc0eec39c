"""Simulated courses by their seeds: one, told at length, or many."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.fault_count import add
from tests.simulation.course import Report, run
from tests.simulation.fault import KINDS
from tests.simulation.scenario import scenario
from tests.simulation.shrink import told

NAMES = tuple(dict.fromkeys(kind.__name__ for kind in KINDS))

PART = 40
"""So many courses are counted at a time: what ends a campaign loses no more."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int, default=0, help="one course")
    parser.add_argument("--seeds", metavar="A:B", help="many courses, from A on and before B")
    parser.add_argument("--faults", type=int, default=5, help="faults in a course (5)")
    parser.add_argument("--kinds", nargs="+", choices=NAMES, default=NAMES, help="only of these")
    parser.add_argument("--jobs", type=int, default=1, help="processes to run them in (1)")
    parser.add_argument("--keep-going", action="store_true", help="also after one that is wrong")
    parser.add_argument("--count", type=Path, metavar="FILE", help="add what happened to it")
    asked = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    if asked.seeds is None:
        report = course(asked.faults, asked.kinds, asked.seed)
        print(*report.story, sep="\n")
        print(told(report) if report.wrong is not None else "all is as it must be")
        return int(report.wrong is not None)
    first, _, last = asked.seeds.partition(":")
    one, seeds = partial(course, asked.faults, asked.kinds), range(int(first), int(last))

    def count(done: Done) -> None:
        if asked.count is not None:
            named = [f"{seed}, --faults {asked.faults}" for seed in done.wrong]
            add(asked.count, "simulation", done.courses, done.faults, Counter(), named)

    return in_parts(one, seeds, jobs=asked.jobs, keep_going=asked.keep_going, count=count)


def course(faults: int, kinds: Sequence[str], seed: int) -> Report:
    return run(scenario(seed, faults, [kind for kind in KINDS if kind.__name__ in kinds]))


@dataclass
class Done:
    """What many courses came to; `wrong` has the seeds of those that were."""

    courses: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def note(self, report: Report) -> None:
        self.faults.update(type(fault).__name__ for fault in report.happened)
        self.asked.update(report.asked)
        self.courses, self.steps = self.courses + 1, self.steps + report.steps
        if report.wrong is not None:
            self.wrong.append(f"seed {report.scenario.seed}")
            print(told(report), flush=True)


def in_parts(
    one: Callable[[int], Report],
    seeds: range,
    *,
    jobs: int,
    keep_going: bool,
    count: Callable[[Done], None],
    length: int = PART,
) -> int:
    """Run courses and count them part by part; how many were wrong."""
    wrong = 0
    for first in range(0, len(seeds), length):
        done = many(one, seeds[first : first + length], jobs, keep_going)
        count(done)
        wrong += len(done.wrong)
        if wrong and not keep_going:
            break
    return wrong


def many(one: Callable[[int], Report], seeds: range, jobs: int, keep_going: bool) -> Done:
    """Run courses, up to the first that is wrong or to the last."""
    done = Done()
    began = time.perf_counter()
    with ProcessPoolExecutor(jobs) as pool:
        for report in pool.map(one, seeds, chunksize=4):
            done.note(report)
            if done.wrong and not keep_going:
                pool.shutdown(cancel_futures=True)
                break
    spent = time.perf_counter() - began
    listed = ", ".join(f"{name} {count}" for name, count in sorted(done.faults.items()))
    changes = ", ".join(f"{name} {count}" for name, count in sorted(done.asked.items()))
    print(
        f"{done.courses} courses, {done.faults.total()} faults ({listed}), {done.asked.total()} "
        f"requests ({changes}), {done.steps} steps, {spent:.1f} s, {len(done.wrong)} wrong"
    )
    return done


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
