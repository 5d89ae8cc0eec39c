"""Which entries of a mapping have to be written, between what is stored and what an object left.

Values that were handed to the object may have been changed in place: they are encoded again, and
written where their bytes differ. An entry that was added, or came to another place in the mapping,
gets the next number, and so do those behind it: numbers ascend in the order of the mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import is_
from typing import Any

from tidegate.operate.process.entry import EntryNames, StateRow
from tidegate.operate.process.layer import StoredEntry
from tidegate.operate.process.plain import FIXED, Encoder
from tidegate.operate.process.stored_entries import Known, Loaded
from tidegate.operate.process.stored_mapping import StoredMapping

Items = Sequence[tuple[Any, Any]]


class EntryChanges:
    """Gathers the rows of one attribute, whose next entry gets `number`.

    `of_stored` and `of_real` are False, and nothing is gathered, where a key cannot be found by a
    number: then the mapping is not kept by entry.
    """

    def __init__(self, names: EntryNames, path: str, number: int, encoder: Encoder) -> None:
        self.number = number
        self.rows: list[StateRow] = []
        self._names = names
        self._path = path
        self._encoder = encoder

    def of_stored(self, mapping: StoredMapping) -> bool:
        """What was changed through a mapping that read what it was asked for."""
        if mapping.loaded is not None:
            return self.of_real(mapping.real(), mapping.loaded)
        return self._gather(mapping.known(), mapping.added(), mapping.removed())

    def of_real(self, mapping: Mapping[Any, Any], stored: Loaded) -> bool:
        """How a mapping differs from what is stored."""
        count = len(stored.keys)
        if len(mapping) < count or not all(map(is_, mapping, stored.keys)):
            return self._of_reordered(mapping, stored)
        kept = (
            (stored.known(place), value)
            for place, (value, old) in enumerate(zip(mapping.values(), stored.values))
            if not _is_same(value, old)
        )
        return self._gather(kept, list(islice(mapping.items(), count, None)), ())

    def _of_reordered(self, mapping: Mapping[Any, Any], stored: Loaded) -> bool:
        """The same where entries were removed or moved."""
        kept: dict[int, Any] = {}
        added: list[tuple[Any, Any]] = []
        last = -1
        for key, value in mapping.items():
            place = stored.places.get(key, -1)
            if not added and place > last and self._is_named(key, stored, place):
                kept[place] = value
                last = place
            else:
                added.append((key, value))
        gone = (stored.known(p).row for p in range(len(stored.keys)) if p not in kept)
        return self._gather([(stored.known(p), v) for p, v in kept.items()], added, gone)

    def _gather(
        self, kept: Iterable[tuple[Known, Any]], added: Items, gone: Iterable[StoredEntry]
    ) -> bool:
        entries = [self._names.entry(key) for key, _ in added]
        if None in entries:
            return False
        for old, value in kept:
            self._compare(old, value)
        names = {self._add(key, value, entry) for (key, value), entry in zip(added, entries)}
        self.rows += [StateRow.gone(row.entry, row.name) for row in gone if row.name not in names]
        return True

    def _compare(self, old: Known, value: Any) -> None:
        if _is_same(value, old.value):
            return
        data = self._encoder.packed(value, f"{self._path}[{old.key!r}]")
        if data != old.row.data:
            self.rows.append(StateRow.of(old.row.entry, old.row.number, old.row.name, data))

    def _add(self, key: Any, value: Any, entry: int | None) -> bytes:
        assert entry is not None
        name = self._name(key)
        data = self._encoder.packed(value, f"{self._path}[{key!r}]")
        self.rows.append(StateRow.of(entry, self.number, name, data))
        self.number += 1
        return name

    def _name(self, key: Any) -> bytes:
        return self._names.name(self._encoder.packed(key, f"the keys of {self._path}"))

    def _is_named(self, key: Any, stored: Loaded, place: int) -> bool:
        """Whether a key is the one that is stored, and not one that is equal to it."""
        return stored.keys[place] is key or stored.rows.names[place] == self._name(key)


def _is_same(value: Any, old: Any) -> bool:
    """Whether a value cannot have changed since it was read."""
    return value is old and type(value) in FIXED
