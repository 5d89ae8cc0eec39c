"""The cut of a batch: how many tuples of each source come next in the merge by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np

from tidegate.batch import MIN_US
from tidegate.gate.answer_time import AnsweredTuples
from tidegate.gate.lateness import Int64s
from tidegate.gate.track import Rank, Slice, Track

_LEAST_LOOK_ROWS = 128
_ROW_COST, _SOURCE_COST = 4, 200
"""The cost of looking at a row, and the cost that each source adds to finding the place of the last
row. The unit is the cost that one more row adds to finding that place."""

_OPENING_COST = 20_000
"""The cost of opening a source, in the same unit."""

_SEARCHED_ROWS = 8192
"""Partitioning so many rows of a run takes as long as a binary search in it."""

Place = tuple[int, Rank]
"""A place in the merge: a key and the rank of the source. Rows of one place are in sequence."""


@dataclass(frozen=True)
class SourceCut:
    """One source's part in a cut."""

    stream: int
    track: Track
    slice: Slice


@dataclass(frozen=True)
class Cut:
    """One batch as the gate gives it to operators: the part of each source, and the frontier."""

    parts: tuple[SourceCut, ...]
    rows: int
    previous_us: int
    frontier_us: int
    exhausted: bool
    completed: tuple[AnsweredTuples, ...] = ()
    """Of live sources: the tuples that this batch is the first to answer."""
    newest_us: int = MIN_US
    """A time that no tuple read so far is after."""

    @property
    def absent_rows(self) -> int:
        """How many positions in the cut have no row."""
        return sum(part.slice.absent_rows for part in self.parts)


class Reserve(Protocol):
    """Sources that are not open yet; it is known which of them can begin earliest."""

    def unread(self) -> int:
        """How many there are."""

    def first_place(self) -> Place | None:
        """A place in the merge before which none of them begins; None without sources."""

    def open_first(self) -> Track | None:
        """Open the one that can begin earliest; None where it turned out to begin later."""


def cut(
    tracks: Sequence[Track], limit_rows: int, reserves: Sequence[Reserve] = ()
) -> list[tuple[Track, int]]:
    """How many rows to take of each source, `limit_rows` in all where that many are there now.

    The rows taken are the first ones in the order (key, rank of the track, position). A source of a
    reserve is opened only if its rows may be among them. Costs the event times of about the rows
    taken; a single source is cut without a search.
    """
    tracks = list(tracks)
    unread = sum(r.unread() for r in reserves)
    # Nothing to merge: the rows taken are the next ones, whatever their times.
    if len(tracks) + unread == 1:
        tracks += [t for r in reserves if r.unread() and (t := r.open_first()) is not None]
        return [(t, min(len(t.look_ahead(limit_rows)), limit_rows)) for t in tracks]
    merge = _Merge(tracks, limit_rows, reserves)
    merge.look()
    rows = merge.first_rows()
    for track in merge.tracks:
        track.speak()  # until its first event time is known, it holds the frontier at -inf
    return rows


