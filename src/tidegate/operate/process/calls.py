"""The calls of one bucket's object in a batch, between tuples and timers and the user's code.

The object is made or restored, called in the total order with timers in their place, and asked for
its state. Whatever goes wrong in the user's code is told with its class, bucket and time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import MAX_US, ORDER, TS
from tidegate.errors import TaskError
from tidegate.microsecond import moment, time_text, time_us
from tidegate.operate.kernels.order import flat
from tidegate.operate.process.definition import CALLS, KEY_COLUMN, Process, ProcessSpec
from tidegate.operate.process.entry import StateRow
from tidegate.operate.process.made_rows import Mistake, OutputRows
from tidegate.operate.process.object_state import ObjectState
from tidegate.operate.process.plain import NotPlain
from tidegate.operate.process.stored import StoredBucket
from tidegate.operate.process.tuple import Tuple, python_values

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

TIMER_SRC = MAX_US
"""Where timers stand among the tuples of their time: after all of them."""

_AT_ONCE = 8192
"""How many tuples are Python objects at a time."""

_MOST_IN_CHAIN = 100_000
"""How many timers in a row may ask for the next one when the input has ended."""

_FIX = "Fix the class; the run continues from the last committed batch."
_PLAIN = (
    "Keep numbers, texts, times, lists, dicts, sets, Arrow data or numpy arrays, each in one "
    "place; write snapshot() and restore(state); or set pickle = True in the class."
)


class ObjectCalls:
    """The object of one bucket at work; what it may ask of the engine goes through here."""

    def __init__(self, spec: ProcessSpec, bucket: int, total: int, where: str) -> None:
        self.bucket = bucket
        self.total = total
        self.trigger: tuple[int, int, int] | None = None
        """The tuple or timer at work, by its place in the total order."""
        self._spec = spec
        self._where = where
        self._span: pa.Table | None = None
        self._timers: list[int] = []
        self._asked: set[int] = set()
        self._chained: set[int] = set()
        self._chain = 0
        self._output = OutputRows(spec, bucket)
        self._object: Process | None = None
        self._state = ObjectState(None)

    def chosen(self, rows: pa.Table) -> pa.Table | None:
        """The rows that the user's filter lets through; None where there are none."""
        if self._spec.filter is None:
            return rows
        self._span = rows
        mask = self._call("filter", self._spec.filter, self.bucket, self._batch(rows))
        try:
            column = mask if isinstance(mask, pa.Array | pa.ChunkedArray) else pa.array(mask)
            booleans = flat(column, pa.bool_()).fill_null(False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise self._failure("filter must return booleans", str(error), _FIX) from error
        if len(booleans) != rows.num_rows:
            got = f"{len(booleans)} for {rows.num_rows}"
            raise self._failure("filter must return one boolean per row", got, _FIX)
        kept = rows.filter(booleans)
        return kept if kept.num_rows else None

    def run(self, stored: StoredBucket | None, rows: pa.Table | None, frontier_us: int) -> pa.Table:
        """Call the object for these tuples and all timers below the frontier; gives its rows."""
        object_ = self._begin(stored)
        try:
            if rows is not None and hasattr(object_, "on_tuple"):
                self._one_by_one(rows)
            elif rows is not None:
                self._by_batch(rows, timed=hasattr(object_, "on_frontier"))
            self._fire(frontier_us, ended=frontier_us == MAX_US)
            return self._output.table()
        except Mistake as mistake:
            if mistake.trigger is not None:
                self._at(*mistake.trigger)
            raise self._failure(mistake.requirement, mistake.got, _FIX) from mistake

    def changes(self) -> list[StateRow]:
        """What changed in the object's state and timers by its calls."""
        object_ = self._object
        assert object_ is not None
        vars(object_).pop(CALLS, None)
        state = self._call("snapshot", object_.snapshot)
        try:
            return self._state.changes(object_, state, self._timers)
        except NotPlain as error:
            requirement = f"the state of {self._spec.name} must be made of plain values"
            got = f"{error.path}, which {error.problem}"
            raise self._failure(requirement, got, _PLAIN) from error
        except Exception as error:
            requirement = f"the state of {self._spec.name} must be one that can be written"
            raise self._failure(requirement, _told(error), _PLAIN) from error

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

    def _begin(self, stored: StoredBucket | None) -> Process:
        object_: Process = self._call("__init__", self._spec.factory)
        vars(object_)[CALLS] = self
        self._object, self._state = object_, ObjectState(stored)
        where = f"{self._where}, bucket {self.bucket}"
        kept = self._state.restored(object_, self._spec.whole, where)
        if kept is not None:
            self._timers = list(kept.timers)
            self._asked = set(kept.timers)
            self._call("restore", object_.restore, kept.state)
            vars(object_)[CALLS] = self
        return object_

    def _one_by_one(self, rows: pa.Table) -> None:
        for trigger, tuple_, keys in self._tuples(rows):
            if self._timers and self._timers[0] < trigger[0]:
                self._fire(trigger[0])
            self._at(*trigger)
            self._output.add("on_tuple", trigger, self._made("on_tuple", tuple_, keys))

    def _by_batch(self, rows: pa.Table, timed: bool) -> None:
        ts = _ints(rows, TS)
        starts = np.flatnonzero(np.diff(ts, prepend=ts[0] - 1)) if timed else np.zeros(1, np.int64)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(ts)]):
            part = rows.slice(start, end - start)
            self._fire(int(ts[start]))
            self._at(int(ts[end - 1]), 0, 0)
            self._span = part
            made = self._made("process", self._batch(part))
            self._output.add_batch(made, [_ints(part, name) for name in ORDER])

    def _fire(self, before_us: int, ended: bool = False) -> None:
        """Call the timers below a time, each in its place."""
        while self._timers and self._timers[0] < before_us:
            ts = heapq.heappop(self._timers)
            self._asked.discard(ts)
            trigger = (ts, TIMER_SRC, 0)
            self._at(*trigger)
            self._count(ts, ended)
            self._output.add("on_frontier", trigger, self._made("on_frontier", moment(ts)))

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

    def _tuples(self, rows: pa.Table) -> Iterator[tuple[tuple[int, int, int], Tuple, list[Any]]]:
        """Every tuple with its place in the total order and its keys that live in this bucket."""
        spec = self._spec
        places = {name: i for i, (name, _) in enumerate(spec.columns)}
        order = [_ints(rows, name) for name in ORDER]
        starts = np.flatnonzero(_new(order)) if spec.key is not None else np.arange(rows.num_rows)
        ends = np.append(starts[1:], rows.num_rows)
        firsts = rows.take(pa.array(starts)) if len(starts) < rows.num_rows else rows
        for at in range(0, len(starts), _AT_ONCE):
            part = firsts.slice(at, _AT_ONCE)
            triples = zip(*(part.column(name).to_pylist() for name in ORDER))
            columns = [self._values(name, part.column(4 + i)) for name, i in places.items()]
            values = zip(*columns) if columns else iter([()] * part.num_rows)
            keys = self._keys(rows, columns, places, starts[at : at + _AT_ONCE], ends[at:])
            for triple, cells, mine in zip(triples, values, keys):
                yield triple, Tuple(places, triple[0], cells), mine

    def _keys(
        self,
        rows: pa.Table,
        columns: Sequence[list[Any]],
        places: dict[str, int],
        starts: Ints,
        ends: Ints,
    ) -> Iterator[list[Any]]:
        spec = self._spec
        if spec.keys is None:
            return ([] for _ in starts)
        if spec.key is not None:
            low, high = int(starts[0]), int(ends[len(starts) - 1])
            listed = self._values("keys", rows.column(KEY_COLUMN).slice(low, high - low))
            bounds = zip((starts - low).tolist(), (ends - low).tolist())
            return (listed[a:b] for a, b in bounds)
        assert not callable(spec.keys)
        chosen = [columns[places[name]] for name in spec.keys]
        if len(chosen) == 1:
            return ([key] for key in chosen[0])
        return ([key] for key in zip(*chosen))

    def _batch(self, rows: pa.Table) -> pa.Table:
        """Rows under the user's names: ts, the input columns and, where there are several, key."""
        count = len(self._spec.columns)
        seen = self._spec.seen(rows.column(TS), rows.columns[4 : 4 + count])
        if self._spec.key is None:
            return seen
        return seen.append_column("key", rows.column(KEY_COLUMN))

    def _made(self, method: str, *arguments: Any) -> Any:
        """What a method of the object returns; a generator works while it is read, so it is."""
        try:
            made = getattr(self._object, method)(*arguments)
            return list(made) if isinstance(made, Iterator) else made
        except (Exception, SystemExit) as error:
            raise self._raised(method, error) from error

    def _call(self, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            raise self._raised(method, error) from error

    def _raised(self, method: str, error: BaseException) -> TaskError:
        return self._failure(f"{self._spec.name}.{method} must not raise", _told(error), _FIX)

    def _values(self, name: str, column: pa.ChunkedArray) -> list[Any]:
        try:
            return python_values(column)
        except OverflowError as error:
            requirement = f"the times in {name} must be those of the years 1 to 9999"
            remedy = "Filter out the others, cast them, or write process(table) for Arrow tables."
            raise self._failure(requirement, str(error), remedy) from error

    def _failure(self, requirement: str, got: str, remedy: str) -> TaskError:
        where = f"{self._where}, bucket {self.bucket}{self._when()}"
        return TaskError(where, requirement, got, remedy)

    def _at(self, ts: int, src: int, seq: int) -> None:
        self.trigger = (ts, src, seq)
        self._span = None

    def _when(self) -> str:
        """The tuple or timer at work, for messages."""
        if self._span is not None:
            ts = _ints(self._span, TS)
            first, last = time_text(int(ts[0])), time_text(int(ts[-1]))
            return f", tuples at {first}" if first == last else f", tuples from {first} to {last}"
        if self.trigger is None:
            return ""
        at, src, _ = self.trigger
        return f", {'timer' if src == TIMER_SRC else 'tuple'} at {time_text(at)}"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _ints(rows: pa.Table, name: str) -> Ints:
    values: Ints = rows.column(name).to_numpy()
    return values


def _new(order: Sequence[Ints]) -> Mask:
    """Which rows are the first of their tuple."""
    first = np.ones(len(order[0]), np.bool_)
    first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in order])
    return first
