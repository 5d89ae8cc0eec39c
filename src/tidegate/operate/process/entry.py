"""The rows that keep the objects of buckets in segments.

A bucket has a row for its **head**, which is all of its object but its declared state, and a row
for each **entry** of declared state. A row is known by its name, made of the state's name and the
key, and is found by a number made of both. The newest row of a name counts; one that hides says
that the entry is gone.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring_ascii as text_of
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US, ints
from tidegate.operate.kernels.order import flat
from tidegate.operate.layered_state import HIDES, LayeredKeeper, LayerHorizon
from tidegate.state.segment import Segment

ENTRY = "entry"
STATE = pa.schema(
    [
        ("bucket", pa.int32()),
        (ENTRY, pa.int64()),
        ("number", pa.int64()),
        ("pending_us", pa.int64()),
        ("name", pa.large_binary()),
        ("value", pa.large_binary()),
    ]
)
"""Sorted by bucket and entry. `number` gives the order of a map: entries have ascending ones.
`pending_us` is the earliest timer of a head, and when an entry expires."""

HEAD = 0
"""The `entry` of heads; those of entries are greater."""


class StateRow(NamedTuple):
    """One row of a bucket."""

    entry: int
    number: int
    pending_us: int
    name: bytes
    value: bytes

    @staticmethod
    def head(pending_us: int, value: bytes) -> StateRow:
        return StateRow(HEAD, 0, pending_us, b"", value)

    @staticmethod
    def gone(entry: int, name: bytes) -> StateRow:
        return StateRow(entry | HIDES, 0, MAX_US, name, b"")


@dataclass(frozen=True)
class EntryHorizon(LayerHorizon):
    """The same without entries that have expired, which are dropped when segments are merged.

    Entries of one name expire in the order in which they were written, so that none of an older
    layer comes to light.
    """

    frontier_us: int = MIN_US

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        live = super().live(rows, segment)
        if "pending_us" in rows.column_names:
            live &= (ints(rows, ENTRY) == HEAD) | (ints(rows, "pending_us") > self.frontier_us)
        return live


@dataclass(frozen=True)
class EntryKeeper(LayeredKeeper):
    """Heads and entries, each as it was written last."""

    order = ENTRY

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> EntryHorizon:
        oldest = segments[0].name if segments else None
        return EntryHorizon(ENTRY, oldest, frontier_us=frontier_us)

    def arrange(self, rows: pa.Table) -> pa.Table:
        return newest(rows)


def newest(rows: pa.Table) -> pa.Table:
    """Of every name in every bucket the last row, sorted by bucket and entry.

    `rows` have the oldest first. Costs O(rows * log(rows)).
    """
    names = flat(rows.column("name")).dictionary_encode().indices.to_numpy()
    bucket, entry = ints(rows, "bucket"), ints(rows, ENTRY)
    order = np.lexsort([names, bucket])  # stable: the newest row of a name is its last
    last = (np.diff(names[order]) != 0) | (np.diff(bucket[order]) != 0)
    kept = order[np.append(last, True)[: len(order)]]
    return rows.take(pa.array(kept[np.lexsort([entry[kept], bucket[kept]])]))


def table_of(buckets: Sequence[tuple[int, Sequence[StateRow]]]) -> pa.Table:
    """Rows of buckets, which ascend, as a table of the state."""
    rows = [(bucket, *row) for bucket, found in buckets for row in sorted(found)]
    columns = [list(column) for column in zip(*rows)] or [[] for _ in STATE]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, STATE)], schema=STATE)


class EntryNames:
    """How the entries of one attribute are named and found."""

    def __init__(self, attribute: str) -> None:
        # A text of JSON has an end, so that no other name begins so.
        self.prefix = text_of(attribute).encode() + b":"
        self._seed = crc32(self.prefix)

    def entry(self, key: Any) -> int | None:
        """The number that the entry of a key is found by.

        Keys that are equal have one number, also of different types (1, 1.0 and True), and others
        rarely do. None for a key of which that cannot be promised: one that is not equal to itself,
        or not of a plain type.
        """
        found = _hash(key, self._seed)
        return None if found is None else found + 1 + HEAD

    def name(self, key: bytes) -> bytes:
        """The name of an entry, by its packed key."""
        return self.prefix + key

    def key(self, name: bytes) -> bytes:
        """The packed key of an entry."""
        return name[len(self.prefix) :]


@lru_cache
def names_of(attribute: str) -> EntryNames:
    """Those of an attribute; every batch asks for the same few."""
    return EntryNames(attribute)


def _hash(key: Any, seed: int) -> int | None:
    of_type = _HASHES.get(type(key))
    return None if of_type is None else of_type(key, seed)


def _of_text(key: str, seed: int) -> int:
    return crc32(key.encode("utf-8", "surrogatepass"), seed)


def _of_number(key: Any, seed: int) -> int | None:
    if key != key:  # noqa: PLR0124 - NaN, which a mapping may have several times
        return None
    # Numbers of all types that are equal have one hash, and it is the same in every process.
    return crc32(hash(key).to_bytes(8, "little", signed=True), seed)


def _of_tuple(key: tuple[Any, ...], seed: int) -> int | None:
    for item in key:
        found = _hash(item, seed)
        if found is None:
            return None
        seed = found
    return crc32(b"%d" % len(key), seed)


def _of_set(key: frozenset[Any], seed: int) -> int | None:
    members = [_hash(member, seed) for member in key]
    return None if None in members else crc32(repr(sorted(members)).encode(), seed)  # type: ignore[type-var]


def _of_moment(key: datetime, seed: int) -> int:
    # As Python compares them: by the instant, or by the clock where there is no zone.
    clock = key.replace(tzinfo=None, fold=0) - datetime.min
    return _of_duration(clock - (key.replace(fold=0).utcoffset() or timedelta()), seed)


def _of_duration(key: timedelta, seed: int) -> int:
    return crc32(struct.pack("<3i", key.days, key.seconds, key.microseconds), seed)


_NUMBERS = (bool, int, float, complex, Decimal, np.bool_, np.float16, np.float32, np.float64)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_HASHES: dict[type, Callable[[Any, int], int | None]] = {
    str: _of_text,
    np.str_: _of_text,
    bytes: crc32,
    np.bytes_: crc32,
    type(None): lambda key, seed: crc32(b"none", seed),
    tuple: _of_tuple,
    frozenset: _of_set,
    date: lambda key, seed: crc32(struct.pack("<i", key.toordinal()), seed),
    datetime: _of_moment,
    timedelta: _of_duration,
    **dict.fromkeys((*_NUMBERS, *_INTEGERS), _of_number),
}
