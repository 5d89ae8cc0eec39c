"""How long the join itself takes to make an output tuple, equations 7 to 9 and 24."""

from __future__ import annotations

import numpy as np

from tidegate.model.costs import Costs
from tidegate.model.trace import Floats


def scan_latency(held: Floats, costs: Costs) -> Floats:
    """The mean latency of the output of one tuple that meets so many others, equations 7 and 8.

    Every 1/sigma-th comparison gives an output tuple, which has to wait for the comparisons and the
    output before it: (sigma omega + 1) (alpha + sigma beta) / (2 sigma).
    """
    if costs.sigma == 0:
        return np.full_like(held, np.nan)
    latency: Floats = (costs.sigma * held + 1) * costs.comparison_s / (2 * costs.sigma)
    return latency


def join_latency(
    rate_r: Floats,
    rate_s: Floats,
    window_r: Floats,
    window_s: Floats,
    instances: Floats,
    costs: Costs,
) -> Floats:
    """l-hat_i of work that need not wait for other work, equations 9 and 24.

    The mean over the tuples that arrive: one of R meets the window of S, and the other way round.
    Each of n instances has an n-th of a window, and scans its part beside the others. NaN where no
    tuple arrives, or none has output.
    """
    arriving = rate_r + rate_s
    with np.errstate(invalid="ignore", divide="ignore"):
        share_r = rate_r / arriving
        latency: Floats = share_r * scan_latency(window_s / instances, costs) + (
            1 - share_r
        ) * scan_latency(window_r / instances, costs)
    return latency
