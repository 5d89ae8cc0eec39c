"""Notes which tuples of an outer, semi or anti join find a partner, and decides about the others.

A tuple of a tracked side is stored at one instance, its **home**, which finds all of its pairs. So
the home knows whether it has a partner. It decides when the frontier has passed the tuple's time
plus the range of its side: then no partner can come any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ORDER, ints
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.instance import SideTuples
from tidegate.operate.join.kind import LEFT
from tidegate.operate.join.mark import MATCHED, MarkKeeper, MatchMarks
from tidegate.operate.join.match import MatchedPairs
from tidegate.operate.join.predicate.decide import GatheredRows
from tidegate.operate.join.search import Ints, News
from tidegate.operate.join.spec import JoinSpec
from tidegate.operate.join.state import SideKeeper
from tidegate.operate.join.tuple_order import order_columns
from tidegate.operate.operator import InstanceWork
from tidegate.state.segment.segment import Segment

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Held:
    """Rows of a table that the batch decides about, in no order; `new` where they came in it."""

    table: pa.Table
    rows: Ints
    new: bool


class SidePartners:
    """The tuples of one tracked side at their home, in one batch.

    Call `first` and `note` for pairs in the order of the output, `decided` with ascending times,
    then `written`.
    """

    def __init__(
        self, work: InstanceWork, spec: JoinSpec, keeper: SideKeeper, tuples: SideTuples
    ) -> None:
        self._work, self.side, self._keeper = work, keeper.side, keeper
        range_us = spec.side(keeper.side).extent.range_us
        assert range_us is not None, "outer joins have windows of time"
        self.range_us = range_us
        self._tuples = tuples
        self._flags: dict[int, Mask] = {}
        self._tables: dict[int, pa.Table] = {}
        self._marks = MatchMarks(work, keeper.side, MarkKeeper(keeper))
        self._done = 0

    def rows_of(self, pairs: MatchedPairs) -> GatheredRows:
        """The tuples of the side in some pairs."""
        return pairs.left if self.side == LEFT else pairs.right

    def note(self, found: Sequence[MatchedPairs]) -> None:
        """Remember that the tuples of some pairs have a partner."""
        for pairs in found:
            rows = self.rows_of(pairs)
            self._flagged(rows.table)[rows.places] = True

    def first(self, found: Sequence[MatchedPairs]) -> list[MatchedPairs]:
        """The first pair of each tuple that had no partner; the pairs follow all those noted."""
        if not found:
            return []
        ends = np.cumsum([0, *(len(p.place) for p in found)])
        tables = [id(self.rows_of(p).table) for p in found]
        table = np.repeat(tables, np.diff(ends))
        row = np.concatenate([self.rows_of(p).places for p in found])
        order = np.lexsort((np.concatenate([p.place for p in found]), row, table))
        head = np.ones(len(order), np.bool_)
        head[1:] = (row[order][1:] != row[order][:-1]) | (table[order][1:] != table[order][:-1])
        heads = np.zeros(len(order), np.bool_)
        heads[order[head]] = True
        kept = []
        for pairs, start, end in zip(found, ends, ends[1:]):
            places = np.flatnonzero(heads[start:end])
            rows = self.rows_of(pairs).take(places)
            known = self._flagged(rows.table)[rows.places]
            # Known from earlier pieces of the batch, or marked in an earlier batch.
            known |= self._marked(rows.table, rows.places)
            if not known.all():
                kept.append(pairs.take(places[~known]))
        return kept

    def decided(self, until_us: int | None) -> tuple[list[GatheredRows], list[Ints]]:
        """The tuples without a partner whose instant of decision is before a time, and the
        instants. None stands for all that the batch decides. Times must ascend over calls.
        """
        number, row, order = self._expiring
        end = len(row)
        if until_us is not None:
            end = int(np.searchsorted(order[0], until_us - self.range_us))
        chosen, self._done = slice(self._done, max(end, self._done)), max(end, self._done)
        found, instants = [], []
        for i in np.unique(number[chosen]).tolist():
            held, mine = self._held[i], number[chosen] == i
            rows = row[chosen][mine]
            open_ = ~self._flagged(held.table)[rows]
            if not held.new:
                before = [c[chosen][mine][open_] for c in order]
                open_[open_] = ~self._marks.has(before)
            if open_.any():
                found.append(GatheredRows(held.table, rows[open_]))
                instants.append(order[0][chosen][mine][open_] + self.range_us)
        return found, instants

    def written(self) -> tuple[Segment, ...]:
        """Store the marks of tuples that found their first partner now and are still undecided."""
        needed = self._keeper.horizon(self._work.frontier_us, 0).needed
        names, marks = [*ORDER, BUCKET], []
        for name, flags in self._flags.items():
            table, rows = self._tables[name], np.flatnonzero(flags)
            rows = rows[ints(table, "ts")[rows] >= needed]
            rows = rows[~self._marked(table, rows)]
            if len(rows):
                marks.append(table.select(names).take(pa.array(rows)))
        schema = self._tuples.newest.table.select(names).schema
        return self._marks.written(pa.concat_tables([schema.empty_table(), *marks]))

    @property
    def part(self) -> str:
        """The part of the state that has the marks."""
        return MATCHED[self.side]

    def _flagged(self, table: pa.Table) -> Mask:
        if id(table) not in self._flags:
            self._flags[id(table)] = np.zeros(table.num_rows, np.bool_)
            self._tables[id(table)] = table
        return self._flags[id(table)]

    def _marked(self, table: pa.Table, rows: Ints) -> Mask:
        """Which rows of a table were marked in earlier batches; no new tuple was."""
        found = np.zeros(len(rows), np.bool_)
        newest = self._tuples.newest
        stored = rows < newest.behind if table is newest.table else np.ones(len(rows), np.bool_)
        if stored.any():
            found[stored] = self._marks.has([c[rows[stored]] for c in order_columns(table)])
        return found

    @cached_property
    def _held(self) -> list[_Held]:
        """All tuples that the batch decides about, by table; the new ones come last."""
        least = self._keeper.horizon(self._work.previous_us, 0).needed
        needed = self._keeper.horizon(self._work.frontier_us, 0).needed
        newest, stored = self._tuples.newest, self._tuples.stored
        found = []
        for one in stored.held:
            if one.least is not None and one.least >= needed:
                continue
            times = ints(one.table, "ts")
            rows = np.flatnonzero((times >= least) & (times < needed))
            rows = rows if one.part is None else rows[one.part.has(rows)]
            found.append(_Held(one.table, rows, False))
        for run in stored.runs:
            low, high = np.searchsorted(run.coordinate, (least, needed))
            found.append(_Held(run.table, np.arange(low, high), False))
        places = np.arange(len(newest.rows))
        past = int(np.searchsorted(newest.coordinate, needed))
        behind = int((newest.rows < newest.behind).sum())
        begin = int(np.searchsorted(newest.coordinate[:behind], least))
        found.append(_Held(newest.table, newest.rows[places[begin : min(past, behind)]], False))
        found.append(_Held(newest.table, newest.rows[places[behind : max(past, behind)]], True))
        return found

    @cached_property
    def _expiring(self) -> tuple[Ints, Ints, list[Ints]]:
        """The same in the total order: number of the table, row, and columns of the order."""
        number = np.repeat(np.arange(len(self._held)), [len(h.rows) for h in self._held])
        row = np.concatenate([h.rows for h in self._held])
        parts = [[c[h.rows] for c in order_columns(h.table)] for h in self._held]
        order = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        # New tuples are after all stored ones, and in order: only the stored ones are sorted.
        before = len(row) - len(self._held[-1].rows)
        if before:
            stored = np.lexsort([c[:before] for c in reversed(order)])
            sequence = np.concatenate([stored, np.arange(before, len(row))])
            return number[sequence], row[sequence], [c[sequence] for c in order]
        return number, row, order


class OuterRows:
    """Turns the pairs of an outer, semi or anti join into its output rows, piece by piece."""

    def __init__(self, spec: JoinSpec, sides: Sequence[SidePartners], news: Sequence[News]) -> None:
        self._spec, self._sides = spec, sides
        place = np.concatenate([n.place for n in news])
        self._times: Ints = np.empty(len(place), np.int64)
        self._times[place] = np.concatenate([ints(n.table, "ts") for n in news])

    def pieces(
        self, found: Iterator[tuple[int, list[MatchedPairs]]]
    ) -> Iterator[tuple[int, list[MatchedPairs]]]:
        """The output rows of each piece: pairs, and tuples without a partner."""
        for done, pairs in found:
            yield done, self._rows(done, pairs)

    def _rows(self, done: int, pairs: list[MatchedPairs]) -> list[MatchedPairs]:
        kind = self._spec.kind
        kept = pairs if kind.pairs else []
        if kind.first:
            kept = self._sides[0].first(pairs)
        for side in self._sides:
            side.note(pairs)
        if not kind.unmatched:
            return kept
        until = int(self._times[done]) if done < len(self._times) else None
        decided = [(s, *s.decided(until)) for s in self._sides]
        instants = [i for _, _, several in decided for i in several]
        # A row's place orders the output. Place 2p+1 is for the pairs of the new tuple p, 2p for
        # what is decided between it and the tuple before. Several instants may lie between two
        # tuples: those of one side are already in order, those of two sides are numbered.
        counted = instants if len(self._sides) > 1 else []
        distinct = np.unique(np.concatenate([np.empty(0, np.int64), *counted]))
        steps = len(distinct) + 1
        rows = [replace(p, place=(2 * p.place + 1) * steps) for p in kept]
        for side, tuples, several in decided:
            for one, at in zip(tuples, several, strict=True):
                after = np.searchsorted(self._times, at, "right")
                place = 2 * after * steps + np.searchsorted(distinct, at)
                rows.append(self._alone(side, one, at, place))
        return rows

    def _alone(self, side: SidePartners, rows: GatheredRows, at: Ints, place: Ints) -> MatchedPairs:
        """Rows of tuples without a partner."""
        missing = GatheredRows(self._nothing[1 - side.side], np.full(len(at), -1))
        left, right = (rows, missing) if side.side == LEFT else (missing, rows)
        return MatchedPairs(left, right, 1 - side.side, place, at)

    @cached_property
    def _nothing(self) -> list[pa.Table]:
        """By side an empty table of its columns, from which missing tuples are gathered."""
        sides = (self._spec.left, self._spec.right)
        return [pa.table({n: pa.array([], t) for n, t in side.columns}) for side in sides]
