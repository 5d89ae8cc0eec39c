"""Indexes of stored tuples, computed once and kept while they are in use.

An index costs a pass over the tuples, and every batch searches them while their window is open. A
cache of the process keeps indexes; its keys are tokens, which name what never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.memory import MEMORY
from tidegate.operate.join.predicate.program_columns import SideColumns
from tidegate.operate.kernels.order import inverse

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

Scalar = TypeVar("Scalar", bound=np.generic)
T = TypeVar("T")


@dataclass(frozen=True)
class Terms:
    """What one probe compares in tuples: the key of its index, and the values of its other tests.

    In the order of the tuples. `order` is the stable order of the keys, where it is known.
    """

    key: Floats | None
    values: tuple[Floats, ...] = ()
    order: Ints | None = None

    def followed_by(self, other: Terms) -> Terms:
        """The terms of these tuples, then of others."""
        key = None
        if self.key is not None and other.key is not None:
            key = np.concatenate([self.key, other.key])
        both = zip(self.values, other.values, strict=True)
        return Terms(key, tuple(np.concatenate(pair) for pair in both))

    def take(self, rows: Ints | slice) -> Terms:
        """The terms of some of the tuples."""
        key = None if self.key is None else self.key[rows]
        return Terms(key, tuple(value[rows] for value in self.values))

    @property
    def nbytes(self) -> int:
        return sum(int(a.nbytes) for a in (self.key, *self.values) if a is not None)


@dataclass(frozen=True)
class SearchableRun:
    """The index of a run, and the values of its other tests as single floats.

    Values are relative to the least value of the run, in `bases`. Subtracting a number and rounding
    both keep the order: what passes a test of doubles passes it in single floats too, and perhaps a
    few pairs more, which the predicate refuses. The test reads half the bytes.

    All arrays are in the order that is searched. `order` has the row of the run's table at each
    place, None where it is the table's own order. `coordinate` is the event time, or the number in
    the side where windows count tuples.
    """

    order: Ints | None
    key: Floats | None
    values: list[Singles]
    bases: list[float]
    coordinate: Ints
    least: int | None = None
    """The least coordinate, where it is known without a look."""

    @staticmethod
    def of(
        key: Floats | None,
        values: Sequence[Floats],
        coordinate: Ints,
        sort: bool = False,
        order: Ints | None = None,
    ) -> SearchableRun:
        """Make an index; with `sort` rows are not in key order yet, `order` is that if known."""
        if sort and key is not None:
            order = np.argsort(key, stable=True) if order is None else order
            key, coordinate = key[order], coordinate[order]
            values = [value[order] for value in values]
        bases, narrow = [], []
        for value in values:
            finite = value[np.isfinite(value)]
            base = float(finite.min()) if len(finite) else 0.0
            bases.append(base)
            narrow.append(_single(value, base))
        return SearchableRun(order, key, narrow, bases, coordinate)

    @property
    def nbytes(self) -> int:
        """Bytes, including those of arrays that are only made when they are asked for."""
        arrays = [a for a in (self.key, *self.values) if a is not None]
        columns = 1 if self.order is None else 4
        return sum(int(a.nbytes) for a in arrays) + 8 * columns * len(self.coordinate)

    def rows(self, places: Ints) -> Ints:
        """The rows of the table that stand at these places."""
        return places if self.order is None else self.order[places]

    def arranged(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Values of the table's rows in the order that is searched."""
        return values if self.order is None else values[self.order]

    def places(self, rows: Ints) -> Ints:
        """Where rows of the table stand."""
        return rows if self.order is None else self._inverse[rows]

    def narrowed(
        self, bounds: Sequence[tuple[Floats, Floats]]
    ) -> tuple[list[Singles], list[Singles]]:
        """Lower and upper bounds as single floats relative to the bases."""
        both = list(zip(bounds, self.bases, strict=True))
        return [_single(b[0], base) for b, base in both], [_single(b[1], base) for b, base in both]

    @cached_property
    def oldest(self) -> int:
        return int(self.coordinate.min()) if self.least is None else self.least

    @cached_property
    def in_order(self) -> Ints:
        """The run's coordinates, ascending."""
        return np.sort(self.coordinate)

    @cached_property
    def _inverse(self) -> Ints:
        assert self.order is not None
        return inverse(self.order)


def _single(values: Floats, base: float) -> Singles:
    narrow = np.empty(len(values), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(values, base, out=narrow, casting="same_kind")
    return narrow


def _nbytes(found: tuple[SearchableRun, ...] | SideColumns | Ints) -> int:
    several = found if isinstance(found, tuple) else (found,)
    return sum(int(one.nbytes) for one in several)


_INDEXES = MEMORY.cache(1 / 4, _nbytes)


def known(token: Hashable | None, compute: Callable[[], T], *what: Hashable) -> T:
    """What is kept under a token, else computed and kept; nothing is kept under None.

    That is the index of tuples, or something else about them that `what` names.
    """
    return compute() if token is None else _INDEXES.get((token, *what) if what else token, compute)


def kept(token: Hashable | None) -> tuple[SearchableRun, ...] | None:
    """The index that is kept under a token, None where there is none; it counts as used."""
    found: tuple[SearchableRun, ...] | None = _INDEXES.held(token)
    return found


def let_go(token: Hashable) -> tuple[SearchableRun, ...] | None:
    """Take the index out that is kept under a token; None where there is none."""
    found: tuple[SearchableRun, ...] | None = _INDEXES.take(token)
    return found
