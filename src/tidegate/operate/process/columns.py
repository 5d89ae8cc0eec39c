"""State that a process keeps by column: rows in the order of their times, as numpy arrays.

Rows are stored in **chunks**. A chunk is one entry of the state; its value has the bytes of one
column after the other. A batch writes the rows that it appended as a chunk. It writes them together
with the newest chunks if these are no longer, so that there are few chunks. So each row is written
O(log(_CHUNK_ROWS)) times, however large the state is. A chunk expires with its last row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, TS
from tidegate.calendar.duration import duration_text
from tidegate.errors import QueryError
from tidegate.operate.process.key import EntryChange, StoredEntry, prefix_of
from tidegate.schema import TIME, type_name

if TYPE_CHECKING:
    from tidegate.operate.process.hot import HotBucket
    from tidegate.operate.process.value_json import Encoder

Array = npt.NDArray[Any]
Rows: TypeAlias = pa.Table | pa.RecordBatch | Mapping[str, Any]
Schema: TypeAlias = Mapping[str, str | pa.DataType] | pa.Schema

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_TYPES = {
    type_name(type_): type_
    for type_ in (*_INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.date32(), TIME)
}
"""The types that a column may have, by name: those whose values all have the same size."""

_CHUNK_ROWS = 4096
"""Chunks are joined only up to this length."""

_FEW_ROWS = 64
"""The first arrays have room for so many rows."""


@dataclass(frozen=True)
class ColumnType:
    """The type of a column in Arrow and in numpy."""

    arrow: pa.DataType
    numpy: np.dtype[Any]

    @staticmethod
    def of(arrow: pa.DataType) -> ColumnType:
        return ColumnType(arrow, pa.array([], arrow).to_numpy(zero_copy_only=False).dtype)


@dataclass(frozen=True)
class _Chunk:
    """The rows of one stored entry: the places from `begin` up to before `end`."""

    number: int
    begin: int
    end: int
    until_us: int

    def written(self, prefix: bytes, data: bytes) -> EntryChange:
        """The change that stores these rows; without data, the change that removes them."""
        stored = StoredEntry(self.number, self.until_us, data)
        return EntryChange(b"%s%d" % (prefix, self.number), stored, gone=not data)


class HeldColumns:
    """The rows of one state of a bucket in memory: one contiguous array for each column.

    A place is the number of a row, counted from the first that was read or appended here. When the
    room is used up, larger arrays replace the old ones, without expired rows. The old arrays are
    not changed, so user code may still hold them. Appending costs O(rows appended), amortised.
    """

    def __init__(
        self, types: Mapping[str, ColumnType], stored: Mapping[bytes, StoredEntry]
    ) -> None:
        self._arrays: dict[str, Array] = {n: np.empty(0, t.numpy) for n, t in types.items()}
        self._origin = self._begin = self._end = 0
        self._chunks: list[_Chunk] = []
        for number, until_us, data in sorted(stored.values()):
            before = self._end
            self.append(self._columns(data))
            self._chunks.append(_Chunk(number, before, self._end, until_us))
        self._settled = self._end

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

    def __len__(self) -> int:
        return self._end - self._begin

    def column(self, name: str) -> Array:
        """The rows that have not been forgotten, as a read-only view."""
        there = self._arrays[name][self._begin - self._origin : self._end - self._origin]
        there.flags.writeable = False
        return there

    def forget(self, upto_us: int) -> None:
        """Forget the rows whose times are at or before `upto_us`."""
        upto = np.datetime64(upto_us, "us")
        self._begin += int(np.searchsorted(self.column(TS), upto, "right"))
        while self._chunks and self._chunks[0].end <= self._begin:
            del self._chunks[0]

    def append(self, columns: Sequence[Array]) -> None:
        """Append rows: columns of equal length, in the order of the declared ones."""
        rows = len(columns[0])
        if self._end - self._origin + rows > len(self._arrays[TS]):
            self._grow(len(self) + rows)
        at = self._end - self._origin
        for array, values in zip(self._arrays.values(), columns):
            array[at : at + rows] = values
        self._end += rows

    def clear(self, prefix: bytes) -> list[EntryChange]:
        """Forget all rows; gives the changes that remove the stored ones."""
        gone = [chunk.written(prefix, b"") for chunk in self._chunks]
        self._chunks = []
        self._begin = self._settled = self._end
        return gone

    def settle(
        self, prefix: bytes, ttl_us: int | None, number: Callable[[], int]
    ) -> list[EntryChange]:
        """The changes that store the rows appended since the last call."""
        begin, changes = max(self._settled, self._begin), []
        self._settled = self._end
        if begin == self._end:
            return []
        first: _Chunk | None = None
        # As in a binary counter: a chunk is rewritten only with at least as many rows behind it.
        while self._chunks and self._joins(self._chunks[-1], self._end - begin):
            if first is not None:
                changes.append(first.written(prefix, b""))
            first = self._chunks.pop()
            begin = max(first.begin, self._begin)
        last_us = int(self.column(TS)[-1].astype(np.int64))
        until_us = MAX_US if ttl_us is None else min(last_us + ttl_us, MAX_US)
        of = number() if first is None else first.number
        self._chunks.append(chunk := _Chunk(of, begin, self._end, until_us))
        return [*changes, chunk.written(prefix, self._data(begin))]

    def _joins(self, chunk: _Chunk, rows: int) -> bool:
        """Whether so many rows that follow a chunk are written together with it."""
        there = chunk.end - max(chunk.begin, self._begin)
        return there <= rows and there + rows <= _CHUNK_ROWS

    def _data(self, begin: int) -> bytes:
        """The bytes that store the rows from a place on."""
        return b"".join(self.column(name)[begin - self._begin :].tobytes() for name in self._arrays)

    def _columns(self, data: bytes) -> list[Array]:
        """The columns in the bytes of a chunk, without a copy."""
        types = [array.dtype for array in self._arrays.values()]
        rows, columns, at = len(data) // sum(t.itemsize for t in types), [], 0
        for type_ in types:
            columns.append(np.frombuffer(data, type_, rows, at))
            at += rows * type_.itemsize
        return columns

    def _grow(self, wanted: int) -> None:
        room = max(2 * wanted, _FEW_ROWS)
        for name, array in self._arrays.items():
            longer = np.empty(room, array.dtype)
            longer[: len(self)] = self.column(name)
            self._arrays[name] = longer
        self._origin = self._begin


class ColumnsState:
    """Rows by column, made by `self.state.columns(name, schema)` in `__init__`.

    Rows have a time, `ts`, and are appended in the order of it. With `ttl` a row is gone once that
    much event time has passed since its `ts`. In `process(batch)` that is decided at the first
    tuple of the batch: for later ones the class looks at `ts` itself.
    """

    kind = "columns"
    needs_one_time = False

    def __init__(self, name: str, schema: Schema, ttl_us: int | None) -> None:
        self.name = name
        self.ttl_us = ttl_us
        self._types = _types_of(name, _declared(name, schema))
        self._prefix = prefix_of(name)
        self._bucket: HotBucket | None = None
        self._held: HeldColumns | None = None
        self._since_us: int | None = None
        """The event time at which rows were forgotten last."""
        self._gone: list[EntryChange] = []

    def attach(
        self, bucket: HotBucket, now_us: Callable[[], int], number: Callable[[], int]
    ) -> None:
        """Begin a batch; called once, before the object sees its first tuple."""
        self._bucket, self._now_us, self._number = bucket, now_us, number

    def __getitem__(self, column: str) -> Array:
        """A column of all rows, the oldest first, as numpy has it; it cannot be written."""
        if column not in self._types:
            there = ", ".join(self._types)
            raise KeyError(f"state {self.name} has no column {column}; there are {there}")
        return self._live().column(column)

    def __len__(self) -> int:
        return len(self._live())

    def append(self, rows: Rows) -> None:
        """Add rows: an Arrow table, or arrays by name, of `ts` and the columns declared."""
        if isinstance(rows, pa.Table | pa.RecordBatch):
            rows = dict(zip(rows.column_names, rows.columns))
        if rows.keys() != self._types.keys():
            got = ", ".join(map(str, rows)) or "none"
            raise ValueError(f"{self._needs(', '.join(self._types))}; got {got}")
        held = self._live()
        columns = [self._values(name, rows[name]) for name in self._types]
        if len(set(map(len, columns))) > 1:
            got = ", ".join(f"{len(v)} of {name}" for v, name in zip(columns, self._types))
            raise ValueError(f"{self._needs('as many values of each column')}; got {got}")
        times = np.concatenate([held.column(TS)[-1:], columns[0]])
        if (times[1:] < times[:-1]).any():
            raise ValueError(f"{self._needs('rows in the order of ts')}; got an earlier one later")
        held.append(columns)

    def clear(self) -> None:
        """Remove all rows."""
        self._gone += self._live().clear(self._prefix)

    def changes(self, encoder: Encoder) -> list[EntryChange]:
        """The changes to write: rows that were appended, and rows that were removed."""
        if self._held is None:
            return []
        return [*self._gone, *self._held.settle(self._prefix, self.ttl_us, self._number)]

    def __repr__(self) -> str:
        return f"<{self.text()}>"

    def text(self) -> str:
        """The declaration as text, like that of a map."""
        columns = ", ".join(f"{name} {type_name(t.arrow)}" for name, t in self._types.items())
        ttl = "" if self.ttl_us is None else f" for {duration_text(self.ttl_us)}"
        return f"{self.kind} {self.name} ({columns}){ttl}"

    @property
    def fixed(self) -> str | None:
        """The part of the declaration that must not change: all, as types decide the bytes."""
        return self.text()

    def _live(self) -> HeldColumns:
        """The rows, after forgetting those that have expired."""
        if self._bucket is None:
            raise RuntimeError(
                f"state {self.name} can be used when the object is at work, not in __init__"
            )
        now_us = self._now_us()
        if self._held is None:
            self._held = self._bucket.columns(self._prefix, self._types)
        if self.ttl_us is not None and now_us != self._since_us:
            self._held.forget(max(now_us - self.ttl_us, MIN_US + 1))  # MIN_US is NaT
            self._since_us = now_us
        return self._held

    def _values(self, name: str, given: Any) -> Array:
        type_ = self._types[name]
        if isinstance(given, np.ndarray) and given.dtype == type_.numpy and given.ndim == 1:
            nulls = np.isnat(given).sum() if type_.numpy.kind == "M" else 0
            values: Array = given
        else:
            array = self._cast(name, given, type_.arrow)
            nulls, values = array.null_count, array.to_numpy(zero_copy_only=False)
        if nulls:
            raise ValueError(f"{self._needs(f'no NULL in {name}')}; got {nulls}")
        return values

    def _cast(self, name: str, given: Any, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
        try:
            column = given if isinstance(given, pa.Array | pa.ChunkedArray) else pa.array(given)
            return column.cast(type_)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"{self._needs(f'{type_name(type_)} as {name}')}; got {error}"
            ) from error

    def _needs(self, what: str) -> str:
        return f"state {self.name}: append needs {what}"


def _declared(state: str, schema: Schema) -> tuple[tuple[str, str | pa.DataType], ...]:
    """The columns of a schema, each with its type as the user wrote it."""
    if isinstance(schema, pa.Schema):
        return tuple((field.name, field.type) for field in schema)
    if isinstance(schema, Mapping):
        return tuple(schema.items())
    raise QueryError(
        f"state {state}",
        "columns need a type each, in a dict by name or a pyarrow.Schema",
        repr(schema),
        'Write for example {"price": "double"}.',
    )


@lru_cache
def _types_of(
    state: str, columns: tuple[tuple[str, str | pa.DataType], ...]
) -> dict[str, ColumnType]:
    """The columns of a state by name, the time first; callers must not change the dict."""
    where, found = f"state {state}", {TS: ColumnType.of(TIME)}
    for name, given in columns:
        type_ = _TYPES.get(given.lower()) if isinstance(given, str) else given
        if name == TS:
            raise QueryError(
                where,
                f"the name {TS} belongs to the time that every row has",
                f"a column {TS}",
                "Leave it out, or give it another name.",
            )
        if type_ not in _TYPES.values():
            raise QueryError(
                where,
                f"column {name} must be one of {', '.join(_TYPES)}",
                str(given),
                "Keep other values in a map, under a number that is in the column.",
            )
        found[name] = ColumnType.of(type_)
    return found
