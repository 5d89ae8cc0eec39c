"""Balancing by trimming groups (ShedPart) beside the same query without it, on the same files.

    python benchmarks/shedpart.py                           all cases, five rounds
    python benchmarks/shedpart.py cluster --rounds 3
    python benchmarks/shedpart.py --rows 200000 --rounds 1  a quick look

Section 7.5.2 of the dissertation: an error of 10 percent at a confidence of 95, T_g = 3, T = 15
percent, four workers, which are four instances of one bucket each. `cluster` has four groups whose
values lie close together, `taxi` thousands of routes with a few rides each, where nothing can be
trimmed and all that balancing does is a cost. The aggregate is one of a user's own (`huber.py`), or
with `-median` the median; `cluster-mean` is the dissertation's query, a mean over 60/30 minutes.
These are trimmed because TRIM ALL is asked for. Each run is a query on Spark in a process of its
own; in every round both ways take turns, and who is first changes. Of each window: imbalance (3.1)
and the largest load, in tuples, before and after trimming. Of the cost: the time of batches after
the first, and the CPU time of their tasks. Of the results: the share of rows that are off by more
than the error.
Results go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grouped_case import (
    Case,
    case_parser,
    chosen_cases,
    figures_told,
    input_of,
    output_rows,
    warm_costs,
)
from measure import MASTER, beside, give, in_child, middle, write_report

WAYS = ("exact", "balance")
ERROR, CONFIDENCE = 0.1, 0.95
COLD_ROWS = 3
"""T_g, as in section 7.5.2."""
WORKERS = 4
FIGURES = (
    "imbalance_before",
    "imbalance_after",
    "largest_before",
    "largest_after",
    "trimmed",
    "groups_trimmed",
    "skipped",
)


@dataclass(frozen=True)
class Asked:
    """A stream with its windows and groups, and the aggregate: the range of Huber's, or another."""

    case: Case
    huber: tuple[float, float, float] | None
    function: str = "median"


_CLUSTER = Case(
    "tasks by class",
    "tasks?rate=90&keys=5000",
    "ts",
    "60 minutes",
    "60 minutes",
    "scheduling_class",
    "cpu",
    rows=4_000_000,
    batch_rows=400_000,
)
_TAXI = Case(
    "rides by route",
    "taxi?rate=11",
    "dropoff_time",
    "15 minutes",
    "15 minutes",
    "route",
    "fare",
    rows=800_000,
    batch_rows=80_000,
)
CASES = {
    "cluster": Asked(_CLUSTER, (0.0, 1.0, 0.2)),
    "cluster-median": Asked(_CLUSTER, None),
    "cluster-mean": Asked(replace(_CLUSTER, slide="30 minutes"), None, "mean"),
    "taxi": Asked(_TAXI, (0.0, 100.0, 10.0)),
    "taxi-median": Asked(_TAXI, None),
}


def ran(asked: Asked, way: str, data: Path, out: Path, master: str = MASTER) -> Any:
    """The summary of a query that has come to its end; its checkpoint is beside its rows."""
    from huber import HuberLocation

    import tidegate as tg

    class Huber(HuberLocation):
        """The same, of which a sample gives nearly the result."""

        mean_like = True

    case = asked.case
    query = case.query(tg.Session(master=master), data)
    if asked.huber is None:
        query = query.agg(value=getattr(tg, asked.function)(case.value))
    else:
        query = query.agg(value=tg.aggregate(Huber(*asked.huber), case.value))
    if way == "balance":
        query = query.balance(error=ERROR, confidence=CONFIDENCE, cold=COLD_ROWS, trim="all")
    started = query.start(
        sink=tg.sink.files(str(out)),
        checkpoint=f"{out}-state",
        batch_rows=case.batch_rows,
        instances=WORKERS,
        buckets=WORKERS,
    )
    return started.wait()


def run(asked: Asked, way: str, data: Path, out: Path) -> dict[str, float]:
    """What the batches of a query took, and what was told of its windows."""
    summary = ran(asked, way, data, out)
    costs, figures = warm_costs(list(summary.reports)), figures_told(summary)
    kept = {name: costs[name] for name in ("seconds", "task_cpu_s", "rows")}
    return kept | {name: figures[name] for name in FIGURES if name in figures}


def accuracy(exact: Path, balanced: Path, asked: Asked) -> dict[str, float]:
    """How many rows were estimated, and of all rows the share that is off by more than allowed.

    For medians it is left out, whose error is one of ranks: `tests/operate/aggregate` has it.
    """
    import numpy as np

    from tidegate.approx.error import relative

    key = asked.case.key
    found = output_rows(balanced).select(["window_end", key, "value", "exact"])
    both = output_rows(exact).join(found, keys=["window_end", key], right_suffix="_estimated")
    answers = {"rows": both.num_rows, "estimated": 1 - float(np.mean(both.column("exact")))}
    if asked.huber is None and asked.function == "median":
        return answers
    errors = relative(both.column("value").to_numpy(), both.column("value_estimated").to_numpy())
    return answers | {"off": float((errors > ERROR).mean()), "largest_error": float(errors.max())}


