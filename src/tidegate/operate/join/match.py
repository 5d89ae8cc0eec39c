"""The pairs of a join, between the new tuples of a batch and the ones stored before them.

New tuples of one side ask those held of the other: tables of stored tuples, and the new ones that
will be stored. Stored tuples are in the order that the method searches: that of the index, or of
time for a scan and a union. Candidates come from `search` and `union`, the predicate decides.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from tidegate.batch import ORDER, TS, ints
from tidegate.errors import TaskError
from tidegate.operate.join.bound import key_of, value_of
from tidegate.operate.join.decide import Rows, true_of
from tidegate.operate.join.run_index import Floats, Searched, known
from tidegate.operate.join.search import Ask, Ints, News, Run, Work, candidates, implied
from tidegate.operate.join.spec import LEFT, RIGHT, JoinSpec, Probe
from tidegate.operate.join.union import union

BUCKET, RANK = "bucket", "rank"

_EVERYTHING = Probe((), None)
"""No index and no test: every pair of the window is a candidate."""


@dataclass(frozen=True)
class Pairs:
    """Matching pairs, aligned row by row; the later tuple of each is of the side `later`.

    `place` is the later tuple's place among the new tuples.
    """

    left: pa.Table
    right: pa.Table
    later: int
    place: Ints


@dataclass(frozen=True)
class Held:
    """Stored tuples of a side, in the order they are searched.

    `token` names them for as long as the process lives, so that what searching needs of them is
    computed once; None where they are made anew for every batch.
    """

    table: pa.Table
    token: Hashable | None = None


def match(
    spec: JoinSpec,
    news: tuple[News, News],
    stored: tuple[Sequence[Held], Sequence[Held]],
    wanted: Collection[str] | None = None,
) -> tuple[list[Pairs], Work]:
    """All pairs of a new tuple and an earlier one that is held here, each once, in no order.

    They have the `wanted` columns of both sides, None for all, beside those of the total order.
    """
    found: list[Pairs] = []
    work = Work()
    columns = [
        [name for name, _ in side.columns if wanted is None or name in wanted]
        for side in (spec.left, spec.right)
    ]
    for side in (LEFT, RIGHT):
        asking, mine = news[1 - side], news[side]
        if not asking.table.num_rows:
            continue
        search = _Search.of(spec, side, asking, mine)
        for meeting in _meetings(spec, side, mine, stored[side]):
            for ask_rows, held_rows in search.candidates(meeting, work):
                sides = Rows(meeting.table, held_rows), Rows(asking.table, ask_rows)
                left, right = sides if side == LEFT else sides[::-1]
                kept = true_of(spec, left, right)
                if len(kept):
                    place = asking.place[ask_rows[kept]]
                    lefts, rights = (
                        rows.columns([*ORDER, *names], kept)
                        for rows, names in zip((left, right), columns, strict=True)
                    )
                    found.append(Pairs(lefts, rights, 1 - side, place))
    return found, work


def arranged(spec: JoinSpec, side: int, table: pa.Table, key: Floats | None = None) -> pa.Table:
    """Tuples of a side, given in the total order, in the order in which they are searched.

    `key` is what the index looks at in them, where it is known already.
    """
    if spec.in_time_order or not table.num_rows:
        return table
    if key is None:
        key = key_of(spec.probe, side, table)
    return table.take(pa.array(np.argsort(key, kind="stable")))


def places(left: pa.Table, right: pa.Table) -> tuple[Ints, Ints]:
    """Where the tuples of two tables, each in the total order, stand in the order of both."""
    order = total_order(pa.concat_tables([left.select(ORDER), right.select(ORDER)]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[: left.num_rows], place[left.num_rows :]


def total_order(table: pa.Table) -> Ints:
    """The places of tuples in the total order."""
    return np.lexsort([ints(table, c) for c in reversed(ORDER)])


@dataclass(frozen=True)
class _Meeting:
    """Tuples that are asked: stored ones, or those of the new ones that are held here.

    `rows` are these among the new ones, and `place` is where they stand; None for stored ones.
    """

    table: pa.Table
    coordinate: Ints
    token: Hashable | None = None
    rows: Ints | None = None
    place: Ints | None = None


def _meetings(spec: JoinSpec, side: int, mine: News, stored: Sequence[Held]) -> Iterator[_Meeting]:
    counts = spec.side(side).extent.rows is not None
    for held in stored:
        if held.table.num_rows:
            yield _Meeting(held.table, ints(held.table, RANK if counts else TS), held.token)
    if mine.held.any():
        rows = np.flatnonzero(mine.held)
        table = mine.table if len(rows) == len(mine.held) else mine.table.take(pa.array(rows))
        coordinate = mine.ranks[rows] if counts else ints(table, TS)
        yield _Meeting(table, coordinate, rows=rows, place=mine.place[rows])


@dataclass(frozen=True)
class _Search:
    """New tuples asking those of `side` by every probe of the join.

    A value of a branch that cannot be computed may stand where the predicate never looks. So the
    predicate is then given every pair of the window, as without an index: it fails if it must.
    """

    spec: JoinSpec
    side: int
    mine: News
    asks: tuple[Ask, ...]
    everything: Ask | None

    @staticmethod
    def of(spec: JoinSpec, side: int, asking: News, mine: News) -> _Search:
        ask = partial(Ask.of, extent=spec.side(side).extent, side=side, asking=asking, mine=mine)
        if not spec.branches:
            return _Search(spec, side, mine, (ask(spec.probe),), None)
        try:
            asks = tuple(ask(branch) for branch in spec.branches)
        except TaskError:
            asks = ()
        return _Search(spec, side, mine, asks, ask(_EVERYTHING))

    def candidates(self, meeting: _Meeting, work: Work) -> Iterator[tuple[Ints, Ints]]:
        """Rows of the asking table and of the meeting's, pair by pair."""
        searched = known(meeting.token, partial(self._searched, meeting))
        runs = [
            Run(s, None if meeting.place is None else s.arranged(meeting.place)) for s in searched
        ]
        if self.everything is None:
            (run,), (ask,) = runs, self.asks
            work.implied += implied(run, ask)
            for probe, place in candidates(run, ask, work):
                yield ask.rows(probe), run.searched.rows(place)
            return
        whole = Run(Searched.of(None, (), meeting.coordinate), meeting.place)
        work.implied += implied(whole, self.everything)
        if runs and self.asks:
            yield from union(runs, self.asks, work)
        else:
            yield from candidates(whole, self.everything, work)

    def _searched(self, meeting: _Meeting) -> tuple[Searched, ...]:
        """One for each probe; none where a value of a branch cannot be computed."""
        table, rows, side = meeting.table, meeting.rows, self.side
        found = []
        try:
            for probe in self.spec.probes:
                key = None
                if probe.index is not None:
                    stored = rows is None
                    key = key_of(probe, side, table) if stored else self.mine.key(probe, side)[rows]
                values = [value_of(i, side, table) for i in probe.tests]
                sort = rows is not None or bool(self.spec.branches)
                found.append(Searched.of(key, values, meeting.coordinate, sort))
        except TaskError:
            if not self.spec.branches:
                raise
            return ()
        return tuple(found)
