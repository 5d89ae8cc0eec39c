"""The entries of one declared state in a batch: read when asked for, written when changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidegate.batch import MAX_US
from tidegate.operate.process.entry import StateRow, names_of
from tidegate.operate.process.layer import StoredEntry
from tidegate.operate.process.plain import FIXED, Encoder, NotPlain, Until, pack_one, unpack_one
from tidegate.operate.process.stored import BucketRows


@dataclass
class _Cell:
    """An entry that was read or set in this batch; `stored` is its row, None for a new one.

    `number` gives its place among the entries; `until_us` is when it expires. `read` is the value
    as it was read.
    """

    key: Any
    value: Any
    number: int
    until_us: int
    stored: StoredEntry | None = None
    read: Any = None


class StoredEntries:
    """The entries of the state `name` in one bucket, of which nothing may be stored yet.

    `now_us` gives the event time of the tuple or timer at work, and `number` the next number of an
    entry of the object.
    """

    def __init__(
        self,
        name: str,
        ttl_us: int | None,
        bucket: BucketRows | None,
        now_us: Callable[[], int],
        number: Callable[[], int],
    ) -> None:
        self._path = f"self.state {name}"
        self._names = names_of(name)
        self._ttl_us = ttl_us
        self._bucket = bucket
        self._now_us = now_us
        self._number = number
        self._cells: dict[Any, _Cell] = {}
        self._absent: set[Any] = set()
        """Keys that are not stored, or were removed."""
        self._removed: dict[bytes, StoredEntry] = {}
        """Rows of entries that were removed, by name."""
        self._all_read = bucket is None

    def get(self, key: Any) -> Any:
        cell = self._live(key)
        if cell is None:
            raise KeyError(key)
        return cell.value

    def set(self, key: Any, value: Any) -> None:
        until_us = MAX_US if self._ttl_us is None else min(self._now_us() + self._ttl_us, MAX_US)
        cell = self._live(key)
        if cell is not None:
            cell.value, cell.until_us = value, until_us
            return
        self._check(key)
        self._forget(key)  # one that has expired: the new one is the last in the order
        self._cells[key] = _Cell(key, value, self._number(), until_us)

    def remove(self, key: Any) -> None:
        if self._live(key) is None:
            raise KeyError(key)
        self._forget(key)

    def keys(self) -> list[Any]:
        self._read_all()
        now_us = self._now_us()
        cells = sorted(self._cells.values(), key=lambda cell: cell.number)
        return [cell.key for cell in cells if now_us < cell.until_us]

    def changes(self, encoder: Encoder) -> list[StateRow]:
        """The rows to write; a value that was looked up may have been changed in place."""
        rows = [row for cell in self._cells.values() if (row := self._changed(cell, encoder))]
        written = {row.name for row in rows}
        gone = (row for name, row in self._removed.items() if name not in written)
        return rows + [StateRow.gone(row.entry, row.name) for row in gone]

    def _changed(self, cell: _Cell, encoder: Encoder) -> StateRow | None:
        stored, expires = cell.stored, cell.until_us < MAX_US
        same = cell.value is cell.read and type(cell.value) in FIXED
        if stored is not None and same and not expires:
            return None
        kept = Until(cell.until_us, cell.value) if expires else cell.value
        data = encoder.packed(kept, f"{self._path}[{cell.key!r}]")
        if stored is None:
            entry, name = self._check(cell.key), self._name(cell.key)
            return StateRow(entry, cell.number, cell.until_us, name, data)
        if data == stored.data:
            return None
        return StateRow(stored.entry, stored.number, cell.until_us, stored.name, data)

    def _live(self, key: Any) -> _Cell | None:
        """The entry of a key, read if need be; None where there is none or it has expired."""
        cell = self._cells.get(key)
        if cell is None and not self._all_read and key not in self._absent:
            cell = self._find(key)
            if cell is None:
                self._absent.add(key)
        return cell if cell is not None and self._now_us() < cell.until_us else None

    def _find(self, key: Any) -> _Cell | None:
        assert self._bucket is not None
        entry, name = self._check(key), self._name(key)
        for row in self._bucket.find(entry, name):
            if row.name == name:
                return self._keep(key, row)
            # An equal key of another type, as 1 and 1.0, has another name and the same number.
            if row.name.startswith(self._names.prefix):
                stored = unpack_one(self._names.key(row.name))
                if hash(stored) == hash(key) and stored == key:
                    return self._keep(stored, row)
        return None

    def _keep(self, key: Any, row: StoredEntry) -> _Cell:
        value, until_us = unpack_one(row.data), MAX_US
        if isinstance(value, Until):
            until_us, value = value
        cell = self._cells[key] = _Cell(key, value, row.number, until_us, row, value)
        return cell

    def _read_all(self) -> None:
        if self._all_read:
            return
        assert self._bucket is not None
        rows = self._bucket.load(self._names.prefix)
        for place, name in enumerate(rows.names):
            key = unpack_one(self._names.key(name))
            if name not in self._removed and key not in self._cells:
                self._keep(key, rows.row(place))
        self._all_read = True

    def _forget(self, key: Any) -> None:
        cell = self._cells.pop(key, None)
        self._absent.add(key)
        if cell is not None and cell.stored is not None:
            self._removed[cell.stored.name] = cell.stored

    def _check(self, key: Any) -> int:
        """The number that the entry of a key is found by."""
        entry = self._names.entry(key)
        if entry is None:
            raise TypeError(
                f"{self._path}: a key must be a number other than NaN, a text, bytes, a date or "
                f"time, a duration, None, or a tuple or frozenset of these; got {key!r}"
            )
        return entry

    def _name(self, key: Any) -> bytes:
        try:
            return self._names.name(pack_one(key, "the key"))
        except NotPlain as error:
            raise TypeError(f"{self._path}: {error.path} {error.problem}") from error
