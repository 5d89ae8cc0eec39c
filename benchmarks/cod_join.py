"""Joins by equality that shed, beside the exact join, on the same streams in one process.

    python benchmarks/cod_join.py                      all cases, three rounds
    python benchmarks/cod_join.py cluster --rounds 1   a quick look
    python benchmarks/cod_join.py --rows 20000

Two streams of one generator, of rides the same twice, are joined by key, and the pairs counted and
averaged by key over windows: exactly, and at 90 and 98 percent shed uniformly and by concept; where
keys have very many tuples, at 75 percent within an error of 20 percent at 90. Errors are those of
section 5.7 of the dissertation: the mean over the groups of a window, 1 for a group that is
missing, in the mean over the windows. Time is that of a whole run in this process, one instance,
without Spark; in each round the ways take turns. Results go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measure import common_arguments, middle, write_report

WAYS = {
    "exact": "",
    "uniform 90": "WITH SHED 90 PERCENT BY UNIFORM",
    "concept 90": "WITH SHED 90 PERCENT BY CONCEPT",
    "uniform 98": "WITH SHED 98 PERCENT BY UNIFORM",
    "concept 98": "WITH SHED 98 PERCENT BY CONCEPT",
    "bounded": "WITH SHED 75 PERCENT WITH ERROR 20 PERCENT CONFIDENCE 90 PERCENT",
}
SHED = tuple(way for way in WAYS if way != "bounded")


@dataclass(frozen=True)
class Case:
    """A generator, its time and key, what is averaged, and the windows of join and aggregate.

    `partner` is what the key of the left side is compared with.
    """

    stream: str
    time: str
    key: str
    value: str
    reach: str
    window: str
    rows: int
    ways: tuple[str, ...] = SHED
    seeds: tuple[int, int] = (5, 6)
    partner: str = "r.{key}"


TASKS, RIDES = ("ts", "job_id", "cpu"), ("dropoff_time", "route", "fare")

CASES = {
    "cluster": Case("tasks?rate=90&keys=500", *TASKS, "1 MINUTE", "2 MINUTES", 30_000),
    "taxi": Case("taxi?rate=11", *RIDES, "5 MINUTES", "15 MINUTES", 30_000, seeds=(5, 5)),
    "apart": Case(
        "taxi?rate=11",
        *RIDES,
        "5 MINUTES",
        "15 MINUTES",
        30_000,
        ("exact", "concept 90", "concept 98"),
        partner="concat(r.{key}, ' back')",
    ),
    "heavy": Case(
        "tasks?rate=900&keys=2", *TASKS, "2 SECONDS", "2 SECONDS", 6_000, ("exact", "bounded")
    ),
}
"""Keys with many tuples each, with a few, sides without a key in common, and two keys that have all
tuples."""


def rows_of(case: Case, way: str) -> tuple[list[dict[str, Any]], float, int]:
    """One run to its end: its rows, seconds, and the tuples that were shed."""
    import tidegate as tg

    session = tg.Session(master="none")
    streams = {
        name: session.stream(
            f"generator:{case.stream}&rows={case.rows}&seed={seed}", time=case.time, name=name
        )
        for seed, name in zip(case.seeds, "lr", strict=True)
    }
    pairs = (
        f"SELECT l.{case.key} AS k, r.{case.value} AS v FROM l [RANGE {case.reach}] "
        f"JOIN r [RANGE {case.reach}] ON l.{case.key} = {case.partner.format(key=case.key)}"
    )
    sql = f"SELECT k, COUNT(*) AS n, AVG(v) AS mean FROM ({pairs}) [RANGE {case.window}] GROUP BY k"
    query = session.sql(f"{sql} {WAYS[way]}", **streams)
    sink = tg.sink.memory()
    with tempfile.TemporaryDirectory(prefix="tidegate-cod-join-") as folder:
        began = time.perf_counter()
        summary = query.start(sink=sink, checkpoint=Path(folder) / "checkpoint", instances=1).wait()
        seconds = time.perf_counter() - began
    return sink.table().to_pylist(), seconds, summary.as_dict()["rows_shed"]


def errors(exact: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, float]:
    """How far counts and means of groups are off, by window, and what is missing."""
    import numpy as np

    estimates = {(r["window_end"], r["k"]): r for r in found}
    windows: dict[Any, list[tuple[float, float, bool]]] = {}
    outside = 0
    for row in exact:
        of = windows.setdefault(row["window_end"], [])
        estimate = estimates.get((row["window_end"], row["k"]))
        if estimate is None:
            of.append((1.0, 1.0, True))
            continue
        of.append((_off(row["n"], estimate["n"]), _off(row["mean"], estimate["mean"]), False))
        if "n_low" in estimate:
            outside += not estimate["n_low"] <= row["n"] <= estimate["n_high"]
    if not windows:
        return {"windows": 0, "groups": 0, "missing": 0.0, "count_error": 0.0, "mean_error": 0.0}
    means = np.array([np.mean(np.array(of, float), axis=0) for of in windows.values()])
    counts, values, _ = means.mean(axis=0).tolist()
    missing = sum(gone for of in windows.values() for *_, gone in of) / len(exact)
    told = {"windows": len(windows), "groups": len(exact), "missing": missing}
    if found and "exact" in found[0]:
        told |= {
            "outside": outside / len(exact),
            "exact": sum(r["exact"] for r in found) / len(found),
        }
    return told | {"count_error": counts, "mean_error": values}


def _off(true: float, estimate: float) -> float:
    largest = max(abs(true), abs(estimate))
    return abs(true - estimate) / largest if largest else 0.0


def compare(name: str, case: Case, rounds: int) -> dict[str, Any]:
    """The ways in turns, then how far off they are and what they take."""
    seconds: dict[str, list[float]] = {way: [] for way in case.ways}
    rows: dict[str, list[dict[str, Any]]] = {}
    shed: dict[str, int] = {}
    rows_of(replace(case, rows=2_000), case.ways[-1])  # what is compiled once
    for _ in range(rounds):
        for way in case.ways:
            rows[way], took, shed[way] = rows_of(case, way)
            seconds[way].append(took)
            print(f"{name} {way}: {took:.2f} s", flush=True)
    found: dict[str, Any] = {}
    for way in case.ways:
        ratio = [a / b for a, b in zip(seconds[way], seconds["exact"], strict=True)]
        found[way] = errors(rows["exact"], rows[way]) | {
            "shed": shed[way] / (2 * case.rows),
            "seconds": middle(seconds[way]),
            "seconds_by_exact": middle(ratio),
        }
    return found


def lines(name: str, found: dict[str, Any]) -> Iterator[str]:
    """What a case has shown, in words."""
    for way, one in found.items():
        told = f", {one['exact']:.0%} exact, {one['outside']:.1%} outside" if "exact" in one else ""
        yield (
            f"{name} {way}: {one['seconds_by_exact']['median']:.2f} of the time of the exact join, "
            f"error of counts {one['count_error']:.1%}, of means {one['mean_error']:.1%}, "
            f"{one['missing']:.1%} of {one['groups']:,} groups missing, "
            f"{one['shed']:.1%} shed{told}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--rows", type=int, help="rows of each stream, in place of the usual ones")
    common_arguments(parser, rounds=3)
    given = parser.parse_args()
    report: dict[str, Any] = {}
    for name in given.cases:
        case = CASES[name] if given.rows is None else replace(CASES[name], rows=given.rows)
        report[name] = compare(name, case, given.rounds)
        print(*lines(name, report[name]), sep="\n", flush=True)
    write_report("cod_join", {"cases": report})


if __name__ == "__main__":
    main()
