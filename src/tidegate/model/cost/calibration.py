"""The constants of the model: plain numbers (`JoinCosts`), and as measured (`Calibration`).

Every number that was measured comes with the interval that has the true one in it 95 times in 100.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import hypot
from typing import Any


@dataclass(frozen=True)
class JoinCosts:
    """Seconds of work; the paper's symbols are in the names.

    `alpha` is what a comparison takes, `beta` what it takes to make an output tuple, and `sigma`
    the output tuples for each comparison. The others belong to micro-batches, and are nothing in
    the paper's model: `batch_s` is what a batch takes however small it is, `tuple_s` what it takes
    to bring one input tuple to all instances, and `scatter` how far batches are from what they take
    on average: a standard deviation, as a part of it.
    """

    alpha: float
    beta: float
    sigma: float
    batch_s: float = 0.0
    tuple_s: float = 0.0
    scatter: float = 0.0

    @property
    def comparison_s(self) -> float:
        """What a comparison takes with its share of output: alpha + sigma * beta."""
        return self.alpha + self.sigma * self.beta


@dataclass(frozen=True)
class Estimate:
    """A number that was estimated, and between which it is; `low` and `high` have it in between."""

    value: float
    low: float
    high: float

    def __mul__(self, other: Estimate) -> Estimate:
        """The product of two that were estimated apart."""
        value = self.value * other.value
        below = hypot((self.value - self.low) * other.value, self.value * (other.value - other.low))
        above = hypot(
            (self.high - self.value) * other.value, self.value * (other.high - other.value)
        )
        return Estimate(value, max(value - below, 0.0), value + above)


@dataclass(frozen=True)
class Calibration:
    """The constants of the model for one subquery, in seconds, as `instances` of it have them.

    `alpha` is what a comparison takes (of those that the definition of the join makes, also where
    an index saves most of them), `beta` what an output tuple takes, `sigma` the outputs for each
    comparison, and `comparison` is `alpha + sigma * beta`. Where nothing is compared, all but
    `beta` of them are 0.
    `tuple_s` and `batch_s` are what an input tuple and a batch take beside them, all of them on
    average. `scatter` is how far batches are from that: a standard deviation, as a part of it.

    Where outputs are always the same share of comparisons, only `comparison` is known, and alpha
    and beta are not `told_apart`: their values are a guess with the right sum, and their intervals
    say so. In the same way batches that all have as many tuples do not tell `tuple_s` from
    `batch_s`. `batches` is how many were measured.
    """

    batches: int
    instances: int
    alpha: Estimate
    beta: Estimate
    sigma: Estimate
    comparison: Estimate
    tuple_s: Estimate
    batch_s: Estimate
    told_apart: bool
    scatter: float = 0.0

    def costs(self) -> JoinCosts:
        """The values, for a prediction."""
        return JoinCosts(
            alpha=self.alpha.value,
            beta=self.beta.value,
            sigma=self.sigma.value,
            batch_s=self.batch_s.value,
            tuple_s=self.tuple_s.value,
            scatter=self.scatter,
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @staticmethod
    def from_dict(recorded: Mapping[str, Any]) -> Calibration:
        """What `as_dict` gave."""
        values = {f.name: recorded[f.name] for f in fields(Calibration)}
        read: dict[str, Any] = {
            n: Estimate(**v) if isinstance(v, Mapping) else v for n, v in values.items()
        }
        return Calibration(**read)
