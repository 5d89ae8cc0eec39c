"""What shedding saves and what error it makes, as the query's own batches and windows show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from tidegate.elastic.auto.costs import UnitCosts
from tidegate.elastic.auto.evidence import Saved
from tidegate.model.cost.sample import BatchSample
from tidegate.model.observation import Observation

_LIKELY, _UNSURE = 0.8, 0.15
"""The part of instances' work for shed tuples that is saved, before it was seen, and its error; of
the work that grows with the tuples."""

_LIKELY_BESIDE, _UNSURE_BESIDE = 0.0, 0.4
"""The same for the driver and map tasks. They read a tuple and number its group before it is shed:
that takes about as long as folding it, which is what they save."""

_SMOOTHED = 0.2
_KNOWN = 2
"""After so many batches it is known what shedding saves."""

_LONGER = 1.05
"""A batch took longer from so many times on."""

_TURNING = 1
"""So many batches after the first one with another share may still have tuples of both."""


@dataclass(frozen=True)
class Saving:
    """The costs of a tuple where nothing is shed, and the part that is saved where it is.

    Instances take `tuple_s` for a tuple, and `saved` of that is saved. The driver and map tasks
    take `beside_tuple_s`, and `beside_batch_s` for a batch; `beside_saved` of a tuple's is saved.
    Below 0 it costs more to shed than not to. `seen` is how many batches have shown these parts.
    `longer` counts batches in a row that took longer than they would have with nothing shed.
    `half_error` is the error of a window at a share of one half; None before a window had one.
    """

    tuple_s: float = 0.0
    beside_tuple_s: float = 0.0
    beside_batch_s: float = 0.0
    saved: float = _LIKELY
    beside_saved: float = _LIKELY_BESIDE
    seen: int = 0
    share: float = 0.0
    turning: int = 0
    longer: int = 0
    half_error: float | None = None

    @property
    def instances(self) -> Saved:
        """Of the work of instances."""
        return Saved(self.saved, self.saved - _UNSURE / sqrt(1 + self.seen))

    @property
    def beside(self) -> Saved:
        """Of what the driver and map tasks do for tuples."""
        least = self.beside_saved - _UNSURE_BESIDE / sqrt(1 + self.seen)
        return Saved(self.beside_saved, least)

    @property
    def known(self) -> bool:
        """Whether batches have shown it, or shown that it takes longer than not to shed."""
        return self.seen >= _KNOWN or self.in_vain

    @property
    def in_vain(self) -> bool:
        return self.longer >= _KNOWN

    def after(
        self,
        every: Sequence[Observation],
        share: float,
        costs: UnitCosts,
        *,
        tells: bool = True,
    ) -> Saving:
        """With one batch that nothing disturbed; `costs` are those of the batches before it.

        One with a slow instance tells nothing of what shedding saves: it is no batch like another.
        """
        shed = every[0].shed
        if shed is None:
            return self
        found = self._with_error(shed.error, shed.kept)
        if not self.seen:
            found = replace(found, saved=_LIKELY * by_tuple(every[0]))
        tuples, samples = every[0].taken, [one.sample() for one in every]
        if tuples and share and tells:
            found = replace(found, longer=self.longer + 1 if self._took_longer(samples) else 0)
        if share != self.share:
            longer = found.longer if share else 0
            found = found if self.share else found._with_costs(costs)
            return replace(found, share=share, turning=_TURNING, longer=longer)
        if self.turning and not found.in_vain:
            return replace(found, turning=self.turning - 1)
        if not tuples or not tells:
            return found
        cpu_s = sum(one.cpu_s for one in samples) / tuples
        if share == 0:
            before = self.tuple_s or cpu_s
            return replace(found, tuple_s=before + _SMOOTHED * (cpu_s - before))._with_costs(costs)
        if not self.tuple_s:
            return found
        beside_s = (samples[0].overhead_s - self.beside_batch_s) / tuples
        weight = max(_SMOOTHED, 1 / (1 + self.seen))
        return replace(
            found,
            saved=_nearer(self.saved, cpu_s, self.tuple_s, share, weight),
            beside_saved=_nearer(self.beside_saved, beside_s, self.beside_tuple_s, share, weight),
            seen=min(self.seen + 1, 100),
            turning=0,
        )

    def _with_costs(self, costs: UnitCosts) -> Saving:
        """With what is beside instances of batches in which nothing was shed, the newest too."""
        return replace(
            self, beside_tuple_s=costs.beside_tuple_s, beside_batch_s=costs.beside_batch_s
        )

    def _took_longer(self, samples: Sequence[BatchSample]) -> bool:
        """Also of a batch in which not all tuples were subject to the share: these cost less."""
        busiest_s = sum(one.cpu_s / one.instances for one in samples)
        whole_s = sum(self.tuple_s * one.tuples / one.instances for one in samples[:1])
        whole_s += self.beside_batch_s + self.beside_tuple_s * samples[0].tuples
        known = self.tuple_s > 0 or self.beside_tuple_s > 0
        return known and samples[0].overhead_s + busiest_s > _LONGER * whole_s

    def _with_error(self, error: float | None, kept: float | None) -> Saving:
        if error is None or kept is None or not 0 < kept < 1:
            return self
        half = error * sqrt(kept / (1 - kept))
        return replace(self, half_error=half)

    def recorded(self) -> dict[str, Any]:
        return dict(vars(self))

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> Saving:
        return Saving(**recorded)


def by_tuple(seen: Observation) -> float:
    """The part of instances' work that grows with the tuples."""
    return 1.0 if seen.operation is None else seen.operation.by_tuple


def _nearer(saved: float, now_s: float, whole_s: float, share: float, weight: float) -> float:
    """The part that is saved, with what one more batch shows of it."""
    if whole_s <= 0:
        return saved
    now = min(max((1 - now_s / whole_s) / share, -1.0), 1.0)
    return saved + weight * (now - saved)
