"""What the batches of a subquery cost, as running sums in which newer batches count more.

The work of instances is in proportion to units: the comparisons of a join that makes them all, the
tuples of anything else. What is beside instances, the driver and map tasks, is a part for each
batch and a part for each tuple. A dozen numbers, so that they fit any manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

_HALF_LIFE_S = 5.0
_MOST_FADING = 0.8
"""What one batch leaves of those before it at least, however long it was."""

_KNOWN, _FEW, _ALIKE = 8, 3, 0.2
"""Costs are known from so many batches, or from few that differ by no more than this."""

_SMALL = 0.1
"""Where instances do less than this part of what is beside them, how much less is no matter."""

_APART = 0.1
"""Batches whose tuples vary by less, as a part of their mean, do not tell the two parts apart."""

_LEAST_DOUBT, _DOUBT_OF_FEW = 0.03, 0.1


@dataclass(frozen=True)
class UnitCosts:
    """Sums over batches that nothing disturbed; `off` is how far a batch is from what they say."""

    batches: int = 0
    units: float = 0.0
    cpu_s: float = 0.0
    off: float = 0.0
    weight: float = 0.0
    tuples: float = 0.0
    beside_s: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def after(
        self, units: float, cpu_s: float, tuples: float, beside_s: float, period_s: float
    ) -> UnitCosts:
        """With one batch more; one without tuples says nothing."""
        if units <= 0 or tuples <= 0:
            return self
        kept = max(0.5 ** (period_s / _HALF_LIFE_S), _MOST_FADING)
        off = abs(cpu_s / units / self.unit_s - 1) if self.unit_s > 0 else 0.0
        share = max(0.1, 1 / (1 + self.batches))
        return UnitCosts(
            batches=min(self.batches + 1, 1_000),
            units=self.units * kept + units,
            cpu_s=self.cpu_s * kept + cpu_s,
            off=self.off + share * (min(off, 2.0) - self.off),
            weight=self.weight * kept + 1,
            tuples=self.tuples * kept + tuples,
            beside_s=self.beside_s * kept + beside_s,
            squares=self.squares * kept + tuples * tuples,
            products=self.products * kept + tuples * beside_s,
        )

    def faded(self, part: float) -> UnitCosts:
        """The same, of which batches so far count only so much beside later ones."""
        batches, units, cpu_s, off, *sums = vars(self).values()
        return UnitCosts(batches, units * part, cpu_s * part, off, *(one * part for one in sums))

    @property
    def known(self) -> bool:
        alike = self.off <= _ALIKE or self.cpu_s <= _SMALL * self.beside_s
        return self.batches >= _KNOWN or (self.batches >= _FEW and alike)

    @property
    def guessed(self) -> bool:
        """Whether they are known enough to do something where it is late already."""
        return self.batches >= _FEW

    @property
    def doubt(self) -> float:
        """How far the work may be off, as a part of it."""
        few = _DOUBT_OF_FEW if self.batches < 2 * _KNOWN else 0.0
        return min(max(2 * self.off / sqrt(_KNOWN), _LEAST_DOUBT) + few, 0.5)

    @property
    def unit_s(self) -> float:
        """CPU seconds of all instances for a unit."""
        return self.cpu_s / self.units if self.units > 0 else 0.0

    @property
    def beside_tuple_s(self) -> float:
        """What is beside instances, for a tuple."""
        if not self.tuples:
            return 0.0
        mean, mean_s = self.tuples / self.weight, self.beside_s / self.weight
        variance = self.squares / self.weight - mean * mean
        most = mean_s / mean
        if variance <= (_APART * mean) ** 2:
            return most / 2
        slope = (self.products / self.weight - mean * mean_s) / variance
        return min(max(slope, 0.0), most)

    @property
    def beside_batch_s(self) -> float:
        """The same for a batch, however small."""
        if not self.weight:
            return 0.0
        return (self.beside_s - self.tuples * self.beside_tuple_s) / self.weight

    def beside_of(self, tuples: float) -> float:
        """What is beside instances in a batch of so many tuples, in seconds."""
        return self.beside_batch_s + self.beside_tuple_s * tuples

    def recorded(self) -> list[float]:
        return [float(f"{value:.9g}") for value in vars(self).values()]

    @staticmethod
    def restored(recorded: Sequence[float]) -> UnitCosts:
        batches, *sums = recorded or (0,)
        return UnitCosts(int(batches), *sums)
