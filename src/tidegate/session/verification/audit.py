"""Runs a user's Structured Streaming query under several batch cuts, and compares the rows."""

from __future__ import annotations

import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import OptionError, UnavailableError, near
from tidegate.session.place import Place
from tidegate.session.verification.row_difference import (
    MOVED,
    DifferenceLog,
    OutputReader,
    RowDifference,
    compare_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate.execute.spark.audit import AuditRun

OUTPUT_MODES = ("append", "update", "complete")
_INSTANT = "instant of the audit"
"""A column with one value for all rows, so that the comparison covers the whole output."""


@dataclass(frozen=True)
class AuditOptions:
    """`cuts`: files per micro-batch. `keys` identify a row. `order`: whether order counts."""

    mode: str = "append"
    cuts: tuple[int, ...] = (1, 3)
    keys: tuple[str, ...] = ()
    order: bool = False
    most: int = 5


@dataclass(frozen=True)
class AuditedRun:
    """One run, compared with another run that differs from it in one setting."""

    title: str
    beside: str
    rows: tuple[int, int]
    log: DifferenceLog

    @property
    def other_rows(self) -> int:
        return sum(count for kind, count in self.log.counts.items() if kind != MOVED)

    @property
    def moved_rows(self) -> int:
        return self.log.counts[MOVED]

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": self.title,
            "beside": self.beside,
            "rows": {"beside": self.rows[0], "run": self.rows[1]},
            "counts": self.log.counts,
            "changed_columns": self.log.columns,
            "differences": [difference.as_dict() for difference in self.log.listed],
        }


@dataclass(frozen=True)
class Audit:
    """All runs of a query. It is `stable` if no rows differ and, where order counts, none moved."""

    rows: int
    runs: tuple[AuditedRun, ...]
    order: bool

    @property
    def stable(self) -> bool:
        return not any(run.other_rows or (self.order and run.moved_rows) for run in self.runs)

    def as_dict(self) -> dict[str, Any]:
        runs = [run.as_dict() for run in self.runs]
        return {"stable": self.stable, "rows": self.rows, "order_counts": self.order, "runs": runs}


class _RowsLog(DifferenceLog):
    """Lists changed rows; rows that only moved are counted."""

    def add(self, difference: RowDifference) -> None:
        if difference.kind == MOVED:
            self.counts[MOVED] += 1
        else:
            super().add(difference)


def audit_job(job: str, place: Place, options: AuditOptions) -> Audit:
    """Run the query of a file to the end of its input several times, and compare the rows.

    Outputs are stored in a temporary folder. A comparison holds two of them in memory.
    """
    build = _query_of(job)
    if not place.on_spark:
        raise UnavailableError("--master", "audit runs a query of Spark", "none", "Use local[2].")
    session = place.connected().session
    assert session is not None
    with tempfile.TemporaryDirectory(prefix="tidegate-audit-") as scratch:
        return _Auditor(session, build, job, options, Path(scratch)).audit()


