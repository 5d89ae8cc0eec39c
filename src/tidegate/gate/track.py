"""One source at the gate: how far it was read, which tuples wait, and what comes next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.arrival import ArrivalTimes
from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Source
from tidegate.gate.answer_time import AnsweredTuples
from tidegate.gate.frontier import Progress, lowered
from tidegate.gate.lateness import Bools, Int64s, Times, late_mask, needed_disorder_us

_LOOK_ROWS = 8192

Rank = tuple[int, int, int]
"""The rank of a track among all: the inlet's kind and number, and the order of its source."""


@dataclass(frozen=True)
class Slice:
    """The part of one source in one batch: positions [start, stop), new from `new_from` on.

    Positions before `new_from` were read by an earlier batch and waited in the gate. `late` flags
    the late tuples of all of [start, stop); None without any. Tuples that are in time lie in
    [low_us, high_us]; low exceeds high without any.
    """

    start: int
    new_from: int
    stop: int
    late: Bools | None
    late_rows: int
    low_us: int
    high_us: int
    disorder_us: int = 0
    """The disorder with which none of the tuples would have been late."""
    absent_rows: int = 0
    """How many new positions have no row."""
    outside_rows: int = 0
    """How many of these have a row that is left to another source."""


@dataclass(frozen=True)
class TrackMark:
    """The positions of a track before a batch took rows; holds references only."""

    position: int
    floor_us: int
    waiting_from: int
    waiting_floor_us: int
    ahead: Times
    held: Times


