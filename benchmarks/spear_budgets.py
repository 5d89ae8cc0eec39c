"""SPEAr by the size of windows and of the budget: figures 48, 50 and 51 of the dissertation.

    python benchmarks/spear_budgets.py                    all three, some two minutes
    python benchmarks/spear_budgets.py --rows 200000      a quick look

windows  tasks by class over 15, 30 and 60 minutes that overlap by half, a budget of 4,000 rows: how
         many rows are answered from samples, and CPU seconds beside the exact query.
errors   packets over 45 seconds every 15, a mean-like aggregate, budgets of 250, 500 and 1,000: how
         many windows are answered from samples, and how many are off by more than 10 percent.
volume   what share of the tuples the windows look at, with the budgets of section 6.8.6.

Everything is within 10 percent at a confidence of 95, and runs in this process, without Spark, as
in `spear_groups.py`, which has the query. Results go to benchmarks/results/spear_budgets.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from grouped_case import Case, write_input
from measure import DATA, write_report
from spear_groups import CASES, ERROR, Asked, run

WINDOWS = {"15 minutes": "450 seconds", "30 minutes": "15 minutes", "60 minutes": "30 minutes"}
BUDGETS = (250, 500, 1_000)
_PACKETS = ("packets?rate=1000", "ts", "45 seconds", "15 seconds", None, "size")
PACKETS = Asked(Case("packets", *_PACKETS), (0.0, 1_600.0, 400.0))
VOLUMES = (
    ("packets, mean", PACKETS, 1_000),
    ("packets, median", replace(PACKETS, huber=None), 150),
    ("tasks by class", CASES["jobs"], 4_000),
    ("rides by route", CASES["routes"], 2_000),
)


def input_of(asked: Asked, data: Path) -> Path:
    case = asked.case
    folder = data / f"spear-{case.stream.partition('?')[0]}-{case.value}-{case.rows}"
    write_input(case, folder)
    return folder


def of_rows(asked: Asked, rows: int) -> Asked:
    rows = min(rows, asked.case.rows)
    return replace(asked, case=replace(asked.case, rows=rows, batch_rows=max(rows // 10, 1)))


def mean(figures: dict[str, dict[str, float]], name: str, otherwise: float = 0.0) -> float:
    """A figure of the windows; `otherwise` where the budget is too small to try any sample."""
    return figures[name]["mean"] if name in figures else otherwise


def windows(rows: int, data: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Figure 48, by window."""
    asked = of_rows(CASES["jobs"], rows)
    for window, slide in WINDOWS.items():
        one = replace(asked, case=replace(asked.case, window=window, slide=slide))
        exact = run(one, None, input_of(one, data))
        within = run(one, 4_000, input_of(one, data))
        yield (
            window,
            {
                "answered": mean(within.figures, "rows_from_samples"),
                "looked_at": mean(within.figures, "tuples_looked_at", 1.0),
                "exact_cpu_s": exact.cpu_s,
                "within_cpu_s": within.cpu_s,
                "times": exact.cpu_s / within.cpu_s,
            },
        )


def errors(rows: int, data: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Figure 50, by budget."""
    asked = of_rows(PACKETS, rows)
    exact = run(asked, None, input_of(asked, data)).rows
    for budget in BUDGETS:
        within = run(asked, budget, input_of(asked, data))
        wrong = [abs(within.rows[k] - v) / abs(v) for k, v in exact.items()]
        yield (
            f"{budget}",
            {
                "windows": len(wrong),
                "answered": mean(within.figures, "rows_from_samples"),
                "off": sum(one > ERROR for one in wrong) / len(wrong),
                "largest_error": max(wrong),
            },
        )


def volumes(rows: int, data: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Figure 51, by query."""
    for name, asked, budget in VOLUMES:
        asked = of_rows(asked, rows)
        figures = run(asked, budget, input_of(asked, data)).figures
        looked_at = mean(figures, "tuples_looked_at", 1.0)
        yield name, {"budget": budget, "looked_at": looked_at}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each stream, at most")
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    given = parser.parse_args()
    found: dict[str, Any] = {"rows": given.rows}
    for part in (windows, errors, volumes):
        found[part.__name__] = of = {}
        for name, figures in part(given.rows, Path(given.data)):
            of[name] = figures
            print(part.__name__, name, *(f"{k} {v:.4g}" for k, v in figures.items()), flush=True)
    write_report("spear_budgets", found)


if __name__ == "__main__":
    main()
