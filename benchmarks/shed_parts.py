"""What balancing by trimming costs itself, in the time of a window: figure 58 of the dissertation.

    python benchmarks/shed_parts.py                    tasks by class, and rides by route
    python benchmarks/shed_parts.py --rows 200000      a quick look

The queries are those of `shedpart.py`, whose instances take turns in this process. The processor
time of all tasks is divided into

    survey       map tasks count the tuples of each bin of groups, and the spread of their values
    decide       every instance decides from these which groups of a closing window are trimmed
    processing   the rest: reading, keeping and evaluating tuples, state, and rows

Results go to benchmarks/results/shed_parts.json.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from grouped_case import input_of
from measure import DATA, write_report
from shedpart import CASES, Asked, ran

from tidegate.operate.aggregate.balanced import batch as balanced
from tidegate.operate.aggregate.balanced import survey
from tidegate.operate.aggregate.balanced.decide import Surveyed

CHOSEN = ("cluster", "cluster-median", "taxi")


class Timed:
    """The processor seconds of the calls of some functions, while the block lasts."""

    def __init__(self) -> None:
        self.seconds = {"survey": 0.0, "decide": 0.0}

    def of(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds[name] += time.thread_time() - began

        return timed

    @contextmanager
    def calls(self) -> Iterator[None]:
        surveys = dict(survey.SURVEYS)
        begin, trim = Surveyed.__init__, Surveyed.trim
        try:
            for name, call in surveys.items():
                balanced.SURVEYS[name] = self.of("survey", call)
            Surveyed.__init__ = self.of("decide", begin)  # type: ignore[method-assign]
            Surveyed.trim = self.of("decide", trim)  # type: ignore[method-assign]
            yield
        finally:
            balanced.SURVEYS.update(surveys)
            Surveyed.__init__, Surveyed.trim = begin, trim  # type: ignore[method-assign]


def measured(asked: Asked, data: Path) -> dict[str, float]:
    """One run with all its batches."""
    timed = Timed()
    with tempfile.TemporaryDirectory() as work, timed.calls():
        folder = input_of(asked.case, data, "shedpart")
        summary = ran(asked, "balance", folder, Path(work, "out"), "none")
    reports = list(summary.reports)
    counts = [count for report in reports for count in report.instance_counts]
    whole = sum(count["cpu_us"] + count.get("map_cpu_us", 0) for count in counts) / 1e6
    found = {**timed.seconds, "processing": whole - sum(timed.seconds.values())}
    told = next(iter(summary.as_dict()["windows"].values()))
    return {
        "cpu_s": whole,
        "batches": len(reports),
        "skipped": told["figures"]["skipped"]["mean"],
        **{f"{name}_s": seconds for name, seconds in found.items()},
        **{f"{name}_share": seconds / whole for name, seconds in found.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, help="rows of each stream, in place of the usual ones")
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    given = parser.parse_args()
    found = {}
    for name in CHOSEN:
        asked = CASES[name]
        rows = given.rows or asked.case.rows // 2
        few = replace(asked, case=asked.case.of_rows(4_000, 4))
        measured(few, Path(given.data))  # what is compiled with a query
        asked = replace(asked, case=asked.case.of_rows(rows, 10))
        found[name] = measured(asked, Path(given.data))
        shares = (
            f"{k} {found[name][f'{k}_share']:.1%}" for k in ("survey", "decide", "processing")
        )
        print(f"{name}: {', '.join(shares)} of {found[name]['cpu_s']:.2f} s", flush=True)
    write_report("shed_parts", {"cases": found})


if __name__ == "__main__":
    main()
