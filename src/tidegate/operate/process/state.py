"""State that a process declares by name: maps and values that are stored entry by entry.

A batch reads the entries that the object asks for, and writes those that it changed. So its cost
grows with the keys that it touches, not with all keys. Plain attributes are stored whole.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate.batch import MAX_US, MIN_US
from tidegate.calendar.duration import Duration, duration_text, duration_us
from tidegate.operate.process.columns import ColumnsState, Schema
from tidegate.operate.process.key import EntryChange, StoredEntry, plain_key, prefix_of
from tidegate.operate.process.value_json import FIXED, Encoder, decode, encode, unpacked

if TYPE_CHECKING:
    from tidegate.operate.process.hot import HotBucket
    from tidegate.operate.process.initial import InitialEntry, InitialMap

_ONLY = None
"""The key of the one entry of a value."""

_GONE = MIN_US
"""The expiry of an entry that does not exist."""

_NOTHING = b""
"""The data of an entry that was removed and that the table of initial state has."""


@dataclass(slots=True)
class _Cell:
    """An entry that the object has used in this batch.

    `number` is its place in the iteration, `until_us` the time at which it expires. `stored` is its
    stored row, None if there is none. `read` is the value as it was read.
    """

    key: Any
    name: bytes
    value: Any = None
    number: int = 0
    until_us: int = _GONE
    stored: StoredEntry | None = None
    read: Any = None


class LaterState(Exception):
    """An initial entry that was set after the current tuple or timer, which is a user's error."""

    def __init__(self, entry: str, set_us: int) -> None:
        self.entry = entry
        self.set_us = set_us
        super().__init__(entry, set_us)


