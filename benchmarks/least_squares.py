"""What seconds are made of: costs of what was counted, none of them negative."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def explained(work: Floats, seconds: Floats) -> list[float]:
    """Costs by least squares of relative errors, none of them negative, without what is far off."""
    kept = np.ones(len(seconds), bool)
    costs = np.zeros(work.shape[1])
    for _ in range(4):
        costs = _not_negative(work[kept] / seconds[kept, None], np.ones(int(kept.sum())))
        off = np.abs(work @ costs / seconds - 1)
        kept = off <= max(3 * float(np.median(off)), 1e-3)
    return [float(cost) for cost in costs]


def _not_negative(work: Floats, seconds: Floats) -> Floats:
    """Leave out, one by one, what would have a negative cost."""
    columns = [c for c in range(work.shape[1]) if work[:, c].any()]
    while True:
        found, *_ = np.linalg.lstsq(work[:, columns], seconds, rcond=None)
        if (found >= 0).all() or len(columns) == 1:
            break
        columns.pop(int(found.argmin()))
    costs = np.zeros(work.shape[1])
    costs[columns] = np.maximum(found, 0.0)
    return costs