class _Auditor:
    """Keeps the outputs of runs, by title."""

    def __init__(
        self,
        session: SparkSession,
        build: Callable[[SparkSession], object],
        job: str,
        options: AuditOptions,
        scratch: Path,
    ) -> None:
        self._session, self._build, self._job = session, build, job
        self._options, self._scratch = options, scratch
        self._outputs: dict[str, pa.Table] = {}
        self._runs: list[AuditedRun] = []

    def audit(self) -> Audit:
        from tidegate.execute.spark.audit import ALL_FILES, AuditRun, shuffle_partitions

        shuffles = shuffle_partitions(self._session)
        whole, finest = "all files at once", min(self._options.cuts)
        self._run(whole, AuditRun(ALL_FILES, shuffles))
        self._check_keys(self._outputs[whole])
        self._beside(whole, "the same again", AuditRun(ALL_FILES, shuffles))
        other = shuffles + 1
        self._beside(whole, f"{other} shuffle partitions", AuditRun(ALL_FILES, other))
        batches = 0
        for files in sorted(self._options.cuts, reverse=True):
            batches = self._beside(whole, _title(files), AuditRun(files, shuffles))
        if batches < 2:
            raise OptionError(
                self._job,
                f"its input must be more than {_files(finest)}, so that it can be cut",
                f"{batches} micro-batch of {_files(finest)}",
                "Divide the input among more files.",
            )
        stopped = AuditRun(finest, shuffles, fails_at=batches // 2)
        self._beside(_title(finest), f"{_title(finest)}, with a restart", stopped)
        rows = self._outputs[whole].num_rows
        if not any(table.num_rows for table in self._outputs.values()):
            raise OptionError(
                self._job,
                "must give rows, so that they can be compared",
                "none in any run",
                "Add later input, so that windows close, or choose another --output-mode.",
            )
        return Audit(rows, tuple(self._runs), self._options.order)

    def _run(self, title: str, run: AuditRun) -> int:
        from tidegate.execute.spark.audit import run_audited

        folder = self._scratch / str(len(self._outputs))
        mode = self._options.mode
        batches = run_audited(
            self._session, self._build, run, job=self._job, mode=mode, folder=folder
        )
        files = sorted((folder / "rows").glob("*.parquet"))
        if not files:
            advice = "Put its input where it reads it."
            raise OptionError(self._job, "its input must have files", "none", advice)
        self._outputs[title] = _output(files, self._options)
        return batches

    def _beside(self, beside: str, title: str, run: AuditRun) -> int:
        batches = self._run(title, run)
        log = (DifferenceLog if self._options.order else _RowsLog)(self._options.most)
        tables = self._outputs[beside], self._outputs[title]
        names = tables[0].column_names
        readers = [OutputReader(_batches(table), _INSTANT, names) for table in tables]
        # Rows without a key are told apart by all that they hold: none is called changed.
        compare_rows(readers[0], readers[1], self._options.keys or names, log)
        rows = (tables[0].num_rows, tables[1].num_rows)
        self._runs.append(AuditedRun(title, beside, rows, log))
        return batches

    def _check_keys(self, table: pa.Table) -> None:
        for key in self._options.keys:
            if key not in table.column_names:
                advice = near(key, table.column_names)
                raise OptionError("--key", "must be a column of the result", key, advice)


def _title(files: int) -> str:
    return f"{_files(files)} at once"


def _files(files: int) -> str:
    return f"{files} file{'' if files == 1 else 's'}"


def _output(files: Sequence[Path], options: AuditOptions) -> pa.Table:
    """The final content of the sink: all rows, the newest row of each key, or the last batch."""
    tables = [pq.read_table(file) for file in files]
    if options.mode == "complete":
        return tables[-1]
    table = pa.concat_tables(tables)
    if options.mode == "append" or not options.keys:
        return table
    keys = zip(*(table.column(key).to_pylist() for key in options.keys), strict=True)
    newest = {str(key): row for row, key in enumerate(keys)}
    return table.take(pa.array([newest[key] for key in sorted(newest)], pa.int64()))


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    instants = pa.array(np.zeros(table.num_rows, np.int64))
    yield from table.append_column(_INSTANT, instants).combine_chunks().to_batches()


def _query_of(job: str) -> Callable[[SparkSession], object]:
    """The function `query` of a Python file; the file's `__main__` block does not run."""
    path = Path(job)
    if not path.is_file():
        raise OptionError("audit", "needs a Python file", job)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        names = runpy.run_path(job)
    except (Exception, SystemExit) as error:
        raise OptionError(job, "must be a Python file that can be imported", repr(error)) from error
    finally:
        sys.path.pop(0)
    query = names.get("query")
    if not callable(query):
        defined = _functions(names)
        raise OptionError(
            job,
            "must define query(spark), which returns a streaming DataFrame",
            ", ".join(defined) or "no function",
            "Put what stands before writeStream into a function of that name.",
        )
    found: Callable[[SparkSession], object] = query
    return found


def _functions(names: dict[str, Any]) -> Sequence[str]:
    own = (n for n, v in names.items() if getattr(v, "__module__", "") == "<run_path>")
    return sorted(own)
