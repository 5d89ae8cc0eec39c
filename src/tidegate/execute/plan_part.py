"""Sends the parts of a plan to workers once; the jobs of later batches only name them.

Most of a pickled job is its plan. Workers that stay keep the parts of the plan as objects, by key.
What an operator has cached on such an object is then still there in the next batch.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tidegate.execute.work import SentWork, key_of

_MOST = 256
_loaded: OrderedDict[str, Any] = OrderedDict()
"""The `_MOST` parts that this process used last, by key."""


def load(data: pa.Buffer) -> Any:
    """Unpickle data; the parts of the plan that it names are looked up by `part`."""
    return pickle.loads(data)


def part(key: str) -> Any:
    """The part of the plan with this key, in a worker; unpickling calls it."""
    if key not in _loaded:
        _loaded[key] = pickle.loads(SentWork(key).open())
        if len(_loaded) > _MOST:
            _loaded.popitem(last=False)
    _loaded.move_to_end(key)
    return _loaded[key]


class LastingParts:
    """The parts of a query's plan that the driver sends once; grows with the plan.

    `dumps` pickles a part; it must also pickle classes that the user's script defines.
    """

    def __init__(self, dumps: Callable[[Any], bytes]) -> None:
        self._dumps = dumps
        self._parts: dict[int, tuple[str, Any]] = {}
        """By identity; holds the part itself, so that no other object can get the same id."""
        self._data: dict[str, bytes] = {}

    def add(self, part: Any) -> None:
        """Add a part of the plan; has no effect a second time."""
        if id(part) not in self._parts:
            data = self._dumps(part)
            key = key_of(data)
            self._parts[id(part)], self._data[key] = (key, part), data

    def key_of(self, thing: Any) -> str | None:
        """The key of a part; None for any other object."""
        found = self._parts.get(id(thing))
        return None if found is None else found[0]

    def data_of(self, key: str) -> bytes:
        """The pickled part with this key, to be sent with the jobs that name it."""
        return self._data[key]