def compare(
    name: str,
    asked: Asked,
    rounds: int,
    *,
    folder: Path,
    results: Path,
    cpus: Sequence[int] | None,
) -> dict[str, Any]:
    """Both ways in turns, what became of windows, and what it cost."""
    case = asked.case
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS if number % 2 == 0 else reversed(WAYS):
            out = results / f"{name}-{way}-{number}"
            told = in_child(
                __file__, name, "--child", way, "--data", str(folder), "--out", str(out),
                "--rows", str(case.rows), cpus=cpus,
            )  # fmt: skip
            runs[way].append(told)
            said = f"{told['seconds']:.2f} s, {told['task_cpu_s']:.2f} s of CPU in tasks"
            print(f"{name} round {number + 1} {way}: {said}", flush=True)
    found: dict[str, Any] = {way: _middles(runs[way]) for way in WAYS}
    found["windows"] = windows(runs["balance"][0])
    exact, balanced = (results / f"{name}-{way}-0" for way in WAYS)
    found["accuracy"] = accuracy(exact, balanced, asked)
    for cost in ("seconds", "task_cpu_s"):
        pairs = zip(runs["balance"], runs["exact"], strict=True)
        found[f"{cost}_by_exact"] = middle([a[cost] / b[cost] for a, b in pairs])
    return found


def windows(told: dict[str, float]) -> dict[str, float]:
    """What became of windows on average, and how many times less the fullest worker has then."""
    found = {name: told[name] for name in FIGURES}
    for what in ("imbalance", "largest"):
        after = max(told[f"{what}_after"], 1.0)
        found[f"{what}_reduced"] = max(told[f"{what}_before"], 1.0) / after
    return found


def _middles(runs: list[dict[str, float]]) -> dict[str, Any]:
    costs = ("seconds", "task_cpu_s", "rows")
    return {k: middle([told[k] for told in runs]) for k in costs}


def lines(name: str, found: dict[str, Any]) -> Iterator[str]:
    """What a case has shown, in words."""
    told = found["windows"]
    yield (
        f"{name}: imbalance {told['imbalance_before']:,.0f} -> {told['imbalance_after']:,.0f} "
        f"({told['imbalance_reduced']:.1f} times less), largest load "
        f"{told['largest_before']:,.0f} -> {told['largest_after']:,.0f} "
        f"({told['largest_reduced']:.1f} times less), {told['trimmed']:.1%} trimmed, "
        f"skipped in {told['skipped']:.0%} of windows"
    )
    if "off" in found["accuracy"]:
        of = found["accuracy"]
        yield f"{name}: {of['estimated']:.1%} of rows estimated, {of['off']:.2%} off by too much"
    for cost in ("seconds", "task_cpu_s"):
        ratio = found[f"{cost}_by_exact"]
        spread = f"{ratio['low']:.2f} to {ratio['high']:.2f}"
        yield f"{name}: {cost} {ratio['median']:.2f} of those without balance ({spread})"


def table(cases: dict[str, Any]) -> Iterator[str]:
    """What became of windows, and what it cost, for the page of balance."""
    yield (
        "| stream | imbalance | largest load | trimmed | rows off | time, of that without | "
        "CPU in tasks, of that without |"
    )
    yield "|---|---|---|---:|---:|---|---|"
    for name, found in cases.items():
        told, off = found["windows"], found["accuracy"].get("off")
        cells = [
            f"{told[f'{w}_before']:,.0f} to {told[f'{w}_after']:,.0f}, "
            f"{told[f'{w}_reduced']:,.1f} times less"
            for w in ("imbalance", "largest")
        ]
        costs = [
            f"{r['median']:.2f} ({r['low']:.2f} to {r['high']:.2f})"
            for r in (found["seconds_by_exact"], found["task_cpu_s_by_exact"])
        ]
        shares = [f"{told['trimmed']:.1%}", "-" if off is None else f"{off:.1%}"]
        yield f"| {' | '.join([name, *cells, *shares, *costs])} |"


def main() -> None:
    import tempfile

    parser = case_parser(__doc__, CASES, rounds=5)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    given = chosen_cases(parser, CASES)
    cases = {
        name: replace(CASES[name], case=CASES[name].case.of_rows(given.rows, 10))
        for name in given.cases
    }
    if given.child:
        (asked,) = cases.values()
        give(run(asked, given.child, Path(given.data), Path(given.out)))
        return
    data = Path(given.data)
    folders = {name: input_of(asked.case, data, "shedpart") for name, asked in cases.items()}
    with tempfile.TemporaryDirectory(prefix="tidegate-shedpart-") as results:

        def one(name: str, cpus: Sequence[int] | None) -> dict[str, Any]:
            places: dict[str, Any] = {"folder": folders[name], "results": Path(results)}
            found = compare(name, cases[name], given.rounds, cpus=cpus, **places)
            print(*lines(name, found), sep="\n", flush=True)
            return found

        report = dict(zip(cases, beside(given.beside, one, list(cases)), strict=True))
    said = {"error": ERROR, "confidence": CONFIDENCE, "beside": given.beside}
    write_report("shedpart", {**said, "cases": report})


if __name__ == "__main__":
    main()
