"""Calls one bucket's object for the tuples and timers of a batch.

It makes or restores the object, calls it in the total order, with timers in their place, and takes
its state. An error in the user's code is reported with the class, the bucket and the time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.calendar.microsecond import moment, time_text, time_us
from tidegate.errors import TaskError
from tidegate.operate.kernels.order import flat
from tidegate.operate.process.definition import CALLS, Process, ProcessSpec
from tidegate.operate.process.entry import StateRow
from tidegate.operate.process.feed import BucketRows, FarTime, Trigger
from tidegate.operate.process.hot import HotBucket
from tidegate.operate.process.output_rows import Mistake, OutputRows
from tidegate.operate.process.snapshot import ObjectState
from tidegate.operate.process.state import LaterState
from tidegate.operate.process.value_json import NotPlain

TIMER_SRC = MAX_US
"""The `src` of a timer in the total order: it comes after all tuples of its time."""

_MOST_IN_CHAIN = 100_000
"""When the input has ended, at most so many timers in a row may ask for the next one."""

FIX = "Fix the class; the run continues from the last committed batch."
PLAIN = (
    "Keep numbers, texts, times, lists, dicts, sets, Arrow data or numpy arrays, each in one "
    "place; write snapshot() and restore(state); or set pickle = True in the class."
)

LATER = "Begin the stream after the table was made, or give its rows earlier times."


class ObjectCalls:
    """One bucket's object during a batch; the object reaches the engine through this class only."""

    def __init__(
        self, spec: ProcessSpec, bucket: int, total: int, output: OutputRows, where: str
    ) -> None:
        self.bucket = bucket
        self.total = total
        self.trigger: Trigger | None = None
        """The tuple or timer for which the object is called, by its place in the total order."""
        self._spec = spec
        self._where = where
        self._span: BucketRows | None = None
        self._timers: list[int] = []
        self._asked: set[int] = set()
        self._chained: set[int] = set()
        self._chain = 0
        self._output = output
        self._object: Process | None = None
        self._state: ObjectState | None = None

    def chosen(self, rows: BucketRows) -> BucketRows | None:
        """The rows that pass the user's filter; None where none do."""
        if self._spec.filter is None:
            return rows
        self._span = rows
        mask = self._call("filter", self._spec.filter, self.bucket, rows.seen())
        try:
            column = mask if isinstance(mask, pa.Array | pa.ChunkedArray) else pa.array(mask)
            booleans = flat(column, pa.bool_()).fill_null(False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise self._failure("filter must return booleans", str(error), FIX) from error
        if len(booleans) != rows.rows:
            got = f"{len(booleans)} for {rows.rows}"
            raise self._failure("filter must return one boolean per row", got, FIX)
        kept = rows.where(booleans)
        return kept if kept.rows else None

    def run(self, bucket: HotBucket, rows: BucketRows | None, frontier_us: int) -> None:
        """Call the object for these tuples and all timers below the frontier."""
        object_ = self._begin(bucket)
        try:
            if rows is not None and hasattr(object_, "on_tuple"):
                self._one_by_one(rows)
            elif rows is not None:
                self._by_batch(rows, timed=hasattr(object_, "on_frontier"))
            self._fire(frontier_us, ended=frontier_us == MAX_US)
        except Mistake as mistake:
            raise self.told(mistake) from mistake
        except FarTime as far:
            requirement = f"the times in {far.column} must be those of the years 1 to 9999"
            remedy = "Filter out the others, cast them, or write process(table) for Arrow tables."
            raise self._failure(requirement, far.time, remedy) from far

    def told(self, mistake: Mistake) -> TaskError:
        """The error for rows that break the class's promise, with bucket and time."""
        if mistake.made_by is not None:
            self.bucket, trigger = mistake.made_by
            self._at(trigger)
        return self._failure(mistake.requirement, mistake.got, FIX)

    def changes(self) -> list[StateRow]:
        """The changed rows of the object's state and timers; call it after `run`."""
        object_ = self._object
        assert object_ is not None
        assert self._state is not None
        vars(object_).pop(CALLS, None)
        state = self._call("snapshot", object_.snapshot)
        try:
            return self._state.changes(state, self._timers)
        except NotPlain as error:
            requirement = f"the state of {self._spec.name} must be made of plain values"
            got = f"{error.path}, which {error.problem}"
            raise self._failure(requirement, got, PLAIN) from error
        except Exception as error:
            requirement = f"the state of {self._spec.name} must be one that can be written"
            raise self._failure(requirement, _told(error), PLAIN) from error

    def wake(self, ts: datetime | int) -> None:
        """Set a timer; the object calls it through `Process.wake`."""
        if not hasattr(self._object, "on_frontier"):
            raise ValueError("wake needs a method on_frontier(ts) in the class")
        ts_us = time_us(ts)
        try:
            moment(ts_us)
        except OverflowError:
            raise ValueError(f"wake({ts_us}) is outside the years 1 to 9999") from None
        assert self.trigger is not None
        now_us, src, _ = self.trigger
        in_timer = src == TIMER_SRC
        if ts_us < now_us or (in_timer and ts_us == now_us):
            bound = "must be after the timer" if in_timer else "must not be before the tuple"
            raise ValueError(f"wake({time_text(ts_us)}) {bound} at work, {time_text(now_us)}")
        if ts_us not in self._asked:
            self._asked.add(ts_us)
            heapq.heappush(self._timers, ts_us)
            if in_timer:
                self._chained.add(ts_us)

    def _begin(self, bucket: HotBucket) -> Process:
        object_: Process = self._call("__init__", self._spec.factory)
        vars(object_)[CALLS] = self
        self._object = object_
        self._state = ObjectState(object_, bucket, f"{self._where}, bucket {self.bucket}")
        self._state.attach(self._now_us)
        kept = self._state.kept
        if kept is not None:
            self._timers = list(kept.timers)
            self._asked = set(kept.timers)
            self._call("restore", object_.restore, kept.state)
            vars(object_)[CALLS] = self
        return object_

    def _now_us(self) -> int:
        """The event time of the current tuple or timer; for `process(batch)` of its first tuple."""
        if self.trigger is None:
            raise RuntimeError("declared state can be used for tuples and timers, not in restore")
        return self.trigger[0]

    def _one_by_one(self, rows: BucketRows) -> None:
        for trigger, tuple_, keys in rows.calls():
            if self._timers and self._timers[0] < trigger[0]:
                self._fire(trigger[0])
            self._at(trigger)
            self._add("on_tuple", trigger, self._made("on_tuple", tuple_, keys))

    def _by_batch(self, rows: BucketRows, timed: bool) -> None:
        ts = rows.ts
        starts = np.flatnonzero(np.diff(ts, prepend=ts[0] - 1)) if timed else np.zeros(1, np.int64)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(ts)]):
            part = rows.part(start, end)
            self._fire(int(ts[start]))
            self._at((int(ts[start]), 0, 0))
            self._span = part
            made = self._made("process", part.seen())
            self._output.add_batch(self.bucket, made, part.order())

    def _add(self, method: str, trigger: Trigger, made: Any) -> None:
        if made is not None:
            self._output.add(self.bucket, method, trigger, made)

    def _fire(self, before_us: int, ended: bool = False) -> None:
        """Call the timers below a time, in order; a timer may set further ones."""
        while self._timers and self._timers[0] < before_us:
            ts = heapq.heappop(self._timers)
            self._asked.discard(ts)
            trigger = (ts, TIMER_SRC, 0)
            self._at(trigger)
            self._count(ts, ended)
            self._add("on_frontier", trigger, self._made("on_frontier", moment(ts)))

    def _count(self, ts: int, ended: bool) -> None:
        """Stop a class whose timers set the next timer for ever: no tuple follows that ends it."""
        self._chain = self._chain + 1 if ended and ts in self._chained else 0
        self._chained.discard(ts)
        if self._chain > _MOST_IN_CHAIN:
            raise self._failure(
                f"the timers of {self._spec.name} must come to an end when the input has",
                f"{_MOST_IN_CHAIN:,} in a row that asked for the next one",
                "Call wake() in on_frontier only while there is something to wait for.",
            )

    def _made(self, method: str, *arguments: Any) -> Any:
        """Call a method; a generator runs only while it is read, so it is read here, at once."""
        try:
            made = getattr(self._object, method)(*arguments)
            return list(made) if isinstance(made, Iterator) else made
        except LaterState as later:
            requirement = f"{later.entry} of the table of initial state must be set before it is"
            got = f"it is set at {time_text(later.set_us)}"
            raise self._failure(requirement, got, LATER) from later
        except (Exception, SystemExit) as error:
            raise self._raised(method, error) from error

    def _call(self, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            raise self._raised(method, error) from error

    def _raised(self, method: str, error: BaseException) -> TaskError:
        return self._failure(f"{self._spec.name}.{method} must not raise", _told(error), FIX)

    def _failure(self, requirement: str, got: str, remedy: str) -> TaskError:
        where = f"{self._where}, bucket {self.bucket}{self._when()}"
        return TaskError(where, requirement, got, remedy)

    def _at(self, trigger: Trigger) -> None:
        self.trigger = trigger
        self._span = None

    def _when(self) -> str:
        """The current tuple or timer, for messages."""
        if self._span is not None:
            ts = self._span.ts
            first, last = time_text(int(ts[0])), time_text(int(ts[-1]))
            return f", tuples at {first}" if first == last else f", tuples from {first} to {last}"
        if self.trigger is None:
            return ""
        at, src, _ = self.trigger
        return f", {'timer' if src == TIMER_SRC else 'tuple'} at {time_text(at)}"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
