"""Numbers the rows of partitions: ROW_NUMBER, RANK, NTILE and their kin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.order import Flags

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.number[Any]]


@dataclass(frozen=True)
class PartitionedRows:
    """Rows in order, one partition after the other; by row the begin and end of its partition.

    `peers` flags rows that equal the row before them in the order of their partition.
    """

    starts: Ints
    ends: Ints
    peers: Flags

    @property
    def places(self) -> Ints:
        return np.arange(len(self.starts)) - self.starts

    @property
    def sizes(self) -> Ints:
        return self.ends - self.starts

    @property
    def ranks(self) -> Ints:
        """The number of rows of the partition before a row and its peers."""
        first = np.where(self.peers, 0, np.arange(len(self.starts)))
        return np.asarray(np.maximum.accumulate(first) - self.starts)


def _dense_rank(rows: PartitionedRows, tiles: int) -> Ints:
    values: Ints = np.cumsum(~rows.peers)
    return np.asarray(values - values[rows.starts] + 1)


def _ntile(rows: PartitionedRows, tiles: int) -> Ints:
    """The first tiles have one row more than the others if rows cannot be divided evenly."""
    short, longer = np.divmod(rows.sizes, tiles)
    after = rows.places - longer * (short + 1)
    tile = np.where(after < 0, rows.places // (short + 1), longer + after // np.maximum(short, 1))
    return np.asarray(tile + 1)


def _percent_rank(rows: PartitionedRows, tiles: int) -> Numbers:
    return np.asarray(rows.ranks / np.maximum(rows.sizes - 1, 1))


def _cume_dist(rows: PartitionedRows, tiles: int) -> Numbers:
    """The share of the partition's rows up to the last peer."""
    number = np.arange(len(rows.starts))
    last = np.where(np.append(rows.peers[1:], False), len(number), number)
    last = np.minimum.accumulate(last[::-1])[::-1]
    return np.asarray((last + 1 - rows.starts) / rows.sizes)


@dataclass(frozen=True)
class RankFunction:
    """A way to number rows; `of` also gets the number of tiles, for NTILE.

    With `whole` a number also depends on later rows. With `shares` it is a fraction of 1.
    """

    of: Callable[[PartitionedRows, int], Numbers]
    whole: bool = False
    shares: bool = False


RANKINGS = {
    "ROW_NUMBER": RankFunction(lambda rows, _: rows.places + 1),
    "RANK": RankFunction(lambda rows, _: rows.ranks + 1),
    "DENSE_RANK": RankFunction(_dense_rank),
    "NTILE": RankFunction(_ntile, whole=True),
    "PERCENT_RANK": RankFunction(_percent_rank, whole=True, shares=True),
    "CUME_DIST": RankFunction(_cume_dist, whole=True, shares=True),
}
"""By their names in SQL."""


@dataclass(frozen=True)
class Numbering:
    """Keeps rows with numbers from `least` to `most`; `tiles` is the argument of NTILE."""

    most: float
    least: float = -inf
    kind: str = "ROW_NUMBER"
    tiles: int = 0

    @property
    def ranking(self) -> RankFunction:
        return RANKINGS[self.kind]

    @property
    def name(self) -> str:
        return f"{self.kind}({self.tiles})" if self.tiles else self.kind

    @property
    def bounds(self) -> str:
        """The condition on the numbers, as text."""
        if self.least == self.most:
            return f"= {self.most}"
        if -inf < self.least and self.most < inf:
            return f"between {self.least} and {self.most}"
        return f">= {self.least}" if self.most == inf else f"<= {self.most}"

    def keeps(self, rows: PartitionedRows, partly: bool) -> Flags:
        """Which rows are kept; `partly` says that more rows exist: then those that may be kept."""
        if partly and self.ranking.whole:
            return np.ones(len(rows.starts), np.bool_)
        numbers = self.ranking.of(rows, self.tiles)
        kept: Flags = (numbers <= self.most) & (partly | (numbers >= self.least))
        return kept
