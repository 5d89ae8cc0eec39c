"""Tracks the unread and consumed sources of one folder."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from heapq import heappop, heappush
from typing import Any, NamedTuple

from tidegate import schedule
from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Connector, ListedSource, Source
from tidegate.cores import cores
from tidegate.gate.entry import CONSUMED, Entry
from tidegate.gate.frontier import lowered
from tidegate.gate.names import ListedFile, NameLog
from tidegate.gate.orders import ConsumedOrders
from tidegate.gate.track import Track
from tidegate.state.store import Store

_LOOKED_INTO = 8
"""At most so many sources stay open that were looked into before their turn."""

_AT_ONCE = min(cores() // 4, 4)
"""The times of so many sources are decoded in parallel; more would take cores from the tasks."""

_LARGE_ROWS = 65_536
"""Decoding the times of fewer rows takes less than starting a thread for them."""


class Unread(NamedTuple):
    """A source of which nothing was taken. Its first key is `low_us` if `exact`, else not below."""

    low_us: int
    order: int
    id: str
    exact: bool = False


class WatchedFolder:
    """The unread sources by the least time with which they can begin, and the consumed orders.

    A source is opened when the merge reaches that time. Grows with the unread sources, by a few
    numbers each, and with the gaps between consumed orders; not with the number of consumed ones.
    """

    def __init__(
        self,
        listing: Connector,
        opened: Callable[[Source, int, int], Track],
        saved: Entry | None = None,
    ) -> None:
        """`opened` makes a track of a source, its order and what it promises."""
        log = saved["log"] if saved else {"orders": [], "promises": [], "names": None}
        self.listing = listing
        self.newest_us: int = saved["floor_us"] if saved else MIN_US
        self.names = NameLog(log["names"])
        self._count: int = saved["consumed"] if saved else 0
        self._last: str = saved["last"] if saved else ""
        self._next: int = saved["order"] + 1 if saved else 0
        self._consumed = ConsumedOrders(log["orders"])
        self._again = ConsumedOrders(log.get("again", ()))
        """The orders that were consumed by a batch that runs again (see `rewind`), or before it."""
        self._promises = [(order, promised_us) for order, promised_us in log["promises"]]
        self._opened = opened
        self._unread: list[Unread] = []
        self._looked: OrderedDict[str, Track] = OrderedDict()
        self._decoding: dict[str, Future[Any]] = {}
        """By source, the thread that decodes its first times."""
        self._piece_rows = 0
        self._ended: list[Track] = []
        """The sources that the present batch consumes."""

    def __len__(self) -> int:
        """The number of unread sources."""
        return len(self._unread)

    @property
    def consumed(self) -> int:
        """The number of consumed sources: nothing of them is needed any more."""
        return self._count

    def is_empty(self) -> bool:
        """Whether it has neither unread nor consumed sources: all that there are are open."""
        return not self._unread and not self._count

    def ids(self) -> list[str]:
        """The unread sources, in no order."""
        return [entry.id for entry in self._unread]

    def note(self, found: ListedSource, order: int, promised_us: int) -> None:
        """Keep a new source with its order, which must be above all earlier orders."""
        if order > self._next:  # those between are of other folders of the stream
            self._consumed.add(self._next, order - 1)
        self._next = order + 1
        if promised_us != self.promised_us(order):
            self._promises.append((order, promised_us))
        self.names.note(ListedFile(order, found.id, found.extent, found.digest))

    def enter(self, found: ListedSource, order: int) -> Track | None:
        """Take in a source of which nothing was read; returns its track if it is opened at once."""
        if found.grows:
            return self._open(found.id, order)
        if found.low_us == MAX_US:
            self._let_go(found.id, order, MIN_US)
        else:
            heappush(self._unread, Unread(found.low_us, order, found.id))
        return None

    def enter_again(self, found: ListedSource, known: ListedFile) -> Track | None:
        """Take in a source that an earlier run listed and was not reading.

        If it was consumed and has more rows now, the rest is read, as of a file that grew. If it is
        another file now, it is refused.
        """
        same = (found.extent, found.digest) == (known.extent, known.digest)
        if known.order not in self._consumed:
            if known.order in self._again and not same and not found.grows:
                self.listing.open_beyond(found.id, known.extent, known.digest)  # or refused
            return self.enter(found, known.order)
        if not found.grows and same:
            self.listing.let_go(found.id)
            return None
        source, position = self.listing.open_beyond(found.id, known.extent, known.digest)
        track = self._opened(source, known.order, self.promised_us(known.order))
        track.resume(position)
        self.note_again(found, known)
        return track

    def note_again(self, found: ListedSource, known: ListedFile | None) -> None:
        """Keep the new extent of a source that has grown since an earlier run listed it."""
        if known is not None and found.extent != known.extent:
            self.names.note(ListedFile(known.order, found.id, found.extent, found.digest))

    def is_consumed(self, order: int) -> bool:
        return order in self._consumed

    def promised_us(self, order: int) -> int:
        """The promise with which the source of an order joined."""
        at = bisect_right(self._promises, (order, MAX_US)) - 1
        return self._promises[at][1] if at >= 0 else MIN_US

    def first(self) -> Unread | None:
        """The unread source that can begin earliest; None without any."""
        return self._unread[0] if self._unread else None

    def take(self, id_: str) -> Track | None:
        """Open an unread source before its turn; None where there is none of this id."""
        entry = next((e for e in self._unread if e.id == id_), None)
        if entry is None:
            return None
        track = self._look(entry)
        self._unread = sorted(e for e in self._unread if e is not entry)
        return track

    def take_all(self, wanted: Callable[[str, int], bool]) -> list[Track]:
        """Open the unread sources whose id and order are wanted, before their turn."""
        found = [e for e in self._unread if wanted(e.id, e.order)]
        self._unread = sorted(e for e in self._unread if not wanted(e.id, e.order))
        return [self._look(entry) for entry in found]

    def reach(self) -> Track | None:
        """Open the first unread source; None if it turns out to begin after the next one.

        Then it is put back, at its exact time. A source that cannot be read stays in place, so that
        the error comes again if somebody goes on.
        """
        self._decode_next()
        entry = self._unread[0]
        track = self._look(entry)
        keys = track.look_ahead(1)
        self._piece_rows = len(keys)
        begins_us = int(keys[0]) if len(keys) else MIN_US
        # Only now, when its times could be read: after an error it is still unread.
        heappop(self._unread)
        later = bool(self._unread) and (begins_us, entry.order) > self._unread[0][:2]
        if later and not entry.exact:
            self._put_back(track, begins_us)
            return None
        return track

    def promise(self, below_us: int, disorder_us: int) -> tuple[int, list[Track]]:
        """The least time that unread sources promise, if below `below_us`; otherwise `below_us`.

        Also the sources among them that begin with tuples without a time, which are open now. No
        source is opened that cannot promise less than what is known already.
        """
        passed, silent = [], []
        while self._unread and lowered(self._unread[0].low_us, disorder_us) < below_us:
            entry = self._unread[0]
            if entry.exact:
                reach_us = max(self.promised_us(entry.order), lowered(entry.low_us, disorder_us))
                below_us = min(below_us, reach_us)
                passed.append(heappop(self._unread))
                continue
            track = self._look(entry)
            keys = track.look_ahead(1)
            heappop(self._unread)
            if len(keys) and keys[0] > MIN_US:
                self._put_back(track, int(keys[0]))
            else:
                silent.append(track)
        for entry in passed:
            heappush(self._unread, entry)
        return below_us, silent

    def consume(self, track: Track) -> None:
        """Count a source as consumed: only its order, and the newest time of all, are kept."""
        self._ended.append(track)
        self._let_go(track.source.id, track.order, track.floor_us)

    def confirm(self) -> None:
        """Refuse sources whose last tuple turned out not to be whole; call before a commit."""
        ended, self._ended = self._ended, []
        for track in ended:
            track.confirm()

    def write_names(self, store: Store, file: str) -> None:
        """Move names into a file if there are many; call it before `saved`."""
        self.names.write(
            store, file, lambda k: k.order not in self._consumed or self.listing.has(k.name)
        )

    def saved(self, unread: int) -> dict[str, Any]:
        """The manifest's entry for all sources that have no entry of their own."""
        return {
            "id": CONSUMED,
            "order": self._next - 1,
            "floor_us": self.newest_us,
            "ended": unread == 0,
            "removed": False,
            "consumed": self._count,
            "unread": unread,
            "last": self._last,
            "log": {
                "orders": self._consumed.ranges(),
                "promises": [list(p) for p in self._promises_needed()],
                "names": self.names.saved(),
            },
        }

    def _promises_needed(self) -> list[tuple[int, int]]:
        """The promises, without those that only sources below the watermark gave."""
        ahead = [order for order, _ in self._promises if order <= self._consumed.watermark]
        return self._promises[max(len(ahead) - 1, 0) :]

    def _open(self, id_: str, order: int) -> Track:
        return self._opened(self.listing.open(id_), order, self.promised_us(order))

    def _decode_next(self) -> None:
        """Start decoding the sources that come next, beside the one whose turn it is.

        An error there is ignored: it comes again, and is reported, when it is that source's turn.
        """
        known = self._unread[0].id in self._looked or self._piece_rows < _LARGE_ROWS
        if known or min(_AT_ONCE, len(self._unread)) < 2:
            return
        entries = [heappop(self._unread) for _ in range(min(_AT_ONCE, len(self._unread)))]
        for entry in entries:
            heappush(self._unread, entry)
        for entry in entries[1:]:
            track = self._look(entry)
            decoding = schedule.beside("tidegate-times", partial(track.look_ahead, 1))
            if decoding is not None:
                self._decoding[entry.id] = decoding
            self._keep(track)

    def _look(self, entry: Unread) -> Track:
        if (decoding := self._decoding.pop(entry.id, None)) is not None:
            schedule.wait([decoding])
        looked = self._looked.pop(entry.id, None)
        return looked if looked is not None else self._open(entry.id, entry.order)

    def _put_back(self, track: Track, begins_us: int) -> None:
        heappush(self._unread, Unread(begins_us, track.order, track.source.id, exact=True))
        self._keep(track)

    def _keep(self, track: Track) -> None:
        self._looked[track.source.id] = track
        if len(self._looked) > _LOOKED_INTO:
            self._looked.popitem(last=False)

    def _let_go(self, id_: str, order: int, newest_us: int) -> None:
        changed = self.listing.let_go(id_)
        if changed is not None:
            self.names.note(ListedFile(order, id_, *changed))
        if order not in self._consumed:  # else a source that grew after it was consumed
            self._consumed.add(order, order)
            self._count += 1
        self._last = id_
        self.newest_us = max(self.newest_us, newest_us)
