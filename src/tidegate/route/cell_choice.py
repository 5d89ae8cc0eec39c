"""Chooses the cells of a grid by counted work, from a survey of new tuples.

Counted are searches at an instance, stored tuples, and the looks of a search at stored tuples. A
survey has a sample of both sides, so all three can be counted for any grid and instance. The best
grid is the one whose busiest instance has the least work. The grid without cells, where every tuple
searches everywhere, is one of those compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tidegate.route.cell import EVERYWHERE, IN_TURN, CellGrid, Floats
from tidegate.route.partitioner import Int64s

Owners = npt.NDArray[np.int32]

SEARCH_WORK, STORE_WORK = 64.0, 64.0
"""The cost of a search and of a stored tuple, in looks at stored tuples.

Measured as CPU time of `StreamJoin.run`, on two busy cores: joins with a band beside the index,
round-robin over 1 and 8 instances (each searches for all tuples and stores its part), 8 and 128
looks a tuple, windows of 150,000 tuples a side; by least squares, 10 percent off in the mean. An
equality took 6 ns for a look, 50 for a search, 180 for a stored tuple; a band 8, 240 and 120. A
band with twice the window took some 330 for a search and 700 for a stored tuple. So both are 9 to
90 looks. A condition that is no interval makes looks dearer, 40 ns.
"""

EVEN = 1.1
"""No cell is split while the busiest instance has at most so many times the mean work, plus a
margin for the error of a small survey."""

_UNEVEN = 1.25
"""An uneven grid is chosen only if its busiest instance has less work by this factor."""

_WIDTHS = 9
"""The number of widths of cells that are compared."""

_LARGE, _SMALL = 1e300, 1e-290
"""Values beyond _LARGE are ignored, because their distance may overflow. The extent of values is
taken to be at least _SMALL."""

_MOST_SPLITS = 512
"""The most splits of cells that are tried for one width."""


@dataclass(frozen=True)
class SideSurvey:
    """A sample of one side: values, and the bounds that the tuples set for the other side.

    Where each stands for one new tuple, it also stands for `held` stored ones.
    """

    values: Floats
    low: Floats
    high: Floats
    held: float = 1.0


@dataclass(frozen=True)
class GridWork:
    """A grid, and the work of the busiest instance and of the mean one, in looks."""

    grid: CellGrid
    busiest: float
    mean: float
    searches: float
    """The mean number of places at which a tuple searches."""


class CellSurvey:
    """Samples of both sides of a join; judges grids by them.

    Judging a grid costs O(tuples), and each split of a cell O(cells).
    """

    def __init__(self, sides: Sequence[SideSurvey], owners: Owners) -> None:
        self._sides = sides
        self._owners = owners
        self._instances = int(owners.max()) + 1
        self._asks = sum(int((side.low <= side.high).sum()) for side in sides)
        self.even = EVEN + float(np.sqrt(self._instances / max(self.tuples, 1)))

    @property
    def tuples(self) -> int:
        return sum(len(side.values) for side in self._sides)

    def best(self) -> GridWork:
        """The grid whose busiest instance has the least work."""
        every = [self.work_of(IN_TURN), *(self._split(width) for width in self._widths())]
        return min(every, key=self._weighed)

    def _weighed(self, work: GridWork) -> float:
        """The work of the busiest instance, raised for uneven grids: a survey is not exact."""
        return work.busiest * (_UNEVEN if work.busiest > self.even * work.mean else 1.0)

    def work_of(self, grid: CellGrid) -> GridWork:
        """The work of instances with a grid."""
        if not grid.width:
            stored = sum(float(weights.sum()) for weights in self._weights)
            busiest = stored / self._instances + SEARCH_WORK * self._asks
            return GridWork(grid, busiest, busiest, float(self._instances))
        return _Loads(self, grid).work()

    def _widths(self) -> Floats:
        """Widths to compare, from that of the bounds up to a few cells for each instance."""
        with np.errstate(over="ignore", invalid="ignore"):
            wide = np.concatenate([side.high - side.low for side in self._sides])
        wide = wide[np.isfinite(wide) & (wide >= 0)]
        values = np.concatenate([side.values for side in self._sides])
        values = values[np.abs(values) < _LARGE]
        if not len(wide) or not len(values):
            return np.empty(0)
        low, high = np.quantile(values, (0.01, 0.99))
        extent = max(float(high - low), _SMALL)
        least = max(min(float(np.median(wide)), _LARGE), extent / (64 * len(self._owners)))
        return np.geomspace(least, max(extent / (2 * self._instances), 16 * least), _WIDTHS)

    def _split(self, width: float) -> GridWork:
        """A grid of a width, with those cells split that make an instance busier than others."""
        loads = _Loads(self, CellGrid(float(width)))
        for _ in range(_MOST_SPLITS):
            if not loads.split():
                break
        return loads.work()

    @cached_property
    def _weights(self) -> list[Floats]:
        """The work that each tuple makes where it is stored, by side."""
        found = []
        for side, other in zip(self._sides, reversed(self._sides), strict=True):
            asks = other.low <= other.high
            low, high = np.sort(other.low[asks]), np.sort(other.high[asks])
            looks = np.searchsorted(low, side.values, "right").astype(np.float64)
            looks -= np.searchsorted(high, side.values, "left")
            looks[np.isnan(side.values)] = 0.0
            found.append(STORE_WORK + looks * side.held)
        return found

    def cells_of(self, grid: CellGrid) -> tuple[Int64s, Floats, Floats, int]:
        """The cells that occur, the work of stored tuples and the searches in each of them.

        The last result is the number of tuples that search everywhere.
        """
        stored = [grid.cells(side.values) for side in self._sides]
        asked, everywhere = list[Int64s](), 0
        for side in self._sides:
            rows = side.low <= side.high
            first, last = grid.cells(side.low[rows]), grid.cells(side.high[rows])
            wide = last - first >= self._instances
            everywhere += int(wide.sum())
            first, last = first[~wide], last[~wide]
            while len(first):
                asked.append(first)
                more = first < last
                first, last = first[more] + 1, last[more]
        cells, place = np.unique(np.concatenate([*stored, *asked]), return_inverse=True)
        count = sum(map(len, stored))
        weights: Floats = np.bincount(
            place[:count], np.concatenate(self._weights), len(cells)
        ).astype(np.float64)
        searches = np.bincount(place[count:], minlength=len(cells)).astype(np.float64)
        return cells, weights, searches, everywhere


class _Loads:
    """The work of each instance with a grid, while cells are split."""

    def __init__(self, survey: CellSurvey, grid: CellGrid) -> None:
        self._survey, self._grid = survey, grid
        self._owners, self._instances = survey._owners, survey._instances
        self._cells, self._weights, self._searches, self._wide = survey.cells_of(grid)
        self._fans = np.ones(len(self._cells), np.int64)
        place = np.searchsorted(self._cells, grid.hot)
        for at, cell, fan in zip(place.tolist(), grid.hot, grid.fans, strict=True):
            if at < len(self._cells) and self._cells[at] == cell:
                self._fans[at] = fan
        self._loads = np.full(self._instances, SEARCH_WORK * self._wide)
        # Cells in one bucket are added in one pass; the few that are split one by one.
        each = np.where(self._fans > 1, 0.0, self._weights + SEARCH_WORK * self._searches)
        owners = self._owners[self._cells % len(self._owners)]
        self._loads += np.bincount(owners, each, self._instances)
        for at in np.flatnonzero(self._fans > 1).tolist():
            self._add(at, 1.0)
        self._done = np.zeros(len(self._cells), np.bool_)

    def split(self) -> bool:
        """Deal the largest cell of the busiest instance over twice as many buckets.

        False where instances are even, or no split helps any more.
        """
        busiest = int(self._loads.argmax())
        if self._loads[busiest] <= self._survey.even * self._loads.mean():
            return False
        shares = np.where(self._done, 0.0, self._weights / np.minimum(self._fans, self._instances))
        mine = self._owners[self._cells % len(self._owners)] == busiest
        mine |= self._fans > 1
        shares[~mine] = 0.0
        at = int(shares.argmax())
        if shares[at] <= 0:
            return False
        before, fan = self._loads.copy(), int(self._fans[at])
        self._add(at, -1.0)
        self._fans[at] = 2 * fan if 2 * fan < self._instances else EVERYWHERE
        self._add(at, 1.0)
        if self._loads.max() >= before.max() and self._fans[at] >= EVERYWHERE:
            self._loads, self._fans[at] = before, fan
            self._done[at] = True
        else:  # splits that did not help before may help now
            self._done = self._fans >= EVERYWHERE
        return True

    def _add(self, at: int, times: float) -> None:
        """Add the work of a cell, `times` 1 or -1, to the instances that have it."""
        fan, weight = int(self._fans[at]), float(self._weights[at]) * times
        searches = SEARCH_WORK * float(self._searches[at]) * times
        if fan >= len(self._owners):
            self._loads += weight / self._instances + searches
            return
        buckets = (int(self._cells[at]) + np.arange(fan)) % len(self._owners)
        each = np.bincount(self._owners[buckets], minlength=self._instances)
        self._loads += weight * each / fan + searches * (each > 0)

    def work(self) -> GridWork:
        several = np.flatnonzero(self._fans > 1)
        grid = CellGrid(
            self._grid.width,
            tuple(self._cells[several].tolist()),
            tuple(self._fans[several].tolist()),
        )
        places = np.minimum(self._fans, self._instances)
        searches = float((self._searches * places).sum()) + self._wide * self._instances
        return GridWork(
            grid,
            float(self._loads.max()),
            float(self._loads.mean()),
            searches / max(self._survey._asks, 1),
        )
