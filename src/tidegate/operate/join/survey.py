"""Surveys the tuples of a join, and says whether other cells would place them better.

Map tasks send some tuples to one instance. When it has enough of them it counts what the instances
have to do with the cells of now, and with others where that is uneven or much. What was surveyed is
in memory only: who loses it surveys again.
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
"""The channel of tuples that are surveyed."""

EVERY = 61
"""One tuple in so many is surveyed: of a small split all or none. It is a prime, so that sources
which bring values in turn do not always bring the same one."""

_MOST_TUPLES = 8_192
"""So many tuples of a side are looked at in a survey; more say no more."""

SMALL_ROWS = 8_192
"""A split with fewer rows is small."""

LEAST_TUPLES = 256
"""So many tuples of a survey for each instance say whether a grid is good."""

UNEVEN, BETTER = 1.15, 0.9
"""A grid is good enough while its busiest instance has so many times the mean, and no more places
are searched than `_PLACES`. One that is to follow it must leave the busiest so much of its work."""

_PLACES = 1.5

_MOST_WAIT = 64
"""For how many surveys it is not tried again, at most, to find a grid that is better."""


@dataclass(frozen=True)
class TupleSurvey:
    """The survey of one batch; `before` is how many tuples of each side came before it."""

    keepers: tuple[SideKeeper, SideKeeper]
    before: tuple[int, int]

    def better(
        self,
        work: InstanceWork,
        arrived: Sequence[Arrival],
        now: CellGrid,
    ) -> CellGrid | None:
        """A grid that is better than that of now by what was surveyed; None where there is none."""
        left: _Surveyed = work.kept.take(SURVEY) or _Surveyed()
        parts = [*left.parts, *(a.rows for a in arrived if a.channel == SURVEY)]
        rows = sum(part.num_rows for part in parts)
        if rows < LEAST_TUPLES * work.mapping.instances:
            if rows:
                # A copy: what arrived may be mapped, and its file would stay as long as it.
                kept = pa.concat_tables(parts).take(pa.array(np.arange(rows)))
                work.kept.leave(SURVEY, _Surveyed((kept,), left.wait, left.turns), kept.nbytes)
            return None
        if left.turns:
            work.kept.leave(SURVEY, _Surveyed((), left.wait, left.turns - 1), 32)
            return None
        survey = CellSurvey(self._sides(work, pa.concat_tables(parts)), work.mapping.owner_array)
        current = survey.work_of(now)
        good = current.busiest <= UNEVEN * current.mean and current.searches <= _PLACES
        best = current if good else survey.best()
        if best.busiest <= BETTER * current.busiest and best.grid != now:
            return best.grid
        wait = 1 if good else min(2 * left.wait, _MOST_WAIT)
        work.kept.leave(SURVEY, _Surveyed((), wait, 0 if good else wait), 32)
        return None

    def _sides(self, work: InstanceWork, surveyed: pa.Table) -> list[SideSurvey]:
        """What was surveyed, by side, with how many stored tuples each stands for."""
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
    """What was surveyed and is not enough yet, and after how many more surveys to look again."""

    parts: tuple[pa.Table, ...] = ()
    wait: int = 1
    turns: int = 0


def surveyed_of(work: MapWork, side: int, values: Floats, low: Floats, high: Floats) -> list[Share]:
    """Some tuples of a split for the survey, at the instance that makes it."""
    step = EVERY
    if len(values) < SMALL_ROWS:
        if zlib.crc32(f"{work.source} {work.start}".encode()) % EVERY:
            return []
        step = 1
    columns = [np.ascontiguousarray(c[::step]) for c in (values, low, high)]
    sides = np.full(len(columns[0]), side, np.int8)
    rows = pa.table([sides, *columns], names=["side", "value", "low", "high"])
    return [Share(work.mapping.owners[0], rows, SURVEY)]
