"""Shedding by concept (CoD) beside shedding uniformly and no shedding at all, on the same files.

    python benchmarks/cod.py                           all cases at 98 percent, three rounds
    python benchmarks/cod.py taxi --rounds 5
    python benchmarks/cod.py --rows 400000 --rounds 1  a quick look

Section 5.7 of the dissertation. A case runs in a process of its own, on Spark, with files in and
files out; in every round the three ways take turns, who is first changes, and a round before the
first is not counted. Of the results: the mean relative error of the groups of a window (2.5), where
a group that is missing has an error of 1, in the mean over the windows, and the share of groups
that are missing. Of the cost, over the batches after the first of each run: their time from end to
end; the CPU time of their tasks; and of that the parts which grow with the tuples (map tasks, with
reading) and with the result rows (instances). By concept there are more of these, as no group is
missing. Ratios are those of the runs of one round. Results go to benchmarks/results/cod.json.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
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

WAYS = ("exact", "uniform", "concept")
SHARE = 0.98
COSTS = ("seconds", "task_cpu_s", "map_ns_per_tuple", "instance_us_per_row")

Told = dict[str, float]


_RIDES = ("taxi?rate=11", "dropoff_time", "15 minutes", "15 minutes", "route", "fare")
_TASKS = ("tasks?rate=90&keys=5000", "ts", "60 minutes", "30 minutes")
CASES = {
    "packets": Case(
        "packets, no groups", "packets?rate=1000", "ts", "45 seconds", "15 seconds", None, "size"
    ),
    "cluster-class": Case("tasks by class", *_TASKS, "scheduling_class", "cpu"),
    "cluster-median": Case(
        "tasks by class, median", *_TASKS, "scheduling_class", "cpu", function="median"
    ),
    "cluster": Case("tasks by job", *_TASKS, "job_id", "cpu"),
    "taxi": Case("rides by route", *_RIDES, rows=2_000_000),
    "taxi-top": Case("rides, ten busiest routes", *_RIDES, rows=2_000_000, top=10),
    "taxi-csv": Case("rides by route, from CSV", *_RIDES, rows=1_000_000, csv=True),
}
"""Windows of about 10,000 rides, 320,000 events and 45,000 packets, as in table 6. `taxi-top` puts
out ten rows of a window, so that the ways put out the same number, and is looked at for its cost
alone. `taxi-csv` has all columns of a ride as text, as the streams of the dissertation have."""


def run(case: Case, way: str, session: Any, data: Path, work: Path, share: float = SHARE) -> Told:
    """One query to its end; what its batches took."""
    import tidegate as tg

    query = case.query(session, data)
    query = query.agg(estimate=getattr(tg, case.function)(case.value), n=tg.count())
    if way != "exact":
        query = query.shed(share, by=way)
    if case.top is not None:
        query = query.top(case.top, by="n")
    started = query.start(
        sink=tg.sink.files(str(work / "out")),
        checkpoint=str(work / "checkpoint"),
        batch_rows=case.batch_rows,
        instances=2,
    )
    summary = started.wait()
    told, costs = summary.as_dict(), warm_costs(list(summary.reports))
    map_us, instance_us = costs.pop("map_us"), costs.pop("instance_us")
    figures = figures_told(summary)
    return {
        **costs,
        "map_ns_per_tuple": map_us * 1e3 / costs["rows"],
        "instance_us_per_row": instance_us / max(costs["rows_out"], 1),
        "shed": told["rows_shed"] / told["rows_in"],
        **{name: figures[name] for name in ("kept", "error") if name in figures},
    }


def all_runs(case: Case, rounds: int, data: Path, work: Path) -> dict[str, Any]:
    """The ways in turns, in this process; the errors are those of the round that is not counted."""
    import tidegate as tg

    session = tg.Session(master=MASTER)
    runs: dict[str, list[Told]] = {way: [] for way in WAYS}
    for number in range(rounds + 1):
        first = number % len(WAYS)
        for way in WAYS[first:] + WAYS[:first]:
            folder = work / f"{way}-{number}"
            told = run(case, way, session, data, folder)
            if number:
                runs[way].append(told)
                shutil.rmtree(folder)
    accuracies = {
        way: accuracy(work / "exact-0" / "out", work / f"{way}-0" / "out", case.key)
        for way in WAYS[1:]
        if case.top is None
    }
    return {"runs": runs, "accuracies": accuracies}


def accuracy(exact: Path, estimated: Path, key: str | None) -> Told:
    """The error of the groups, as `approx.error` has it, and how many of them are gone."""
    import numpy as np

    from tidegate.approx.error import Metric, combined, relative

    keys = ["window_end", *([] if key is None else [key])]
    both = output_rows(exact).join(
        output_rows(estimated).select([*keys, "estimate"]),
        keys=keys,
        join_type="left outer",
        right_suffix="_of_some",
    )
    windows = both.column("window_end").combine_chunks().dictionary_encode()
    truth = both.column("estimate").to_numpy()
    estimate = both.column("estimate_of_some").to_numpy()
    missing = np.isnan(estimate)
    errors = np.where(missing, 1.0, relative(truth, estimate))
    found = combined(
        Metric.MEAN, errors, windows.indices.to_numpy().astype(np.int64), len(windows.dictionary)
    )
    return {
        "windows": len(found),
        "groups_per_window": both.num_rows / len(found),
        "mean_group_error": float(found.mean()),
        "p95_group_error": float(np.percentile(found, 95)),
        "groups_missing": float(missing.mean()),
    }


def summed_up(case: Case, told: dict[str, Any]) -> dict[str, Any]:
    """Medians of the rounds, and of the ratios of the runs in one round."""
    runs: dict[str, list[Told]] = told["runs"]
    found: dict[str, Any] = {"title": case.title, "rows": case.rows}
    for way in WAYS:
        names = dict.fromkeys(name for one in runs[way] for name in one)
        found[way] = {name: middle([one[name] for one in runs[way]]) for name in names}
        found[way] |= told["accuracies"].get(way, {})
    for other in ("uniform", "exact"):
        pairs = list(zip(runs["concept"], runs[other], strict=True))
        found[f"by_{other}"] = {c: middle([a[c] / b[c] for a, b in pairs]) for c in COSTS}
    return found


def lines(found: dict[str, Any]) -> Iterator[str]:
    """What a case has shown, in words."""
    for way in WAYS:
        one = found[way]
        costs = ", ".join(f"{cost} {_spread(one[cost])}" for cost in COSTS)
        yield f"{found['title']}, {way}: {costs}, {one['rows_out']['median']:,.0f} rows out"
        if "mean_group_error" in one:
            yield (
                f"{found['title']}, {way}: mean group error {one['mean_group_error']:.1%}, "
                f"{one['groups_missing']:.1%} of {one['groups_per_window']:,.0f} groups missing, "
                f"{one['shed']['median']:.1%} shed"
            )
    for other in ("uniform", "exact"):
        ratios = found[f"by_{other}"]
        said = ", ".join(f"{cost} {_spread(ratio)}" for cost, ratio in ratios.items())
        yield f"{found['title']}, concept / {other}: {said}"


def _spread(of: Told) -> str:
    return f"{of['median']:.2f} ({of['low']:.2f} to {of['high']:.2f})"


def errors_table(cases: dict[str, Any]) -> Iterator[str]:
    """How good the estimates are: a table of docs/measured/shedding.md, in Markdown."""
    yield (
        "| stream | groups of a window | `UNIFORM`: error, missing | "
        "`CONCEPT`: error, missing, shed |"
    )
    yield "|---|---|---|---|"
    for case in cases.values():
        uniform, concept = case["uniform"], case["concept"]
        if "mean_group_error" not in uniform:
            continue
        said = [f"{one['mean_group_error']:.1%}, {_missing(one)}" for one in (uniform, concept)]
        shed = f"{concept['shed']['median']:.1%}"
        yield (
            f"| {case['title']} | {uniform['groups_per_window']:,.0f} | {said[0]} | "
            f"{said[1]}, {shed} |"
        )


def _missing(one: Told) -> str:
    return f"{one['groups_missing']:.1%}" if one["groups_missing"] else "none"


def costs_table(cases: dict[str, Any]) -> Iterator[str]:
    """What the ways cost: the other table of that page."""
    yield (
        "| stream | time: exact, `UNIFORM`, `CONCEPT` | `CONCEPT` / `UNIFORM` | / exact | "
        "map tasks, ns a tuple | instances, \u00b5s a result row | result rows |"
    )
    yield "|---|---|---|---|---|---|---|"
    for case in cases.values():
        ways = [case[way] for way in WAYS]

        def each(cost: str, shown: str, ways: list[Any] = ways) -> str:
            return ", ".join(f"{one[cost]['median']:{shown}}" for one in ways)

        ratios = [_spread(case[f"by_{other}"]["seconds"]) for other in ("uniform", "exact")]
        yield (
            f"| {case['title']} | {each('seconds', '.2f')} s | {' | '.join(ratios)} | "
            f"{each('map_ns_per_tuple', '.0f')} | {each('instance_us_per_row', ',.1f')} | "
            f"{each('rows_out', ',.0f')} |"
        )


def main() -> None:
    given = chosen_cases(case_parser(__doc__, CASES, rounds=3), CASES)
    cases = {name: CASES[name].of_rows(given.rows, 8) for name in given.cases}
    if given.child:
        (case,) = cases.values()
        give(all_runs(case, given.rounds, Path(given.child), Path(given.work)))
        return
    folders = {name: input_of(case, Path(given.data), "cod") for name, case in cases.items()}

    def one(name: str, cpus: Sequence[int] | None) -> dict[str, Any]:
        asked = [
            "--rounds",
            str(given.rounds),
            *(["--rows", str(cases[name].rows)] * bool(given.rows)),
        ]
        told = in_child(__file__, name, *asked, "--child", str(folders[name]), cpus=cpus)
        found = summed_up(cases[name], told)
        print(*lines(found), sep="\n", flush=True)
        return found

    report = dict(zip(cases, beside(given.beside, one, list(cases)), strict=True))
    write_report("cod", {"share": SHARE, "beside": given.beside, "cases": report})


if __name__ == "__main__":
    main()
