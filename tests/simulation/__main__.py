"""Simulated courses by their seeds: `python -m tests.simulation SEED`, or many of them."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable

from tests.simulation.course import Report, run
from tests.simulation.scenario import scenario
from tests.simulation.shrink import shrunk


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int, help="one course, told at length")
    parser.add_argument("--seeds", help="many courses, A:B, from A on and before B")
    parser.add_argument("--faults", type=int, default=6, help="faults in a course")
    parser.add_argument("--keep-going", action="store_true", help="also after one that is wrong")
    asked = parser.parse_args(arguments)
    if asked.seeds is None:
        report = run(scenario(asked.seed or 0, asked.faults))
        print(*report.story, sep="\n")
        return tell(report)
    first, _, last = asked.seeds.partition(":")
    return many(range(int(first), int(last)), asked.faults, asked.keep_going)


def many(seeds: Iterable[int], faults: int, keep_going: bool) -> int:
    """Run courses; how many were wrong."""
    kinds: Counter[str] = Counter()
    wrong = steps = courses = 0
    began = time.perf_counter()
    for seed in seeds:
        report = run(scenario(seed, faults))
        kinds.update(type(fault).__name__ for fault in report.happened)
        courses, steps = courses + 1, steps + report.steps
        if report.wrong is not None:
            wrong += tell(report)
            if not keep_going:
                break
    spent = time.perf_counter() - began
    told = ", ".join(f"{name} {count}" for name, count in sorted(kinds.items()))
    print(
        f"{courses} courses, {sum(kinds.values())} faults ({told}), {steps} steps, "
        f"{spent:.1f} s, {wrong} wrong"
    )
    return wrong


def tell(report: Report) -> int:
    """Print what went wrong and the fewest faults that it takes; 1, or 0 where all is well."""
    if report.wrong is None:
        return 0
    least = shrunk(report)
    print(f"seed {report.scenario.seed}: {least.wrong}")
    print(*(f"    {line}" for line in least.story), sep="\n")
    print("  with", [start.fault for start in least.scenario.starts])
    return 1


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
