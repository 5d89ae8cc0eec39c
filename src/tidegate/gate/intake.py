"""The gate of a running query: feeds of sources in, cuts of batches and frontiers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError, SourceError, near
from tidegate.gate.cut import cut
from tidegate.gate.frontier import Feed, Progress, frontier
from tidegate.gate.track import Slice, Timed, Track

_FORGOTTEN = "(consumed)"
"""The id under which a manifest keeps what is known of sources that were forgotten."""


class Joining(Protocol):
    """What the gate needs of a connector: the sources known now, and whether more may come."""

    def discover(self) -> Sequence[Timed]: ...

    def live(self) -> bool: ...


@runtime_checkable
class Forgetting(Protocol):
    """A connector that delivers each source once and may drop it when it has been consumed."""

    def forget(self, ids: Sequence[str]) -> None: ...


@dataclass
class Inlet:
    """One URI of one stream: its connector and the tracks of its sources, in order."""

    place: int
    stream: int
    connector: Joining
    disorder_us: int
    idle_us: int | None
    tracks: dict[str, Track] = field(default_factory=dict)
    spoke_at: float = 0.0
    removed: bool = False
    forgotten_us: int = MIN_US
    """The newest event time of sources that have left no other trace (see `Intake.forget`)."""


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
    ) -> Inlet:
        """Let a connector's sources join; a promise below the frontier is refused.

        Call before the first batch for the sources a query starts with, later for a joining one.
        """
        if promised_us != MIN_US and promised_us < self.frontier_us:
            raise GateError(
                f"stream {stream}",
                f"a joining source must promise event times from {self.frontier_us} us on",
                f"a promise of {promised_us} us",
                "Readers have consumed what lies before; announce it with a later time.",
            )
        inlet = Inlet(len(self.inlets), stream, connector, disorder_us, idle_us, spoke_at=now)
        self.inlets.append(inlet)
        self._join(inlet, promised_us)
        return inlet

    def restore(self, frontier_us: int, saved: Sequence[Mapping[str, Any]]) -> None:
        """Continue from a manifest; call before `add`."""
        self.frontier_us = frontier_us
        self._saved = {(s["inlet"], s["id"]): s for s in saved}
        for entry in self._saved.values():
            following = max(self._next_order.get(entry["stream"], 0), entry["order"] + 1)
            self._next_order[entry["stream"]] = following

    def discover(self, now: float) -> None:
        """Let new sources of followed folders join."""
        for inlet in self.inlets:
            if inlet.connector.live() and self._join(inlet):
                inlet.spoke_at = now

    def remove(self, source_id: str) -> None:
        """Let a source leave; what it has brought so far is flushed, nothing more is read."""
        for inlet in self.inlets:
            if source_id in inlet.tracks:
                inlet.tracks[source_id].removed = True
                inlet.removed = all(t.removed for t in inlet.tracks.values())
                return
        known = [s for inlet in self.inlets for s in inlet.tracks]
        raise GateError(
            f"source {source_id}", "must be known", "no such source", near(source_id, known)
        )

    def next_cut(self, limit_rows: int, now: float) -> Cut | None:
        """The next batch of at most `limit_rows` new tuples; None where nothing would change."""
        entries = [(i, t) for i in self.inlets for t in i.tracks.values() if not t.exhausted()]
        counts = cut([t for _, t in entries], limit_rows) if entries else []
        parts = []
        for (inlet, track), rows in zip(entries, counts, strict=True):
            if rows:
                inlet.spoke_at = now
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
        """Refuse to continue when a source that a manifest was reading is not there any more."""
        present = {(i.place, s) for i in self.inlets for s in i.tracks}
        for key, entry in self._saved.items():
            if key not in present and not entry["ended"] and not entry["removed"]:
                raise SourceError(
                    key[1],
                    f"was read up to row {entry['position']} by this checkpoint and must be there",
                    "no such source",
                    "Put it back, or start from an empty checkpoint.",
                )

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
