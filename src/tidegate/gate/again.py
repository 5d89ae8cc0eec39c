"""Cuts a batch once more exactly as it was, from the manifests before and after it.

What the later manifest says of sources is where the batch has to end; what the earlier one says is
where it begins. Sources that came with the batch begin at nothing, in the places they got then.
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
    """Where a batch ends that is cut once more: positions, frontier, and how many rows it has.

    Grows with the entries of a manifest.
    """

    rows: int
    frontier_us: int
    finished: bool
    entries: Mapping[tuple[int, str], Entry] = field(default_factory=dict)
    """By place of the inlet and id of the source."""
    consumed: Mapping[int, ConsumedOrders] = field(default_factory=dict)
    """By place of a folder, the orders of the sources of which nothing was left."""

    @staticmethod
    def of(after: Sequence[Entry], rows: int, frontier_us: int, finished: bool) -> Goal:
        """The goal that the entries of a manifest are."""
        return Goal(
            rows=rows,
            frontier_us=frontier_us,
            finished=finished,
            entries={(e["inlet"], e["id"]): e for e in after if e["id"] != CONSUMED},
            consumed={e["inlet"]: ConsumedOrders(e["log"]["orders"]) for e in after if "log" in e},
        )

    def reads(self, place: int, id_: str, order: int) -> bool:
        """Whether the batch, or one before it, has read of a source."""
        return (place, id_) in self.entries or order in self.consumed.get(place, ())

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
        """Whether a source from which the rows were taken has shown what it had shown then."""
        entry = self.entries.get((place, track.source.id))
        return entry is None or (
            track.position == entry["position"]
            and track.floor_us == entry["floor_us"]
            and track.holds(entry)
        )


def rewound(before: Sequence[Entry], after: Sequence[Entry], store: Store) -> list[Entry]:
    """What a gate is restored with to cut a batch once more.

    That is what the manifest before it says, and of sources that it does not know what the one
    after it says, at their beginning: their orders and promises must not depend on what else has
    come since.
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
    """What is known of a folder before a batch, with the names that were listed in it."""
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
