"""Reports how far the input of a query is read, and which source holds the frontier back.

For status and metrics only. It reads the inlets after a cut, changes nothing and opens no source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.batch import MAX_US, MIN_US
from tidegate.gate.inlet import Inlet
from tidegate.gate.track import Track

FILES = "files"


@dataclass(frozen=True)
class Extent:
    """How much of the input is read: `done` of `whole`; the unit is a plural noun."""

    done: float
    whole: float
    unit: str

    @property
    def share(self) -> float:
        return min(self.done / self.whole, 1.0) if self.whole > 0 else 1.0


@dataclass(frozen=True)
class Holder:
    """The source that holds the frontier back: its stream's number and its newest event time.

    `spoke_at` is when it last had something to read, on the clock of the run.
    """

    stream: int
    source: str
    newest_us: int
    spoke_at: float = field(default=-math.inf, compare=False)


@dataclass(frozen=True, slots=True)
class InletReach:
    """The progress of one URI: the number of its stream, and its newest event time (or -inf).

    As far as it is concerned, the frontier may go up to `reach_us`; +inf when it has ended.
    """

    stream: int
    name: str
    newest_us: int
    reach_us: int


def reaches_of(inlets: Sequence[Inlet]) -> tuple[InletReach, ...]:
    """The progress of each inlet that has not left."""
    return tuple(
        InletReach(
            inlet.stream,
            inlet.name,
            max((t.floor_us for t in inlet.tracks.values()), default=inlet.consumed_us),
            inlet.open_reach_us(),
        )
        for inlet in inlets
        if not inlet.removed
    )


def extent_of(inlets: Sequence[Inlet]) -> Extent | None:
    """How much of the input is read; None if more may come or its size is not known.

    Inlets of one unit are added up; for several units it is the mean of their shares.
    """
    every = [_extent(inlet) for inlet in inlets]
    known = [one for one in every if one is not None]
    if not known or len(known) < len(every):
        return None
    if len({one.unit for one in known}) == 1:
        return Extent(sum(e.done for e in known), sum(e.whole for e in known), known[0].unit)
    return Extent(sum(e.share for e in known), len(known), "")


def holder_of(inlets: Sequence[Inlet]) -> Holder | None:
    """The source that the frontier waits for; None when all have ended."""
    reach_us, inlet = min(
        ((i.open_reach_us(), i) for i in inlets), key=lambda pair: pair[0], default=(MAX_US, None)
    )
    if inlet is None or reach_us == MAX_US:
        return None
    reading = [t for t in inlet.tracks.values() if not t.exhausted() and not t.outside]
    if reading:
        awake = [t for t in reading if not t.idle]
        slowest = min(awake or reading, key=lambda t: (t.progress().newest_us, t.order))
        return Holder(inlet.stream, slowest.source.id, slowest.floor_us, slowest.spoke_at)
    ended = max((t.floor_us for t in inlet.tracks.values()), default=MIN_US)
    newest_us = max(ended, inlet.folder.newest_us if inlet.folder is not None else MIN_US)
    return Holder(inlet.stream, inlet.uri or "", newest_us, inlet.spoke_at)


def silent_of(inlets: Sequence[Inlet], now: float, after_s: float) -> Holder | None:
    """The source that the frontier waits for, if it has been silent and another one is ahead.

    Never a source of a stream with IDLE, which stops holding the frontier by itself.
    """
    holder = holder_of(inlets)
    if holder is None or not after_s <= now - holder.spoke_at < math.inf:
        return None
    own = [i for i in inlets if i.stream == holder.stream]
    tracks = [i.tracks[holder.source] for i in own if holder.source in i.tracks]
    waits = any(t.has_rows() for t in tracks) if tracks else any(i.has_rows() for i in own)
    if waits or any(i.idle_us is not None for i in own):
        return None
    ahead = any(t.floor_us > holder.newest_us for i in inlets for t in i.tracks.values())
    return holder if ahead else None


def _extent(inlet: Inlet) -> Extent | None:
    if inlet.folder is None:
        known = [_of_track(track) for track in inlet.tracks.values()]
        bounded = not inlet.connector.live() or all(t.source.ended() for t in inlet.tracks.values())
        return known[0] if len(known) == 1 and bounded else None
    if inlet.connector.live():
        return None
    extents = [_of_track(track) for track in inlet.tracks.values()]
    consumed, shares = inlet.folder.consumed, [e.share for e in extents if e is not None]
    return Extent(consumed + sum(shares), consumed + len(extents) + inlet.unread(), FILES)


def _of_track(track: Track) -> Extent | None:
    known = track.source.extent(track.position)
    return None if known is None else Extent(*known)
