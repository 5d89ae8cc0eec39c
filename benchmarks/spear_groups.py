"""Grouped answers within an error and a budget (SPEAr), beside exact ones and a CountMin sketch.

    python benchmarks/spear_groups.py                            all cases, three rounds
    python benchmarks/spear_groups.py jobs --rounds 1 --rows 200000

Table 8 of the dissertation: rides by route over 30/15 minutes, tasks by scheduling class over 60/30
minutes; an error of 10 percent at a confidence of 95. The aggregate is one of a user's own
(`huber.py`), or with `-median` the median. Ways are the exact query, and `WITH ERROR` with budgets
that do and do not suffice: with many routes every window has more groups than rows in the budget,
and falls back at once. Of each: CPU seconds in one process, the rows answered from samples, the
most rows that were sampled and spilled for a window, and the share of rows that are off. `countmin`
is the mean of each group from two sketches, of sums and of counts, that take as much memory as the
largest budget; nothing bounds its error. Nothing is written unless --write is given.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.dataset as ds
from grouped_case import Case, write_input
from huber import HuberLocation
from measure import DATA, write_report

import tidegate as tg
from tidegate.calendar.duration import duration_us

ERROR, CONFIDENCE = 0.1, 0.95
BUDGETS = (1_000, 10_000)
DEPTH = 4
"""The rows of a CountMin sketch."""


@dataclass(frozen=True)
class Asked:
    """A stream with its windows and groups, and the aggregate: the range of Huber's, or None."""

    case: Case
    huber: tuple[float, float, float] | None

    @property
    def call(self) -> Any:
        value = self.case.value
        return tg.median(value) if self.huber is None else tg.aggregate(_mean_like(self), value)


class _MeanLike(HuberLocation):
    mean_like = True


def _mean_like(asked: Asked) -> _MeanLike:
    assert asked.huber is not None
    return _MeanLike(*asked.huber)


_TASKS = ("tasks?rate=90&keys=5000", "ts", "60 minutes", "30 minutes", "scheduling_class", "cpu")
_RIDES = ("taxi?rate=11", "dropoff_time", "30 minutes", "15 minutes", "route", "fare")
_JOBS = Case("tasks by class", *_TASKS, rows=2_000_000, batch_rows=200_000)
_ROUTES = Case("rides by route", *_RIDES, rows=400_000, batch_rows=40_000)
CASES = {
    "jobs": Asked(_JOBS, (0.0, 1.0, 0.2)),
    "jobs-median": Asked(_JOBS, None),
    "routes": Asked(_ROUTES, (0.0, 100.0, 10.0)),
    "routes-median": Asked(_ROUTES, None),
}


@dataclass(frozen=True)
class Ran:
    """The rows of a query by window and group, its CPU seconds, and the figures of its windows."""

    rows: dict[tuple[Any, Any], float]
    cpu_s: float
    figures: dict[str, dict[str, float]]


def run(asked: Asked, budget: int | None, data: Path) -> Ran:
    """One query to its end, in this process."""
    case = asked.case
    stream = tg.Session(master="none").stream(str(data), time=case.time, name="s")
    query: Any = stream.window(case.window, slide=case.slide)
    query = (query if case.key is None else query.group_by(case.key)).agg(a=asked.call)
    if budget is not None:
        query = query.within(error=ERROR, confidence=CONFIDENCE, budget=budget, metric="mean")
    with tempfile.TemporaryDirectory() as work:
        before = time.process_time()
        running = query.start(
            sink=tg.sink.files(f"{work}/out"), checkpoint=f"{work}/at", batch_rows=case.batch_rows
        )
        summary = running.wait().as_dict()
        cpu_s = time.process_time() - before
        table = ds.dataset(f"{work}/out", format="parquet").to_table().to_pylist()
    windows = summary["windows"].values()
    figures = {name: of for window in windows for name, of in window["figures"].items()}
    rows = {(row["window_end"], row.get(case.key)): row["a"] for row in table}
    return Ran(rows, cpu_s, figures)


def off(found: dict[Any, float], exact: dict[Any, float]) -> float:
    """The share of rows whose relative error (2.2) is larger than was allowed."""
    wrong = [abs(found[k] - v) > ERROR * max(abs(found[k]), abs(v)) for k, v in exact.items()]
    return sum(wrong) / max(len(wrong), 1)


