"""DataFrames as sources: each micro-batch is spooled as sorted runs, which the gate then reads.

Spark's own log makes every micro-batch arrive; a marker file per micro-batch, written after its
runs, makes it count once. Runs are removed when a committed manifest has consumed them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import RunError
from tidegate.schema import cast_table, normal_schema
from tidegate.source.event_time import check_time
from tidegate.source.run import RunSource
from tidegate.state.store import Store, StoreHandle

SPOOL = "spool"


class FrameConnector:
    """The sources of one DataFrame: a bounded one is spooled once, a streaming one as it goes.

    Inside a micro-batch tuples are put into time order, partition by partition; across
    micro-batches a tuple below the frontier is late, so allow DISORDER where the stream needs it.
    """

    def __init__(self, frame: DataFrame, name: str, time: str) -> None:
        self._frame = frame
        self._name = re.sub(r"[^A-Za-z0-9]+", "-", name)
        self._time = time
        self.schema = normal_schema(to_arrow_schema(frame.schema, timezone="UTC"))
        check_time(self.schema, time, name)
        self._store: Store | None = None
        self._query: StreamingQuery | None = None
        self._live = bool(frame.isStreaming)
        self._lock = threading.Lock()
        self._runs: dict[int, list[RunSource]] = {}

    def attach(self, store: Store, follow: bool) -> None:
        """Begin to spool into a checkpoint; micro-batches of an earlier run are found again."""
        self._store = store
        for entry in store.files.list(SPOOL):
            found = re.fullmatch(rf".*{self._name}-(\d+)\.json", entry.name)
            if found:
                self._register(int(found.group(1)))
        if not self._frame.isStreaming:
            if 0 not in self._runs:
                self._absorb(self._frame, 0)
            return
        location = f"{store.location}/spark-{self._name}"
        writer = self._frame.writeStream.foreachBatch(self._absorb).option(
            "checkpointLocation", location
        )
        self._query = (writer if follow else writer.trigger(availableNow=True)).start()

    def discover(self) -> Sequence[RunSource]:
        if self._query is not None and (failure := self._query.exception()) is not None:
            raise RunError(
                f"DataFrame {self._name}",
                "its Spark query must run",
                str(failure).splitlines()[0],
                "Run again to continue.",
            )
        self._live = self._query is not None and bool(self._query.isActive)
        with self._lock:
            return [run for batch in sorted(self._runs) for run in self._runs[batch]]

    def live(self) -> bool:
        """As of the last `discover`, so that runs spooled since then are not missed at the end."""
        return self._live

    def forget(self, ids: Sequence[str]) -> None:
        """Remove runs that a committed manifest has consumed."""
        assert self._store is not None
        gone = set(ids)
        with self._lock:
            for batch in list(self._runs):
                kept = [r for r in self._runs[batch] if r.id not in gone]
                if kept:
                    self._runs[batch] = kept
                    continue
                del self._runs[batch]
        for name in sorted(gone):
            self._store.delete(name)

    def close(self) -> None:
        if self._query is not None:
            self._query.stop()

    def _absorb(self, frame: DataFrame, batch: int) -> None:
        """Spool one micro-batch; a replay of one that is complete changes nothing."""
        assert self._store is not None
        if self._store.files.exists(self._marker(batch)):
            return
        write = _write_run(
            self._store.handle(), f"{SPOOL}/{self._name}-{batch:08d}", self._time, self.schema
        )
        written = frame.mapInArrow(write, "name string, rows long").collect()
        runs = sorted((row[0], row[1]) for row in written)
        self._store.write(self._marker(batch), json.dumps(runs).encode())
        self._register(batch)

    def _register(self, batch: int) -> None:
        assert self._store is not None
        runs = json.loads(self._store.read(self._marker(batch)))
        present = [
            RunSource(self._store, name, rows, self.schema, self._time)
            for name, rows in runs
            if self._store.files.exists(name)
        ]
        with self._lock:
            if present:
                self._runs[batch] = present

    def _marker(self, batch: int) -> str:
        return f"{SPOOL}/{self._name}-{batch:08d}.json"


def _write_run(
    handle: StoreHandle, prefix: str, time: str, schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [b for b in batches if b.num_rows]
        if not parts:
            return
        table = cast_table(pa.Table.from_batches(parts), schema)
        order = pc.sort_indices(table, sort_keys=[(time, "ascending")], null_placement="at_end")
        table = table.take(order).combine_chunks()
        context = TaskContext.get()
        name = f"{prefix}-{context.partitionId() if context else 0:05d}.arrow"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        handle.open().write(name, sink.getvalue().to_pybytes())
        yield pa.RecordBatch.from_pydict({"name": [name], "rows": [table.num_rows]})

    return run
