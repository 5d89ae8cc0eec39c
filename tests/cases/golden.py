"""Writes the goldens of cases anew from their oracles: `python -m tests.cases.golden [CASE...]`.

A golden is never taken from the engine's own output: cases without an oracle.sql have one that was
worked out by hand.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from tests.cases.case import CASES, answer
from tests.cases.document import DOCUMENTS


def write_golden(oracle: Path, expected: Path) -> None:
    golden = answer(oracle)
    with expected.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([golden.columns, *golden.lines])


if __name__ == "__main__":
    asked = sys.argv[1:]
    for case in CASES:
        if case.oracle is not None and (case.name in asked or not asked):
            write_golden(case.oracle, case.folder / "expected.csv")
    for document in DOCUMENTS:
        if document.name in asked or not asked:
            for name in document.names:
                write_golden(document.oracle(name), document.expected(name))