class Track:
    """The reading position in one source, with the event times behind and ahead of it.

    The driver owns it and changes it between batches only. `order` is the source's place among the
    sources of its stream, `rank` its place among all tracks. With `hold`, tuples that are not ready
    wait: `waiting_from` is the oldest position that is not consumed, and event times from there on
    are kept (a restart reads them again). Grows with what was looked at and with what waits.
    """

    def __init__(
        self,
        source: Source,
        order: int,
        disorder_us: int,
        hold: bool,
        promised_us: int = MIN_US,
        rank: Rank = (0, 0, 0),
        arrivals: ArrivalTimes | None = None,
    ) -> None:
        self.source = source
        self.order = order
        self.rank = rank
        self.disorder_us = disorder_us
        self.hold = hold
        self.promised_us = promised_us
        self.position = self.waiting_from = source.first
        self.newest_before_us = source.newest_before_us
        self.floor_us = self.waiting_floor_us = self.newest_before_us
        self.removed = False
        self.spoke_at = -math.inf
        """When it last had something to read."""
        self.idle = False
        """Whether it has been silent for longer than IDLE of its stream allows."""
        self.end: int | None = None
        """The position beyond which nothing is there for this gate; such a source never ends."""
        self.outside = False
        """Whether the gate takes no tuple of it, and does not wait for it either."""
        self._ahead = Times.empty()
        self._held = Times.empty()
        self._known = 0
        self._drained = False
        self._mark: Mapping[str, Any] | None = None
        self.arrivals = arrivals
        """The arrival times of its tuples; None if all were there from the start."""

    @property
    def keys(self) -> Int64s:
        """The merge keys of the positions that were looked at and are not taken yet."""
        return self._ahead.keys

    def look_ahead(self, rows: int) -> Int64s:
        """The merge keys of the next positions, at least `rows` of them if there are as many now.

        A piece of the file is always decoded whole, and then all of its keys are kept.
        """
        have = len(self._ahead.keys)
        if have < rows and not self.removed:
            self._known = self._extended(self.position + rows)
            self._drained = self._known < self.position + rows
            start, stop = self.position + have, min(self._known, self.position + rows)
            if stop > start:
                if self.source.pieced:
                    stop = min(self._known, self.source.piece_end(stop - 1))
                floor = int(self._ahead.keys[-1]) if have else self.floor_us
                self._ahead = self._ahead.joined(Times.read(self.source, start, stop, floor))
        return self._ahead.keys

    def look_further(self, rows: int) -> Int64s:
        """The merge keys of up to `rows` more positions than before, within one piece.

        It stops at the end of a piece: there `next_low_us` may show that the next piece need not be
        decoded.
        """
        end = self.position + len(self._ahead.keys)
        if self.source.pieced and not self.complete():
            rows = min(rows, self.source.piece_end(end) - end)
        return self.look_ahead(end - self.position + rows)

    def speak(self) -> None:
        """Look ahead to the first event time, if none was seen yet.

        A source that has not spoken holds the frontier at -inf.
        """
        while self._is_silent() and not self.complete():
            self.look_further(max(_LOOK_ROWS, len(self._ahead.keys)))

    def next_low_us(self) -> int:
        """A lower bound for the keys of all positions that were not looked at; decodes nothing.

        Keys never decrease, so the last one is a bound. If statistics have a least time for the
        whole next piece, that is one too, because then the first of its rows has a time.
        """
        keys, end = self._ahead.keys, self.position + len(self._ahead.keys)
        low = int(keys[-1]) if len(keys) else self.floor_us
        if self.source.pieced and not self.complete():
            low = max(low, self.source.low_us(end))
        return low

    def complete(self) -> bool:
        """Whether there is nothing beyond what was looked at, at present."""
        end = self.position + len(self._ahead.keys)
        if not self.removed and end >= self._known:
            self._known = self._extended(end + 1)
        return self.removed or end >= self._known

    def drained(self) -> bool:
        """Whether the last look reached the end of what was there; more may have come since."""
        return self._drained

    def exhausted(self) -> bool:
        """Whether every position was taken and no other will come; decodes nothing."""
        return self.removed or (self.end is None and not self.has_rows() and self.source.ended())

    def has_rows(self) -> bool:
        """Whether there is something to take now."""
        return len(self._ahead.keys) > 0 or not self.complete()

    def progress(self) -> Progress:
        """What counts for the frontier; a source not read yet promises its first event time."""
        promise = self.promised_us
        if self.floor_us == MIN_US and not self.removed:
            ahead = self.look_ahead(1)
            first = int(np.searchsorted(ahead, MIN_US, "right"))
            if first < len(ahead):
                promise = max(promise, lowered(int(ahead[first]), self.disorder_us))
        return Progress(self.floor_us, promise, self.exhausted())

    def take(self, rows: int, consumed_us: int) -> Slice:
        """Move the reading position past the next `rows` positions; returns the batch's part."""
        taken, self._ahead = self._ahead.split(rows)
        # Readers have passed the frontier, and a source may bring nothing below its promise.
        barrier = max(consumed_us, self.promised_us)
        late = late_mask(taken.times, taken.valid, self.floor_us, self.disorder_us, barrier)
        new_from, self.position = self.position, self.position + rows
        new_late_rows = int(late.sum())
        needed_us = self._needed_us(taken, late, consumed_us) if new_late_rows else 0
        if rows:
            self.floor_us = int(taken.keys[-1])
        batch = taken
        if self.hold:
            # Decided again from the same facts: a restart has only the times of waiting tuples.
            held_late = late_mask(
                self._held.times,
                self._held.valid,
                self.waiting_floor_us,
                self.disorder_us,
                self.promised_us,
            )
            late = np.concatenate([held_late, late])
            batch = self._held = self._held.joined(taken)
        start = self.waiting_from if self.hold else new_from
        kept = (
            batch.times
            if batch.valid.all() and not late.any()
            else batch.times[batch.valid & ~late]
        )
        low, high = (int(kept.min()), int(kept.max())) if len(kept) else (MAX_US, MIN_US)
        mask = late if late.any() else None
        absent = self.source.absent(new_from, self.position)
        outside = self.source.outside(new_from, self.position) if absent else 0
        return Slice(
            start,
            new_from,
            self.position,
            mask,
            new_late_rows,
            low,
            high,
            needed_us,
            absent,
            outside,
        )

    def _needed_us(self, taken: Times, late: Bools, consumed_us: int) -> int:
        before = np.concatenate([[self.floor_us], taken.keys[:-1]])
        return needed_disorder_us(taken.times, late, before, self.disorder_us, consumed_us)

    def completed(self, taken: Slice, previous_us: int, frontier_us: int) -> AnsweredTuples | None:
        """The tuples that the batch with `taken` is the first to answer; call before `release`.

        With `hold` these are the tuples that have become ready, otherwise all that it reads. Late
        tuples, and those without a time, are answered when they are read. None if arrival times are
        not known.
        """
        if self.arrivals is None:
            return None
        if not self.hold:
            return AnsweredTuples.of_range(self.arrivals, taken.new_from, taken.stop)
        times, valid = self._held.times, self._held.valid
        if not self.disorder_us and taken.late is None and valid.all():
            ready = int(np.searchsorted(times, frontier_us, "left"))
            return AnsweredTuples.of_range(self.arrivals, taken.start, taken.start + ready)
        aside = ~valid if taken.late is None else ~valid | taken.late
        done = ~aside & (times >= previous_us) & (times < frontier_us)
        done[taken.new_from - taken.start :] |= aside[taken.new_from - taken.start :]
        return AnsweredTuples.of(self.arrivals, taken.start + np.flatnonzero(done))

    def release(self, taken: Slice, frontier_us: int) -> None:
        """Forget what the batch with `taken` has consumed: all tuples below the frontier."""
        if not self.hold:
            self.waiting_from, self.waiting_floor_us = self.position, self.floor_us
            return
        # With disorder, tuples that wait may stand before consumed ones: all from the first that
        # waits on are kept, and those consumed are left out by their times.
        waits = self._held.valid & (self._held.times >= frontier_us)
        if taken.late is not None:
            waits &= ~taken.late
        positions = np.flatnonzero(waits)
        consumed = int(positions[0]) if len(positions) else len(waits)
        if consumed:
            self.waiting_floor_us = int(self._held.keys[consumed - 1])
            self.waiting_from += consumed
            _, self._held = self._held.split(consumed)

    def mark(self) -> TrackMark:
        """The present positions, for `go_back`."""
        return TrackMark(
            position=self.position,
            floor_us=self.floor_us,
            waiting_from=self.waiting_from,
            waiting_floor_us=self.waiting_floor_us,
            ahead=self._ahead,
            held=self._held,
        )

    def go_back(self, mark: TrackMark) -> None:
        """Undo what a batch took that will not be committed."""
        self.position, self.floor_us = mark.position, mark.floor_us
        self.waiting_from, self.waiting_floor_us = mark.waiting_from, mark.waiting_floor_us
        self._ahead, self._held = mark.ahead, mark.held

    def consumed(self) -> bool:
        """Whether nothing of this source will ever be needed again."""
        return self.exhausted() and self.waiting_from == self.position

    def confirm(self) -> None:
        """Refuse a source whose last tuple turned out not to be whole; call before a commit."""
        if not self.removed and self.exhausted():
            self.source.confirm()

    def holds(self, saved: Mapping[str, Any]) -> bool:
        """Whether the source has the rows that an entry of a manifest says were read."""
        return "mark" not in saved or self.source.holds(saved["mark"])

    def saved(self) -> dict[str, Any]:
        """The source's entry in a manifest."""
        if self.position and not self.removed:
            self._mark = self.source.mark(self.position)
        return {
            "id": self.source.id,
            "order": self.order,
            "position": self.position,
            "floor_us": self.floor_us,
            "waiting_from": self.waiting_from,
            "waiting_floor_us": self.waiting_floor_us,
            "promised_us": self.promised_us,
            "ended": self.exhausted(),
            "removed": self.removed,
            **({"first": self.source.first} if self.source.first else {}),
            **({"before_us": self.newest_before_us} if self.newest_before_us > MIN_US else {}),
            **({} if self._mark is None else {"mark": self._mark}),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue where an entry says; the times of waiting tuples are read again."""
        self.order = saved["order"]
        self.position = saved["position"]
        self.floor_us = saved["floor_us"]
        self.waiting_from = saved["waiting_from"]
        self.waiting_floor_us = saved["waiting_floor_us"]
        self.promised_us = saved["promised_us"]
        self.newest_before_us = saved.get("before_us", MIN_US)
        self.removed = saved["removed"]
        self._mark = saved.get("mark")
        if self.hold and self.waiting_from < self.position:
            self.source.extend(self.position)
            self._held = Times.read(
                self.source, self.waiting_from, self.position, self.waiting_floor_us
            )

    def resume(self, position: int) -> None:
        """Continue after tuples that were all consumed; reads their times to find the newest."""
        self.source.extend(position)
        before = Times.read(self.source, 0, position, MIN_US)
        self.position = self.waiting_from = position
        self.floor_us = int(before.keys[-1]) if position else MIN_US
        self.waiting_floor_us = self.floor_us

    def _extended(self, rows: int) -> int:
        known = self.source.extend(rows)
        return known if self.end is None else min(known, self.end)

    def _is_silent(self) -> bool:
        keys = self._ahead.keys
        return self.floor_us == MIN_US and (not len(keys) or int(keys[-1]) == MIN_US)
