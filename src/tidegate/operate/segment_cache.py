"""Keeps segments mapped from one batch to the next.

Opening a segment costs about the same whatever it holds, and some operators read all of their
segments in every batch.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from tidegate.state.name import owner_of
from tidegate.state.segment.segment import Segment, read_segment, version_of
from tidegate.state.store import Store


class Opened:
    """The mapped tables of each owner's last batch; grows with the owners, up to `most`.

    Only for tables that take no memory of their own. Owners share tables: an instance that takes
    over buckets from another opens nothing again.

    What an owner no longer asks for is dropped, because a mapped file that was deleted still takes
    up its place on the disk. An owner may stop asking for good, such as an instance that a switch
    has ended. A few of its tables are dropped each time another owner asks; if it comes back soon,
    most are still there.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, dict[Hashable, pa.Table]] = OrderedDict()
        self._lock = threading.Lock()

    def tables(
        self, owner: Hashable, wanted: Mapping[Hashable, Callable[[], pa.Table]]
    ) -> dict[Hashable, pa.Table]:
        """The wanted tables by name; those that an owner had in its last call are not loaded."""
        with self._lock:
            self._let_go_before(owner)
            had = self._kept.pop(owner, {})
            missing = [name for name in wanted if name not in had]
            for others in self._kept.values() if missing else ():
                had |= {name: others[name] for name in missing if name in others}
        # Without the lock: opening files takes time, and other instances would wait for it.
        now = {name: had[name] if name in had else load() for name, load in wanted.items()}
        with self._lock:
            self._kept[owner] = dict(now)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return now

    def _let_go_before(self, owner: Hashable) -> None:
        """Drop a few tables of the owner that has not asked for longest; the lock must be held."""
        idle = next(iter(self._kept), owner)
        if owner not in self._kept or idle == owner:
            return
        tables = self._kept[idle]
        for name in list(tables)[:_AT_A_TIME]:
            del tables[name]
        if not tables:
            del self._kept[idle]


_AT_A_TIME = 4
"""How many tables are dropped in one call: unmapping large files takes time."""

_OPENED = Opened(most=256)


def mapped_segments(
    store: Store,
    owner: Hashable,
    segments: Sequence[Segment],
    columns: Sequence[str] | None = None,
    run: int | None = None,
    more: Sequence[str] = (),
) -> dict[str, pa.Table]:
    """Whole segments by name, mapped for an earlier batch of `owner` or now.

    `owner` is an instance of a query and what it reads. `columns` and `more` are as in
    `read_segment`. Gives nothing where the store is remote, because reading copies there. A file
    that has changed since is read and checked again. The checksum of a file that this `run` wrote
    is not checked: that costs a pass over the file, and finds the damage of time and transfers.
    """
    if not store.files.local:
        return {}
    wanted = None if columns is None else tuple(columns)
    files: dict[str, Hashable] = {s.name: (version_of(store, s), wanted) for s in segments}
    loads = {
        files[s.name]: partial(
            read_segment,
            store,
            s,
            columns=columns,
            more=more,
            trusted=run is not None and owner_of(s.name) == run,
        )
        for s in segments
    }
    tables = _OPENED.tables(owner, loads)
    return {name: tables[file] for name, file in files.items()}
