"""A number for the row sequence of an output; no cut into batches or parts changes it.

Each row becomes 64 bits, from its cells and the names and kinds of their columns. Rows are folded
in order as a polynomial modulo 2**61 - 1. The digest of two sequences, one after the other, follows
from their digests alone, so tasks and runs can each digest their part. NULL is a value, all NaN are
equal, -0.0 differs from 0.0. The digest finds accidents; it is no proof against somebody who
computes another sequence with the same digest. Costs O(rows) for each column, O(bytes) for texts.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import SinkError
from tidegate.sink.digest import digest_array
from tidegate.sink.digest.digest_array import Words

_ITEM, _CHUNK_ROWS = "item", 262_144
_LOOP_ROWS, _LONG_BYTES = 2_048, 1_024
"""From this many rows, or this many bytes of a text, on the compiled `digest_loop` is used."""


@dataclass(frozen=True)
class Digest:
    """The digest of a sequence of rows, and their number; the digest of no rows is 0."""

    rows: int = 0
    value: int = 0

    @staticmethod
    def of(table: pa.Table) -> Digest:
        """The digest of a table's rows."""
        found, batches = Digest(), table.to_batches(max_chunksize=_CHUNK_ROWS)
        if len(batches) > 1 + table.num_rows // _LOOP_ROWS:
            batches = table.combine_chunks().to_batches(max_chunksize=_CHUNK_ROWS)
        for batch in batches:
            if batch.num_rows:
                found = found.with_rows(row_hashes(batch))
        return found

    def with_rows(self, hashes: Words) -> Digest:
        """The digest with more rows at the end, given by their hashes."""
        folded = _loops(len(hashes)).fold(hashes, np.uint64(self.value))
        return Digest(self.rows + len(hashes), int(folded))

    def then(self, other: Digest) -> Digest:
        """The digest of these rows followed by the rows of another digest."""
        # As digits in a number: the earlier rows move up by one power of the base for each row.
        moved = self.value * pow(digest_array.BASE, other.rows, digest_array.PRIME)
        return Digest(self.rows + other.rows, (moved + other.value) % digest_array.PRIME)

    @property
    def text(self) -> str:
        """The number in 16 hexadecimal digits."""
        return f"{self.value:016x}"

    def to_dict(self) -> dict[str, Any]:
        """What a manifest keeps."""
        return {"rows": self.rows, "digest": self.text}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> Digest:
        return Digest(int(saved["rows"]), int(saved["digest"], 16))


def row_hashes(batch: pa.RecordBatch) -> Words:
    """64 bits for each row, mixed from its cells in the order of the columns."""
    hashes = np.zeros(batch.num_rows, np.uint64)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        _mix(hashes, column, field.name)
    return hashes


def _mix(hashes: Words, column: pa.Array, name: str) -> None:
    """Mix a column into the hashes of rows, in place."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind, nulls = _kind(column.type), _nulls(column)
    seed = np.uint64(zlib.crc32(f"{kind} {name}".encode()))
    if kind in ("text", "bytes"):
        plain = column.cast(pa.large_binary())
        _, offsets, data = plain.buffers()
        begins = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
        longest = int(np.diff(begins).max(initial=0))
        mix_texts = _loops(len(hashes) if longest < _LONG_BYTES else _LOOP_ROWS).mix_texts
        mix_texts(hashes, begins, np.frombuffer(data or b"", np.uint8), nulls, seed)
        return
    _loops(len(hashes)).mix_words(hashes, _words(column, kind), nulls, seed)


def _loops(rows: int) -> ModuleType:
    """The module that mixes and folds this many rows; importing Numba for a few takes longer."""
    if rows < _LOOP_ROWS:
        return digest_array
    from tidegate.sink.digest import digest_loop

    return digest_loop


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    if not column.null_count:
        return np.zeros(0, np.bool_)
    return np.ascontiguousarray(pc.is_null(column).to_numpy(zero_copy_only=False))


_KINDS = (
    (pa.types.is_boolean, "int"),
    (pa.types.is_integer, "int"),
    (pa.types.is_floating, "float"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_timestamp, "time"),
    (pa.types.is_temporal, "temporal"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_fixed_size_binary, "bytes"),
    (pa.types.is_struct, "struct"),
    (pa.types.is_map, "list"),
    (pa.types.is_list, "list"),
    (pa.types.is_large_list, "list"),
    (pa.types.is_fixed_size_list, "list"),
    (pa.types.is_null, "null"),
)


def _kind(type_: pa.DataType) -> str:
    for is_kind, kind in _KINDS:
        if is_kind(type_):
            return kind
    raise SinkError("digest", "a column must have a type with a canonical form", str(type_))


def _words(column: pa.Array, kind: str) -> Words:
    """64 bits for each cell: equal values have equal bits, a NULL cell any."""
    if kind == "struct":
        hashes = np.zeros(len(column), np.uint64)
        for field, inner in zip(column.type, column.flatten(), strict=True):
            _mix(hashes, inner, field.name)
        return hashes
    if kind == "list":
        return _lists(column)
    if kind == "null":
        return np.zeros(len(column), np.uint64)
    if kind == "decimal":
        return _decimals(column)
    if kind == "float":
        doubles = np.array(column.cast(pa.float64()).fill_null(0.0).to_numpy(), np.float64)
        doubles[np.isnan(doubles)] = np.nan
        return doubles.view(np.uint64)
    if kind == "time" and column.type.unit in ("s", "ms"):
        column = column.cast(pa.timestamp("us", column.type.tz))
    if kind in ("time", "temporal"):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    integers = np.ascontiguousarray(column.fill_null(0).to_numpy(zero_copy_only=False))
    wide = integers if integers.dtype == np.uint64 else integers.astype(np.int64, copy=False)
    return wide.view(np.uint64)


def _decimals(column: pa.Array) -> Words:
    """Hashes of value and scale, the same for every width that holds the decimal."""
    wide = column.cast(pa.decimal256(76, column.type.scale))
    parts = np.frombuffer(wide.buffers()[1] or b"", np.uint64).reshape(-1, 4)
    parts = parts[wide.offset : wide.offset + len(wide)]
    mix_words = _loops(len(column)).mix_words
    hashes = np.full(len(column), column.type.scale, np.uint64)
    for place in range(4):
        words = np.ascontiguousarray(parts[:, place])
        mix_words(hashes, words, np.zeros(0, np.bool_), np.uint64(place))
    return hashes


def _lists(column: pa.Array) -> Words:
    """Hash each list: a polynomial of the hashes of its items modulo 2**64, plus its length."""
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))
    lengths = np.array(pc.list_value_length(column).fill_null(0).to_numpy(), np.int64)
    items = column.flatten()
    hashes = np.zeros(len(items), np.uint64)
    _mix(hashes, items, _ITEM)
    ends = np.cumsum(lengths)
    places = np.arange(len(items)) - np.repeat(ends - lengths, lengths)
    base = np.uint64(0x9E3779B97F4A7C15)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)) + 1, base), dtype=np.uint64)
    # A list's polynomial is the difference of two prefix sums; modulo 2**64 that is exact.
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes * powers[places])])
    found: Words = (sums[ends] - sums[ends - lengths]) + lengths.astype(np.uint64)
    return found
