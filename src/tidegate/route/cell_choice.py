"""Chooses the cells of a grid by counted work, from a survey of the tuples that come.

What is counted: a tuple that searches at an instance, a tuple that is stored, and each stored tuple
that one that asks has to look at. A survey has some tuples of both sides, so all three can be
counted for any grid, instance by instance. The best grid is the one whose busiest instance has the
least to do; that without cells, where all ask everywhere, is among those that are compared.
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
"""What a search and a stored tuple cost, in looks at stored tuples.

Measured as CPU time of `StreamJoin.run`, on two busy cores: joins with a band beside the index,
round-robin over 1 and 8 instances (each searches for all tuples and stores its part), 8 and 128
looks a tuple, windows of 150,000 tuples a side; by least squares, 10 percent off in the mean. An
equality took 6 ns for a look, 50 for a search, 180 for a stored tuple; a band 8, 240 and 120. A
band with twice the window took some 330 for a search and 700 for a stored tuple. So both are 9 to
90 looks. A condition that is no interval makes looks dearer, 40 ns.
"""

EVEN = 1.1
"""No cell is split where the busiest instance has so many times the mean, or less; or little more,
as much as a survey of few tuples may be wrong."""

_UNEVEN = 1.25
"""Uneven work has to be so much less than even work to be chosen."""

_WIDTHS = 9
"""How many widths of cells are compared."""

_LARGE, _SMALL = 1e300, 1e-290
"""Values that are larger have no say: their distances may be too large for a number. And cells are
taken to be of values that are not all closer than this."""

_MOST_SPLITS = 512
"""How often a cell is split more, at most."""


@dataclass(frozen=True)
class SideSurvey:
    """Some tuples of one side: their values, and the bounds that they set for the other side.

    `held` is how many stored tuples each of them stands for, where each stands for one that comes.
    """

    values: Floats
    low: Floats
    high: Floats
    held: float = 1.0


@dataclass(frozen=True)
class GridWork:
    """A grid, and what instances have to do with it, in looks."""

    grid: CellGrid
    busiest: float
    mean: float
    searches: float
    """At how many places a tuple searches, in the mean."""


class CellSurvey:
    """Of both sides of a join. A grid costs O(tuples), and one that is split O(cells) each time."""

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
        """The grid whose busiest instance has the least to do."""
        every = [self.work_of(IN_TURN), *(self._split(width) for width in self._widths())]
        return min(every, key=self._weighed)

    def _weighed(self, work: GridWork) -> float:
        """What the busiest instance has to do; of uneven work more, for a survey is not exact."""
        return work.busiest * (_UNEVEN if work.busiest > self.even * work.mean else 1.0)

    def work_of(self, grid: CellGrid) -> GridWork:
        """What instances have to do with a grid."""
        if not grid.width:
            stored = sum(float(weights.sum()) for weights in self._weights)
            busiest = stored / self._instances + SEARCH_WORK * self._asks
            return GridWork(grid, busiest, busiest, float(self._instances))
        return _Loads(self, grid).work()

    def _widths(self) -> Floats:
        """Widths that are worth a look: from that of the bounds on, as long as there are cells."""
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
        """Cells of a width, those split that make an instance busier than others."""
        loads = _Loads(self, CellGrid(float(width)))
        for _ in range(_MOST_SPLITS):
            if not loads.split():
                break
        return loads.work()

    @cached_property
    def _weights(self) -> list[Floats]:
        """What the tuples of each side cost where they are stored."""
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
        """The cells there are, the work of what is stored in each, the searches in each.

        And how many tuples search everywhere.
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
    """What each instance has to do, while the cells of a grid are split."""

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
        each = np.where(self._fans > 1, 0.0, self._weights + SEARCH_WORK * self._searches)
        owners = self._owners[self._cells % len(self._owners)]
        self._loads += np.bincount(owners, each, self._instances)
        for at in np.flatnonzero(self._fans > 1).tolist():
            self._add(at, 1.0)
        self._done = np.zeros(len(self._cells), np.bool_)

    def split(self) -> bool:
        """Deal the largest cell of the busiest instance over twice as many buckets.

        False where instances are even, or nothing more can be split with profit.
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
        else:  # what was of no use before may be now
            self._done = self._fans >= EVERYWHERE
        return True

    def _add(self, at: int, times: float) -> None:
        """Add the work of a cell to the instances that have it."""
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
