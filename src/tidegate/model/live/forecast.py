"""What a running query should be doing, beside what it does.

Every second in which tuples arrive, their rates and the costs of the batches before it say what the
query should be doing: the model of docs/model.md. Nothing is predicted of input that is not live.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from tidegate.model.control.controller import Limits, bounds
from tidegate.model.control.saso import Saso, Timeline, changes, saso
from tidegate.model.cost.estimator import Estimator
from tidegate.model.live.expectation import (
    Expectation,
    ForecastSecond,
    ForecastSummary,
    SubqueryExpectation,
)
from tidegate.model.live.slowdown import Slowdown
from tidegate.model.live.subquery import SAMPLE_S, LiveSubquery, LiveWork, pace_of
from tidegate.model.observation import observed_of
from tidegate.model.operation import longest_s

if TYPE_CHECKING:
    from tidegate.driver.report.observe import MeasuredBatch

_INTERVAL_S = 1.0
_KEPT_SECONDS = 3_600
"""How many intervals what is said of a run is over, at most."""

_MOST_PENDING = 256
"""So many batches are taken in together, at most."""

_RECENT = 0.1
"""How much the newest batch counts of what comes after a commit."""


@dataclass(frozen=True)
class _Scaled:
    """One interval of a subquery, while a policy decides."""

    at_s: float
    instances: int
    wanted: int
    latency_s: float
    rates: tuple[float, float]


class Forecast:
    """Told of every batch by the loop; asked by any thread.

    `slots` is how many instances run at once, None where that is not known, and `decides` whether a
    policy does. With `waits` tuples wait in the gate until they are ready. Holds the newest hour,
    a few numbers for each second.
    """

    def __init__(
        self,
        trigger_s: float | None,
        waits: bool,
        slots: Callable[[], int | None],
        decides: Callable[[], bool],
    ) -> None:
        self._trigger_s = trigger_s or 0.0
        self._waits = waits
        self._slots = slots
        self._decides = decides
        self._lock = Lock()
        self._pending: list[Sequence[MeasuredBatch]] = []
        self._pending_s = SAMPLE_S
        """The time since the newest batch that was looked at began."""
        self._latency = [0.0, 0.0]
        """Of the interval at hand: the sum of latencies, and of how many tuples."""
        self._made: list[float] = []
        """Of the interval at hand: comparisons or tuples of each subquery."""
        self._followed: list[LiveSubquery] = []
        self._costs: list[Estimator] = []
        """What was known of costs before the interval at hand: it is predicted from these."""
        self._slowdown = Slowdown()
        self._batch_s = 0.0
        self._unfinished: float | None = None
        """Tuples of the batch at hand by the model, at the end of the last interval."""
        self._after_s = 0.0
        """What batches take after their commit, lately."""
        self._at_s = 0.0
        self._newest: Expectation | None = None
        self._past: deque[ForecastSecond] = deque(maxlen=_KEPT_SECONDS)
        self._scaled: dict[str, deque[_Scaled]] = {}

    def committed(
        self, measured: Sequence[MeasuredBatch], latency: tuple[float, int], after_s: float
    ) -> None:
        """Take in a batch.

        `latency` is the sum of its tuples' latencies, and how many they are; `after_s` is the part
        of it that came after the commit, with which latency ends.
        """
        if not measured or not measured[0].arriving.live:
            return
        after_s += measured[0].between_s
        self._after_s += _RECENT * (after_s - self._after_s)
        self._latency = [self._latency[0] + latency[0], self._latency[1] + latency[1]]
        due = self._pending_s >= SAMPLE_S  # with this batch, which is as any other (`LiveSubquery`)
        self._pending.append(measured)
        self._pending_s += measured[0].period_s
        if due or len(self._pending) >= _MOST_PENDING:
            with self._lock:
                self._take_in()

    def newest(self) -> Expectation | None:
        """What is expected and measured in the newest second; None where nothing is known."""
        with self._lock:
            return self._newest

    def outcome(self) -> ForecastSummary:
        """The forecast of the run so far."""
        with self._lock:
            return ForecastSummary.of(self._newest, list(self._past), self._judged())

    def _take_in(self) -> None:
        newest = self._pending[-1]
        if not self._followed:
            self._followed = [LiveSubquery.of(m.subquery.operator.operation) for m in newest]
            self._made = [0.0] * len(newest)
        for batch in self._pending:
            for place, measured in enumerate(batch):
                self._followed[place] = self._followed[place].arrived(measured.came())
                self._made[place] += measured.made
            self._slowdown.add(batch)
        seen = observed_of(newest)
        self._followed = [f.sampled(one) for f, one in zip(self._followed, seen, strict=True)]
        self._pending, self._pending_s = [], newest[0].period_s
        if all(f.rates.is_over(_INTERVAL_S) for f in self._followed):
            self._close(newest)

    def _close(self, newest: Sequence[MeasuredBatch]) -> None:
        """The end of an interval: what it should have been, and what it was."""
        self._followed = [f.closed() for f in self._followed]
        seconds = self._followed[0].rates.seconds
        self._at_s += seconds
        made, self._made = self._made, [0.0] * len(newest)
        (whole_s, tuples), self._latency = self._latency, [0.0, 0.0]
        measured_s = whole_s / tuples if tuples else None
        costs, works = self._costs, self._works()
        known = all(f.is_known for f in self._followed)
        self._costs = [f.estimator for f in self._followed] if known else []
        slowdown = self._slowdown.by(costs) if costs else 1.0
        self._slowdown.close()
        if self._decides():
            self._note_scale(newest, works, measured_s)
        if not works:
            return
        counts = [m.mapping.instances for m in newest]
        every = list(zip(works, counts, strict=True))
        pace = pace_of(every, self._trigger_s, waits=self._waits).times(slowdown)
        self._batch_s = pace.after(self._batch_s or float(pace.fixed_s), seconds)
        before, self._unfinished = self._unfinished, pace.unfinished(self._batch_s)
        kept_up = 1.0
        if before is not None and pace.rate > 0:
            late = (self._unfinished - before) / (pace.rate * seconds)
            kept_up = min(max(1.0 - late, 0.0), 1.0 / max(float(pace.load), 1e-9))
        found = Expectation(
            load=float(pace.load),
            batch_s=self._batch_s,
            latency_s=float(pace.latency_s(self._batch_s)) - self._after_s,
            measured_s=measured_s,
            subqueries=self._expected(newest, costs, works, made, kept_up),
            slowdown=slowdown,
        )
        # Costs of batches that are too much alike may come to nothing: that predicts nothing.
        self._newest = found if found.latency_s > 0 else None
        if self._newest is not None and measured_s is not None:
            first = next(iter(found.subqueries.values()))
            self._past.append(
                ForecastSecond(found.latency_s, measured_s, first.throughput, first.measured)
            )

    def _works(self) -> list[LiveWork]:
        """The work of the interval, by the costs that were known before it; none without any."""
        known = zip(self._followed, self._costs, strict=True) if self._costs else ()
        return [replace(f, estimator=costs).work(ahead_s=0.0, over=True) for f, costs in known]

    def _expected(
        self,
        newest: Sequence[MeasuredBatch],
        costs: Sequence[Estimator],
        works: Sequence[LiveWork],
        made: Sequence[float],
        kept_up: float,
    ) -> dict[str, SubqueryExpectation]:
        """`kept_up` is the part of what arrives that gets done; more than all from a backlog."""
        found = {}
        for place, (measured, work) in enumerate(zip(newest, works, strict=True)):
            constants, followed = costs[place].estimate(), self._followed[place]
            assert constants is not None, "costs are known"
            instances, joins = measured.mapping.instances, bool(followed.operation.windows)
            found[measured.subquery.name] = SubqueryExpectation(
                instances=instances,
                rates=followed.rates.now[: 2 if joins else 1],
                unit="comparisons" if joins else "tuples",
                throughput=(work.pairs if joins else work.counts.tuples) * kept_up,
                measured=made[place] / followed.rates.seconds,
                utilisation=work.own(instances),
                constants=constants,
            )
        return found

    def _note_scale(
        self, newest: Sequence[MeasuredBatch], works: Sequence[LiveWork], measured_s: float | None
    ) -> None:
        """How many instances there are, and how many would do: as many, while nobody can tell."""
        for place, measured in enumerate(newest):
            work = works[place] if works else None
            instances, buckets = measured.mapping.instances, measured.mapping.buckets
            table = bounds(1.0, Limits(maximum=min(self._slots() or buckets, buckets)))
            kept = self._scaled.setdefault(measured.subquery.name, deque(maxlen=_KEPT_SECONDS))
            kept.append(
                _Scaled(
                    at_s=self._at_s,
                    instances=instances,
                    wanted=instances if work is None else table.fewest(work.divided / work.free),
                    latency_s=math.nan if measured_s is None else measured_s,
                    rates=self._followed[place].rates.now,
                )
            )

    def _judged(self) -> Mapping[str, Saso]:
        """Stability, accuracy, settling time and overshoot, where a policy decided."""
        found = {}
        for place, (name, kept) in enumerate(self._scaled.items()):
            if len(kept) < 2:
                continue
            times = np.array([one.at_s for one in kept])
            rates = np.array([one.rates for one in kept])
            windows = self._followed[place].operation.windows
            found[name] = saso(
                Timeline(
                    times=times,
                    instances=np.array([one.instances for one in kept]),
                    wanted=np.array([one.wanted for one in kept]),
                    latency=np.array([one.latency_s for one in kept]),
                    changes=changes(times, rates[:, 0], rates[:, 1]),
                    window_s=longest_s(windows) or 0.0,
                )
            )
        return found
