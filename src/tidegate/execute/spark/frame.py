"""DataFrames as sources: each micro-batch is spooled as sorted runs, which the gate reads.

Spark's log guarantees that every micro-batch arrives. A marker file per micro-batch, written after
its runs, makes it count once. A run is deleted when a committed manifest has consumed it. A marker
is deleted when Spark has moved on to the next micro-batch, because Spark repeats only the newest
one. The names of runs contain the checkpoint's owner, so a driver that has lost the checkpoint to
another one cannot touch the runs of its successor; before it writes a marker, it checks that it is
still the owner.
"""

from __future__ import annotations

import json
import math
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions
from pyspark.sql.streaming.query import StreamingQuery

from tidegate import schedule
from tidegate.arrival import BEFORE, Together
from tidegate.connector import Connector
from tidegate.errors import RunError, SourceError, UnavailableError
from tidegate.execute.spark.failure import LOST, answering, first_line, without_stacks
from tidegate.execute.spark.feature import arrow_schema
from tidegate.execute.spark.session.access import access_of
from tidegate.schema import cast_table, check_time, event_times, normal_schema
from tidegate.source.memory import MemorySource
from tidegate.source.spool import SpooledFile, SpoolSource
from tidegate.state.handle import StoreHandle
from tidegate.state.name import owned
from tidegate.state.store import Store

SPOOL = "spool"

_ASK_S = 0.1
"""How often Spark is asked whether its query still runs. One check costs two calls to the JVM;
micro-batches announce themselves."""


