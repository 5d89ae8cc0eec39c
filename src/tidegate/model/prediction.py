"""What the model says of a join over a trace: arrays with an item for each interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """Contents of the windows in tuples, comparisons of all instances together, times in seconds.

    `comparisons` is the work that arrives in an interval, `throughput` the comparisons a second
    that are made in it: less in overload, more when a backlog is worked off. A latency that no
    tuple has (there is none, or no work is done) is NaN, in the terms and in their sum.
    """

    times: Floats
    window_r: Floats
    window_s: Floats
    comparisons: Floats
    throughput: Floats
    latency_in: Floats
    latency_join: Floats
    latency_out: Floats
    latency_batch: Floats
    instances: npt.NDArray[np.int64]

    @property
    def latency(self) -> Floats:
        """Their sum, equation 1, and what micro-batches add."""
        return self.latency_in + self.latency_join + self.latency_out + self.latency_batch
