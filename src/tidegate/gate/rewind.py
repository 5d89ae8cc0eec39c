"""Cuts a batch again exactly as it was, from the manifests before and after it.

The batch begins where the earlier manifest says that sources stood, and ends where the later one
says so. Sources that came with the batch begin at their first row, with the orders they got then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.batch import MIN_US
from tidegate.gate.entry import CONSUMED, Entry
from tidegate.gate.names import NameLog
from tidegate.gate.orders import ConsumedOrders
from tidegate.gate.track import Track
from tidegate.state.store import Store

_UNREAD = {
    "position": 0,
    "floor_us": MIN_US,
    "waiting_from": 0,
    "waiting_floor_us": MIN_US,
    "ended": False,
    "removed": False,
}
_KEPT = ("inlet", "stream", "uri", "id", "order", "promised_us", "before_us")


@dataclass(frozen=True)
class Goal:
    """Where a batch ends that is cut again: positions, frontier, and its number of rows.

    Grows with the entries of a manifest.
    """

    rows: int
    frontier_us: int
    finished: bool
    entries: Mapping[tuple[int, str], Entry] = field(default_factory=dict)
    """By the place of the inlet and the id of the source."""
    consumed: Mapping[int, ConsumedOrders] = field(default_factory=dict)
    """By the place of a folder, the orders of its sources that were consumed."""

    @staticmethod
    def of(after: Sequence[Entry], rows: int, frontier_us: int, finished: bool) -> Goal:
        """The goal that the entries of the later manifest describe."""
        return Goal(
            rows=rows,
            frontier_us=frontier_us,
            finished=finished,
            entries={(e["inlet"], e["id"]): e for e in after if e["id"] != CONSUMED},
            consumed={e["inlet"]: ConsumedOrders(e["log"]["orders"]) for e in after if "log" in e},
        )

    def reads(self, place: int, id_: str, order: int) -> bool:
        """Whether the batch or an earlier one has read rows of a source."""
        return (place, id_) in self.entries or order in self.consumed.get(place, ())

    def end_of(self, place: int, id_: str, order: int) -> int | None:
        """Where the batch stops to read a source; None where it reads all of it."""
        entry = self.entries.get((place, id_))
        if entry is not None:
            return int(entry["position"])
        return None if order in self.consumed.get(place, ()) else 0

    def take(self, place: int, track: Track) -> int:
        """How many rows the batch takes of a source, as far as they are there; looks ahead."""
        entry = self.entries.get((place, track.source.id))
        if entry is not None:
            wanted = max(int(entry["position"]) - track.position, 0)
            return min(len(track.look_ahead(wanted)), wanted)
        if track.order not in self.consumed.get(place, ()):
            return 0
        while not track.complete():
            track.look_further(max(len(track.keys), 1))
        return len(track.keys)

    def is_met(self, place: int, track: Track) -> bool:
        """Whether a source has given the same rows as then; call it after they were taken."""
        entry = self.entries.get((place, track.source.id))
        return entry is None or (
            track.position == entry["position"]
            and track.floor_us == entry["floor_us"]
            and track.holds(entry)
        )


def rewound(before: Sequence[Entry], after: Sequence[Entry], store: Store) -> list[Entry]:
    """The entries with which a gate is restored to cut a batch again.

    These are the entries of the manifest before the batch. Sources that it does not know have those
    of the manifest after it, put back to their beginning: their orders and promises are part of the
    total order and must not depend on what else has come since.
    """
    known = {(e["inlet"], e["id"]): e for e in before}
    folders = {e["inlet"] for e in after if "log" in e}  # the names of these have the orders
    entries: list[Entry] = []
    for entry in after:
        earlier = known.pop((entry["inlet"], entry["id"]), None)
        if "log" in entry:
            entries.append(_rewound_folder(earlier, entry, store))
        elif earlier is not None:
            entries.append(earlier)
        elif entry["id"] != CONSUMED and entry["inlet"] not in folders:
            begin = {k: entry.get("first", 0) for k in ("position", "waiting_from")}
            before_us = entry.get("before_us", MIN_US)
            begin |= dict.fromkeys(("floor_us", "waiting_floor_us"), before_us)
            entries.append({**{k: entry[k] for k in _KEPT if k in entry}, **_UNREAD, **begin})
    return entries + list(known.values())


def _rewound_folder(earlier: Entry | None, later: Entry, store: Store) -> Entry:
    """The entry of a folder before a batch, with the names that were listed for the batch."""
    if earlier is None:
        nothing = {"orders": [], "promises": [], "names": {"recent": [], "pages": []}}
        unread = {"floor_us": MIN_US, "ended": False, "consumed": 0, "last": "", "order": -1}
        earlier = {**later, **unread, "log": nothing}
    listed = sorted(NameLog(later["log"]["names"]).read(store).values())
    new = [name for name in listed if name.order > earlier["order"]]
    consumed, following = ConsumedOrders(earlier["log"]["orders"]), earlier["order"] + 1
    for name in new:
        if name.order > following:  # those between are of other folders of the stream
            consumed.add(following, name.order - 1)
        following = name.order + 1
    if later["order"] >= following:
        consumed.add(following, later["order"])
    names = earlier["log"]["names"]
    log = {
        "again": later["log"]["orders"],
        "orders": consumed.ranges(),
        "promises": [*earlier["log"]["promises"], *_new_promises(earlier, later)],
        "names": {**names, "recent": [*names["recent"], *map(list, new)]},
    }
    return {**earlier, "order": max(later["order"], earlier["order"]), "log": log}


def _new_promises(earlier: Entry, later: Entry) -> list[list[int]]:
    return [p for p in later["log"]["promises"] if p[0] > earlier["order"]]
