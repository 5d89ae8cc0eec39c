"""Segments that stay mapped from one batch to the next, between a join's state and its search.

Opening a segment takes half a millisecond, whatever it holds, and a join reads all of its segments
in every batch.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping

import pyarrow as pa


class Opened:
    """The tables that each owner had in its last batch; grows with owners, of which `most` count.

    What an owner no longer asks for is let go, so that a file that was deleted does not keep its
    place on the disk. Only for tables that take no memory of their own.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, dict[Hashable, pa.Table]] = OrderedDict()
        self._lock = threading.Lock()

    def tables(
        self, owner: Hashable, wanted: Mapping[Hashable, Callable[[], pa.Table]]
    ) -> dict[Hashable, pa.Table]:
        """What is wanted by name; what the owner had in its last call is not loaded again."""
        with self._lock:
            had = self._kept.pop(owner, {})
        now = {name: had[name] if name in had else load() for name, load in wanted.items()}
        with self._lock:
            self._kept[owner] = now
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return now
