"""Surveys the tuples of a join, to find out whether other cells would place them better.

Map tasks send a sample of their tuples to one instance. When that has enough, it counts the work of
all instances with the present cells, and with other cells where the work is uneven or large. The
sample is in memory only: an instance that loses it waits for another. That may delay a new grid;
it cannot change the output.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.operate.join.state import SIDES, SideKeeper
from tidegate.operate.operator import Arrival, InstanceWork, MapWork, Share
from tidegate.route.cell import CellGrid, Floats
from tidegate.route.cell_choice import CellSurvey, SideSurvey

SURVEY = "survey"
"""The channel of the sample, and the name under which it stays in memory."""

EVERY = 61
"""One tuple in so many is sampled; of a small split all or none. A prime, so that the sample of a
source whose values come in turn does not have one value only."""

_MOST_TUPLES = 8_192
"""A survey uses at most so many tuples of a side; more would not tell more."""

SMALL_ROWS = 8_192
"""A split with fewer rows is small."""

LEAST_TUPLES = 256
"""A survey needs so many tuples for each instance to tell whether a grid is good."""

UNEVEN, BETTER = 1.15, 0.9
"""A grid is good enough while its busiest instance has at most UNEVEN times the mean work, and a
tuple searches at most `_PLACES` places in the mean. Another grid must leave the busiest instance
at most BETTER of its work to replace it."""

_PLACES = 1.5

_MOST_WAIT = 64
"""After vain attempts, at most so many surveys pass before a better grid is looked for again."""


@dataclass(frozen=True)
class TupleSurvey:
    """The survey of one batch; `before` is how many tuples of each side came before the batch."""

    keepers: tuple[SideKeeper, SideKeeper]
    before: tuple[int, int]

    def better(
        self,
        work: InstanceWork,
        arrived: Sequence[Arrival],
        now: CellGrid,
    ) -> CellGrid | None:
        """A grid that is better than the present one; None where none is or the sample is small."""
        left: _Surveyed = work.kept.take(SURVEY) or _Surveyed()
        parts = [*left.parts, *(a.rows for a in arrived if a.channel == SURVEY)]
        rows = sum(part.num_rows for part in parts)
        if rows < LEAST_TUPLES * work.mapping.instances:
            if rows:
                # A copy: what arrived may be a mapped file, which would stay as long as the sample.
                kept = pa.concat_tables(parts).take(pa.array(np.arange(rows)))
                work.kept.leave(SURVEY, _Surveyed((kept,), left.wait, left.turns), kept.nbytes)
            return None
        if left.turns:
            work.kept.leave(SURVEY, _Surveyed((), left.wait, left.turns - 1), 32)
            return None
        survey = CellSurvey(self._sides(work, pa.concat_tables(parts)), work.mapping.owner_array)
        current = survey.work_of(now)
        # Other grids are counted only where this one is bad: that is most of the work.
        good = current.busiest <= UNEVEN * current.mean and current.searches <= _PLACES
        best = current if good else survey.best()
        if best.busiest <= BETTER * current.busiest and best.grid != now:
            return best.grid
        wait = 1 if good else min(2 * left.wait, _MOST_WAIT)
        work.kept.leave(SURVEY, _Surveyed((), wait, 0 if good else wait), 32)
        return None

    def _sides(self, work: InstanceWork, surveyed: pa.Table) -> list[SideSurvey]:
        """The sample by side, with the number of stored tuples that each tuple stands for."""
        column = surveyed.column("side").to_numpy()
        found = []
        for side in range(2):
            mine = np.flatnonzero(column == side)
            mine = mine[:: -(-len(mine) // _MOST_TUPLES) or 1]
            horizon = self.keepers[side].horizon(work.previous_us, self.before[side])
            stored = work.state.get(SIDES[side], ())
            held = sum(s.rows for s in stored if not horizon.passed(s))
            values, low, high = (
                surveyed.column(name).to_numpy()[mine] for name in ("value", "low", "high")
            )
            found.append(SideSurvey(values, low, high, max(held / max(len(mine), 1), EVERY)))
        return found


@dataclass(frozen=True)
class _Surveyed:
    """A sample that is too small yet; `turns` more surveys pass before a grid is looked for.

    `wait` doubles with each attempt in vain.
    """

    parts: tuple[pa.Table, ...] = ()
    wait: int = 1
    turns: int = 0


def surveyed_of(work: MapWork, side: int, values: Floats, low: Floats, high: Floats) -> list[Share]:
    """The sample of a split, for the instance that makes the survey; empty for most small splits.

    Which small splits are sampled follows from their names, so a map task that runs again samples
    the same.
    """
    step = EVERY
    if len(values) < SMALL_ROWS:
        if zlib.crc32(f"{work.source} {work.start}".encode()) % EVERY:
            return []
        step = 1
    columns = [np.ascontiguousarray(c[::step]) for c in (values, low, high)]
    sides = np.full(len(columns[0]), side, np.int8)
    rows = pa.table([sides, *columns], names=["side", "value", "low", "high"])
    return [Share(work.mapping.owners[0], rows, SURVEY)]
