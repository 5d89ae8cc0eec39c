"""State that a process declares by name: maps and values that are stored entry by entry.

A batch reads the entries that the object asks for and writes those that it changed, so that its
cost follows the keys it touches and not the keys there are. Plain attributes are stored whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Protocol, TypeVar

from tidegate.duration import Duration, duration_text, duration_us

_ONLY = None
"""The key of the one entry of a value."""


class Entries(Protocol):
    """The entries of one declared state while its object is at work."""

    def get(self, key: Any) -> Any:
        """The value of a key; KeyError where there is none, or it has expired."""

    def set(self, key: Any, value: Any) -> None: ...

    def remove(self, key: Any) -> None:
        """Remove the entry of a key; KeyError where there is none."""

    def keys(self) -> list[Any]:
        """The keys in the order in which they were first set; reads all entries."""


class MapState(MutableMapping[Any, Any]):
    """Entries by key, made by `self.state.map(name)` in `__init__`.

    Looking up, setting and deleting a key reads one entry; iterating and `len` read all of them.
    Iteration follows the order in which keys were first set. With `ttl` an entry is gone once that
    much event time has passed since it was set.
    """

    kind = "map"

    def __init__(self, name: str, ttl_us: int | None) -> None:
        self.name = name
        self.ttl_us = ttl_us
        self._entries: Entries | None = None

    def __getitem__(self, key: Any) -> Any:
        return self._at_work().get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._at_work().set(key, value)

    def __delitem__(self, key: Any) -> None:
        self._at_work().remove(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._at_work().keys())

    def __len__(self) -> int:
        return len(self._at_work().keys())

    def __repr__(self) -> str:
        return f"<{self.text()}>" if self._entries is None else f"<{self.name} {dict(self)!r}>"

    def text(self) -> str:
        """What is declared, as `explain` and the identity of a query say it."""
        ttl = "" if self.ttl_us is None else f" for {duration_text(self.ttl_us)}"
        return f"{self.kind} {self.name}{ttl}"

    def attach(self, entries: Entries) -> None:
        """Begin a batch; called once, before the object sees its first tuple."""
        self._entries = entries

    def _at_work(self) -> Entries:
        if self._entries is None:
            raise RuntimeError(
                f"state {self.name} can be used when the object is at work, not in __init__"
            )
        return self._entries


class ValueState:
    """One value of the object, made by `self.state.value(name)` in `__init__`."""

    kind = "value"

    def __init__(self, name: str, default: Any, ttl_us: int | None) -> None:
        self.name = name
        self.ttl_us = ttl_us
        self._stored = MapState(name, ttl_us)
        self._default = default

    def get(self) -> Any:
        """The value; the default where it was never set, was cleared or has expired."""
        return self._stored.get(_ONLY, self._default)

    def set(self, value: Any) -> None:
        self._stored[_ONLY] = value

    def clear(self) -> None:
        self._stored.pop(_ONLY, None)

    def __repr__(self) -> str:
        return f"<{self.text()}>"

    def text(self) -> str:
        return self.kind + self._stored.text().removeprefix(MapState.kind)

    def attach(self, entries: Entries) -> None:
        self._stored.attach(entries)


Declared = MapState | ValueState
_Kind = TypeVar("_Kind", MapState, ValueState)


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

    def close(self) -> None:
        """From now on only what is declared can be had."""
        self._open = False

    def _named(self, name: str, kind: type[_Kind], make: Callable[[], _Kind]) -> _Kind:
        found = self.declared.get(name)
        if found is None and not self._open:
            raise RuntimeError(f"state {name} must be declared in __init__")
        if found is None:
            found = self.declared[name] = make()
        elif self._open or not isinstance(found, kind):
            raise ValueError(f"state {name} is declared already, as {found.text()}")
        return found


def _ttl_us(name: str, ttl: Duration | None) -> int | None:
    if ttl is None:
        return None
    ttl_us = duration_us(ttl, f"state {name} ttl")
    if ttl_us <= 0:
        raise ValueError(f"state {name}: ttl must be longer than zero; got {ttl!r}")
    return ttl_us
