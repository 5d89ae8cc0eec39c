"""Which instances see a new tuple of a join, between the owners of its bucket and the exchange."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidegate.operate.join.spec import LEFT

Owners = npt.NDArray[np.int32]

TO_ALL, OVER_GRID, TO_OWNER = "all", "grid", "owner"
"""All to every instance; over rows (left) and columns (right) of a grid of instances; by key to the
one that owns it."""


def grid(instances: int) -> tuple[int, int]:
    """Rows and columns of a grid of exactly so many instances, as square as can be."""
    rows = next(r for r in range(int(instances**0.5), 0, -1) if instances % r == 0)
    return rows, instances // rows


def seen_by(
    instance: int, spread: str, side: int, owners: Owners, instances: int
) -> npt.NDArray[np.bool_]:
    """Which tuples, by the owners of their buckets, an instance sees."""
    if spread == OVER_GRID:
        columns = grid(instances)[1]
        if side == LEFT:
            return np.asarray(owners // columns == instance // columns)
        return np.asarray(owners % columns == instance % columns)
    return np.asarray(owners == instance)
