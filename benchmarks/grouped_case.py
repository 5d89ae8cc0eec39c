"""Streams with windows and groups, for programs that set an estimate beside the exact answer.

`cod.py`, `shedpart.py` and `spear_groups.py` write the rows of a generator as files once, run the
same query in several ways over them, and compare what the ways cost and how far off they are.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measure import beside_argument, common_arguments

FILE_ROWS = 1_000_000
WARM_BATCHES = 1


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

    def of_rows(self, rows: int | None, batches: int) -> Case:
        """With so many rows in so many batches; as it is without a number."""
        if rows is None:
            return self
        return replace(self, rows=rows, batch_rows=max(rows // batches, 1_000))

    def query(self, session: Any, data: Path) -> Any:
        """The windows of its stream, by group where it has some."""
        stream = session.stream(str(data), time=self.time, name="s")
        windows = stream.window(self.window, slide=self.slide)
        return windows if self.key is None else windows.group_by(self.key)


def case_parser(about: str, cases: Collection[str], rounds: int) -> argparse.ArgumentParser:
    """The options of a program with such cases: which, of what size, and how many at once."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    parser.add_argument("--rows", type=int, help="rows of each stream, in place of the usual ones")
    common_arguments(parser, rounds=rounds)
    beside_argument(parser)
    return parser


def chosen_cases(parser: argparse.ArgumentParser, cases: Mapping[str, Any]) -> argparse.Namespace:
    """What was asked for, with the names of the cases: all of them where none is named."""
    given = parser.parse_args()
    if unknown := [name for name in given.cases if name not in cases]:
        parser.error(f"no case {unknown[0]}; there are {', '.join(cases)}")
    given.cases = given.cases or list(cases)
    return given


def input_of(case: Case, data: Path, program: str) -> Path:
    """The folder of a case's stream, which is written once."""
    stem = case.stream.replace("?", "-").replace("&", "-").replace("=", "")
    folder = data / f"{program}-{stem}-{'csv' if case.csv else case.key}-{case.rows}"
    write_input(case, folder)
    return folder


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


def warm_costs(reports: Sequence[Any]) -> dict[str, float]:
    """What the batches after the first took, and what they had to do."""
    warm = reports[WARM_BATCHES:]
    counts = [of for report in warm for of in report.instance_counts]
    map_us, instance_us = (sum(of[name] for of in counts) for name in ("map_cpu_us", "cpu_us"))
    return {
        "seconds": sum(report.seconds for report in warm),
        "task_cpu_s": (map_us + instance_us) / 1e6,
        "map_us": map_us,
        "instance_us": instance_us,
        "rows": sum(report.rows_in for report in warm),
        "rows_out": sum(report.rows_out for report in warm),
    }


def figures_told(summary: Any) -> dict[str, float]:
    """The means of what is told of the windows of a query."""
    told = next(iter(summary.as_dict()["windows"].values()), {})
    return {name: of["mean"] for name, of in told.get("figures", {}).items()}


def output_rows(folder: Path) -> Any:
    """The rows of an output folder, as a table."""
    import pyarrow.dataset as ds

    return ds.dataset([str(file) for file in sorted(folder.rglob("*.parquet"))]).to_table()
