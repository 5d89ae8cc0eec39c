"""Runs a user's streaming query on Spark to the end of its files, cut and interrupted as asked.

A function of the user builds the query with the session it is given. That session overrides how
many files a micro-batch has, whatever the program sets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidegate.errors import OptionError, QueryError, RunError, UnavailableError
from tidegate.execute.spark.failure import first_line
from tidegate.execute.spark.session.access import access_of

FILES_AT_ONCE = "maxFilesPerTrigger"
ALL_FILES = 2**31 - 1
_CUTS = {FILES_AT_ONCE.lower(), "maxbytespertrigger", "cleansource", "sourcearchivedir"}
"""Options of a file source that the audit overrides: how files are cut, and their removal."""


@dataclass(frozen=True)
class AuditRun:
    """One run: `files` per micro-batch, `shuffles` partitions, and an optional failure.

    The run fails at the end of micro-batch `fails_at`: its rows are written, and Spark has not
    recorded it as done. The run is then restarted on the same checkpoint.
    """

    files: int
    shuffles: int
    fails_at: int | None = None


class _FilesReader(DataStreamReader):  # type: ignore[misc]
    """Reads as the program says, except for how files are cut into micro-batches."""

    def __init__(self, session: SparkSession, files: int) -> None:
        super().__init__(session)
        super().option(FILES_AT_ONCE, str(files))

    def option(self, key: str, value: Any) -> _FilesReader:
        if key.lower() not in _CUTS:
            super().option(key, value)
        return self

    def options(self, **options: Any) -> _FilesReader:
        for key, value in options.items():
            self.option(key, value)
        return self


class _AuditSession(SparkSession):  # type: ignore[misc]
    """A clone of the audit's session, with its registered tables and functions."""

    def __init__(self, session: SparkSession, files: int) -> None:
        super().__init__(session.sparkContext, session._jsparkSession.cloneSession())
        self._files = files

    @property
    def readStream(self) -> _FilesReader:
        return _FilesReader(self, self._files)


class _Stopped(Exception):
    """Interrupts a run on purpose."""


def _is_a_fault(record: logging.LogRecord) -> bool:
    """A logging filter: hides Py4J's report of an interruption that was on purpose."""
    return record.exc_info is None or not isinstance(record.exc_info[1], _Stopped)


def shuffle_partitions(session: SparkSession) -> int:
    return int(session.conf.get("spark.sql.shuffle.partitions"))


def run_audited(
    session: SparkSession,
    build: Callable[[SparkSession], object],
    run: AuditRun,
    *,
    job: str,
    mode: str,
    folder: Path,
) -> int:
    """Write the rows of each micro-batch to a file in `folder`/rows; returns how many had input.

    The driver holds the rows of one micro-batch.
    """
    if not access_of(session).calls_back:
        raise UnavailableError(
            "--master", "audit needs Spark in this process", "one of Spark Connect", "Use local[2]."
        )
    own = _AuditSession(session, run.files)
    own.conf.set("spark.sql.shuffle.partitions", str(run.shuffles))
    own.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    rows = folder / "rows"
    rows.mkdir(parents=True)
    waits = run.fails_at is not None

    def write(frame: DataFrame, batch: int) -> None:
        nonlocal waits
        pq.write_table(frame.toArrow(), rows / f"{batch:08}.parquet")
        if waits and batch == run.fails_at:
            waits = False
            raise _Stopped(f"micro-batch {batch} is given up on purpose")

    def once() -> int:
        writer = frame.writeStream.outputMode(mode).foreachBatch(write).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return sum(map(_had_input, query.recentProgress))

    frame = _built(own, build, job)
    log = logging.getLogger("py4j.clientserver")
    log.addFilter(_is_a_fault)
    try:
        if waits:
            try:
                once()
            except StreamingQueryException:
                if waits:
                    raise
            if waits:
                wanted, got = f"must come to micro-batch {run.fails_at}", "an end before it"
                raise RunError(job, wanted, got, "Its files must stay while it is audited.")
        return once()
    except StreamingQueryException as failure:
        raise RunError(job, "must run to its end", first_line(failure)) from failure
    except (PySparkException, Py4JError) as failure:
        raise QueryError(job, "must start", first_line(failure)) from failure
    finally:
        log.removeFilter(_is_a_fault)


def _built(own: SparkSession, build: Callable[[SparkSession], object], job: str) -> DataFrame:
    try:
        frame = build(own)
    except (Exception, SystemExit) as failure:
        raise QueryError(job, "query(spark) must build a query", first_line(failure)) from failure
    advice = "Return what you would call writeStream on."
    if not isinstance(frame, DataFrame):
        got = type(frame).__name__
        raise OptionError(job, "query(spark) must return a DataFrame", got, advice)
    if not frame.isStreaming:
        got, remedy = "a bounded one", "Read its input with spark.readStream."
        raise OptionError(job, "query(spark) must return a streaming DataFrame", got, remedy)
    if len(set(frame.columns)) < len(frame.columns):
        got, remedy = ", ".join(frame.columns), "Give each column a name of its own."
        raise OptionError(job, "columns of the result must have different names", got, remedy)
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for number in range(leaves.size()):
        _check_source(leaves.apply(number), own, job)
    return frame


def _had_input(progress: Any) -> bool:
    """Whether a micro-batch read files, even if a filter dropped all of their rows."""
    return any(source["startOffset"] != source["endOffset"] for source in progress["sources"])


def _check_source(leaf: Any, own: SparkSession, job: str) -> None:
    """Raises for a streaming source that does not read files, or was read with another session."""
    kind = leaf.nodeName()
    if not leaf.isStreaming():
        return
    cut = kind == "StreamingRelation" and leaf.dataSource().sparkSession().equals(
        own._jsparkSession
    )
    if not cut or not str(leaf.sourceName()).startswith("FileSource"):
        raise OptionError(
            job,
            "all streams must be files, read with the session that query(spark) is given",
            str(leaf.toString()).splitlines()[0][:120],
            "Write a sample of the input to files, and read it with spark.readStream.",
        )
