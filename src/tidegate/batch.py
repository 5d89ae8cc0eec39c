"""What travels between stages: identities with their own types, and tables as bytes."""

from __future__ import annotations

from typing import IO, NewType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TS, SRC, SEQ = ORDER = "ts", "src", "seq"
"""A tuple's place in the total order, all int64: event time, source, position."""

DECIDED = "@ts"
"""The event time of rows whose `ts` is a time of their own: the instant of their decision."""

BatchId = NewType("BatchId", int)
EpochId = NewType("EpochId", int)

MIN_US = -(2**63)
"""The frontier before every source has reported (-inf), in microseconds."""

MAX_US = 2**63 - 1
"""The frontier after every source has ended (+inf), in microseconds."""


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream; of sliced columns only the slice is written."""
    sink = pa.BufferOutputStream()
    write_table(table, sink)
    return bytes(sink.getvalue())


def write_table(table: pa.Table, sink: IO[bytes] | pa.NativeFile) -> None:
    """Writes the bytes of `to_bytes`, piece by piece."""
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """The table of an Arrow IPC stream; its columns share the memory of `data`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def ints(table: pa.Table, column: str) -> npt.NDArray[np.int64]:
    """An integer column without NULLs as a NumPy array."""
    values: npt.NDArray[np.int64] = table.column(column).to_numpy()
    return values


def gathered(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Some rows of a table, copied, with one chunk in each column.

    A column of lists that are all empty costs its offsets, not a gather of all that a list may
    hold.
    """
    picked, table = pa.array(rows), table.combine_chunks()
    empty = np.zeros(len(rows) + 1, np.int32)
    columns = [
        pa.ListArray.from_arrays(empty, column.chunk(0).values, column.type)
        if _is_blank(column)
        else column.take(picked)
        for column in table.itercolumns()
    ]
    return pa.Table.from_arrays(columns, schema=table.schema).combine_chunks()


def _is_blank(column: pa.ChunkedArray) -> bool:
    """Whether it has lists, and all of them are empty."""
    if not pa.types.is_list(column.type) or column.num_chunks != 1:
        return False
    return len(column.chunk(0).values) == 0 and not column.null_count
