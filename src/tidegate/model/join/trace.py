"""The rates of the two inputs of a join over time."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.operation import Floats


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
