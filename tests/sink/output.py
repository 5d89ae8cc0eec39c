"""Batches for the tests of sinks, and what is read back of files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from tests.state.mapping import mappings
from tidegate.batch import BatchId
from tidegate.schema import TIME
from tidegate.sink.protocol import Output, Sink
from tidegate.state.manifest import Manifest
from tidegate.state.store import Store

SCHEMA = pa.schema([("window_end", TIME), ("k", pa.string()), ("v", pa.float64())])


def rows(*values: tuple[int, str | None, float | None]) -> pa.Table:
    """Rows with the end of their window in seconds."""
    ends = pa.array([v[0] * 1_000_000 for v in values], pa.int64()).cast(TIME)
    columns = [ends, pa.array([v[1] for v in values], pa.string())]
    return pa.table([*columns, pa.array([v[2] for v in values], pa.float64())], schema=SCHEMA)


def started(path: Path) -> Store:
    """A checkpoint before its first batch."""
    store = Store.open(path)
    store.create({})
    return store


def commit(sink: Sink, store: Store, batch: int, output: Output | pa.Table) -> None:
    """What the loop does with a batch."""
    sink.stage(BatchId(batch), output if isinstance(output, Output) else Output(output))
    store.publish(Manifest(batch, mappings(0), 0))
    sink.publish(BatchId(batch))


def read(path: Path) -> list[dict[str, object]]:
    """The rows of one result file."""
    if path.suffix == ".parquet":
        return pyarrow.parquet.ParquetFile(path).read().to_pylist()
    if path.stat().st_size == 0:
        return []
    reader = pyarrow.csv.read_csv if path.suffix == ".csv" else pyarrow.json.read_json
    return reader(path).to_pylist()
