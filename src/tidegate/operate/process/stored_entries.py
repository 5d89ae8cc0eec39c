"""The entries of one mapping, between the rows of a bucket and Python values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from tidegate.operate.process.entry import EntryNames
from tidegate.operate.process.layer import EntryColumns, StoredEntry
from tidegate.operate.process.plain import NotPlain, pack_one, unpack_each, unpack_one
from tidegate.operate.process.stored import BucketRows


class Known(NamedTuple):
    """A stored entry as Python values."""

    key: Any
    value: Any
    row: StoredEntry


@dataclass(frozen=True)
class Loaded:
    """All stored entries of a mapping, in its order."""

    keys: list[Any]
    values: list[Any]
    rows: EntryColumns

    def known(self, place: int) -> Known:
        """One of them."""
        return Known(self.keys[place], self.values[place], self.rows.row(place))

    @cached_property
    def places(self) -> dict[Any, int]:
        """Where the entry of a key is."""
        return dict(zip(self.keys, range(len(self.keys))))


NOTHING = Loaded([], [], EntryColumns([], [], [], []))


class StoredEntries:
    """The entries of one mapping of a bucket, by key."""

    def __init__(self, bucket: BucketRows, names: EntryNames) -> None:
        self._bucket = bucket
        self._names = names

    def find(self, key: Any) -> Known | None:
        """The entry of a key; KeyError where all have to be loaded to find it."""
        entry = self._names.entry(key)
        if entry is None:
            raise KeyError(key)
        try:
            name = self._names.name(pack_one(key, "the key"))
        except NotPlain:  # there is none of that name, but perhaps an equal key
            name = b""
        for row in self._bucket.find(entry, name):
            if row.name == name:
                return Known(key, unpack_one(row.data), row)
            if row.name.startswith(self._names.prefix):
                stored = unpack_one(self._names.key(row.name))
                if hash(stored) == hash(key) and stored == key:
                    return Known(stored, unpack_one(row.data), row)
        return None

    def load(self) -> Loaded:
        """All entries; costs O(bucket)."""
        rows = self._bucket.load(self._names.prefix)
        keys = unpack_each([self._names.key(name) for name in rows.names])
        return Loaded(keys, unpack_each(rows.data), rows)