class FrameConnector(Connector):
    """The sources of one DataFrame: a bounded one is spooled once, a streaming one as it arrives.

    `name` identifies it in checkpoints and must be the same in every run. Within a partition of a
    micro-batch, tuples are sorted by time. A tuple of a later micro-batch that is below the
    frontier is late, so set DISORDER if the stream needs it.
    """

    once = True
    arrives = False

    def __init__(self, frame: DataFrame, name: str, time: str) -> None:
        self._frame = frame
        self._name = name
        self._file = re.sub("[^A-Za-z0-9]", lambda c: f"_{ord(c[0]):x}_", name)
        self._time = time
        if frame.isStreaming and not access_of(frame.sparkSession).calls_back:
            raise UnavailableError(
                f"DataFrame {name}",
                "a streaming DataFrame needs Spark in this process",
                "one of Spark Connect",
                "Read the same input as a stream of Tidegate, or use a session with a master.",
            )
        self.schema = _schema(frame, name)
        check_time(self.schema, time, f"DataFrame {name}")
        self._store: Store | None = None
        self._query: StreamingQuery | None = None
        self._live = bool(frame.isStreaming)
        self._shown = -1
        self._lasts = False
        self._spooling = threading.Lock()
        """Held while a thread of Py4J spools a micro-batch."""
        self._lock = threading.Lock()
        self._runs: dict[int, list[SpoolSource]] = {}
        self._newest = -1
        self._listeners: list[Callable[[], None]] = []
        self._clock = schedule.current().clock
        self._asked_at = -math.inf

    def for_run(self, use: int) -> FrameConnector:
        """The same input for one run. A query that reads it twice has a spool for each use."""
        name = f"{self._name}@{use}" if use else self._name
        return FrameConnector(self._frame, name, self._time)

    def beginning(self, rows: int) -> Connector:
        """The rows of a bounded DataFrame that a run would take first; Spark reads them."""
        where = f"DataFrame {self._name}"
        if self._frame.isStreaming:
            raise UnavailableError(
                "preview",
                "cannot read a streaming DataFrame, of which Spark keeps no beginning",
                where,
                "Start the query with sink=tg.sink.memory(), or look at df.writeStream.",
            )
        # By partition and row where times are equal, as the runs of a spool are merged.
        time = functions.col(f"`{self._time.replace('`', '``')}`")
        order = [time.asc_nulls_last(), functions.monotonically_increasing_id().asc()]
        with answering(partial(self._failed, "it must be readable")):
            found = self._frame.orderBy(*order).limit(rows + 1).toArrow()
        made = MemorySource(
            cast_table(found, self.schema, where, self._time), time=self._time, id=where
        )
        if found.num_rows <= rows:
            made.end()
        return made

    def attach(self, store: Store, follow: bool, available_now: bool = False) -> None:
        """Start to spool into a checkpoint, after the micro-batches that an earlier run spooled.

        With `available_now` the stream does not end with the run: a later run may read more.
        """
        self._lasts = available_now and bool(self._frame.isStreaming)
        access_of(self._frame.sparkSession).take_charge()
        self.arrives = follow and bool(self._frame.isStreaming)
        self._store = store
        self._find()
        if not self._frame.isStreaming:
            if self._newest < 0:
                self._absorb_all()
            return
        location = f"{store.location}/spark-{self._file}"
        writer = self._frame.writeStream.foreachBatch(self._absorb).option(
            "checkpointLocation", location
        )
        self._query = (writer if follow else writer.trigger(availableNow=True)).start()

    def discover(self) -> Sequence[SpoolSource]:
        if self._query is not None and self._clock.now() - self._asked_at >= _ASK_S:
            self._asked_at = self._clock.now()
            with answering(partial(self._failed, "Spark must be there while it is read")):
                # In this order: one that fails in between has not ended, it has failed.
                self._live = bool(self._query.isActive)
                failure = self._query.exception()
            if failure is not None:
                raise self._failed("its Spark query must run", failure)
        with self._lock:
            self._shown = self._newest
            return [run for batch in sorted(self._runs) for run in self._runs[batch]]

    def tell(self, listener: Callable[[], None]) -> None:
        """Register a listener that the spooling thread calls after every micro-batch."""
        self._listeners.append(listener)

    def tell_no_more(self, listener: Callable[[], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def unseen_rows(self) -> int:
        """The number of rows that arrived since the last `discover`."""
        with self._lock:
            fresh = [runs for batch, runs in self._runs.items() if batch > self._shown]
            return sum(run.untaken(0)[0] for runs in fresh for run in runs)

    def live(self) -> bool:
        """Whether more may come. As of the last `discover`: later runs are still to be read."""
        return self._live or self._lasts

    def arriving(self) -> bool:
        """Whether Spark is still reading, as of the last `discover`."""
        return self._live

    def forget(self, ids: Sequence[str]) -> None:
        """Delete runs that a committed manifest has consumed."""
        assert self._store is not None
        gone = set(ids)
        with self._lock:
            for batch, runs in self._runs.items():
                self._runs[batch] = [r for r in runs if r.id not in gone]
        for name in sorted(gone):
            self._store.delete(name)
        self._drop_markers()

    def close(self) -> None:
        """Stop reading. No micro-batch is being spooled when it returns."""
        if self._query is not None:
            with suppress(*LOST), without_stacks():  # without Spark there is nothing to stop
                self._query.stop()
            with self._spooling:
                self._query = None

    def _find(self) -> None:
        """Load complete micro-batches of an earlier run, and delete runs that belong to none."""
        assert self._store is not None
        files = [e.name for e in self._store.files.list(SPOOL)]
        for name in files:
            if match := re.fullmatch(self._marker(r"(\d+)"), name):
                self._register(int(match[1]))
        known = {run.id for runs in self._runs.values() for run in runs}
        pattern = rf"{SPOOL}/{self._file}-\d+\.\d+-\d+\.arrow"
        for name in files:
            if re.fullmatch(pattern, name) and name not in known:
                self._store.delete(name)
        self._drop_markers()

    def _absorb_all(self) -> None:
        try:
            self._absorb(self._frame, 0)
        except (PySparkException, *LOST) as error:
            raise RunError(
                f"DataFrame {self._name}",
                "it must be readable",
                first_line(error),
                "Nothing was started.",
            ) from error

    def _absorb(self, frame: DataFrame, batch: int) -> None:
        """Spool one micro-batch. Does nothing if it is complete already, that is, for a replay."""
        assert self._store is not None
        came_at = self._clock.now()
        with self._spooling:
            if batch <= self._newest:
                return
            prefix = f"{SPOOL}/{self._file}-{owned(batch, self._store.owner)}"
            write = _write_run(self._store.handle(), prefix, self._time, self.schema)
            # By number: PySpark looks columns up by their names, which may have points in them.
            plain = frame.toDF(*(f"c{i}" for i in range(len(self.schema))))
            written = plain.mapInArrow(write, "name string, rows long, checksum long").collect()
            runs = sorted(tuple(row) for row in written)
            self._store.check_owner()  # else a run that was paused spools it for the one after
            self._store.write(self._marker(f"{batch:08d}"), json.dumps(runs).encode())
            self._register(batch, came_at)
        for listener in list(self._listeners):
            listener()

    def _register(self, batch: int, came_at: float = BEFORE) -> None:
        assert self._store is not None
        arrivals = Together(came_at) if self.arrives else None
        listed = json.loads(self._store.read(self._marker(f"{batch:08d}")))
        present = [
            SpoolSource(self._store, SpooledFile(*entry), self.schema, self._time, arrivals)
            for entry in listed
            if self._store.files.exists(entry[0])
        ]
        with self._lock:
            self._runs[batch] = present
            self._newest = max(self._newest, batch)

    def _failed(self, requirement: str, failure: BaseException) -> RunError:
        where = f"DataFrame {self._name}"
        return RunError(where, requirement, first_line(failure), "Run again to continue.")

    def _drop_markers(self) -> None:
        """Delete the markers of consumed micro-batches that Spark will not repeat."""
        assert self._store is not None
        with self._lock:
            done = [b for b, runs in self._runs.items() if not runs and b < self._newest]
            for batch in done:
                del self._runs[batch]
        for batch in done:
            self._store.delete(self._marker(f"{batch:08d}"))

    def _marker(self, batch: str) -> str:
        return f"{SPOOL}/{self._file}-{batch}.json"


def _schema(frame: DataFrame, name: str) -> pa.Schema:
    """The columns in the engine's types; raises for types that Arrow lacks and equal names."""
    try:
        schema = normal_schema(arrow_schema(frame.schema))
    except PySparkException as error:
        raise SourceError(
            f"DataFrame {name}",
            "its columns must have types that Arrow has",
            first_line(error),
            "Select or cast the columns.",
        ) from error
    twice = [n for n in schema.names if schema.names.count(n) > 1]
    if twice:
        raise SourceError(
            f"DataFrame {name}", "its columns must have different names", f"{twice[0]} twice"
        )
    return schema


def _write_run(
    handle: StoreHandle, prefix: str, time: str, schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [b for b in batches if b.num_rows]
        if not parts:
            return
        table = pa.Table.from_batches(parts).rename_columns(schema.names)
        table = cast_table(table, schema, prefix, time)
        times, valid = event_times(table.column(time))
        table = table.take(pa.array(np.lexsort((times, ~valid)))).combine_chunks()
        context = TaskContext.get()
        name = f"{prefix}-{context.partitionId() if context else 0:05d}.arrow"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        data = sink.getvalue().to_pybytes()
        handle.open().write(name, data)
        yield pa.RecordBatch.from_pydict(
            {"name": [name], "rows": [table.num_rows], "checksum": [zlib.crc32(data)]}
        )

    return run
