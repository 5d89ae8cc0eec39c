"""Lets sources into the gate: new ones, and those that an earlier run has read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import ListedSource, Source
from tidegate.errors import GateError, SourceError
from tidegate.gate.entry import CONSUMED, Entry, check_same, check_whole, gone, is_needed, waits
from tidegate.gate.folder import WatchedFolder
from tidegate.gate.inlet import Absent, Inlet
from tidegate.gate.names import ListedFile, NameLog
from tidegate.gate.orders import ConsumedOrders
from tidegate.gate.rewind import Goal
from tidegate.gate.track import Track
from tidegate.state.store import Store


class Arrivals:
    """Gives sources their orders and tracks; a source of the manifest goes on where it was.

    Holds the entries of the manifest: of single sources, and of sources that are not here (again).
    Grows with these, not with files that were consumed.
    """

    def __init__(self, hold: bool) -> None:
        self._hold = hold
        self._saved: dict[tuple[int, str], Entry] = {}
        """Entries by the place of the inlet and the id of the source."""
        self._next_order: dict[int, int] = {}
        self._missing: list[str] = []
        """Files that an earlier run has listed and not read to the end, and that are gone."""
        self._store: Store | None = None
        self.end: Goal | None = None
        """Where the sources end for this gate, if they go on beyond it."""

    @property
    def end_us(self) -> int:
        """The frontier at which the sources end for this gate."""
        return MAX_US if self.end is None else self.end.frontier_us

    def restore(self, saved: Sequence[Entry], store: Store | None) -> list[Inlet]:
        """Continue from a manifest; returns an absent inlet for all that had joined a run."""
        self._store = store
        self._saved = {(s["inlet"], s["id"]): s for s in saved}
        joined: dict[int, Inlet] = {}
        for entry in self._saved.values():
            following = max(self.next_order(entry["stream"]), entry["order"] + 1)
            self._next_order[entry["stream"]] = following
            if entry["inlet"] < 0:
                absent = Inlet(entry["inlet"], entry["stream"], Absent(False), 0, None)
                joined.setdefault(absent.place, absent).uri = entry["uri"]
        for inlet in joined.values():
            inlet.connector = Absent(self._is_missed(inlet))
        return [joined[place] for place in sorted(joined, reverse=True)]

    def next_order(self, stream: int) -> int:
        """The order of the next new source of a stream."""
        return self._next_order.get(stream, 0)

    def entries(self) -> dict[tuple[int, str], Entry]:
        """The entries that the next manifest repeats; open sources replace theirs."""
        return dict(self._saved)

    def ids(self, inlet: Inlet) -> list[str]:
        """The ids of the sources of an inlet, also of one that is not back yet."""
        if isinstance(inlet.connector, Absent):
            return [id_ for place, id_ in self._saved if place == inlet.place]
        return [*inlet.tracks, *(inlet.folder.ids() if inlet.folder is not None else ())]

    def let_in(self, inlet: Inlet, promised_us: int = MIN_US) -> bool:
        """Let in the sources that the connector of an inlet has now; whether any was new."""
        if inlet.connector.several:
            return self._list(inlet, promised_us)
        joined = False
        if (inlet.place, CONSUMED) in self._saved:
            inlet.forgotten_us = self._saved[inlet.place, CONSUMED]["floor_us"]
        for source in inlet.connector.discover():
            if source.id in inlet.tracks:
                continue
            saved = self._saved.get((inlet.place, source.id))
            if saved is not None:
                self._resume(inlet, source, saved)
            else:
                # A source that is new beside known ones, such as an added partition, begins with
                # its oldest row. Where no run has read of the URI, the user says where to begin.
                if any(place == inlet.place for place, _ in self._saved):
                    source.start(None)
                else:
                    source.begin()
                order = self._new_order(inlet.stream)
                promise_us = max(promised_us, source.promised_us)
                inlet.open(self._track(inlet, source, order, promise_us))
            joined = True
        return joined

    def drop_forgotten(self, inlet: Inlet) -> None:
        """Replace the entries of consumed sources that will not come again by their newest time."""
        if not inlet.connector.once:
            return
        for key, entry in list(self._saved.items()):
            absent = key[0] == inlet.place and key[1] not in (*inlet.tracks, CONSUMED)
            if absent and not is_needed(entry):
                inlet.forgotten_us = max(inlet.forgotten_us, entry["floor_us"])
                del self._saved[key]

    def newest_us(self, inlets: Sequence[Inlet]) -> int:
        """A time that no tuple read so far is after, nor the frontier before the input ends."""
        gone = [(e["floor_us"], e.get("promised_us", MIN_US)) for e in self._saved.values()]
        open_ = [(t.floor_us, t.promised_us) for i in inlets for t in i.tracks.values()]
        folded = [(i.consumed_us, MIN_US) for i in inlets]
        return max((max(both) for both in gone + open_ + folded), default=MIN_US)

    def forget(self, inlet: Inlet, source_id: str) -> None:
        """Drop the entry of a source that will never come again."""
        self._saved.pop((inlet.place, source_id), None)

    def remove_absent(self, inlet: Inlet, source_id: str) -> None:
        """Let a source leave that is not back; refused while tuples of it wait in the gate."""
        entry = self._saved[inlet.place, source_id]
        if waits(entry):
            raise GateError(
                source_id,
                "tuples of it wait in the gate and must be flushed",
                "a source that is not here",
                "Announce it again, then remove it.",
            )
        self._saved[inlet.place, source_id] = {**entry, "removed": True}
        inlet.connector = Absent(self._is_missed(inlet))

    def check_complete(self, inlets: Sequence[Inlet]) -> None:
        """Refuse to go on without a source that has unread rows or tuples that wait in the gate.

        A source that joined an earlier run is waited for instead.
        """
        here = {(i.place, s) for i in inlets for s in i.tracks}
        awaited = {i.place for i in inlets if isinstance(i.connector, Absent)}
        for key, entry in self._saved.items():
            if key not in here and key[0] not in awaited and is_needed(entry):
                raise gone(self._unread_name(entry), entry.get("position", 0))
        for name in self._missing:
            raise gone(name, 0)

    def _unread_name(self, entry: Entry) -> str:
        """The source of an entry; of a folder's entry the first unread file."""
        if entry["id"] != CONSUMED:
            return str(entry["id"])
        consumed = ConsumedOrders(entry["log"]["orders"])
        known = NameLog(entry["log"]["names"]).read(self._store).values()
        return min(k for k in known if k.order not in consumed).name

    def _is_missed(self, inlet: Inlet) -> bool:
        return any(is_needed(self._saved[inlet.place, s]) for s in self.ids(inlet))

    def _list(self, inlet: Inlet, promised_us: int) -> bool:
        """Let in the files of a folder that were not listed before; few of them are opened."""
        known: dict[str, ListedFile] = {}
        later = inlet.connector.frozen and (inlet.place, CONSUMED) in self._saved
        if inlet.folder is None:
            inlet.folder = self._folder(inlet)
            known = inlet.folder.names.read(self._store)
            if known:
                listed = sorted(known.values())
                unread = [k.name for k in listed if not inlet.folder.is_consumed(k.order)]
                inlet.connector.resume([k.name for k in listed], unread)
        arrived = inlet.connector.list_new()
        for found in arrived:
            if later and _is_left_out(inlet.folder, found, known):
                known.pop(found.id, None)
                inlet.connector.let_go(found.id)
                continue
            self._let_in(inlet, inlet.folder, found, known.pop(found.id, None), promised_us)
        if known:
            self._drop_gone(inlet, inlet.folder, known.values())
        return bool(arrived)

    def _let_in(
        self,
        inlet: Inlet,
        folder: WatchedFolder,
        found: ListedSource,
        known: ListedFile | None,
        promised_us: int,
    ) -> None:
        saved = self._saved.pop((inlet.place, found.id), None)
        if saved is not None:
            self._resume(inlet, folder.listing.open(found.id), saved)
            folder.note_again(found, known)
            return
        if known is not None:
            track = folder.enter_again(found, known)
        else:
            order = self._new_order(inlet.stream)
            folder.note(found, order, promised_us)
            track = folder.enter(found, order)
        if track is not None:
            inlet.open(track)

    def _folder(self, inlet: Inlet) -> WatchedFolder:
        def opened(source: Source, order: int, promised_us: int) -> Track:
            return self._track(inlet, source, order, promised_us)

        return WatchedFolder(
            inlet.connector, opened, self._saved.pop((inlet.place, CONSUMED), None)
        )

    def _drop_gone(self, inlet: Inlet, folder: WatchedFolder, known: Iterable[ListedFile]) -> None:
        """Note which files that are gone are still needed; drop what is known of the others."""
        for file in known:
            entry = self._saved.get((inlet.place, file.name))
            if entry is None and not folder.is_consumed(file.order):
                self._missing.append(file.name)
            elif entry is not None and not is_needed(entry):
                folder.newest_us = max(folder.newest_us, entry["floor_us"])
                del self._saved[inlet.place, file.name]

    def _resume(self, inlet: Inlet, source: Source, saved: Entry) -> None:
        check_same(source, saved)
        if is_needed(saved):
            source.start(saved["waiting_from"])
        track = self._track(inlet, source, saved["order"], saved["promised_us"])
        check_whole(source, saved, inlet.connector.live())
        track.restore(saved)
        inlet.open(track)

    def _track(self, inlet: Inlet, source: Source, order: int, promised_us: int) -> Track:
        rank = inlet.rank(order)
        arrivals = source.arrivals if inlet.live else None
        track = Track(source, order, inlet.disorder_us, self._hold, promised_us, rank, arrivals)
        if self.end is not None:
            track.end = self.end.end_of(inlet.place, source.id, order)
            track.outside = not self.end.reads(inlet.place, source.id, order)
        return track

    def _new_order(self, stream: int) -> int:
        order = self.next_order(stream)
        self._next_order[stream] = order + 1
        return order


def _is_left_out(
    folder: WatchedFolder, found: ListedSource, known: Mapping[str, ListedFile]
) -> bool:
    """Whether a frozen listing leaves a source out: it is new, or it was consumed.

    Refuses a source that is needed and has changed.
    """
    listed = known.get(found.id)
    if listed is None or folder.is_consumed(listed.order):
        return True
    if (found.extent, found.digest) != (listed.extent, listed.digest):
        raise SourceError(
            found.id,
            "is part of a history, and must be as it was when the first run began",
            "other content",
            "Put it back as it was, or start from an empty checkpoint.",
        )
    return False
