"""One URI of a stream at the gate: its open sources, and how they count for the frontier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.batch import MIN_US
from tidegate.connector import Connector, Source
from tidegate.gate.folder import WatchedFolder
from tidegate.gate.frontier import Progress, SourceFeed
from tidegate.gate.track import Rank, Track


@dataclass
class Inlet:
    """One URI of one stream: its connector and the tracks of its open sources.

    Places count from 0 for inlets with which a query starts, and from -1 downwards for those that
    join later. A place and a source's id identify a source in manifests. A source of a folder has a
    track from when the merge reaches it until it is consumed; `folder` has the others.
    """

    place: int
    stream: int
    connector: Connector
    disorder_us: int
    idle_us: int | None
    uri: str | None = None
    tracks: dict[str, Track] = field(default_factory=dict)
    folder: WatchedFolder | None = None
    spoke_at: float = 0.0
    live: bool = False
    """Whether its tuples arrive while the run reads them, so that latency has a meaning."""
    forgotten_us: int = MIN_US
    """The newest event time of sources of which nothing else is kept (see `Intake.forget`)."""

    @property
    def name(self) -> str:
        """Its name for people: the URI, or its first source if it has no URI."""
        return self.uri or next(iter(self.tracks), f"stream {self.stream}")

    @property
    def removed(self) -> bool:
        """Whether all its sources have left."""
        left = bool(self.tracks) and all(t.removed for t in self.tracks.values())
        return left and (self.folder is None or self.folder.is_empty())

    @property
    def consumed_us(self) -> int:
        """The newest event time of consumed sources, which are not open any more."""
        return self.forgotten_us if self.folder is None else self.folder.newest_us

    def rank(self, order: int) -> Rank:
        """The rank of a source among all sources; those that joined later come later."""
        return int(self.place < 0), abs(self.place), order

    def open(self, track: Track) -> None:
        self.tracks[track.source.id] = track

    def unread(self) -> int:
        """The number of sources that are not open yet."""
        return len(self.folder) if self.folder is not None else 0

    def first_place(self) -> tuple[int, Rank] | None:
        """A place in the merge before which no unread source begins; None without unread ones."""
        first = self.folder.first() if self.folder is not None else None
        return None if first is None else (first.low_us, self.rank(first.order))

    def open_first(self) -> Track | None:
        """Open the unread source that can begin earliest; None if it turns out to begin later."""
        assert self.folder is not None, "only folders have unread sources"
        track = self.folder.reach()
        if track is not None:
            self.open(track)
        return track

    def listen(self, now: float) -> None:
        """Note which sources have something to read now; one with tuples to take is not silent.

        A new source counts as heard now. Only the newest file of a folder may get more, so a folder
        is silent as a whole.
        """
        if self.unread():
            self.spoke_at = now
        for track in self.tracks.values():
            speaks = not track.removed and track.has_rows()
            if speaks or track.spoke_at == -math.inf:
                track.spoke_at = now
            if speaks:
                self.spoke_at = now
            track.idle = self.folder is None and self._is_over(track.spoke_at, now)

    def is_idle(self, now: float) -> bool:
        """Whether all its sources have been silent for longer than the IDLE of the stream."""
        return self._is_over(self.spoke_at, now)

    def has_rows(self) -> bool:
        """Whether there is something to read now."""
        return self.unread() > 0 or any(t.has_rows() for t in self.tracks.values() if not t.removed)

    def open_reach_us(self) -> int:
        """How far the frontier may go as far as open and consumed sources are concerned."""
        live = self.unread() == 0 and self._may_get_more()
        return SourceFeed(self._open_members(), self.disorder_us, live).reach()

    def feed(self, idle: bool, below_us: int) -> SourceFeed:
        """The feed for the frontier. Its reach is exact if below `below_us`, else not below that.

        Unread sources count by their promise, and are opened only where that may decide.
        """
        unread: tuple[Progress, ...] = ()
        if self.folder is not None and len(self.folder):
            promise_us, silent = self.folder.promise(below_us, self.disorder_us)
            for track in silent:
                track.speak()
                self.open(track)
            if len(self.folder):
                unread = (Progress(promise_us=promise_us),)
        members = (*self._open_members(), *unread)
        return SourceFeed(members, self.disorder_us, self._may_get_more(), idle)

    def fold(self) -> None:
        """Close the sources of a folder of which nothing is needed any more."""
        if self.folder is None:
            return
        for track in tracks_in_order(self):
            if not track.removed and track.consumed():
                self.folder.consume(track)
                del self.tracks[track.source.id]

    def _is_over(self, spoke_at: float, now: float) -> bool:
        return self.idle_us is not None and (now - spoke_at) * 1e6 >= self.idle_us

    def _open_members(self) -> tuple[Progress, ...]:
        consumed_us = self.consumed_us
        consumed = (Progress(consumed_us, ended=True),) if consumed_us > MIN_US else ()
        return (*(t.progress() for t in self._holding() if not t.outside), *consumed)

    def _holding(self) -> list[Track]:
        """The tracks that hold the frontier: those not idle, or the newest idle one if all are."""
        idle = [t for t in self.tracks.values() if t.idle and not t.exhausted()]
        if not idle:
            return list(self.tracks.values())
        others = [t for t in self.tracks.values() if t not in idle]
        if any(not t.exhausted() for t in others):
            return others
        return [*others, max(idle, key=lambda t: t.floor_us)]

    def _may_get_more(self) -> bool:
        return self.connector.live() and not self.removed


@dataclass
class Absent(Connector):
    """Stands for a source that joined an earlier run and has not been announced again."""

    holds: bool

    def discover(self) -> Sequence[Source]:
        return ()

    def live(self) -> bool:
        return self.holds


def tracks_in_order(inlet: Inlet) -> list[Track]:
    """The tracks of an inlet by their order: a restart, which opens them anew, cuts the same."""
    return sorted(inlet.tracks.values(), key=lambda t: t.order)
