"""The rows that keep the objects of buckets in segments.

A bucket has a row for its **head**, which is all of its object but its declared state, and a row
for each **entry** of declared state. A row is known by its name, which is made of the state's name
and the key. The newest row of a name counts; one that hides says that the entry is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MIN_US, ints
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


class StoredEntry(NamedTuple):
    """What is stored of an entry beside its name."""

    number: int
    until_us: int
    data: bytes


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
    def of(name: bytes, stored: StoredEntry) -> StateRow:
        return StateRow(entry_of(name), stored.number, stored.until_us, name, stored.data)

    @staticmethod
    def gone(name: bytes, stored: StoredEntry) -> StateRow:
        """What says that an entry was removed, for as long as it could have lived."""
        return StateRow(entry_of(name) | HIDES, 0, stored.until_us, name, b"")


@dataclass(frozen=True)
class EntryHorizon(LayerHorizon):
    """The same without entries that have expired, which are dropped when segments are merged.

    Rows of one name expire in the order in which they were written, so that none of an older layer
    comes to light.
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


def prefix_of(state: str) -> bytes:
    """How the names of the entries of a state begin, and no others: its own name has no colon."""
    return f"{state}:".encode()


@lru_cache
def span_of(prefix: bytes) -> tuple[int, int]:
    """The first number of the entries of a state, and the first after them."""
    first = (crc32(prefix) >> 3) + 1
    return first << 32, (first + 1) << 32


def entry_of(name: bytes) -> int:
    """The number that rows are sorted and found by; few names share one."""
    return span_of(name[: name.index(b":") + 1])[0] | crc32(name)


def plain_key(key: Any) -> Any:
    """The one key that stands for all that are equal to it, as 1 does for 1.0 and True.

    TypeError for a key of which that cannot be said: one that is not equal to itself, or not of a
    plain type. It gives the key itself where it can.
    """
    of_type = _PLAIN_KEYS.get(type(key))
    if of_type is None or key != key:  # noqa: PLR0124 - NaN, which a mapping may have several times
        raise TypeError(
            "a key must be a number other than NaN, a text, bytes, a date or time, a duration, "
            f"None, or a tuple or frozenset of these; got {key!r}"
        )
    return of_type(key)


def _itself(key: Any) -> Any:
    return key


def _of_float(key: float) -> float:
    return int(key) if key.is_integer() else key


def _of_decimal(key: Decimal) -> Any:
    if key.is_finite() and key == key.to_integral_value():
        return int(key)
    if float(key) == key:
        return float(key)
    digits = len(key.as_tuple().digits)  # as many as there are: trailing zeros go, nothing else
    return key.normalize(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN))


def _of_moment(key: datetime) -> datetime:
    # As Python compares them: by the instant, or by the clock where there is no zone. In a zone
    # with summer time an instant may be equal to nothing but itself.
    if key.tzinfo is not None and type(key.tzinfo) is not timezone:
        raise TypeError(f"a key that is a time must be in UTC or have no zone; got {key!r}")
    if key.fold:
        key = key.replace(fold=0)
    return key if key.tzinfo is None or key.tzinfo is UTC else key.astimezone(UTC)


def _of_tuple(key: tuple[Any, ...]) -> tuple[Any, ...]:
    plain = tuple(map(plain_key, key))
    return key if all(map(_is, plain, key)) else plain


def _of_set(key: frozenset[Any]) -> frozenset[Any]:
    members = list(key)
    plain = list(map(plain_key, members))
    return key if all(map(_is, plain, members)) else frozenset(plain)


def _is(one: object, other: object) -> bool:
    return one is other


_SCALARS = (np.bool_, np.float16, np.float32, np.float64, np.str_, np.bytes_)
_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_PLAIN_KEYS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((str, int, bytes, date, timedelta, type(None)), _itself),
    bool: int,
    float: _of_float,
    Decimal: _of_decimal,
    datetime: _of_moment,
    tuple: _of_tuple,
    frozenset: _of_set,
    **dict.fromkeys((*_SCALARS, *_INTEGERS), lambda key: plain_key(key.item())),
}
