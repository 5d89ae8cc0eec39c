"""Sends the parts of a plan to workers once, so that the jobs of later batches only name them.

A job is mostly its plan. Workers that stay keep the plan's parts as objects, by key: a job then
names them, and what an operator has worked out about its plan is still there in the next batch.
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
"""The parts that this process has used last, by key."""


def load(data: pa.Buffer) -> Any:
    """What was pickled, with the parts that it names by `part`."""
    return pickle.loads(data)


def part(key: str) -> Any:
    """What lasts and has this key, in a worker; what was pickled calls it."""
    if key not in _loaded:
        _loaded[key] = pickle.loads(SentWork(key).open())
        if len(_loaded) > _MOST:
            _loaded.popitem(last=False)
    _loaded.move_to_end(key)
    return _loaded[key]


class LastingParts:
    """The parts of a query's plan that a driver has sent; grows with the plan.

    `dumps` pickles one of them, also where it has classes of a script.
    """

    def __init__(self, dumps: Callable[[Any], bytes]) -> None:
        self._dumps = dumps
        self._parts: dict[int, tuple[str, Any]] = {}
        """By identity, with the part itself, so that no other takes its place."""
        self._data: dict[str, bytes] = {}

    def add(self, part: Any) -> None:
        """Take a part of the plan; once is enough."""
        if id(part) not in self._parts:
            data = self._dumps(part)
            key = key_of(data)
            self._parts[id(part)], self._data[key] = (key, part), data

    def key_of(self, thing: Any) -> str | None:
        """The key of a part; None for whatever else."""
        found = self._parts.get(id(thing))
        return None if found is None else found[0]

    def data_of(self, key: str) -> bytes:
        """What a worker is to be sent with the jobs that name a part."""
        return self._data[key]
