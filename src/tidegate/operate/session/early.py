"""Gives rows of sessions before they have ended: EMIT EVERY.

Tuples come in the order of time, so an open session only grows and is never merged with another
one. The next row with the same key and `window_start` replaces an early row. Pieces end at marks,
so a row is a merge of whole pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.batch import ints
from tidegate.collect.window import WindowOrder
from tidegate.operate.aggregate.function import states_in
from tidegate.operate.aggregate.pane.early import (
    bounded_steps,
    emitted_schema,
    mark_after,
    mark_text,
    merged_results,
)
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.order import Ints, flat
from tidegate.operate.operator import InstanceWork
from tidegate.operate.session.operator import SessionAggregate
from tidegate.operate.session.piece import cut, grouped
from tidegate.operate.session.spec import LAST, START, SessionSpec
from tidegate.schema import TIME


@dataclass(frozen=True)
class MarkedSessions(SessionSpec):
    """Sessions whose pieces end at marks: the multiples of `every_us`."""

    every_us: int = 1

    def slots(self, times: Ints) -> Ints:
        return times // self.every_us


@dataclass(frozen=True)
class EarlySessions(SessionAggregate):
    """Also gives rows of open sessions at every mark, if they have changed since the last one."""

    spec: MarkedSessions

    order = WindowOrder("mark, window")

    def results(
        self, work: InstanceWork, opened: pa.Table, pieces: pa.Table, ended: pa.Table
    ) -> pa.Table:
        schema = emitted_schema(self.spec.result_schema)
        when = ended.column("window_end")
        last = pa.array(np.ones(ended.num_rows, np.bool_))
        final = pa.Table.from_arrays([*ended.columns, last, when, when, last], schema=schema)
        held = _Held.of(self.spec, opened, pieces)
        early = held.rows(work.previous_us, work.frontier_us)
        tables = [held.table(schema, some) for some in held.steps(early)]
        return pa.concat_tables([*tables, final]).combine_chunks()

    def details(self, texts: Mapping[str, str]) -> list[str]:
        return [*super().details(texts), mark_text(self.spec.every_us)]


_FIRST, _NEWEST, _SINCE, _UNTIL, _MARK = range(5)
"""The lines of an array of rows to give: first and last piece, when the session begins and would
end, and the mark."""


@dataclass(frozen=True)
class _Held:
    """Open sessions and new pieces, sorted by session and mark."""

    spec: MarkedSessions
    pieces: pa.Table
    keys: Ints
    session: Ints
    since: Ints
    last: Ints
    mark: Ints

    @staticmethod
    def of(spec: MarkedSessions, opened: pa.Table, pieces: pa.Table) -> _Held:
        names = spec.piece_schema.names
        by_key = grouped(spec, [opened, pieces])
        rows = pa.concat_tables([opened.select(names), pieces.select(names)])
        first, last = ints(rows, START), ints(rows, LAST)
        found = cut(spec, by_key, first, last)
        mark = mark_after(last, spec.every_us)
        place = np.lexsort((mark, found.numbers))
        session = found.numbers[place]
        return _Held(
            spec=spec,
            pieces=rows.take(pa.array(place)),
            keys=by_key.codes[place],
            session=session,
            since=found.starts[session],
            last=last[place],
            mark=mark[place],
        )

    def rows(self, above_us: int, upto_us: int) -> Ints:
        """The rows for sessions that are open at marks with above_us < mark <= upto_us."""
        if not len(self.mark):
            return np.empty((5, 0), np.int64)
        opens = run_starts(self.session)
        heads = np.flatnonzero(run_starts(self.session, self.mark))
        newest = np.append(heads[1:], len(opens)) - 1
        until = np.maximum.reduceat(self.last, heads) + self.spec.gap_us
        mark = self.mark[heads]
        # A session that would end before the mark is not open there: it gives its final row only.
        due = (mark > above_us) & (mark <= upto_us) & (until >= mark)
        first = np.flatnonzero(opens)[np.cumsum(opens) - 1]
        held = np.stack([first[heads], newest, self.since[heads], until, mark])[:, due]
        order = np.lexsort((self.keys[held[_NEWEST]], held[_UNTIL], held[_MARK]))
        found: Ints = held[:, order]
        return found

    def steps(self, rows: Ints) -> Iterator[Ints]:
        """Cut rows into steps that copy a bounded number of words each."""
        first, newest = rows[_FIRST], rows[_NEWEST]
        for some in bounded_steps(self._states, len(self.mark), first, newest):
            yield rows[:, some]

    def table(self, schema: pa.Schema, rows: Ints) -> pa.Table:
        """The rows with their results."""
        spans = rows[_FIRST], rows[_NEWEST]
        results = merged_results(self.spec.functions, self._states, *spans)
        head = pa.array(rows[_NEWEST])
        keys = [flat(self.pieces.column(name)).take(head) for name, _ in self.spec.keys]
        since, until, mark = (pa.array(rows[at]).view(TIME) for at in (_SINCE, _UNTIL, _MARK))
        no = pa.array(np.zeros(rows.shape[1], np.bool_))
        columns = [since, until, *keys, *results, no, mark, mark, no]
        return pa.Table.from_arrays(columns, schema=schema)

    @property
    def _states(self) -> list[States]:
        return states_in(self.spec.functions, self.pieces)
