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

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import (
    MASTER,
    beside,
    beside_argument,
    common_arguments,
    give,
    in_child,
    middle,
    write_report,
)

WAYS = ("exact", "uniform", "concept")
SHARE = 0.98
FILE_ROWS = 1_000_000
WARM_BATCHES = 1
COSTS = ("seconds", "task_cpu_s", "map_ns_per_tuple", "instance_us_per_row")

Told = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A stream, its window, what groups are, and what is estimated of them."""

    title: str
    stream: str
    time: str
    window: str
    slide: str
    key: str | None
    value: str
    rows: int = 4_000_000
    batch_rows: int = 500_000
    function: str = "mean"
    top: int | None = None
    csv: bool = False

    @property
    def columns(self) -> list[str] | None:
        """Those that are written; all of them into CSV."""
        if self.csv:
            return None
        return [self.time, *([] if self.key is None else [self.key]), self.value]


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


def write_input(case: Case, folder: Path) -> None:
    """The rows of a generator as files; those that are there stay, also where two write at once."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    from tidegate.source.generator import open_generator

    if (folder / "_done").exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=folder.name, dir=folder.parent))
    source = open_generator(f"generator:{case.stream}&rows={case.rows}&seed=5", "s", case.time)
    columns = case.columns or source.schema.names
    for number, first in enumerate(range(0, case.rows, FILE_ROWS)):
        last = min(first + FILE_ROWS, case.rows)
        table: pa.Table = source.reader(first, last).read(columns).table
        if case.csv:
            pa.csv.write_csv(table, made / f"part-{number:05d}.csv")
        else:
            pq.write_table(table, made / f"part-{number:05d}.parquet")
    (made / "_done").touch()
    try:
        made.rename(folder)
    except OSError:  # another program was quicker
        shutil.rmtree(made)


def run(case: Case, way: str, session: Any, data: Path, work: Path, share: float = SHARE) -> Told:
    """One query to its end; what its batches took."""
    import tidegate as tg

    query: Any = session.stream(str(data), time=case.time, name="s")
    query = query.window(case.window, slide=case.slide)
    if case.key is not None:
        query = query.group_by(case.key)
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
    warm = list(summary.reports)[WARM_BATCHES:]
    told = summary.as_dict()
    counts = [c for r in warm for c in r.instance_counts]
    map_us, instance_us = (sum(c[n] for c in counts) for n in ("map_cpu_us", "cpu_us"))
    rows, rows_out = sum(r.rows_in for r in warm), sum(r.rows_out for r in warm)
    figures = next(iter(told["windows"].values()), {}).get("figures", {})
    return {
        "seconds": sum(r.seconds for r in warm),
        "task_cpu_s": (map_us + instance_us) / 1e6,
        "map_ns_per_tuple": map_us * 1e3 / rows,
        "instance_us_per_row": instance_us / max(rows_out, 1),
        "rows": rows,
        "rows_out": rows_out,
        "shed": told["rows_shed"] / told["rows_in"],
        **{name: of["mean"] for name, of in figures.items() if name in ("kept", "error")},
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
    import pyarrow as pa
    import pyarrow.dataset as ds

    from tidegate.approx.error import Metric, combined, relative

    def rows(folder: Path) -> pa.Table:
        return ds.dataset([str(f) for f in sorted(folder.rglob("*.parquet"))]).to_table()

    keys = ["window_end", *([] if key is None else [key])]
    both = rows(exact).join(
        rows(estimated).select([*keys, "estimate"]),
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
    from dataclasses import replace

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rows", type=int, help="rows of each stream, in place of the usual ones")
    common_arguments(parser, rounds=3)
    beside_argument(parser)
    given = parser.parse_args()
    unknown = [name for name in given.cases if name not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]}; there are {', '.join(CASES)}")
    cases = {name: CASES[name] for name in given.cases or CASES}
    if given.rows is not None:
        size = max(given.rows // 8, 1_000)
        cases = {n: replace(c, rows=given.rows, batch_rows=size) for n, c in cases.items()}
    data = Path(given.data)
    if given.child:
        (case,) = cases.values()
        give(all_runs(case, given.rounds, Path(given.child), Path(given.work)))
        return
    folders: dict[str, Path] = {}
    for name, case in cases.items():
        stem = case.stream.replace("?", "-").replace("&", "-").replace("=", "")
        folders[name] = data / f"cod-{stem}-{'csv' if case.csv else case.key}-{case.rows}"
        write_input(case, folders[name])

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
