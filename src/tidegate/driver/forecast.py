"""Predictions while a query runs, between what its batches show and those who watch it.

Every second in which tuples arrive, their rates and the costs of the batches before it say what the
query should be doing: the model of docs/model.md. What it does is measured anyway; here the two are
put beside each other. Nothing is predicted of input that is not live.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from tidegate.driver.expected import Expected, ExpectedSubquery, Outcome, Second
from tidegate.driver.observe import Measured, observed_of
from tidegate.driver.slowdown import Slowdown
from tidegate.elastic.followed import SAMPLE_S, Followed, Work
from tidegate.elastic.settled import Batches, Part, batches_of
from tidegate.model.controller import Limits, bounds
from tidegate.model.estimator import Estimator
from tidegate.model.saso import Saso, Timeline, changes, saso
from tidegate.model.window import TimeWindow

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
        self._pending: list[Sequence[Measured]] = []
        self._pending_s = SAMPLE_S
        """The time since the newest batch that was looked at began."""
        self._latency = [0.0, 0.0]
        """Of the interval at hand: the sum of latencies, and of how many tuples."""
        self._made: list[float] = []
        """Of the interval at hand: comparisons or tuples of each subquery."""
        self._followed: list[Followed] = []
        self._costs: list[Estimator] = []
        """What was known of costs before the interval at hand: it is predicted from these."""
        self._slowdown = Slowdown()
        self._batch_s = 0.0
        self._unfinished: float | None = None
        """Tuples of the batch at hand by the model, at the end of the last interval."""
        self._after_s = 0.0
        """What batches take after their commit, lately."""
        self._at_s = 0.0
        self._newest: Expected | None = None
        self._past: deque[Second] = deque(maxlen=_KEPT_SECONDS)
        self._scaled: dict[str, deque[_Scaled]] = {}

    def committed(
        self, measured: Sequence[Measured], latency: tuple[float, int], after_s: float
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
        due = self._pending_s >= SAMPLE_S  # with this batch, which is as any other (`Followed`)
        self._pending.append(measured)
        self._pending_s += measured[0].period_s
        if due or len(self._pending) >= _MOST_PENDING:
            with self._lock:
                self._take_in()

    def newest(self) -> Expected | None:
        """What is expected and measured in the newest second; None where nothing is known."""
        with self._lock:
            return self._newest

    def outcome(self) -> Outcome:
        """The forecast of the run so far."""
        with self._lock:
            return Outcome.of(self._newest, list(self._past), self._judged())

    def _take_in(self) -> None:
        newest = self._pending[-1]
        if not self._followed:
            self._followed = [Followed.of(m.subquery.operator.operation) for m in newest]
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

    def _close(self, newest: Sequence[Measured]) -> None:
        """The end of an interval: what it should have been, and what it was."""
        self._followed = [f.closed() for f in self._followed]
        seconds = self._followed[0].rates.seconds
        self._at_s += seconds
        made, self._made = self._made, [0.0] * len(newest)
        (whole_s, tuples), self._latency = self._latency, [0.0, 0.0]
        measured_s = whole_s / tuples if tuples else None
        parts = self._parts(newest)
        self._costs = [f.estimator for f in self._followed] if self._known() else []
        if parts is None:
            self._slowdown.close()
            if self._decides():
                self._note_scale(newest, None, measured_s)
            return
        slowdown = self._slowdown.by([part.followed for part in parts])
        self._slowdown.close()
        batches = batches_of(parts, self._trigger_s, waits=self._waits).times(slowdown)
        self._batch_s = batches.after(self._batch_s or batches.fixed_s, seconds)
        before, self._unfinished = self._unfinished, batches.unfinished(self._batch_s)
        kept_up = 1.0
        if before is not None and batches.rate > 0:
            late = (self._unfinished - before) / (batches.rate * seconds)
            kept_up = min(max(1.0 - late, 0.0), 1.0 / max(batches.load, 1e-9))
        found = self._expected(newest, parts, batches, made, kept_up, measured_s, slowdown)
        # Costs of batches that are too much alike may come to nothing: that predicts nothing.
        self._newest = found if found.latency_s > 0 else None
        if self._newest is not None and measured_s is not None:
            first = next(iter(found.subqueries.values()))
            self._past.append(Second(found.latency_s, measured_s, first.throughput, first.measured))
        if self._decides():
            self._note_scale(newest, parts, measured_s)

    def _known(self) -> bool:
        return all(f.is_known for f in self._followed)

    def _parts(self, newest: Sequence[Measured]) -> list[Part] | None:
        """The work of the interval, by the costs that were known before it; None without any."""
        if not self._costs:
            return None
        followed = [
            replace(f, estimator=known)
            for f, known in zip(self._followed, self._costs, strict=True)
        ]
        return [
            Part(f, f.work(ahead_s=0.0, over=True), m.mapping.instances)
            for f, m in zip(followed, newest, strict=True)
        ]

    def _expected(
        self,
        newest: Sequence[Measured],
        parts: Sequence[Part],
        batches: Batches,
        made: Sequence[float],
        kept_up: float,
        measured_s: float | None,
        slowdown: float,
    ) -> Expected:
        """`kept_up` is the part of what arrives that gets done; more than all from a backlog."""
        found = {}
        for measured, part, count in zip(newest, parts, made, strict=True):
            constants = part.followed.estimator.estimate()
            assert constants is not None, "costs are known"
            wanted, unit = _wanted(part)
            found[measured.subquery.name] = ExpectedSubquery(
                instances=part.instances,
                rates=part.followed.rates.now[: 2 if part.followed.operation.windows else 1],
                unit=unit,
                throughput=wanted * kept_up,
                measured=count / part.followed.rates.seconds,
                utilisation=part.work.divided / part.instances + part.work.repeated,
                constants=constants,
            )
        return Expected(
            load=batches.load,
            batch_s=self._batch_s,
            latency_s=batches.latency_s(self._batch_s) - self._after_s,
            measured_s=measured_s,
            subqueries=found,
            slowdown=slowdown,
        )

    def _note_scale(
        self, newest: Sequence[Measured], parts: Sequence[Part] | None, measured_s: float | None
    ) -> None:
        """How many instances there are, and how many would do: as many, while nobody can tell."""
        for place, measured in enumerate(newest):
            work = None if parts is None else parts[place].work
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
                    window_s=max([0.0, *(w.seconds for w in windows if isinstance(w, TimeWindow))]),
                )
            )
        return found


def _wanted(part: Part) -> tuple[float, str]:
    """What there is to do in a second, and in which unit."""
    work: Work = part.work
    if part.followed.operation.windows:
        return work.pairs, "comparisons"
    return work.counts.tuples, "tuples"
