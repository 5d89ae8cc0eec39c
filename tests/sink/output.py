"""Batches for the tests of sinks, and what is read back of files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from tests.state.mapping import mappings
from tidegate.batch import BatchId
from tidegate.driver.outlet import StoreKeep
from tidegate.schema import TIME
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.protocol import Opening, Preparing, Sink
from tidegate.sink.receipt import Part, Receipt
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


def opened(sink: Sink, store: Store, schema: pa.Schema = SCHEMA, owner: int = 0) -> None:
    """Open a sink as the driver does: after the newest batch of a checkpoint, if it has one."""
    latest = store.latest()
    newest = None if latest is None else BatchId(latest.batch)
    sink.open(Opening(schema, None, newest, StoreKeep(store), owner))


def stage(sink: Sink, batch: int, output: BatchOutput | pa.Table) -> list[Receipt]:
    """What the driver does with a batch before the commit."""
    output = output if isinstance(output, BatchOutput) else BatchOutput(output)
    writer = sink.begin(BatchId(batch))
    receipts = [writer.write(Part(), output.rows)]
    if sink.side_outputs:
        for stream, late in output.late.items():
            receipts.append(writer.write(Part(side="late", stream=stream), late))
        if output.rejected is not None:
            receipts.append(writer.write(Part(side="rejected"), output.rejected))
    return list(sink.prepare(BatchId(batch), receipts)) if isinstance(sink, Preparing) else receipts


def commit(sink: Sink, store: Store, batch: int, output: BatchOutput | pa.Table) -> list[Receipt]:
    """What the driver does with a batch; the receipts that are in its manifest."""
    receipts = stage(sink, batch, output)
    written = {"": tuple(r.to_dict() for r in receipts)}
    store.publish(Manifest(batch, mappings(0), 0, outputs=written))
    sink.publish(BatchId(batch), receipts)
    return receipts


def read(path: Path) -> list[dict[str, object]]:
    """The rows of one result file."""
    if path.suffix == ".parquet":
        return pyarrow.parquet.ParquetFile(path).read().to_pylist()
    if path.stat().st_size == 0:
        return []
    reader = pyarrow.csv.read_csv if path.suffix == ".csv" else pyarrow.json.read_json
    return reader(path).to_pylist()
