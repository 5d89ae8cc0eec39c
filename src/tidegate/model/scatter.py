"""What it does to latency that batches are not all alike, between their scatter and the model.

A tuple comes during some batch, and rather during a long one than during a short one: more tuples
come while a long batch runs, they wait longer for its end, and the batch that takes them has more
to do. With batches of the mean length T and the variance V, and a load of u,

    wait for the next batch   T / 2 + V / (2 T)
    what that batch takes     T + u V / T

A batch that is longer by some time makes the next one longer by u times that. So if each adds the
variance `(scatter * T) ** 2` of its own, there is in the end `V = (scatter * T) ** 2 / (1 - u u)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.model.operation import Floats


def settled_share(scatter: float | Floats, load: float | Floats) -> Floats:
    """V / T / T of batches that have settled; the load is below 1."""
    share: Floats = np.square(scatter) / (1 - np.square(load))
    return share


@dataclass(frozen=True)
class Carried:
    """The variance of the newest batch, which the next has a part of.

    Stepped over batches one by one, or over `count` that are all alike.
    """

    variance: float = 0.0

    def over(self, own: float, load: float, count: int) -> tuple[float, Carried]:
        """The mean variance of the batches before each of them, and what the last one has.

        `own` is the variance that each adds.
        """
        kept = load * load
        if count == 1 or kept >= 1:
            return self.variance, Carried(own + kept * self.variance)
        end = own / (1 - kept)
        left = kept**count
        mean = end + (self.variance - end) * (1 - left) / (count * (1 - kept))
        return mean, Carried(end + (self.variance - end) * left)
