"""One memory budget per process, shared by its caches.

Caches hold what can be had again at a price: decoded input, segments of a remote store, indexes of
stored tuples. What a batch needs while it runs is not counted here but in the limit of the process
(`memory_limit`), of which this budget is a part.
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
"""The bounds of the budget when the user gives no limit."""

CACHED = 3
"""The caches get one third of the process's limit."""

LEAST_LIMIT_BYTES = 256 * 2**20
"""The smallest limit a user may give: a process takes more than half of this before any work."""

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}

T = TypeVar("T")


class Memory:
    """The budget of all caches of a process; thread-safe.

    Each cache has a share of the budget. A cache may use what others leave unused. When memory runs
    short, the cache furthest above its share drops its least recently used values. So streaming
    input does not push out the indexes that every batch searches.
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
        """Bytes in all caches; never above the limit, whatever other threads do."""
        with self._lock:
            return self._bytes()

    def resize(self, limit_bytes: int | None) -> None:
        """Changes the budget, None for `default_bytes`; every task calls it."""
        limit = default_bytes() if limit_bytes is None else limit_bytes
        if limit != self._limit:
            with self._lock:
                self._limit = limit
                self._shrink()

    def clear(self) -> None:
        """Empties all caches."""
        for cache in self._caches:
            cache.clear()

    def cache(
        self, share: float, size: Callable[[Any], int], most_entries: int | None = None
    ) -> Cache:
        """A new cache. The shares of all caches must not exceed 1 together."""
        made = Cache(self, share, size, most_entries)
        self._caches.append(made)
        if sum(cache.share for cache in self._caches) > 1:
            raise ValueError("the shares of a memory are more than the whole")
        return made

    def _bytes(self) -> int:
        """Bytes in all caches; the caller holds the lock."""
        return sum(cache.bytes for cache in self._caches)

    def _shrink(self, newest: Cache | None = None) -> None:
        """Drops values until the rest fits, but never the last value of `newest`: it is in use."""
        while self._bytes() > self._limit:
            spare = [c for c in self._caches if len(c) > (1 if c is newest else 0)]
            # There is always a candidate: `_keep` refuses a value larger than the whole budget.
            most = max(spare, key=lambda c: c.bytes - c.share * self._limit)
            most._give_up()


class Cache:
    """Least recently used values within the budget of a `Memory`, which makes it.

    Callers share the values and must not change them. `size` returns the bytes of a value and is
    called once, when the value is put in. A value larger than the whole budget is not kept.
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
        """The value of a key, loaded if it is not cached.

        Two threads that ask for the same key load it once; the second waits. A failed load leaves
        nothing behind.
        """
        lock = self._memory._lock
        with lock:
            if key in self._values:
                self._values.move_to_end(key)
                return cast(T, self._values[key][0])
            turn = self._loading.setdefault(key, threading.Lock())
        # Loading holds the lock of this key alone: reading a file must not block the other caches.
        with schedule.current().hold(turn):
            # Another thread may have loaded it while this one waited for its turn.
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
        """The cached value of a key, or None; this counts as a use."""
        with self._memory._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: object) -> None:
        """Stores a value under a key and replaces an older one."""
        self.take(key)
        self._keep(key, value)

    def take(self, key: Hashable) -> Any | None:
        """Removes the value of a key and returns it; None if it is not cached."""
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
        """Drops the least recently used value; the caller holds the lock."""
        _, (_, size) = self._values.popitem(last=False)
        self.bytes -= size


def default_bytes() -> int:
    """The budget when the user gives no limit: a third of a process's limit, with one process per
    core.

    At least 64 MB, which is a few blocks of input. At most 1 GB, so that nobody finds the machine
    full by surprise; windows that need more ask for it.
    """
    limit = default_limit(cores())
    return min(max(limit // CACHED, LEAST_BYTES), MOST_BYTES)


@dataclass(frozen=True)
class Allowance:
    """How many bytes each process that runs tasks may hold: in all, and in caches.

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
        """The same allowance when this many processes share the machine; None if only they know."""
        if processes is None or self.limit_bytes is not None:
            return self
        return replace(self, limit_bytes=default_limit(processes))

    def take(self) -> None:
        """Applies it to this process; every task calls it."""
        limit = self.limit_bytes
        LIMIT.bytes = default_limit(cores()) if limit is None else limit
        MEMORY.resize(self.cache_bytes)


ANY = Allowance()
"""The process decides by itself."""


def bytes_of(size: str | int, where: str) -> int:
    """Parses a size such as `512MB` or `2g`; units are powers of 1024, as in Spark."""
    text = str(size).strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    if match is None or isinstance(size, bool):
        raise OptionError(where, "must be a size, for example 512MB or 2GB", text)
    wanted = float(match[1]) * 2 ** _UNITS[match[2].upper()]
    if wanted >= 2**62:
        raise OptionError(where, "must be less than 4194304 TB", text)
    return int(wanted)


MEMORY = Memory()
"""The budget of this process."""

LIMIT.release.append(MEMORY.clear)
