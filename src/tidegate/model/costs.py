"""What the work of a join takes, between those who measure it and those who predict with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
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
