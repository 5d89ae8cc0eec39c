"""How much slower than their costs say batches are just now.

Costs are those of minutes. What else runs on a machine, and how warm everything is, changes within
seconds, and then all batches take longer or shorter. The last seconds say by how much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from tidegate.model.cost.estimator import Estimator
from tidegate.model.cost.sample import WorkCounts

if TYPE_CHECKING:
    from tidegate.driver.report.observe import MeasuredBatch

_RECENT = 5
"""The median of so many intervals counts: a pause in one of them says nothing of the next."""


@dataclass(frozen=True)
class _Interval:
    """What batches took together, and what it was for: by subquery what was due, and instances."""

    seconds: float = 0.0
    batches: int = 0
    due: tuple[WorkCounts, ...] = ()
    instances: tuple[int, ...] = ()

    def after(self, batch: Sequence[MeasuredBatch]) -> _Interval:
        """With one batch more."""
        first = batch[0]
        due = tuple(one.due for one in batch)
        return replace(
            self,
            seconds=self.seconds + first.between_s + first.seconds,
            batches=self.batches + 1,
            due=tuple(map(WorkCounts.plus, self.due, due)) if self.due else due,
            instances=tuple(one.mapping.instances for one in batch),
        )

    def expected_s(self, known: Sequence[Estimator]) -> float:
        """What the costs that are known say that they take."""
        costs = [
            of.seconds(due, instances, self.batches)
            for of, due, instances in zip(known, self.due, self.instances, strict=True)
        ]
        return sum(own_s for own_s, _ in costs) + max(rest_s for _, rest_s in costs)


class Slowdown:
    """Owned by a forecast, which adds every batch and closes every interval; a few numbers."""

    def __init__(self) -> None:
        self._open = _Interval()
        self._recent: deque[_Interval] = deque(maxlen=_RECENT)

    def add(self, batch: Sequence[MeasuredBatch]) -> None:
        """One batch of all subqueries."""
        self._open = self._open.after(batch)

    def close(self) -> None:
        """The end of an interval that had batches."""
        self._recent.append(self._open)
        self._open = _Interval()

    def by(self, known: Sequence[Estimator]) -> float:
        """How many times as long as these costs say batches took in the last intervals.

        1 where nothing is known.
        """
        expected = [(one.seconds, one.expected_s(known)) for one in self._recent]
        found = [took_s / expected_s for took_s, expected_s in expected if expected_s > 0]
        return median(found) if found else 1.0