class _Merge:
    """The rows seen so far of sources that are merged, and the places where more may come in.

    Rows of a source that were not looked at have keys from its `next_low_us` on. When that is not
    before the place of the last row wanted, for all sources, the first rows are known.
    """

    def __init__(
        self, tracks: Sequence[Track], limit_rows: int, reserves: Sequence[Reserve]
    ) -> None:
        self.tracks: list[Track] = []
        self._limit_rows = limit_rows
        self._reserves = reserves
        self._known_rows = 0
        self._spent = 0
        self._last: Place | None = None
        self._open: list[tuple[int, Rank, Track]] = []
        for track in tracks:
            self._add(track)
        heapify(self._open)

    def look(self) -> None:
        """Look ahead where the earliest rows may be missing, until the first rows are known."""
        while (place := self._next_place()) is not None and self._may_count(place):
            reserve = next((r for r in self._reserves if r.first_place() == place), None)
            if reserve is None:
                self._look_further()
                continue
            self._spent += _OPENING_COST
            if (track := reserve.open_first()) is not None:
                self._add(track)

    def first_rows(self) -> list[tuple[Track, int]]:
        """How many rows of each source are among the first ones."""
        self.tracks.sort(key=lambda t: t.rank)
        keys = [t.keys for t in self.tracks]
        if self._known_rows <= self._limit_rows:
            return [(t, len(k)) for t, k in zip(self.tracks, keys, strict=True)]
        counts, _ = _first_rows(keys, self._limit_rows)
        return list(zip(self.tracks, counts, strict=True))

    def _add(self, track: Track) -> None:
        self.tracks.append(track)
        self._known_rows += len(track.keys)
        if not track.complete():
            heappush(self._open, (track.next_low_us(), track.rank, track))

    def _next_place(self) -> Place | None:
        """The earliest place where an unknown row may come in; None where there is none."""
        places = [p for r in self._reserves if (p := r.first_place()) is not None]
        if self._open:
            places.append(self._open[0][:2])
        return min(places, default=None)

    def _may_count(self, place: Place) -> bool:
        """Whether a row at this place may be among the first ones.

        The more rows are known, the earlier is the place of the last row wanted. So a place that is
        out of date can only be too late: the merge then looks at more rows than necessary, and
        misses none. It is found again once looking has cost as much as finding it.
        """
        if self._known_rows < self._limit_rows:
            return True
        finding_cost = self._known_rows + _SOURCE_COST * len(self.tracks)
        if self._last is None or self._spent >= finding_cost:
            self._last, self._spent = self._last_place(), 0
        return place < self._last

    def _last_place(self) -> Place:
        self.tracks.sort(key=lambda t: t.rank)
        _, (key, number) = _first_rows([t.keys for t in self.tracks], self._limit_rows)
        return key, self.tracks[number].rank

    def _look_further(self) -> None:
        """Look at more rows of the source that holds the others up, twice as many each time.

        A source that has come to its end is not looked at again: a live one whose rows come as fast
        as they are looked at would never let the batch begin.
        """
        _, _, track = heappop(self._open)
        known = len(track.keys)
        share = self._limit_rows // len(self.tracks)
        wanted = max(known, min(share, self._limit_rows), _LEAST_LOOK_ROWS)
        more = len(track.look_further(wanted)) - known
        self._known_rows += more
        self._spent += _ROW_COST * more
        if not track.drained() and not track.complete():
            heappush(self._open, (track.next_low_us(), track.rank, track))


def _first_rows(keys: Sequence[Int64s], limit_rows: int) -> tuple[list[int], tuple[int, int]]:
    """How many rows of each sorted run are among the first `limit_rows`; there must be more.

    Rows with equal keys count in the order of the runs. The second result is the place of the last
    row: its key and the number of its run.
    """
    last_key = _last_key([k[:limit_rows] for k in keys], limit_rows)
    counts = [int(np.searchsorted(k, last_key, "left")) for k in keys]
    left = limit_rows - sum(counts)
    last_run = 0
    for run, k in enumerate(keys):
        ties = min(int(np.searchsorted(k, last_key, "right")) - counts[run], left)
        if ties > 0:
            counts[run] += ties
            left -= ties
            last_run = run
    return counts, (last_key, last_run)


def _last_key(keys: Sequence[Int64s], limit_rows: int) -> int:
    """The key of the last of the first `limit_rows` rows of sorted runs.

    A bisection over keys takes some fifty searches in each run, whatever its length. Where runs are
    short, a partition of all rows is faster.
    """
    if len(keys) * _SEARCHED_ROWS > sum(len(k) for k in keys):
        return int(np.partition(np.concatenate(keys), limit_rows - 1)[limit_rows - 1])
    low = min(int(k[0]) for k in keys if len(k))
    high = max(int(k[-1]) for k in keys if len(k))
    while low < high:
        middle = (low + high) // 2
        if sum(int(np.searchsorted(k, middle, "right")) for k in keys) >= limit_rows:
            high = middle
        else:
            low = middle + 1
    return low
