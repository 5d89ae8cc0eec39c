"""Turns rows into keys and values of records, column by column.

The checkpoint keeps each record as it will be written. So a batch that is written again has the
same bytes, even where a later version of this package writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.clock import utc_now
from tidegate.sink.checkpoint_staging import KeptParts
from tidegate.sink.csv import csv_text
from tidegate.sink.folder.form import Form
from tidegate.sink.json import encoded, objects
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.upsert import DELETE, OP

KEY, VALUE = "key", "value"
SCHEMA = pa.schema([(KEY, pa.binary()), (VALUE, pa.binary())])

AT_MS = "at_ms"
"""Key of `Receipt.more`: the timestamp of all records of the part, whenever they are written."""

_AT_ONCE = 65536
_NEWLINE, _QUOTE = 10, 34


def json_values(batch: pa.RecordBatch) -> pa.Array:
    return objects(batch).cast(pa.binary())


def _csv_values(batch: pa.RecordBatch) -> pa.Array:
    """A line of CSV for each row, without its line end."""
    # A line feed after an even number of quotes is outside of quotes, so it ends a row.
    text = np.frombuffer(csv_text(pa.table(batch), header=False).encode(), np.uint8)
    ends = np.flatnonzero((text == _NEWLINE) & (np.cumsum(text == _QUOTE) % 2 == 0))
    offsets = np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.delete(text, ends))]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers)


Values = Callable[[pa.RecordBatch], pa.Array]
"""Writes each row of a batch as one value."""

PLAIN: dict[str, Values] = {"json": json_values, "csv": _csv_values}
"""The formats that need no schema."""

AVRO = "avro"
FORMATS = (*PLAIN, AVRO)


def key_texts(batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.Array:
    """The keys of rows: one column gives its plain text, or NULL; several give a JSON object."""
    if not names:
        return pa.nulls(batch.num_rows, pa.binary())
    if len(names) > 1:
        return objects(batch.select(names)).cast(pa.binary())
    column = batch.column(names[0])
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return column.cast(pa.binary())
    text = encoded(column)
    quoted = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    return (pc.utf8_trim(text, '"') if quoted else text).cast(pa.binary())


def rows_as_records(rows: pa.Table, key: tuple[str, ...], values: Values) -> pa.Table:
    """Keys and values of rows, in their order."""
    return _records(rows, lambda batch: (key_texts(batch, key), values(batch)))


def changes_as_records(rows: pa.Table, key: tuple[str, ...], values: Values) -> pa.Table:
    """Changes of an upserting sink: keys are JSON objects; a deletion has no value (tombstone)."""
    return _records(rows, partial(_change, key=key, values=values))


def _change(
    batch: pa.RecordBatch, key: tuple[str, ...], values: Values
) -> tuple[pa.Array, pa.Array]:
    names = [name for name in batch.schema.names if name != OP]
    stays = pc.not_equal(batch.column(OP), DELETE)
    made, gone = values(batch.select(names)), pa.scalar(None, pa.binary())
    return objects(batch.select(key)).cast(pa.binary()), pc.if_else(stays, made, gone)


def _records(
    rows: pa.Table, record: Callable[[pa.RecordBatch], tuple[pa.Array, pa.Array]]
) -> pa.Table:
    batches = rows.combine_chunks().to_batches(max_chunksize=_AT_ONCE)
    made = [pa.record_batch(list(record(b)), schema=SCHEMA) for b in batches if b.num_rows]
    return pa.Table.from_batches(made, SCHEMA)


@dataclass(frozen=True)
class RecordParts:
    """Writes the rows of a batch to the checkpoint, as the records that they will be.

    Side outputs become JSON without keys. Those that no topic takes are only counted.
    """

    kept: KeptParts
    encode: Callable[[pa.Table], pa.Table]
    form: Form
    where: str

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        if part.side:
            records = rows_as_records(rows, (), json_values)
        else:
            self.form.check(rows, self.where, "kafka://HOST:PORT/TOPIC?")
            records = self.encode(rows)
        receipt = self.kept.write(part, records)
        at_ms = int(utc_now().timestamp() * 1000)
        return replace(receipt, more={**receipt.more, AT_MS: at_ms})
