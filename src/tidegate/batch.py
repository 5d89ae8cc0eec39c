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
