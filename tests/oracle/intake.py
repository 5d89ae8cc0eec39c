"""The gate of a query with every source open: the plain twin of lazy folders and of the cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Source
from tidegate.gate.cut import Cut, SourceCut
from tidegate.gate.frontier import SourceFeed, frontier
from tidegate.gate.lateness import Int64s
from tidegate.gate.track import Track

_LOOK_ROWS = 8192
_GROWTH = 8


def plain_cut(tracks: Sequence[Track], limit_rows: int) -> list[int]:
    """How many rows to take of each track: the first ones by (key, place of the track, position).

    Looks at rows of every track, and at more of those that hold the others up.
    """
    if len(tracks) == 1:
        return [min(len(tracks[0].look_ahead(limit_rows)), limit_rows)]
    look = {id(t): min(limit_rows, _LOOK_ROWS) for t in tracks}
    while True:
        keys = [t.look_ahead(look[id(t)]) for t in tracks]
        ends = [(int(k[-1]), t) for t, k in zip(tracks, keys) if not t.complete() and len(k)]
        horizon = min((key for key, _ in ends), default=MAX_US)
        safe = [k[: np.searchsorted(k, horizon, "left")] if ends else k for k in keys]
        if sum(len(k) for k in safe) >= limit_rows or not ends:
            return _first_rows(safe, limit_rows)
        for key, track in ends:
            if key == horizon:
                look[id(track)] *= _GROWTH


def _first_rows(keys: Sequence[Int64s], limit_rows: int) -> list[int]:
    """Of sorted key runs, how many of each are among the first rows of their merge."""
    rows = sorted((int(k), run) for run, keys_ in enumerate(keys) for k in keys_)[:limit_rows]
    return [sum(run == of for _, of in rows) for run in range(len(keys))]


@dataclass
class PlainInlet:
    """One URI of one stream; `live` says that more sources may come."""

    stream: int
    disorder_us: int
    live: bool = False
    idle_us: int | None = None
    spoke_at: float = 0.0
    tracks: list[Track] = field(default_factory=list)

    def is_idle(self, now: float) -> bool:
        return self.idle_us is not None and (now - self.spoke_at) * 1e6 >= self.idle_us


class PlainIntake:
    """Sources in the order of their inlets and of their arrival, all of them open for ever."""

    def __init__(self, hold: bool) -> None:
        self.hold = hold
        self.frontier_us = MIN_US
        self.inlets: list[PlainInlet] = []
        self._orders: dict[int, int] = {}

    def add(self, inlet: PlainInlet, source: Source, promised_us: int = MIN_US) -> None:
        order = self._orders.get(inlet.stream, 0)
        self._orders[inlet.stream] = order + 1
        inlet.tracks.append(Track(source, order, inlet.disorder_us, self.hold, promised_us))

    def next_cut(self, limit_rows: int, now: float = 0.0) -> Cut | None:
        every = [(i, t) for i in self.inlets for t in i.tracks]
        entries = [(i, t) for i, t in every if not t.exhausted()]
        for inlet, track in entries:
            if len(track.look_ahead(1)):
                inlet.spoke_at = now
        counts = plain_cut([t for _, t in entries], limit_rows) if entries else []
        rows = {id(t): n for (_, t), n in zip(entries, counts, strict=True)}
        parts = []
        for inlet, track in every:
            taken = rows.get(id(track), 0)
            if taken or (self.hold and track.waiting_from < track.position):
                parts.append(SourceCut(inlet.stream, track, track.take(taken, self.frontier_us)))
        feeds = [
            SourceFeed(tuple(t.progress() for t in i.tracks), i.disorder_us, i.live, i.is_idle(now))
            for i in self.inlets
        ]
        previous, reached = self.frontier_us, frontier(self.frontier_us, feeds)
        if not sum(counts) and reached == previous and reached != MAX_US:
            return None
        self.frontier_us = reached
        for part in parts:
            part.track.release(part.slice, reached)
        parts.sort(key=lambda p: (p.stream, p.track.order))
        return Cut(tuple(parts), sum(counts), previous, reached, reached == MAX_US)
