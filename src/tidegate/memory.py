"""One budget of memory for all that a process keeps to save work, between its caches.

Decoded input, segments of a remote store and indexes of stored tuples can be had again at a price;
what a batch needs at the time is not counted here, but by the limit of the process
(`memory_limit`), of which the budget is a part.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from tidegate import schedule
from tidegate.cores import cores
from tidegate.errors import OptionError
from tidegate.memory_limit import LIMIT, default_limit, size_text

LEAST_BYTES, MOST_BYTES = 64 * 2**20, 2**30
"""The budget where no limit is given is between these."""

CACHED = 3
"""Caches take one in so many bytes of the limit of their process."""

LEAST_LIMIT_BYTES = 256 * 2**20
"""A process that has done nothing yet takes more than half of this."""

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

T = TypeVar("T")


class Memory:
    """What the caches of a process may hold together; threads may use it at the same time.

    Each cache has a share of the budget. What one leaves unused, others may take; when memory runs
    short, the cache furthest above its share gives up what was not used for longest. So input that
    streams through does not drive out indexes that every batch searches.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit = default_bytes() if limit_bytes is None else limit_bytes
        self._caches: list[Cache] = []
        self._lock = threading.Lock()

    @property
    def limit_bytes(self) -> int:
        return self._limit

    @property
    def bytes(self) -> int:
        """What all caches hold; never more than the limit, whatever other threads do."""
        with self._lock:
            return self._bytes()

    def resize(self, limit_bytes: int | None) -> None:
        """Have another budget from now on, None for `default_bytes`; called by every task."""
        limit = default_bytes() if limit_bytes is None else limit_bytes
        if limit != self._limit:
            with self._lock:
                self._limit = limit
                self._shrink()

    def clear(self) -> None:
        """Give up all that caches hold."""
        for cache in self._caches:
            cache.clear()

    def cache(
        self, share: float, size: Callable[[Any], int], most_entries: int | None = None
    ) -> Cache:
        """A new cache; the shares of all are at most 1 together."""
        made = Cache(self, share, size, most_entries)
        self._caches.append(made)
        if sum(cache.share for cache in self._caches) > 1:
            raise ValueError("the shares of a memory are more than the whole")
        return made

    def _bytes(self) -> int:
        """What all caches hold, for who has the lock."""
        return sum(cache.bytes for cache in self._caches)

    def _shrink(self, newest: Cache | None = None) -> None:
        """Give up values until the rest fits, but not the last one of `newest`: it is in use."""
        while self._bytes() > self._limit:
            spare = [c for c in self._caches if len(c) > (1 if c is newest else 0)]
            most = max(spare, key=lambda c: c.bytes - c.share * self._limit)
            most._give_up()


class Cache:
    """Values that were used last, within the budget of a `Memory`; made by `Memory.cache`.

    Callers share the values and must not change them. `size` gives the bytes of one, asked when it
    is put in. A value that is larger than the whole budget is not kept.
    """

    def __init__(
        self, memory: Memory, share: float, size: Callable[[Any], int], most_entries: int | None
    ) -> None:
        self.share = share
        self.bytes = 0
        self.loads = 0
        self._memory = memory
        self._size = size
        self._most_entries = most_entries
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._loading: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """The value of a key, loaded where it is not held.

        Two threads that want the same one load it once: the second waits for the first. Nothing is
        kept of a load that fails.
        """
        lock = self._memory._lock
        with lock:
            if key in self._values:
                self._values.move_to_end(key)
                return cast(T, self._values[key][0])
            turn = self._loading.setdefault(key, threading.Lock())
        with schedule.current().hold(turn):
            with lock:
                if key in self._values:
                    return cast(T, self._values[key][0])
            try:
                value = load()
                self._keep(key, value)
            finally:
                with lock:
                    self._loading.pop(key, None)
        return value

    def held(self, key: Hashable) -> Any | None:
        """The value of a key where it is held, else None; it counts as used."""
        with self._memory._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: object) -> None:
        """Keep a value under a key, in place of what is there."""
        self.take(key)
        self._keep(key, value)

    def take(self, key: Hashable) -> Any | None:
        """Let go of the value of a key, and give it; None where it is not held."""
        with self._memory._lock:
            if key not in self._values:
                return None
            value, size = self._values.pop(key)
            self.bytes -= size
            return value

    def clear(self) -> None:
        with self._memory._lock:
            self._values.clear()
            self.bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: Hashable) -> bool:
        with self._memory._lock:
            return key in self._values

    def _keep(self, key: Hashable, value: object) -> None:
        size = self._size(value)
        with self._memory._lock:
            self.loads += 1
            if size > self._memory.limit_bytes:
                return
            self._values[key] = value, size
            self.bytes += size
            while self._most_entries is not None and len(self) > self._most_entries:
                self._give_up()
            self._memory._shrink(newest=self)

    def _give_up(self) -> None:
        """Let go of the value that was not used for longest; the caller has the lock."""
        _, (_, size) = self._values.popitem(last=False)
        self.bytes -= size


def default_bytes() -> int:
    """The budget where no limit is given: a third of the process's, one process to a core.

    At least 64 MB, which is some blocks of input, and at most 1 GB: who has windows that need more
    asks for it, and nobody is surprised by a machine that is full.
    """
    limit = default_limit(cores())
    return min(max(limit // CACHED, LEAST_BYTES), MOST_BYTES)


@dataclass(frozen=True)
class Allowance:
    """What each process that runs tasks may hold: in all, and of that in caches.

    None leaves it to the process (`default_limit`, `default_bytes`).
    """

    limit_bytes: int | None = None
    cache_bytes: int | None = None

    @staticmethod
    def of(limit_bytes: int | None, where: str = "--memory-limit") -> Allowance:
        """The allowance for a limit that a user gives."""
        if limit_bytes is None:
            return Allowance()
        if limit_bytes < LEAST_LIMIT_BYTES:
            raise OptionError(
                where,
                "must be at least 256MB, because a process needs half of that to start",
                size_text(limit_bytes),
            )
        return Allowance(limit_bytes, limit_bytes // CACHED)

    def among(self, processes: int | None) -> Allowance:
        """The same where so many processes share the machine; None where only they know."""
        if processes is None or self.limit_bytes is not None:
            return self
        return replace(self, limit_bytes=default_limit(processes))

    def take(self) -> None:
        """Have it hold for this process from now on; called by every task."""
        limit = self.limit_bytes
        LIMIT.bytes = default_limit(cores()) if limit is None else limit
        MEMORY.resize(self.cache_bytes)


ANY = Allowance()
"""What a process decides by itself."""


def bytes_of(size: str | int, where: str) -> int:
    """A size as people write it, `512MB` or `2g`; units are powers of 1024, as those of Spark."""
    text = str(size).strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if match is None or isinstance(size, bool):
        raise OptionError(where, "must be a size, for example 512MB or 2GB", text)
    wanted = float(match[1]) * 2 ** _UNITS[match[2].upper()]
    if wanted >= 2**62:
        raise OptionError(where, "must be less than 4194304 TB", text)
    return int(wanted)


MEMORY = Memory()
"""That of this process; who keeps something takes a cache of it."""

LIMIT.release.append(MEMORY.clear)
