"""Follows the sources of one URI at the gate."""

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
    """One URI of one stream: its connector and the tracks of its sources that are open.

    Places count from 0 for those a query starts with, and from -1 downwards for those that joined
    later; together with a source's id they name it in manifests. Of a folder, a source has a track
    from when the merge reaches it until it is consumed; `folder` has the others.
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
    """Whether its tuples arrive while they are read, so that their latency means something."""
    forgotten_us: int = MIN_US
    """The newest event time of sources that have left no other trace (see `Intake.forget`)."""

    @property
    def name(self) -> str:
        """What people are told: its URI, or its first source where it has none."""
        return self.uri or next(iter(self.tracks), f"stream {self.stream}")

    @property
    def removed(self) -> bool:
        """Whether all its sources have left."""
        left = bool(self.tracks) and all(t.removed for t in self.tracks.values())
        return left and (self.folder is None or self.folder.is_empty())

    @property
    def consumed_us(self) -> int:
        """The newest event time of sources that were consumed and are not open any more."""
        return self.forgotten_us if self.folder is None else self.folder.newest_us

    def rank(self, order: int) -> Rank:
        """Where a source of it stands among all: those that joined later come later."""
        return int(self.place < 0), abs(self.place), order

    def open(self, track: Track) -> None:
        self.tracks[track.source.id] = track

    def unread(self) -> int:
        """How many sources are not open yet."""
        return len(self.folder) if self.folder is not None else 0

    def first_place(self) -> tuple[int, Rank] | None:
        """A place in the merge that no unread source begins before."""
        first = self.folder.first() if self.folder is not None else None
        return None if first is None else (first.low_us, self.rank(first.order))

    def open_first(self) -> Track | None:
        """Open the unread source that can begin earliest; None where it begins later than that."""
        assert self.folder is not None, "only folders have unread sources"
        track = self.folder.reach()
        if track is not None:
            self.open(track)
        return track

    def listen(self, now: float) -> None:
        """Note who has something to read; with tuples that wait for their turn one is not silent.

        A source that is new counts as heard now. Of a folder only the newest file may get more, so
        that it is silent as a whole.
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
        """How far the frontier may go for the sake of the sources that are open, or were."""
        live = self.unread() == 0 and self._may_get_more()
        return SourceFeed(self._open_members(), self.disorder_us, live).reach()

    def feed(self, idle: bool, below_us: int) -> SourceFeed:
        """What counts for the frontier: exact where it is below `below_us`, else not below it.

        Unread sources count by what they promise, and are looked into only where that decides.
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
        """Let go of the sources of a folder of which nothing is needed any more."""
        if self.folder is None:
            return
        for track in in_order(self):
            if not track.removed and track.consumed():
                self.folder.consume(track)
                del self.tracks[track.source.id]

    def _is_over(self, spoke_at: float, now: float) -> bool:
        return self.idle_us is not None and (now - spoke_at) * 1e6 >= self.idle_us

    def _open_members(self) -> tuple[Progress, ...]:
        consumed_us = self.consumed_us
        consumed = (Progress(consumed_us, ended=True),) if consumed_us > MIN_US else ()
        return (*(t.progress() for t in self._holding()), *consumed)

    def _holding(self) -> list[Track]:
        """The tracks that hold the frontier: of silent ones, where all are, the newest."""
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
    """In the place of a source that joined an earlier run and has not been announced again."""

    holds: bool

    def discover(self) -> Sequence[Source]:
        return ()

    def live(self) -> bool:
        return self.holds


def in_order(inlet: Inlet) -> list[Track]:
    """The tracks of an inlet by their order, so that a restart makes the same cut."""
    return sorted(inlet.tracks.values(), key=lambda t: t.order)
