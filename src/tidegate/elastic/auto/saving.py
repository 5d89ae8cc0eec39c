"""What shedding saves and what error it makes, as the query's own batches and windows show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import Any

from tidegate.model.observation import Observation

_LIKELY, _UNSURE = 0.8, 0.15
"""The part of the work of shed tuples that is saved before it was seen, and how far it is off."""

_SMOOTHED = 0.2
_TURNING = 2
"""So many batches after a change of the share have tuples of both."""


@dataclass(frozen=True)
class Saving:
    """CPU seconds of a tuple where nothing is shed, and the part that is saved where it is.

    `seen` is how many batches have shown that part. `half_error` is the error of a window at a
    share of one half; None before a window had one.
    """

    tuple_s: float = 0.0
    saved: float = _LIKELY
    seen: int = 0
    share: float = 0.0
    turning: int = 0
    half_error: float | None = None

    @property
    def least(self) -> float:
        """What is saved at least, as far as it is known."""
        return max(self.saved - _UNSURE / sqrt(1 + self.seen), 0.0)

    def after(self, every: Sequence[Observation], share: float) -> Saving:
        """With one batch that nothing disturbed."""
        shed = every[0].shed
        if shed is None:
            return self
        found = self._with_error(shed.error, shed.kept)
        if share != self.share:
            return replace(found, share=share, turning=_TURNING)
        if self.turning:
            return replace(found, turning=self.turning - 1)
        tuples = every[0].taken
        if not tuples:
            return found
        cpu_s = sum(load.cpu_s for one in every for load in one.instances) / tuples
        if share == 0:
            before = self.tuple_s or cpu_s
            return replace(found, tuple_s=before + _SMOOTHED * (cpu_s - before))
        if not self.tuple_s:
            return found
        now = min(max((1 - cpu_s / self.tuple_s) / share, 0.0), 1.0)
        saved = self.saved + _SMOOTHED * (now - self.saved)
        return replace(found, saved=saved, seen=min(self.seen + 1, 100))

    def _with_error(self, error: float | None, kept: float | None) -> Saving:
        if error is None or kept is None or not 0 < kept < 1:
            return self
        half = error * sqrt(kept / (1 - kept))
        return replace(self, half_error=half)

    def recorded(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> Saving:
        return Saving(**recorded)
