"""Gives rows of windows of time before they are final: EMIT EVERY.

A mark is a multiple of `every_us`. When the frontier passes a mark, each group that got tuples
since the mark before gives a row for every open window, over the tuples before the mark. Panes end
at marks, so a row is a merge of whole panes and does not depend on how the input is cut. An early
row costs as much as the final row of a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tidegate.batch import DECIDED, MAX_US, ints
from tidegate.calendar.duration import duration_text
from tidegate.collect.window import EMITTED, WindowOrder
from tidegate.operate.aggregate.answer import AnswerBatch, Channels, ExactAnswer
from tidegate.operate.aggregate.function import Function, states_in
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.operate.aggregate.pane.closing import Panes
from tidegate.operate.aggregate.pane.overlap import words_of
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.tenure import closes
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups, dense, pack, rank
from tidegate.operate.kernels.order import Ints, canonical, flat, integers
from tidegate.operate.kernels.window.window import expand, once
from tidegate.operate.operator import InstanceWork
from tidegate.schema import TIME

FINAL = "final"
"""The column with true for the last row of a window and group."""

_STEP_ROWS = 1_000_000
"""About so many rows are listed at a time."""

_STEP_WORDS = 4_000_000
"""One step copies at most so many words of eight bytes into rows."""


def emitted_schema(results: pa.Schema) -> pa.Schema:
    """The result columns, then FINAL, the time at which the row is given, and its order."""
    said = [pa.field(FINAL, pa.bool_()), pa.field(DECIDED, TIME)]
    order = [pa.field(f"{EMITTED}0", TIME), pa.field(f"{EMITTED}1", pa.bool_())]
    return pa.schema([*results, *said, *order])


def mark_after(times: Ints, every_us: int) -> Ints:
    """The first mark after each time; MAX_US where that mark would be beyond all times."""
    fits = times <= MAX_US - every_us
    return np.where(fits, (np.where(fits, times, 0) // every_us + 1) * every_us, MAX_US)


def bounded_steps(states: Sequence[States], count: int, first: Ints, last: Ints) -> list[slice]:
    """Cut rows into steps that copy a bounded number of words each.

    A row copies the states `first` to `last`, out of `count` states of each function.
    """
    before = np.zeros(count + 1, np.int64)
    for columns in states:
        before[1:] += words_of(columns, count)
    before = np.cumsum(before)
    steps = np.cumsum(before[last + 1] - before[first]) // _STEP_WORDS
    cuts = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(first)]
    return [slice(a, b) for a, b in pairwise(cuts) if b > a]


def merged_results(
    functions: Sequence[Function], states: Sequence[States], first: Ints, last: Ints
) -> list[pa.Array]:
    """The results of functions for rows that each merge their states `first` to `last`."""
    group, place = expand(first, last)
    groups, taken = Groups(group, len(first)), pa.array(place)
    return [
        f.family.finish(f.family.merge(groups, [column.take(taken) for column in columns]))
        for f, columns in zip(functions, states, strict=True)
    ]


def mark_text(every_us: int) -> str:
    """When early rows are given, for `explain`."""
    mark = f"rows of open windows: at every multiple of {duration_text(every_us)}"
    return f"{mark} of event time, if the group changed"


@dataclass(frozen=True)
class EarlyAnswer(ExactAnswer):
    """Exact results, each with the mark at which it is given, and whether it is final."""

    def schema(self, spec: AggregateSpec) -> pa.Schema:
        return emitted_schema(spec.result_schema)


@dataclass(frozen=True)
class EarlyAggregate(WindowAggregate):
    """An aggregate that also gives the rows of open windows at every mark."""

    every_us: int = 0

    order = WindowOrder("mark, window")

    def steps(
        self, panes: pa.Table, work: InstanceWork, came: Channels, answer: AnswerBatch
    ) -> Iterator[tuple[bool, pa.Table]]:
        schema = self.answer.schema(self.spec)
        for rows in early_steps(self.spec, schema, self.every_us, panes, work):
            yield False, rows

    def final(self, rows: pa.Table) -> pa.Table:
        return rows.filter(rows.column(FINAL))

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return [*super().details(texts), mark_text(self.every_us)]


def early_steps(
    spec: AggregateSpec, schema: pa.Schema, every_us: int, panes: pa.Table, work: InstanceWork
) -> Iterator[pa.Table]:
    """Give the early and final rows for the marks and ends that a batch passes, in bounded tables.

    `panes` has every partial of these windows, in any order. The rows are sorted by mark, early
    ones before final ones, then by the end of the window, then by key.
    """
    if panes.num_rows:
        held = _Held.of(spec, panes, every_us)
        for above_us, upto_us in held.spans(work.previous_us, work.frontier_us):
            due = [held.early(above_us, upto_us), held.final(above_us, upto_us)]
            rows = np.concatenate(due, axis=1)
            rows = rows[:, closes(work, held.bucket[rows[LAST]], rows[END])]
            yield from held.tables(schema, rows[:, held.order(rows)])


FIRST, LAST, WINDOW, END, MARK = range(5)
"""The lines of an array of rows to give: first and last pane row, window, window end, and mark. The
mark of a final row is the end of its window."""


@dataclass(frozen=True)
class _Held:
    """The panes of all keys: one row for each key and pane, key after key, with its mark."""

    spec: AggregateSpec
    panes: Panes
    states: list[States]
    keys: list[pa.Array]
    bucket: Ints
    marks: Ints

    @staticmethod
    def of(spec: AggregateSpec, rows: pa.Table, every_us: int) -> _Held:
        pane = integers(flat(rows.column("pane")))
        place = np.argsort(pane, kind="stable")
        pane = pane[place]
        names = [name for name, _ in spec.keys]
        keys = [canonical(flat(rows.column(name)).take(pa.array(place))) for name in names]
        by_key = dense(pack([rank(key) for key in keys], len(pane)))
        cover = spec.window.cover
        panes = Panes(
            pane=pane,
            by_key=by_key,
            low=(pane - cover.length) // cover.step + 1,
            high=pane // cover.step,
            functions=spec.functions,
            states=states_in(spec.functions, rows),
            held=len(pane),
            place=place,
        )
        heads = [key.take(pa.array(by_key.rows)) for key in keys]
        panes, states = panes.by_key_and_pane()
        marks = mark_after(spec.window.begins(panes.pane), every_us)
        return _Held(spec, panes, states, heads, ints(rows, "bucket")[panes.place], marks)

    def spans(self, above_us: int, upto_us: int) -> list[tuple[int, int]]:
        """Cut the time that a batch passes into pieces with a bounded number of rows each."""
        # A pane lists at most `windows_of_tuple` rows, so `step` panes list at most _STEP_ROWS.
        step = max(_STEP_ROWS // self.spec.window.windows_of_tuple, 1)
        cuts = np.unique(np.sort(self.marks)[step::step])
        inside = cuts[(cuts > above_us) & (cuts < upto_us)].tolist()
        return list(pairwise([above_us, *inside, upto_us]))

    def early(self, above_us: int, upto_us: int) -> Ints:
        """The rows of windows that are open at marks with above_us < mark <= upto_us.

        A key changed since the last mark if it has a pane with this mark. Its newest such pane is
        in every open window that the change concerns, so that pane lists these windows.
        """
        codes, marks, cover = self.panes.by_key.codes, self.marks, self.spec.window.cover
        newest = np.ones(len(marks), np.bool_)
        newest[:-1] = (codes[1:] != codes[:-1]) | (marks[1:] != marks[:-1])
        last = np.flatnonzero(newest & (marks > above_us) & (marks <= upto_us))
        low = (self.spec.window.numbers(marks[last]) - cover.length) // cover.step + 1
        row, window = expand(low, self.panes.high[last])
        last = last[row]
        return self._rows(self._first(codes[last], window * cover.step), last, window, marks[last])

    def final(self, above_us: int, upto_us: int) -> Ints:
        """The rows of windows with above_us < end <= upto_us."""
        codes, cover = self.panes.by_key.codes, self.spec.window.cover
        low, high = cover.bounds(self.panes.pane, *self.spec.window.closed(above_us, upto_us))
        used = np.flatnonzero(high >= low)
        codes, low, high = codes[used], low[used], high[used]
        first, window = expand(once(codes, low, high), high)
        last, _ = expand(low, -once(codes[::-1], -high[::-1], -low[::-1])[::-1])
        return self._rows(used[first], used[last], window, None)

    def _rows(self, first: Ints, last: Ints, window: Ints, mark: Ints | None) -> Ints:
        _, end = self.spec.window.bounds(window)
        return np.stack([first, last, window, end, end if mark is None else mark])

    def _first(self, codes: Ints, panes: Ints) -> Ints:
        """The first pane row of each key from a pane on: one binary search over (key, pane)."""
        distinct, places = np.unique(self.panes.pane, return_inverse=True)
        wanted = codes * (len(distinct) + 1) + np.searchsorted(distinct, panes)
        rows = self.panes.by_key.codes * (len(distinct) + 1) + places
        return np.searchsorted(rows, wanted)

    def order(self, rows: Ints) -> Ints:
        """The permutation that sorts rows into the order of the output."""
        is_final = rows[END] == rows[MARK]
        codes = self.panes.by_key.codes[rows[LAST]]
        return np.lexsort((codes, rows[WINDOW], is_final, rows[MARK]))

    def tables(self, schema: pa.Schema, rows: Ints) -> Iterator[pa.Table]:
        """The rows with their results; a step copies a bounded number of words."""
        for some in bounded_steps(self.states, len(self.marks), rows[FIRST], rows[LAST]):
            yield pa.Table.from_arrays(self._columns(rows[:, some]), schema=schema)

    def _columns(self, rows: Ints) -> list[pa.Array]:
        begins, ends = self.spec.window.bounds(rows[WINDOW])
        picked = pa.array(self.panes.by_key.codes[rows[LAST]])
        results = merged_results(self.spec.functions, self.states, rows[FIRST], rows[LAST])
        mark, is_final = pa.array(rows[MARK]).view(TIME), pa.array(rows[END] == rows[MARK])
        times = [pa.array(column).view(TIME) for column in (begins, ends)]
        keys = [key.take(picked) for key in self.keys]
        return [*times, *keys, *results, is_final, mark, mark, is_final]
