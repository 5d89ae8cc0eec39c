"""Traces with few numbers in them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidegate.model.join.trace import Trace


def constant(r: list[float], s: list[float], intervals: int, step_s: float = 1.0) -> Trace:
    """A trace whose sources do not change their rates."""
    return changing(np.tile(r, (intervals, 1)), np.tile(s, (intervals, 1)), step_s)


def changing(r: npt.ArrayLike, s: npt.ArrayLike, step_s: float = 1.0) -> Trace:
    """A trace of rates by interval: a number for each, or one for each source."""
    rates = [np.asarray(side, np.float64).reshape(len(np.asarray(side)), -1) for side in (r, s)]
    return Trace(np.arange(len(rates[0])) * step_s, *rates, step_s)
