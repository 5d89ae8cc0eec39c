"""Calls one bucket's object for the tuples and timers of a batch.

The object is made or restored, called in the total order with timers in their place, and asked for
its state. Whatever goes wrong in the user's code is told with its class, bucket and time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US
from tidegate.errors import TaskError
from tidegate.microsecond import moment, time_text, time_us
from tidegate.operate.kernels.order import flat
from tidegate.operate.process.definition import CALLS, Process, ProcessSpec
from tidegate.operate.process.entry import StateRow
from tidegate.operate.process.feed import BucketRows, FarTime, Trigger
from tidegate.operate.process.hot import HotBucket
from tidegate.operate.process.made_rows import Mistake, OutputRows
from tidegate.operate.process.plain import NotPlain
from tidegate.operate.process.snapshot import ObjectState
from tidegate.operate.process.state import LaterState

TIMER_SRC = MAX_US
"""Where timers stand among the tuples of their time: after all of them."""

_MOST_IN_CHAIN = 100_000
"""How many timers in a row may ask for the next one when the input has ended."""

FIX = "Fix the class; the run continues from the last committed batch."
PLAIN = (
    "Keep numbers, texts, times, lists, dicts, sets, Arrow data or numpy arrays, each in one "
    "place; write snapshot() and restore(state); or set pickle = True in the class."
)

LATER = "Begin the stream after the table was made, or give its rows earlier times."


class ObjectCalls:
    """The object of one bucket at work; what it may ask of the engine goes through here."""

    def __init__(
        self, spec: ProcessSpec, bucket: int, total: int, output: OutputRows, where: str
    ) -> None:
        self.bucket = bucket
        self.total = total
        self.trigger: Trigger | None = None
        """The tuple or timer at work, by its place in the total order."""
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
        """The rows that the user's filter lets through; None where there are none."""
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
        """The error of rows that are not what the class promised."""
        if mistake.made_by is not None:
            self.bucket, trigger = mistake.made_by
            self._at(trigger)
        return self._failure(mistake.requirement, mistake.got, FIX)

    def changes(self) -> list[StateRow]:
        """What changed in the object's state and timers by its calls."""
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
        """Called by the object."""
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
        """The event time of the tuple or timer at work; of the first one, in a batch."""
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
        """Call the timers below a time, each in its place."""
        while self._timers and self._timers[0] < before_us:
            ts = heapq.heappop(self._timers)
            self._asked.discard(ts)
            trigger = (ts, TIMER_SRC, 0)
            self._at(trigger)
            self._count(ts, ended)
            self._add("on_frontier", trigger, self._made("on_frontier", moment(ts)))

    def _count(self, ts: int, ended: bool) -> None:
        """Stop a class whose timers ask for the next one for ever, now that nothing follows."""
        self._chain = self._chain + 1 if ended and ts in self._chained else 0
        self._chained.discard(ts)
        if self._chain > _MOST_IN_CHAIN:
            raise self._failure(
                f"the timers of {self._spec.name} must come to an end when the input has",
                f"{_MOST_IN_CHAIN:,} in a row that asked for the next one",
                "Call wake() in on_frontier only while there is something to wait for.",
            )

    def _made(self, method: str, *arguments: Any) -> Any:
        """What a method of the object returns; a generator works while it is read, so it is."""
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
        """The tuple or timer at work, for messages."""
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