def countmin(asked: Asked, data: Path, cells: int) -> dict[str, float]:
    """Means of groups by sketches of so many cells in all, over windows as long as the slide."""
    case = asked.case
    table = ds.dataset(data, format="parquet", exclude_invalid_files=True).to_table()
    moment = table.column(case.time).cast("int64").to_numpy()
    _, window = np.unique(moment // duration_us(case.slide), return_inverse=True)
    _, key = np.unique(table.column(case.key).to_pandas().astype(str), return_inverse=True)
    value = table.column(case.value).to_numpy().astype(np.float64)
    width = max(cells // (2 * DEPTH), 1)
    hashes = np.random.default_rng(5).integers(0, width, (DEPTH, int(key.max()) + 1))
    before, wrong, rows = time.process_time(), 0, 0
    for one in range(int(window.max()) + 1):
        inside = window == one
        keys, values = key[inside], value[inside]
        groups = np.unique(keys)
        sums, counts = np.full(len(groups), np.inf), np.full(len(groups), np.inf)
        for places in hashes:
            total = np.bincount(places[keys], values, width)[places[groups]]
            count = np.bincount(places[keys], minlength=width)[places[groups]]
            sums, counts = np.minimum(sums, total), np.minimum(counts, count)
        estimate = sums / counts
        truth = np.bincount(keys, values)[groups] / np.bincount(keys)[groups]
        wrong += int((np.abs(estimate - truth) > ERROR * np.maximum(estimate, truth)).sum())
        rows += len(groups)
    return {"cpu_s": time.process_time() - before, "off": wrong / max(rows, 1)}


def compare(asked: Asked, rounds: int, data: Path) -> Iterator[dict[str, Any]]:
    """What each way takes, and how it answers."""
    write_input(asked.case, data)
    exact = [run(asked, None, data) for _ in range(rounds)]
    yield {"way": "exact", "cpu_s": median(one.cpu_s for one in exact), "off": 0.0}
    for budget in BUDGETS:
        ran = [run(asked, budget, data) for _ in range(rounds)]
        figures, rows = ran[0].figures, ran[0].rows
        told = {
            name: figures[name]["max" if name.endswith("_rows") else "mean"]
            for name in ("rows_from_samples", "tuples_looked_at", "sample_rows", "spilled_rows")
            if name in figures
        }
        wrong = {} if asked.huber is None else {"off": off(rows, exact[0].rows)}
        yield {"way": f"budget {budget}", "cpu_s": median(r.cpu_s for r in ran), **told, **wrong}
    # A row of a sample is a priority and a value; a cell is one number.
    yield {"way": "countmin", **countmin(asked, data, 2 * max(BUDGETS))}


TITLES = {
    "jobs": "tasks, own aggregate",
    "jobs-median": "tasks, median",
    "routes": "rides, own aggregate",
    "routes-median": "rides, median",
}


def table(cases: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """CPU seconds of each way; of those with a budget also the share of rows from samples."""
    ways = [f"budget {budget}" for budget in BUDGETS]
    titles = ["exact", *(f"budget of {budget:,} rows" for budget in BUDGETS), "CountMin"]
    yield f"| query | {' | '.join(titles)} |"
    yield "|---" * (len(titles) + 1) + "|"
    for name, rows in cases.items():
        found = {row["way"]: row for row in rows}
        budgets = [
            f"{found[way]['cpu_s']:.2f} s, {found[way]['rows_from_samples']:.0%}" for way in ways
        ]
        sketch = found["countmin"]
        cells = [
            TITLES[name],
            f"{found['exact']['cpu_s']:.2f} s",
            *budgets,
            f"{sketch['cpu_s']:.2f} s, {sketch['off']:.0%} off",
        ]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all unless given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="of each stream")
    parser.add_argument("--data", default=str(DATA), help="where input is written, once")
    parser.add_argument("--write", action="store_true", help="results/spear_groups.json")
    given = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    for name in given.cases or CASES:
        asked = CASES[name]
        if given.rows:
            case = replace(asked.case, rows=given.rows, batch_rows=max(given.rows // 10, 1))
            asked = replace(asked, case=case)
        data = Path(given.data) / f"spear-{name.split('-')[0]}-{asked.case.rows}"
        found[name] = list(compare(asked, given.rounds, data))
        for way in found[name]:
            print(name, *(f"{k} {v:.4g}" if k != "way" else v for k, v in way.items()))
    if given.write:
        write_report("spear_groups", {"cases": found})


if __name__ == "__main__":
    main()
