"""How far an estimate may be off: in relation to the value (2.2), or by so much (2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidegate.approx.array import Floats


class Ends(Protocol):
    """An estimate of each group between bounds."""

    @property
    def value(self) -> Floats: ...

    @property
    def low(self) -> Floats: ...

    @property
    def high(self) -> Floats: ...


class AllowedError(Protocol):
    """The largest error that is allowed, `size`, and what it means for intervals and samples."""

    @property
    def size(self) -> float: ...

    def of(self, found: Ends) -> Floats:
        """The largest error of values with any truth between the bounds; infinite if unknown."""

    def half(self, values: Floats) -> Floats:
        """Half of the widest interval around values that is still allowed."""

    def half_of_square(self, squares: Floats) -> Floats:
        """The same around squares, of whose roots the error is."""

    def of_means(self, means: Floats) -> Floats:
        """By how much means of arguments may be off, in whose unit results need not be."""


@dataclass(frozen=True)
class Relative:
    """(2.2): by a share of the value."""

    size: float

    def of(self, found: Ends) -> Floats:
        with np.errstate(all="ignore"):
            below = np.abs(found.value - found.low) / np.abs(found.low)
            above = np.abs(found.high - found.value) / np.abs(found.high)
            bounded = np.isfinite(found.low) & np.isfinite(found.high)
            apart = bounded & (np.sign(found.low) * np.sign(found.high) > 0)
            error: Floats = np.where(apart, np.maximum(below, above), np.inf)
        return np.where(bounded & (found.low == found.high), 0.0, error)

    def half(self, values: Floats) -> Floats:
        return np.abs(values) * self.size / (1 + self.size)

    def half_of_square(self, squares: Floats) -> Floats:
        return Relative(2 * self.size).half(squares)

    def of_means(self, means: Floats) -> Floats:
        return self.size * np.abs(means)


@dataclass(frozen=True)
class Absolute:
    """(2.3): by so much, in the unit of the value."""

    size: float

    def of(self, found: Ends) -> Floats:
        with np.errstate(all="ignore"):
            error: Floats = np.maximum(found.value - found.low, found.high - found.value)
        return np.where(np.isfinite(error), error, np.inf)

    def half(self, values: Floats) -> Floats:
        return np.full(len(values), self.size)

    def half_of_square(self, squares: Floats) -> Floats:
        return 2 * self.size * np.sqrt(squares)

    def of_means(self, means: Floats) -> Floats:
        return np.zeros(len(means))


Scale = type[Relative] | type[Absolute]
"""What the size of an error is measured by."""
