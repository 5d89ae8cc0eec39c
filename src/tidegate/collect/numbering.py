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
    """Rows one partition after the other, each in order: by row where its own starts and ends.

    `peers` are rows that are equal in order to the row before them in the partition.
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
        """How many rows of the partition are before a row and its peers."""
        first = np.where(self.peers, 0, np.arange(len(self.starts)))
        return np.asarray(np.maximum.accumulate(first) - self.starts)


def _dense_rank(rows: PartitionedRows, tiles: int) -> Ints:
    values: Ints = np.cumsum(~rows.peers)
    return np.asarray(values - values[rows.starts] + 1)


def _ntile(rows: PartitionedRows, tiles: int) -> Ints:
    """The first tiles have a row more where they cannot all have as many."""
    short, longer = np.divmod(rows.sizes, tiles)
    after = rows.places - longer * (short + 1)
    tile = np.where(after < 0, rows.places // (short + 1), longer + after // np.maximum(short, 1))
    return np.asarray(tile + 1)


def _percent_rank(rows: PartitionedRows, tiles: int) -> Numbers:
    return np.asarray(rows.ranks / np.maximum(rows.sizes - 1, 1))


def _cume_dist(rows: PartitionedRows, tiles: int) -> Numbers:
    """The share of rows up to the last peer: all before the next rank that is higher."""
    number = np.arange(len(rows.starts))
    last = np.where(np.append(rows.peers[1:], False), len(number), number)
    last = np.minimum.accumulate(last[::-1])[::-1]
    return np.asarray((last + 1 - rows.starts) / rows.sizes)


@dataclass(frozen=True)
class RankFunction:
    """A way to number rows, given the tiles of NTILE.

    `whole`: a number depends also on rows behind it. `shares`: it is a part of 1.
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
    """Rows are kept whose numbers are from `least` to `most`; `tiles` is the argument of NTILE."""

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
        """What is asked of the numbers, as a condition."""
        if self.least == self.most:
            return f"= {self.most}"
        if -inf < self.least and self.most < inf:
            return f"between {self.least} and {self.most}"
        return f">= {self.least}" if self.most == inf else f"<= {self.most}"

    def keeps(self, rows: PartitionedRows, partly: bool) -> Flags:
        """Which rows are kept; where there are others too, those that may be kept among all."""
        if partly and self.ranking.whole:
            return np.ones(len(rows.starts), np.bool_)
        numbers = self.ranking.of(rows, self.tiles)
        kept: Flags = (numbers <= self.most) & (partly | (numbers >= self.least))
        return kept