class MapState(MutableMapping[Any, Any]):
    """Entries by key, made by `self.state.map(name)` in `__init__`.

    Looking up, setting and deleting a key reads one entry; iterating and `len` read all of them.
    Iteration follows the order in which keys were first set. With `ttl` an entry is gone once that
    much event time has passed since it was set; changing a value in place does not set it.
    """

    kind = "map"

    def __init__(self, name: str, ttl_us: int | None) -> None:
        self.name = name
        self.ttl_us = ttl_us
        self.needs_one_time = ttl_us is not None
        self._prefix = prefix_of(name)
        self._bucket: HotBucket | None = None
        self._initial: InitialMap | None = None
        self._cells: dict[Any, _Cell] = {}
        self._all_read = False

    def attach(
        self, bucket: HotBucket, now_us: Callable[[], int], number: Callable[[], int]
    ) -> None:
        """Begin a batch; called once, before the object sees its first tuple.

        `now_us` gives the event time of the current tuple or timer, and `number` the next number
        for an entry of the object.
        """
        self._bucket, self._now_us, self._number = bucket, now_us, number
        self._initial = bucket.initial(self.name)

    def __getitem__(self, key: Any) -> Any:
        return self._live(key).value

    def __contains__(self, key: Any) -> bool:
        return (self._cells.get(key) or self._cell(key)).until_us > self._now_us()

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default; faster than Mapping.get, which uses an exception."""
        cell = self._cells.get(key) or self._cell(key)
        return cell.value if self._now_us() < cell.until_us else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of a key, which is set to the default if there is none."""
        if key not in self:
            self[key] = default
        return self._cells[key].value

    def __setitem__(self, key: Any, value: Any) -> None:
        cell = self._cells.get(key) or self._cell(key)
        now_us = self._now_us()
        if now_us >= cell.until_us:  # a new entry is the last in the order
            cell.key, cell.number = key, self._number()
        cell.value = value
        cell.until_us = MAX_US if self.ttl_us is None else min(now_us + self.ttl_us, MAX_US)

    def __delitem__(self, key: Any) -> None:
        self._live(key).until_us = _GONE

    def __iter__(self) -> Iterator[Any]:
        self._read_all()
        now_us = self._now_us()
        live = [cell for cell in self._cells.values() if now_us < cell.until_us]
        live.sort(key=lambda cell: cell.number)
        return iter([cell.key for cell in live])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def clear(self) -> None:
        """Remove all entries."""
        for key in self:
            del self[key]

    def __repr__(self) -> str:
        return f"<{self.text()}>" if self._bucket is None else f"<{self.name} {dict(self)!r}>"

    def text(self) -> str:
        """The declaration as text, for `explain` and for the identity of a query."""
        ttl = "" if self.ttl_us is None else f" for {duration_text(self.ttl_us)}"
        return f"{self.kind} {self.name}{ttl}"

    @property
    def fixed(self) -> str | None:
        """The part of the declaration that must not change: `ttl`, as expiry times are stored."""
        return None if self.ttl_us is None else self.text()

    def changes(self, encoder: Encoder) -> list[EntryChange]:
        """The changes to write; a value that was only looked up may have been changed in place."""
        return [found for cell in self._cells.values() if (found := self._changed(cell, encoder))]

    def _changed(self, cell: _Cell, encoder: Encoder) -> EntryChange | None:
        key, value, stored = cell.key, cell.value, cell.stored
        if cell.until_us == _GONE:
            return self._removed(cell)
        at = (cell.number, cell.until_us)
        same = stored is not None and stored[:2] == at
        fixed = type(value) in FIXED
        if same and fixed and value is cell.read:
            return None
        data = _data(encoder, key, value, "" if fixed else f"{self.name}[{key!r}]")
        if same and stored is not None and stored.data == data:
            return None
        return EntryChange(cell.name, StoredEntry(*at, data), gone=False)

    def _removed(self, cell: _Cell) -> EntryChange | None:
        """The change that removes an entry; None where nothing of it is stored."""
        stored = cell.stored
        if stored is None or not stored.data:
            return None
        first = None if self._initial is None else self._initial.find(cell.key)
        if first is None:
            return EntryChange(cell.name, stored, gone=True)
        # A tombstone is dropped from the oldest layer, and the table's row would show again.
        return EntryChange(cell.name, StoredEntry(0, first.until_us, _NOTHING), gone=False)

    def _live(self, key: Any) -> _Cell:
        """The entry of a key; KeyError where there is none, or it has expired."""
        cell = self._cells.get(key) or self._cell(key)
        if self._now_us() >= cell.until_us:
            raise KeyError(key)
        return cell

    def _cell(self, key: Any) -> _Cell:
        """The cell of a key that is asked for the first time in this batch."""
        bucket = self._bucket or self._at_work()
        plain, name = self._named(key)
        stored = None if self._all_read else bucket.find(name) or self._in_table(key)
        if stored is not None:
            return self._keep(plain, name, stored)
        cell = self._cells[key] = _Cell(key, name)
        return cell

    def _in_table(self, key: Any) -> StoredEntry | None:
        """The initial entry of a key that has no stored one."""
        first = None if self._initial is None else self._initial.find(key)
        return None if first is None else self._begun(first)

    def _begun(self, first: InitialEntry) -> StoredEntry:
        now_us = self._now_us()
        if self.ttl_us is not None and first.until_us > now_us + self.ttl_us:
            raise LaterState(f"{self.name}[{first.key!r}]", first.until_us - self.ttl_us)
        data = _data(Encoder(), first.key, first.value, f"{self.name}[{first.key!r}]")
        return StoredEntry(first.number, first.until_us, data)

    def _keep(self, plain: Any, name: bytes, stored: StoredEntry) -> _Cell:
        if not stored.data:
            return self._cells.setdefault(plain, _Cell(plain, name, stored=stored))
        value, *shown = unpacked(stored.data)
        key = shown[0] if shown else plain
        number, until_us, _ = stored
        return self._cells.setdefault(key, _Cell(key, name, value, number, until_us, stored, value))

    def _read_all(self) -> None:
        if not self._all_read:
            begin, there = len(self._prefix), self._at_work().load(self._prefix)
            for name, stored in there.items():
                self._keep(decode(name[begin:].decode("ascii")), name, stored)
            for first in () if self._initial is None else self._initial.entries():
                plain, name = self._named(first.key)
                if name not in there:
                    self._keep(plain, name, self._begun(first))
            self._all_read = True

    def _named(self, key: Any) -> tuple[Any, bytes]:
        """The plain key of a key, and the name of its row; TypeError if it has no plain key."""
        try:
            plain = plain_key(key)
        except TypeError as error:
            raise TypeError(f"state {self.name}: {error}") from None
        return plain, self._prefix + encode(plain, "the key")[0].encode("ascii")

    def _at_work(self) -> HotBucket:
        if self._bucket is None:
            raise RuntimeError(
                f"state {self.name} can be used when the object is at work, not in __init__"
            )
        return self._bucket


