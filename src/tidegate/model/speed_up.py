"""Says how much faster more instances can make a run, by Amdahl's law.

A run is divided into serial time, in which no task is at work, and the work of its tasks. More
instances share the work; nothing shares the serial time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SpeedUp:
    """Seconds of serial time, and of the work that one instance would do alone."""

    serial_s: float
    work_s: float

    @property
    def serial_share(self) -> float:
        """Amdahl's s: the serial part of the time that a run with one instance takes."""
        whole_s = self.serial_s + self.work_s
        return self.serial_s / whole_s if whole_s else 0.0

    def at(self, instances: int) -> float:
        """How many times as fast as one instance so many can be: `1 / (s + (1 - s) / n)`."""
        return 1 / (self.serial_share + (1 - self.serial_share) / instances)

    @property
    def limit(self) -> float:
        """The same of any number of instances: `1 / s`; infinite where nothing is serial."""
        return 1 / self.serial_share if self.serial_share else math.inf

    @property
    def useful(self) -> float:
        """With how many instances each still brings half of what the first does: `1 + 1 / s`.

        `at(n) / n` is one half there, and the speed-up is a little more than half of its limit.
        """
        return 1 + self.limit
