"""The rates of the two inputs of a join over time, and what the model refuses to compute with."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.errors import OptionError
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.operation import Floats

Instances = int | npt.NDArray[np.int64]
"""How many there are: always, or in each interval."""

_UNITS = {"sigma": "tuples a comparison", "scatter": "of a batch"}
"""Of the costs that are no seconds."""


@dataclass(frozen=True)
class Trace:
    """Rates in tuples a second, constant within each of a row of intervals of `step_s` seconds.

    `times` has the beginning of each interval in seconds, `r` and `s` a row for each interval and a
    column for each source (a physical stream) of the logical streams R and S.
    """

    times: Floats
    r: Floats
    s: Floats
    step_s: float = 1.0

    def __len__(self) -> int:
        return len(self.times)


def above_zero(where: str, value: float, unit: str) -> None:
    """A number of some unit, which must be finite and more than nothing."""
    if not 0 < value < math.inf:
        raise OptionError(where, f"must be more than 0 {unit}, and finite", f"{value:g}")


def not_negative(where: str, value: float, unit: str) -> None:
    """A number of some unit, which must be finite and may be nothing."""
    if not 0 <= value < math.inf:
        raise OptionError(where, f"must be 0 {unit} or more, and finite", f"{value:g}")


def check_quota(quota: float) -> None:
    """Theta, the part of the time that a join may use."""
    if not 0 < quota <= 1:
        raise OptionError("quota", "must be above 0 and at most 1", f"{quota:g}")


def check_costs(costs: JoinCosts) -> None:
    """No cost is negative."""
    for name, value in asdict(costs).items():
        not_negative(name, value, _UNITS.get(name, "seconds"))


def check_trace(trace: Trace) -> None:
    """There are intervals, and rates for each that are no less than nothing."""
    above_zero("the intervals of a trace", trace.step_s, "seconds")
    if not len(trace):
        raise OptionError("the trace", "needs at least one interval", "none")
    for name, rates in (("r", trace.r), ("s", trace.s)):
        if rates.ndim != 2 or len(rates) != len(trace) or not rates.shape[1]:
            raise OptionError(
                f"the rates {name} of a trace",
                f"need a row for each of {len(trace):,} intervals, and a column for each source",
                f"the shape {rates.shape}",
            )
        wrong = np.argwhere(~((rates >= 0) & (rates < np.inf)))
        if len(wrong):
            i, source = wrong[0]
            raise OptionError(
                f"the rates {name} of a trace",
                "must be 0 or more, and finite",
                f"{rates[i, source]:g} at {trace.times[i]:g} seconds",
            )


def instances_of(instances: Instances, intervals: int) -> npt.NDArray[np.int64]:
    """A number of instances for each interval."""
    number = _for_each("instances", np.asarray(instances), intervals)
    if number.dtype.kind not in "iu" or (number < 1).any():
        raise OptionError("instances", "must be whole numbers from 1 on", f"{number.min():g}")
    return np.broadcast_to(number.astype(np.int64), (intervals,)).copy()


def slowdown_of(slowdown: float | Floats, intervals: int) -> Floats:
    """A slowdown for each interval."""
    times: Floats = _for_each("slowdown", np.asarray(slowdown, np.float64), intervals)
    wrong = times[~((times > 0) & (times < np.inf))]
    if wrong.size:
        raise OptionError("slowdown", "must be above 0, and finite", f"{wrong.flat[0]:g}")
    return np.broadcast_to(times, (intervals,))


def _for_each(where: str, values: npt.NDArray[Any], intervals: int) -> npt.NDArray[Any]:
    """One number, or one for each interval."""
    if values.ndim and values.shape != (intervals,):
        requirement = f"must be one number, or one for each of {intervals:,} intervals"
        raise OptionError(where, requirement, f"{values.size:,} of them")
    return values
