"""How long output waits to be merged into one order, equations 25 and 26."""

from __future__ import annotations

import numpy as np

from tidegate.model.trace import Floats


def output_latency(output_rate: Floats, input_rate: Floats, instances: Floats) -> Floats:
    """l_i^out where n_i instances make `output_rate` output tuples a second together.

    An instance gives output at the rate o = min(its share, the rate of the input), because what one
    input tuple completes comes at once. All have the same period 1/o. In each, the output of the
    instance that is first waits for nothing but the offsets, which are tiny, and that of the others
    for the next output of the first: (n - 1) / n periods on average. With equal periods that is so
    for any offsets, so none has to be chosen. NaN where several instances have no output.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        period_s = 1 / np.minimum(output_rate / instances, input_rate)
        waits = (instances - 1) / instances * period_s
    return np.where(instances == 1, 0.0, np.where(np.isfinite(waits), waits, np.nan))
