"""Writes the goldens of cases anew from their oracles: `python -m tests.cases.golden [CASE...]`.

A golden is never taken from the engine's own output: cases without an oracle.sql have one that was
worked out by hand.
"""

from __future__ import annotations

import csv
import sys

from tests.cases.case import CASES, Case, oracle_golden


def write_golden(case: Case) -> None:
    golden = oracle_golden(case)
    with (case.folder / "expected.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([golden.columns, *golden.lines])


if __name__ == "__main__":
    for case in CASES:
        if case.oracle is not None and (case.name in sys.argv[1:] or not sys.argv[1:]):
            write_golden(case)
