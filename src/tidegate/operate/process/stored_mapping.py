"""A mapping of the user's object that reads the entries it is asked for, and no others.

It stands for a dict, a Counter, an OrderedDict or a defaultdict while a batch is at work, in places
where the code of the class cannot tell (`attribute_use`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any

from tidegate.operate.process.layer import StoredEntry
from tidegate.operate.process.stored_entries import Known, Loaded, StoredEntries


class StoredMapping(MutableMapping[Any, Any]):
    """Entries that were asked for or set are in a real mapping; all of them once it is iterated.

    `empty` is that mapping without entries, `count` how many are stored.
    """

    def __init__(self, entries: StoredEntries, empty: dict[Any, Any], count: int) -> None:
        self.loaded: Loaded | None = None
        """What was stored, once all of it has been read; from then on nothing is noted here."""
        self._entries = entries
        self._real = empty
        self._count = count
        self._known: dict[Any, Known] = {}
        """Stored entries that were read and not removed."""
        self._removed: dict[bytes, StoredEntry] = {}
        """Those that were, by their names."""
        self._absent: set[Any] = set()
        """Keys that are not stored, or were removed."""

    def known(self) -> list[tuple[Known, Any]]:
        """The stored entries that were read and are there, with their values as they are now."""
        return [(known, self._real[key]) for key, known in self._known.items()]

    def added(self) -> list[tuple[Any, Any]]:
        """Keys and values that were not stored, or removed in between, in their order."""
        return [(key, value) for key, value in self._real.items() if key not in self._known]

    def removed(self) -> list[StoredEntry]:
        """The stored entries that are not there any more."""
        return list(self._removed.values())

    def real(self) -> dict[Any, Any]:
        """The mapping that this one stands for, with all entries in their order."""
        if self.loaded is None:
            self.loaded = self._load()
        return self._real

    def __getitem__(self, key: Any) -> Any:
        self._look_up(key)
        return self._real[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._look_up(key)
        self._real[key] = value

    def __delitem__(self, key: Any) -> None:
        self._look_up(key)
        del self._real[key]
        self._forget(key)

    def __contains__(self, key: object) -> bool:
        return self._look_up(key)

    def __len__(self) -> int:
        if self.loaded is not None:
            return len(self._real)
        return self._count - len(self._removed) + len(self._real) - len(self._known)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.real())

    def __repr__(self) -> str:
        return repr(self.real())

    def keys(self) -> KeysView[Any]:
        return self.real().keys()

    def values(self) -> ValuesView[Any]:
        return self.real().values()

    def items(self) -> ItemsView[Any, Any]:
        return self.real().items()

    def get(self, key: Any, default: Any = None) -> Any:
        self._look_up(key)
        return self._real.get(key, default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self._look_up(key)
        return self._real.setdefault(key, default)

    def pop(self, key: Any, *default: Any) -> Any:
        self._look_up(key)
        value = self._real.pop(key, *default)
        self._forget(key)
        return value

    def popitem(self, *last: Any, **named: Any) -> tuple[Any, Any]:
        return self.real().popitem(*last, **named)

    def clear(self) -> None:
        self.real().clear()

    def update(self, other: Any = (), /, **named: Any) -> None:
        if isinstance(self._real, Counter):
            for more in (other, named):
                self._add_up(() if more is None else more)
        else:
            for key, value in dict(other, **named).items():
                self[key] = value

    def copy(self) -> Any:
        return self.real().copy()

    def __getattr__(self, name: str) -> Any:
        """What only a Counter has, and changes nothing in it."""
        if name in ("elements", "most_common", "total"):
            return getattr(self.real(), name)
        raise AttributeError(f"{type(self._real).__name__!r} object has no attribute {name!r}")

    def _add_up(self, more: Any) -> None:
        """As Counter does: numbers are set where nothing was counted yet, and added elsewhere."""
        if not isinstance(more, Mapping):
            for key in more:
                self[key] = self.get(key, 0) + 1
        elif self:
            for key, number in more.items():
                self[key] = number + self.get(key, 0)
        else:
            for key, number in more.items():
                self[key] = number

    def _look_up(self, key: Any) -> bool:
        """Whether a key is there; if it is stored, its entry is now in the real mapping."""
        if key in self._real:
            return True
        if self.loaded is not None or key in self._absent:
            return False
        try:
            known = self._entries.find(key)
        except KeyError:
            return key in self.real()
        if known is None:
            self._absent.add(key)
            return False
        self._known[known.key] = known
        self._real[known.key] = known.value
        return True

    def _forget(self, key: Any) -> None:
        """After a key was removed from the real mapping: so is its entry, if it was stored."""
        known = self._known.pop(key, None)
        if known is not None:
            self._removed[known.row.name] = known.row
            self._absent.add(key)

    def _load(self) -> Loaded:
        """Read the rest: stored entries in their order, then those that were added."""
        loaded, added = self._entries.load(), self.added()
        read = {key: self._real[key] for key in self._known}
        self._real.clear()
        for key, value, name in zip(loaded.keys, loaded.values, loaded.rows.names):
            if name not in self._removed:
                self._real[key] = read.get(key, value)
        for key, value in added:
            self._real[key] = value
        return loaded
