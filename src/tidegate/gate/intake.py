"""The gate of a running query: feeds of sources in, cuts of batches and frontiers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError, SourceError, near
from tidegate.gate.cut import cut
from tidegate.gate.frontier import Feed, Progress, check_promise, frontier
from tidegate.gate.inlet import (
    Absent,
    Forgetting,
    Inlet,
    Joining,
    check_whole,
    in_order,
    is_needed,
    waits,
)
from tidegate.gate.track import Slice, Track

_FORGOTTEN = "(consumed)"
"""The id under which a manifest keeps what is known of sources that were forgotten."""


@dataclass(frozen=True)
class Taken:
    """One source's part in a cut."""

    stream: int
    track: Track
    slice: Slice


@dataclass(frozen=True)
class Cut:
    """One batch as the gate gives it to operators: who contributes what, and how far F goes."""

    parts: tuple[Taken, ...]
    rows: int
    previous_us: int
    frontier_us: int
    exhausted: bool


class Intake:
    """All sources of one query; linear in the rows taken, and owned by the driver's loop.

    `hold` is true for operators that need ready tuples in the total order; aggregates that do not
    depend on the order fold tuples as they arrive and leave only their windows waiting.
    """

    def __init__(self, hold: bool) -> None:
        self.hold = hold
        self.frontier_us = MIN_US
        self.inlets: list[Inlet] = []
        self._saved: dict[tuple[int, str], Mapping[str, Any]] = {}
        """By place of the inlet and id of the source."""
        self._next_order: dict[int, int] = {}

    def add(
        self,
        stream: int,
        connector: Joining,
        disorder_us: int,
        idle_us: int | None = None,
        promised_us: int = MIN_US,
        now: float = 0.0,
        uri: str | None = None,
    ) -> Inlet:
        """Let the sources in that a query starts with; a promise below the frontier is refused.

        A URI that joined an earlier run goes on where that left it.
        """
        joined = [(i.stream, i.uri) for i in self.joined_before() if i.uri is not None]
        if (stream, uri) in joined:
            return self.join(stream, connector, disorder_us, idle_us, promised_us, now, uri)
        self._check_promise(f"stream {stream}", promised_us)
        first = [i.place for i in self.inlets if i.place >= 0]
        inlet = Inlet(len(first), stream, connector, disorder_us, idle_us, uri, spoke_at=now)
        self.inlets.insert(len(first), inlet)
        self._join(inlet, promised_us)
        self._drop_forgotten(inlet)
        return inlet

    def join(
        self,
        stream: int,
        connector: Joining,
        disorder_us: int,
        idle_us: int | None = None,
        promised_us: int | None = None,
        now: float = 0.0,
        uri: str | None = None,
    ) -> Inlet:
        """Let a connector's sources join a running query; without a promise from the frontier on.

        One that an earlier run let join goes on where that left it, found by its URI or, without
        one, by its id. What is here already stays as it is.
        """
        there = self._joined(stream, connector, uri)
        if there is not None and not isinstance(there.connector, Absent):
            if there.removed:
                raise GateError(
                    uri or ", ".join(there.tracks),
                    "has left this query",
                    "an announcement of it",
                    "Announce its further rows as a source of another name.",
                )
            return there
        promise = self.frontier_us if promised_us is None else promised_us
        if there is None:
            ids = ", ".join(s.id for s in connector.discover())
            self._check_promise(uri or ids, promise)
            place = min((i.place for i in self.inlets), default=0)
            there = Inlet(min(place, 0) - 1, stream, connector, disorder_us, idle_us, uri)
            self.inlets.append(there)
        there.connector, there.spoke_at = connector, now
        there.disorder_us, there.idle_us = disorder_us, idle_us
        self._join(there, promise)
        return there

    def restore(self, frontier_us: int, saved: Sequence[Mapping[str, Any]]) -> None:
        """Continue from a manifest; call before `add`.

        What had joined holds the frontier until it is here again, see `joined_before`.
        """
        self.frontier_us = frontier_us
        self._saved = {(s["inlet"], s["id"]): s for s in saved}
        joined: dict[int, Inlet] = {}
        for entry in self._saved.values():
            following = max(self._next_order.get(entry["stream"], 0), entry["order"] + 1)
            self._next_order[entry["stream"]] = following
            if entry["inlet"] < 0:
                absent = Inlet(entry["inlet"], entry["stream"], Absent(False), 0, None)
                inlet = joined.setdefault(absent.place, absent)
                inlet.uri = entry["uri"]
        self.inlets = [joined[place] for place in sorted(joined, reverse=True)]
        for inlet in self.inlets:
            inlet.connector = Absent(self._is_missed(inlet))

    def joined_before(self) -> list[Inlet]:
        """What joined an earlier run and is not here again: to be opened by its URI, or awaited."""
        return [i for i in self.inlets if isinstance(i.connector, Absent)]

    def discover(self, now: float) -> None:
        """Let new sources of followed folders join."""
        for inlet in self.inlets:
            if inlet.connector.live() and self._join(inlet):
                inlet.spoke_at = now

    def remove(self, source_id: str) -> None:
        """Let a source leave; what it has brought so far is flushed, nothing more is read."""
        known = {s: None for inlet in self.inlets for s in self._ids(inlet)}
        if source_id not in known:
            raise GateError(
                f"source {source_id}", "must be known", "no such source", near(source_id, known)
            )
        for inlet in self.inlets:
            if source_id in inlet.tracks:
                inlet.tracks[source_id].removed = True
            elif isinstance(inlet.connector, Absent) and source_id in self._ids(inlet):
                self._remove_absent(inlet, source_id)

    def look_ahead(self, limit_rows: int) -> None:
        """Read the event times that the next cut will want; changes no position."""
        tracks = [t for i in self.inlets for t in in_order(i) if not t.exhausted()]
        if tracks:
            cut(tracks, limit_rows)

    def next_cut(self, limit_rows: int, now: float) -> Cut | None:
        """The next batch of at most `limit_rows` new tuples; None where nothing would change."""
        entries = [(i, t) for i in self.inlets for t in in_order(i) if not t.exhausted()]
        counts = cut([t for _, t in entries], limit_rows) if entries else []
        parts = []
        for (inlet, track), rows in zip(entries, counts, strict=True):
            if rows or len(track.look_ahead(1)):
                inlet.spoke_at = now  # with tuples that wait for their turn it is not silent
            if rows or (self.hold and track.waiting_from < track.position):
                parts.append(Taken(inlet.stream, track, track.take(rows, self.frontier_us)))
        if self.hold:
            parts += self._still_waiting({id(t) for _, t in entries})
        previous, reached = self.frontier_us, frontier(self.frontier_us, self._feeds(now))
        rows_taken = sum(counts)
        exhausted = reached == MAX_US
        if not rows_taken and reached == previous and not exhausted:
            return None
        self.frontier_us = reached
        for part in parts:
            part.track.release(part.slice, reached)
        parts.sort(key=lambda p: (p.stream, p.track.order))
        return Cut(tuple(parts), rows_taken, previous, reached, exhausted)

    def saved(self) -> tuple[Mapping[str, Any], ...]:
        """What the manifest keeps of all sources, also of those whose files are gone."""
        entries = dict(self._saved)
        for inlet in self.inlets:
            if inlet.forgotten_us > MIN_US:
                entries[inlet.place, _FORGOTTEN] = {
                    "inlet": inlet.place,
                    "stream": inlet.stream,
                    "id": _FORGOTTEN,
                    "order": self._next_order.get(inlet.stream, 0) - 1,
                    "floor_us": inlet.forgotten_us,
                    "ended": True,
                }
            for track in inlet.tracks.values():
                entry = {"inlet": inlet.place, "stream": inlet.stream, **track.saved()}
                if inlet.place < 0:
                    entry["uri"] = inlet.uri
                entries[inlet.place, track.source.id] = entry
        return tuple(entries.values())

    def forget(self) -> None:
        """Let go of consumed sources that will never be met again; call after a commit.

        Only where the connector delivers each source once: the manifest then keeps their newest
        event time and nothing else, however many there were.
        """
        for inlet in self.inlets:
            if not isinstance(inlet.connector, Forgetting):
                continue
            done = [
                t for t in inlet.tracks.values() if t.exhausted() and t.waiting_from == t.position
            ]
            for track in done:
                inlet.forgotten_us = max(inlet.forgotten_us, track.floor_us)
                del inlet.tracks[track.source.id]
                self._saved.pop((inlet.place, track.source.id), None)
            if done:
                inlet.connector.forget([t.source.id for t in done])

    def check_complete(self) -> None:
        """Refuse to continue when a source that a manifest still needs is not there any more.

        That is one that was not read to its end, or whose tuples wait in the gate.
        """
        present = {(i.place, s) for i in self.inlets for s in i.tracks}
        awaited = {i.place for i in self.joined_before()}
        for key, entry in self._saved.items():
            if key not in present and key[0] not in awaited and is_needed(entry):
                raise SourceError(
                    key[1],
                    f"was read up to row {entry['position']} by this checkpoint and must be there",
                    "no such source",
                    "Put it back, or start from an empty checkpoint.",
                )

    def _check_promise(self, where: str, promised_us: int) -> None:
        if promised_us != MIN_US:
            check_promise(where, promised_us, self.frontier_us)

    def _joined(self, stream: int, connector: Joining, uri: str | None) -> Inlet | None:
        """The inlet that this connector is, or that it was in an earlier run."""
        here = [i for i in self.inlets if i.stream == stream]
        for inlet in here:
            if inlet.connector is connector or (uri is not None and inlet.uri == uri):
                return inlet
        if uri is not None:
            return None
        ids = [s.id for s in connector.discover()]
        awaited = [i for i in here if isinstance(i.connector, Absent) and i.uri is None]
        return next((i for i in awaited if any(n in self._ids(i) for n in ids)), None)

    def _ids(self, inlet: Inlet) -> list[str]:
        """The sources of an inlet, also of one that is not back yet."""
        if isinstance(inlet.connector, Absent):
            return [id_ for place, id_ in self._saved if place == inlet.place]
        return list(inlet.tracks)

    def _is_missed(self, inlet: Inlet) -> bool:
        return any(is_needed(self._saved[inlet.place, s]) for s in self._ids(inlet))

    def _remove_absent(self, inlet: Inlet, source_id: str) -> None:
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

    def _drop_forgotten(self, inlet: Inlet) -> None:
        """Keep just the newest event time of sources that were consumed and dropped at the end."""
        if not isinstance(inlet.connector, Forgetting):
            return
        for key, entry in list(self._saved.items()):
            gone = key[0] == inlet.place and key[1] not in (*inlet.tracks, _FORGOTTEN)
            if gone and not is_needed(entry):
                inlet.forgotten_us = max(inlet.forgotten_us, entry["floor_us"])
                del self._saved[key]

    def _still_waiting(self, read: set[int]) -> list[Taken]:
        """Sources with nothing left to read but with tuples that still wait in the gate."""
        waiting = []
        for inlet in self.inlets:
            for track in inlet.tracks.values():
                if id(track) not in read and track.waiting_from < track.position:
                    taken = track.take(0, self.frontier_us)
                    waiting.append(Taken(inlet.stream, track, taken))
        return waiting

    def _join(self, inlet: Inlet, promised_us: int = MIN_US) -> bool:
        joined = False
        if (inlet.place, _FORGOTTEN) in self._saved:
            inlet.forgotten_us = self._saved[inlet.place, _FORGOTTEN]["floor_us"]
        for source in inlet.connector.discover():
            if source.id in inlet.tracks:
                continue
            order = self._next_order.get(inlet.stream, 0)
            track = Track(source, order, inlet.disorder_us, self.hold, promised_us)
            saved = self._saved.get((inlet.place, source.id))
            if saved is not None:
                check_whole(source, saved, inlet.connector.live())
                track.restore(saved)
            else:
                self._next_order[inlet.stream] = order + 1
            inlet.tracks[source.id] = track
            joined = True
        return joined

    def _feeds(self, now: float) -> list[Feed]:
        feeds = []
        for inlet in self.inlets:
            members = tuple(t.progress() for t in inlet.tracks.values())
            if inlet.forgotten_us > MIN_US:
                members = (*members, Progress(inlet.forgotten_us, ended=True))
            silent_us = (now - inlet.spoke_at) * 1e6
            idle = inlet.idle_us is not None and silent_us >= inlet.idle_us
            live = inlet.connector.live() and not inlet.removed
            feeds.append(Feed(members, inlet.disorder_us, live, idle))
        return feeds
