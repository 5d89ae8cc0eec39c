"""Counts the tuples of each key on both sides of a join, by pane of time, to shed by concept.

The count of a pane is complete when a tuple of a later pane comes. So what is known about a tuple
follows from the total order, not from the batch cut. For each key and side, the open pane is kept
and the last earlier pane that has the key, for as many panes as a key is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.approx.array import Ints
from tidegate.batch import MAX_US, MIN_US, ints
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.keeper import Keeper, OrderHorizon
from tidegate.operate.operator import InstanceWork
from tidegate.state.bucket_set import BucketSet
from tidegate.state.segment.compaction import by_bucket
from tidegate.state.segment.segment import Absent, Segment, read_segment, write_segment

FIRST = "first"
"""The part of the state that has, by key and pane, the count of first tuples and of all."""

NO_KEY = -1.0
"""The code of tuples whose key has a NULL. None of them counts as first of its key: they have no
partners, and their other key columns would decide which instance counts them."""

_PANE, _SIDE, _CODE, _TUPLES, _ALL = "pane", "side", "code", "tuples", "all"

_SCHEMA = pa.schema(
    [
        (BUCKET, pa.int32()),
        (_PANE, pa.int64()),
        (_SIDE, pa.int8()),
        (_CODE, pa.float64()),
        (_TUPLES, pa.int64()),
        (_ALL, pa.int64()),
    ]
)

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FirstKeeper(Keeper):
    """Forgets the counts of a pane `reach` panes later."""

    pane_us: int
    reach: int
    order = _PANE

    @property
    def columns(self) -> list[str]:
        return list(_SCHEMA.names)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(_PANE, _before(_pane_of(frontier_us, self.pane_us), self.reach))

    def arrange(self, rows: pa.Table) -> pa.Table:
        return by_bucket(rows.select(_SCHEMA.names), self.order)

    @property
    def absent(self) -> Absent:
        return _no_count


@dataclass(frozen=True)
class SideKeys:
    """Tuples of one side in the total order: keys, panes, places among the tuples of both sides.

    The sum of `counted` over a key and pane is the number of its tuples, including those that map
    tasks dropped.
    """

    bucket: npt.NDArray[np.int32]
    codes: Codes
    panes: Ints
    places: Ints
    counted: Ints


@dataclass(frozen=True)
class Known:
    """What is known about the key of each tuple when it comes; an entry per tuple.

    `rank` is how many tuples of its key, side and pane came before; exact only while below the
    number of first tuples that are kept. `own` and `other` are the counts of its side and of the
    other in the last earlier pane with the key, 0 if none is remembered. `met` says whether the
    other side had the key before.
    """

    rank: Ints
    own: Ints
    other: Ints
    met: Mask


class KeyCounts:
    """The counts of the keys of one instance, in one batch; grows with the keys that it remembers.

    `reach` has by side for how many panes a key is remembered. Call `take` once with the tuples of
    both sides, then `written`. A batch passes over all counts once and sorts those of its own keys.
    Counts that nobody needs any more go when a pane ends.
    """

    def __init__(
        self, work: InstanceWork, pane_us: int, reach: tuple[int, int], fewest: int
    ) -> None:
        self._work = work
        self._pane_us = pane_us
        self._reach = reach
        self._fewest = fewest
        held: tuple[int, pa.Table] | None = work.kept.take(FIRST)
        self._ended, self._known = (MIN_US, self._read()) if held is None else held
        self._news = _SCHEMA.empty_table()

    def take(self, sides: Sequence[SideKeys]) -> list[Known]:
        """What is known about each tuple, by side; also counts all of them."""
        known = self._of_keys(np.unique(np.concatenate([side.codes for side in sides])))
        codes = np.concatenate([known.column(_CODE).to_numpy(), *(s.codes for s in sides)])
        panes = np.concatenate([ints(known, _PANE), *(s.panes for s in sides)])
        groups, at = numbered(codes, panes)
        ends = np.cumsum([known.num_rows, *(len(s.codes) for s in sides)])
        old, *mine = np.split(groups, ends[:-1])
        counts = [
            _Counts.of(known, old, side, mine[side], keys, len(at))
            for side, keys in enumerate(sides)
        ]
        earlier = [
            _earlier(count.all, codes[at], panes[at], self._reach[side])
            for side, count in enumerate(counts)
        ]
        found = []
        for side, keys in enumerate(sides):
            of, there = mine[side], earlier[1 - side][mine[side]]
            rank = ranks(of) + counts[side].first[of]
            met = (there > 0) | (counts[1 - side].earliest[of] < keys.places)
            found.append(Known(rank, earlier[side][of], there, met & (keys.codes != NO_KEY)))
        parts = [self._noted(side, sides[side], mine[side], found[side].rank) for side in range(2)]
        self._news = pa.concat_tables(parts)
        return found

    def written(self) -> tuple[Segment, ...]:
        """What the next batch has to know, as a segment; it is also left in memory."""
        open_ = _pane_of(self._work.frontier_us, self._pane_us)
        rows = pa.concat_tables([self._known, self._news]).combine_chunks()
        # Rows are dropped only as a pane ends, not in every batch: a batch then costs its own keys.
        if open_ > self._ended:
            rows = _merged(rows.filter(pa.array(self._needed(rows, open_))))
        self._work.kept.leave(FIRST, (open_, rows), rows.nbytes)
        oldest = _before(open_, max(self._reach))
        news = self._news.filter(pa.array(ints(self._news, _PANE) >= oldest))
        if not news.num_rows:
            return ()
        name = f"{self._work.name}-{FIRST}"
        return (write_segment(self._work.store, name, by_bucket(news, _PANE), _PANE, 0),)

    def _needed(self, rows: pa.Table, open_: int) -> Mask:
        """Rows that later tuples may need: of open panes, and of the last earlier pane by key."""
        panes, sides = ints(rows, _PANE), rows.column(_SIDE).to_numpy()
        needed = panes >= open_
        for side, reach in enumerate(self._reach):
            closed = np.flatnonzero(~needed & (sides == side) & (panes >= _before(open_, reach)))
            _, key = np.unique(rows.column(_CODE).to_numpy()[closed], return_inverse=True)
            last = np.full(len(closed), MIN_US)
            np.maximum.at(last, key, panes[closed])
            needed[closed[panes[closed] == last[key]]] = True
        return np.asarray(needed)

    def _of_keys(self, codes: Codes) -> pa.Table:
        """The counts of some keys; `codes` are distinct and ascend."""
        known = self._known.column(_CODE).to_numpy()
        if not len(codes):
            return self._known.slice(0, 0)
        at = np.minimum(np.searchsorted(codes, known), len(codes) - 1)
        return self._known.filter(pa.array(codes[at] == known))

    def _read(self) -> pa.Table:
        work = self._work
        mine = BucketSet.where(work.mapping.owner_array == work.instance)
        read = [
            read_segment(work.store, s, mine, _SCHEMA.names, absent=_no_count)
            for s in work.state.get(FIRST, ())
        ]
        return pa.concat_tables([_SCHEMA.empty_table(), *(r.cast(_SCHEMA) for r in read)])

    def _noted(self, side: int, keys: SideKeys, groups: Ints, rank: Ints) -> pa.Table:
        """The counts of the new tuples of a side, a row for each key and pane."""
        real = np.flatnonzero(keys.codes != NO_KEY)
        rows = real[np.unique(groups[real], return_index=True)[1]]
        first, counted = (
            _sums(groups[real], values[real]) for values in (rank < self._fewest, keys.counted)
        )
        columns = [
            pa.array(keys.bucket[rows]),
            pa.array(keys.panes[rows]),
            pa.array(np.full(len(rows), side, np.int8)),
            pa.array(keys.codes[rows]),
            pa.array(first),
            pa.array(counted),
        ]
        return pa.table(columns, schema=_SCHEMA)


@dataclass(frozen=True)
class _Counts:
    """Of one side, by group: all tuples, first tuples of earlier batches, place of the first one.

    A group is a key and a pane. The place is -1 where the group is older than the batch.
    """

    all: Ints
    first: Ints
    earliest: Ints

    @staticmethod
    def of(
        known: pa.Table, old: Ints, side: int, groups: Ints, keys: SideKeys, size: int
    ) -> _Counts:
        """`old` has the group of each row of `known`, `groups` that of each new tuple."""
        mine = known.column(_SIDE).to_numpy() == side
        old = old[mine]
        every, first = np.zeros(size, np.int64), np.zeros(size, np.int64)
        np.add.at(every, old, ints(known, _ALL)[mine])
        np.add.at(every, groups, keys.counted)
        np.add.at(first, old, ints(known, _TUPLES)[mine])
        earliest = np.full(size, np.iinfo(np.int64).max)
        earliest[groups[::-1]] = keys.places[::-1]
        earliest[old] = -1
        return _Counts(every, first, earliest)


def _merged(rows: pa.Table) -> pa.Table:
    """One row for each side, key and pane: the sum of what several batches counted."""
    order = (ints(rows, _PANE), rows.column(_CODE).to_numpy(), rows.column(_SIDE).to_numpy())
    at = np.lexsort(order)
    new = np.ones(len(at), np.bool_)
    new[1:] = np.logical_or.reduce([_differ(column[at]) for column in order])
    groups = np.cumsum(new) - 1
    merged = rows.take(pa.array(at[new]))
    for name in (_TUPLES, _ALL):
        sums = pa.array(_sums(groups, ints(rows, name)[at]))
        merged = merged.set_column(_SCHEMA.get_field_index(name), name, sums)
    return merged


def _sums(groups: Ints, values: npt.NDArray[np.generic]) -> Ints:
    """The sums of values by group, for the groups that occur, ascending."""
    found, of = np.unique(groups, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, of, values.astype(np.int64))
    return sums


def _earlier(counts: Ints, codes: Codes, panes: Ints, reach: int) -> Ints:
    """By group: the count of the last earlier pane with tuples of its key, 0 beyond the reach.

    Groups are in the order of (key, pane).
    """
    there = np.where(counts > 0, np.arange(len(counts)), -1)
    last = np.full(len(counts), -1)
    last[1:] = np.maximum.accumulate(there)[:-1]
    known = (last >= 0) & (codes[last] == codes) & (panes - panes[last] <= reach)
    return np.where(known, counts[last], 0)


def numbered(codes: Codes, panes: Ints) -> tuple[Ints, Ints]:
    """The group of each (key, pane), numbered from 0 in their order, and a row of each group."""
    order = np.lexsort((panes, codes))
    new = np.ones(len(order), np.bool_)
    new[1:] = _differ(codes[order]) | _differ(panes[order])
    groups = np.empty(len(order), np.int64)
    groups[order] = np.cumsum(new) - 1
    return groups, order[new]


def ranks(groups: Ints) -> Ints:
    """For each row, how many rows of its group stand before it."""
    order = np.argsort(groups, kind="stable")
    places = np.arange(len(order))
    new = np.ones(len(order), np.bool_)
    new[1:] = _differ(groups[order])
    rank = np.empty(len(order), np.int64)
    rank[order] = places - np.maximum.accumulate(np.where(new, places, 0))
    return rank


def _differ(values: npt.NDArray[np.generic]) -> Mask:
    return np.asarray(values[1:] != values[:-1])


def _no_count(name: str) -> pa.Array:
    """The count in a state of a version that did not count tuples."""
    return pa.array([0], pa.int64())


def _pane_of(frontier_us: int, pane_us: int) -> int:
    return frontier_us if frontier_us in (MIN_US, MAX_US) else frontier_us // pane_us


def _before(pane: int, panes: int) -> int:
    """The number of the pane that is so many panes earlier."""
    return pane if pane in (MIN_US, MAX_US) else pane - panes