class ValueState:
    """One value of the object, made by `self.state.value(name)` in `__init__`.

    An object serves all keys of its bucket, and so does the value: what is kept for each key is a
    map.
    """

    kind = "value"

    def __init__(self, name: str, default: Any, ttl_us: int | None) -> None:
        self.name = name
        self.ttl_us = ttl_us
        self.default = default
        self._stored = MapState(name, ttl_us)
        self.needs_one_time = self._stored.needs_one_time
        self.attach = self._stored.attach
        self.changes = self._stored.changes

    def get(self) -> Any:
        """The value; a copy of the default where it was never set, was cleared or has expired."""
        return self._stored[_ONLY] if self.exists() else copy.deepcopy(self.default)

    def update(self, value: Any) -> None:
        """Set the value."""
        self._stored[_ONLY] = value

    def exists(self) -> bool:
        """Whether it was set, and has neither been cleared nor expired since."""
        return _ONLY in self._stored

    def clear(self) -> None:
        """Remove the value, if there is one."""
        self._stored.pop(_ONLY, None)

    def __repr__(self) -> str:
        return f"<{self.text()}>"

    def text(self) -> str:
        """The declaration as text, like that of a map."""
        return self.kind + self._stored.text().removeprefix(MapState.kind)

    @property
    def fixed(self) -> str | None:
        """The part of the declaration that must not change, like that of a map."""
        return None if self.ttl_us is None else self.text()


Declared = MapState | ValueState | ColumnsState
_Kind = TypeVar("_Kind", MapState, ValueState, ColumnsState)


class StateDeclarations:
    """The declared state of one object, by name: what `self.state` gives."""

    def __init__(self) -> None:
        self.declared: dict[str, Declared] = {}
        self._open = True

    def map(self, name: str, ttl: Duration | None = None) -> MapState:
        """A map that is stored entry by entry; in `__init__`, or again by its name later."""
        return self._named(name, MapState, lambda: MapState(name, _ttl_us(name, ttl)))

    def value(self, name: str, default: Any = None, ttl: Duration | None = None) -> ValueState:
        """One value, apart from the attributes; in `__init__`, or again by its name later."""
        return self._named(name, ValueState, lambda: ValueState(name, default, _ttl_us(name, ttl)))

    def columns(self, name: str, schema: Schema, ttl: Duration | None = None) -> ColumnsState:
        """Rows kept by column, as arrays; in `__init__`, or again by its name later."""
        return self._named(
            name, ColumnsState, lambda: ColumnsState(name, schema, _ttl_us(name, ttl))
        )

    def fixed(self) -> list[str]:
        """The parts of declarations that must not change while a checkpoint exists, as text."""
        return [text for state in self.declared.values() if (text := state.fixed) is not None]

    def close(self) -> None:
        """End the declarations: from now on a name only gives what it declared."""
        self._open = False

    def _named(self, name: str, kind: type[_Kind], make: Callable[[], _Kind]) -> _Kind:
        found = self.declared.get(name)
        if found is None and not self._open:
            raise RuntimeError(f"state {name} must be declared in __init__")
        if found is None:
            if not isinstance(name, str) or not name or ":" in name:
                raise ValueError(f"the name of a state must be a text without ':'; got {name!r}")
            found = self.declared[name] = make()
        elif self._open or not isinstance(found, kind):
            raise ValueError(f"state {name} is declared already, as {found.text()}")
        return found


def _data(encoder: Encoder, key: Any, value: Any, path: str) -> bytes:
    """The stored bytes of a value; with the key, if that differs from its plain key."""
    return encoder.packed([value] if plain_key(key) is key else [value, key], path)


def _ttl_us(name: str, ttl: Duration | None) -> int | None:
    if ttl is None:
        return None
    ttl_us = duration_us(ttl, f"state {name} ttl")
    if ttl_us <= 0:
        raise ValueError(f"state {name}: ttl must be longer than zero; got {ttl!r}")
    return ttl_us
