"""Shedding by concept (CoD) beside shedding uniformly and no shedding at all, on the same files.

    python benchmarks/cod.py                           all cases at 98 percent, three rounds
    python benchmarks/cod.py taxi --rounds 5
    python benchmarks/cod.py --rows 200000 --rounds 1  a quick look

Section 5.7 of the dissertation. Each run is a query on Spark in a process of its own, with files in
and files out; in every round the three ways take turns, and who is first changes. Of the results:
the mean relative error of the groups of a window (2.5), where a group that is missing has an error
of 1, in the mean over the windows, and the share of groups that are missing. Of the cost: the time
of batches after the first, and the CPU time of their tasks. Results go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import MASTER, common_arguments, give, in_child, middle, write_report

WAYS = ("exact", "uniform", "concept")
SHARE = 0.98
FILE_ROWS = 1_000_000
WARM_BATCHES = 1


@dataclass(frozen=True)
class Case:
    """A stream, its window, what groups are, and what is averaged."""

    stream: str
    time: str
    window: str
    slide: str
    key: str
    value: str
    rows: int = 8_000_000
    batch_rows: int = 1_000_000
    top: int | None = None


CASES = {
    "taxi": Case("taxi?rate=11", "dropoff_time", "15 minutes", "15 minutes", "route", "fare"),
    "taxi-top": Case(
        "taxi?rate=11", "dropoff_time", "15 minutes", "15 minutes", "route", "fare", top=10
    ),
    "cluster": Case("tasks?rate=90&keys=5000", "ts", "60 minutes", "30 minutes", "job_id", "cpu"),
    "cluster-class": Case(
        "tasks?rate=90&keys=5000", "ts", "60 minutes", "30 minutes", "scheduling_class", "cpu"
    ),
}
"""Windows of about 10,000 rides and 320,000 events, as in table 6; `taxi-top` puts out ten rows of
a window, so that the ways put out the same number, and is looked at for its cost alone."""


def write_input(case: Case, folder: Path) -> None:
    """The rows of a generator as Parquet files; those that are there stay."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tidegate.source.generator import open_generator

    if (folder / "_done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    source = open_generator(f"generator:{case.stream}&rows={case.rows}&seed=5", "s", case.time)
    columns = [case.time, case.key, case.value]
    for number, first in enumerate(range(0, case.rows, FILE_ROWS)):
        last = min(first + FILE_ROWS, case.rows)
        table: pa.Table = source.reader(first, last).read(columns).table
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
    (folder / "_done").touch()


def run(case: Case, way: str, data: Path, work: Path, out: Path) -> dict[str, float]:
    """One query to its end; what its batches took."""
    import tidegate as tg

    stream = tg.Session(master=MASTER).stream(str(data), time=case.time, name="s")
    query: Any = stream.window(case.window, slide=case.slide).group_by(case.key)
    query = query.agg(mean=tg.mean(case.value), n=tg.count())
    if way != "exact":
        query = query.shed(SHARE, by=way)
    if case.top is not None:
        query = query.top(case.top, by="n")
    started = query.start(
        sink=tg.sink.files(str(out)),
        checkpoint=str(work / "checkpoint"),
        batch_rows=case.batch_rows,
        instances=2,
    )
    summary = started.wait()
    warm = list(summary.reports)[WARM_BATCHES:]
    told = summary.as_dict()
    counts = [c for r in warm for c in r.instance_counts]
    figures = next(iter(told["windows"].values()), {}).get("figures", {})
    return {
        "seconds": sum(r.seconds for r in warm),
        "task_cpu_s": sum(c["cpu_us"] + c["map_cpu_us"] for c in counts) / 1e6,
        "rows": sum(r.rows_in for r in warm),
        "rows_out": told["rows_out"],
        "shed": told["rows_shed"] / told["rows_in"],
        **{name: of["mean"] for name, of in figures.items() if name in ("kept", "error")},
    }


def accuracy(exact: Path, estimated: Path, key: str) -> dict[str, float]:
    """The error of the means of groups, as `approx.error` has it, and how many groups are gone."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.dataset as ds

    from tidegate.approx.error import Metric, combined, relative

    def rows(folder: Path) -> pa.Table:
        return ds.dataset([str(f) for f in sorted(folder.rglob("*.parquet"))]).to_table()

    both = rows(exact).join(
        rows(estimated).select(["window_end", key, "mean"]),
        keys=["window_end", key],
        join_type="left outer",
        right_suffix="_estimated",
    )
    windows = both.column("window_end").combine_chunks().dictionary_encode()
    truth = both.column("mean").to_numpy()
    estimate = both.column("mean_estimated").to_numpy()
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


def compare(name: str, case: Case, rounds: int, data: Path, results: Path) -> dict[str, Any]:
    """The ways in turns, then their accuracy and their costs relative to each other."""
    stem = case.stream.replace("?", "-").replace("&", "-").replace("=", "")
    folder = data / f"cod-{stem}-{case.key}-{case.rows}"
    write_input(case, folder)
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS[number % 3 :] + WAYS[: number % 3]:
            out = results / f"{name}-{way}-{number}"
            told = in_child(
                __file__, name, "--child", way, "--data", str(folder), "--out", str(out),
                "--rows", str(case.rows),
            )  # fmt: skip
            runs[way].append(told)
            said = f"{told['seconds']:.2f} s, {told['task_cpu_s']:.2f} s of CPU in tasks"
            print(f"{name} round {number + 1} {way}: {said}, {told['shed']:.1%} shed", flush=True)
    found: dict[str, Any] = {}
    for way in WAYS:
        keys = dict.fromkeys(k for told in runs[way] for k in told)
        found[way] = {k: middle([told[k] for told in runs[way]]) for k in keys}
        if way != "exact" and case.top is None:
            exact, estimated = (results / f"{name}-{w}-0" for w in ("exact", way))
            found[way] |= accuracy(exact, estimated, case.key)
    for cost in ("seconds", "task_cpu_s"):
        pairs = zip(runs["concept"], runs["uniform"], strict=True)
        found[f"{cost}_by_uniform"] = middle([a[cost] / b[cost] for a, b in pairs])
    return found


def lines(name: str, found: dict[str, Any]) -> Iterator[str]:
    """What a case has shown, in words."""
    for way in WAYS[1:]:
        one = found[way]
        if "mean_group_error" in one:
            yield (
                f"{name} {way}: mean group error {one['mean_group_error']:.1%}, "
                f"{one['groups_missing']:.1%} of {one['groups_per_window']:,.0f} groups missing, "
                f"{one['shed']['median']:.1%} shed"
            )
    for cost in ("seconds", "task_cpu_s"):
        ratio = found[f"{cost}_by_uniform"]
        spread = f"{ratio['low']:.2f} to {ratio['high']:.2f}"
        yield f"{name}: {cost} by concept {ratio['median']:.2f} of uniform's ({spread})"


def main() -> None:
    import tempfile
    from dataclasses import replace

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--rows", type=int, help="rows of each stream, in place of the usual ones")
    parser.add_argument("--out", help=argparse.SUPPRESS)
    common_arguments(parser, rounds=3)
    given = parser.parse_args()
    cases = {name: CASES[name] for name in given.cases}
    if given.rows is not None:
        size = max(given.rows // 8, 1_000)
        cases = {n: replace(c, rows=given.rows, batch_rows=size) for n, c in cases.items()}
    if given.child:
        (case,) = cases.values()
        give(run(case, given.child, Path(given.data), Path(given.work), Path(given.out)))
        return
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="tidegate-cod-") as results:
        for name, case in cases.items():
            report[name] = compare(name, case, given.rounds, Path(given.data), Path(results))
            print(*lines(name, report[name]), sep="\n", flush=True)
    write_report("cod", {"share": SHARE, "cases": report})


if __name__ == "__main__":
    main()
