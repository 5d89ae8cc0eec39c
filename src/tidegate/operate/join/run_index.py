"""What searching stored tuples needs of them, computed once and kept while they are in use.

It costs a pass over the tuples, and they are searched by every batch while their window is open.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tidegate.memory import MEMORY

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]


@dataclass
class Searched:
    """The index of a run, and the values of its other tests as single floats.

    These are relative to the least value of the run. Subtracting one number and rounding keep
    order, so what passes a test in double floats still does; a pair more may.
    """

    key: Floats | None
    values: list[Singles]
    bases: list[float]
    oldest: int
    rows: int
    _in_order: Ints | None = field(default=None)

    @staticmethod
    def of(key: Floats | None, values: Sequence[Floats], coordinate: Ints) -> Searched:
        bases, narrow = [], []
        for value in values:
            finite = value[np.isfinite(value)]
            base = float(finite.min()) if len(finite) else 0.0
            bases.append(base)
            narrow.append(_single(value, base))
        return Searched(key, narrow, bases, int(coordinate.min()), len(coordinate))

    @property
    def nbytes(self) -> int:
        """What it takes, with the coordinates in order, which are made when they are asked for."""
        arrays = [a for a in (self.key, *self.values) if a is not None]
        return sum(int(a.nbytes) for a in arrays) + 8 * self.rows

    def narrowed(
        self, bounds: Sequence[tuple[Floats, Floats]]
    ) -> tuple[list[Singles], list[Singles]]:
        """Lows and highs as the values are."""
        both = list(zip(bounds, self.bases, strict=True))
        return [_single(b[0], base) for b, base in both], [_single(b[1], base) for b, base in both]

    def in_order(self, coordinate: Ints) -> Ints:
        """The run's coordinates, ascending."""
        if self._in_order is None:
            self._in_order = np.sort(coordinate)
        return self._in_order


def _single(values: Floats, base: float) -> Singles:
    with np.errstate(over="ignore", invalid="ignore"):
        return (values - base).astype(np.float32)


def _nbytes(searched: Searched) -> int:
    return searched.nbytes


_INDEXES = MEMORY.cache(1 / 2, _nbytes)


def known(token: Hashable | None, compute: Callable[[], Searched]) -> Searched:
    """What is kept under a token, or computed and kept; nothing is kept under None."""
    return compute() if token is None else _INDEXES.get(token, compute)
