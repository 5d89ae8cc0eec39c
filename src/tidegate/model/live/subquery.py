"""A subquery as it is followed from batch to batch, between observations and the model.

What comes in is known by its rates, what it takes by the costs that its own batches showed. Both
together say how much work there is for its instances, whatever they have done of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from tidegate.model.control.outlook import outlook
from tidegate.model.cost.estimator import Estimator
from tidegate.model.join.readiness import input_latency
from tidegate.model.live.rates import Arrived, Rates
from tidegate.model.observation import Observation
from tidegate.model.operation import Operation, in_the_middle, longest_s
from tidegate.model.sizing.workload import Counts

SAMPLE_S = 0.25
"""How far batches are apart, at least, that costs are estimated from."""

LEAST_SAMPLES = 8
"""From how many batches on costs are taken for known."""

_RECENT_S = 10.0
"""Where no windows fill, the highest rate of so long counts for the time ahead."""

_FAR_S = 60.0
"""How far ahead it looks at most, unless somebody says how far."""

_LEAST_FREE = 0.05
"""The part of the time that instances have at least, however much the driver needs."""


@dataclass(frozen=True)
class Work:
    """What there is to do in a second at the rates of now, in seconds.

    `divided` is the time of instances for it, which is less for each where they are more,
    `repeated` what every instance does again, and `rest` what is beside them, as the driver's part.
    `expected` is the most of the first that the rates lead to, and `settled` whether it stays at
    that. `counts` is what it is for, `pairs` the comparisons of a join.
    """

    counts: Counts
    divided: float
    repeated: float
    rest: float
    expected: float
    settled: bool
    pairs: float = 0.0

    @property
    def free(self) -> float:
        """The part of the time that instances have for what is divided among them."""
        return max(1.0 - self.repeated - self.rest, _LEAST_FREE)

    def load(self, instances: int) -> float:
        """The share of the time that so many instances need; from 1 on they fall behind."""
        return self.divided / instances + self.repeated + self.rest


@dataclass(frozen=True)
class Followed:
    """The rates and the costs of one subquery; `operation` is what it is.

    `unsampled_s` is the time since the newest batch that costs were estimated from began, and
    `epoch` that of the newest batch: the first one of an epoch had a switch to do, and says
    nothing.
    `sources` is how many there are of each side.
    """

    operation: Operation
    estimator: Estimator
    rates: Rates = field(default_factory=Rates)
    unsampled_s: float = SAMPLE_S
    epoch: int | None = None
    sources: tuple[int, int] = (1, 1)

    @staticmethod
    def of(operation: Operation, estimator: Estimator | None = None) -> Followed:
        """One of which nothing was observed; its costs may be known from before."""
        return Followed(operation, estimator or Estimator(operation.everywhere))

    def after(self, seen: Observation) -> Followed:
        """With one batch more."""
        return self.arrived(Arrived.of(seen)).sampled(seen)

    def arrived(self, came: Arrived) -> Followed:
        """With what came in a batch, and nothing else of it."""
        unsampled_s = self.unsampled_s + came.seconds
        return replace(self, rates=self.rates.after(came), unsampled_s=unsampled_s)

    def sampled(self, seen: Observation) -> Followed:
        """With what a batch took, where it is time to look at one."""
        epoch = int(seen.mapping.epoch)
        if epoch != self.epoch:
            return replace(self, epoch=epoch)
        # The batch in which the time is over is more often a long one than a short one: the next
        # is as any other.
        if self.unsampled_s - seen.period_s < SAMPLE_S:
            return self
        sides = [load.side for load in seen.inputs]
        return replace(
            self,
            estimator=self.estimator.after(seen.sample()),
            unsampled_s=seen.period_s,
            sources=(sides.count(0), sides.count(1)),
        )

    def closed(self) -> Followed:
        """With the interval at hand among those that are over."""
        return replace(self, rates=self.rates.closed(self.operation.windows))

    @property
    def is_known(self) -> bool:
        """Whether there are rates, and costs to go with them.

        The first batches of a run are slow, so there have to be some more before they count.
        """
        return bool(self.rates.chunks) and self.estimator.batches >= LEAST_SAMPLES

    def work(self, ahead_s: float | None = None, *, over: bool = False) -> Work:
        """What there is to do at the rates of now; asked only where that is known.

        It looks as far ahead as the longer window is long, if that is not said, but a minute at
        most. With `over` it is what there was to do in the interval that is over: tuples met
        windows as they were in the middle of it.
        """
        rate = sum(self.rates.now)
        if not self.operation.windows:
            return self._by_tuples(rate)
        pairs, expected, settled = self._pairs(ahead_s, over)
        tuples = sum(n / s for n, s in zip(self.rates.now, self.rates.shares, strict=True) if s)
        return self._work(tuples, pairs, self._counts(tuples, expected), settled)

    def _work(self, tuples: float, pairs: float, ahead: Counts, settled: bool) -> Work:
        counts, costs = self._counts(tuples, pairs), self.estimator.work_fit.costs
        everywhere = self.operation.everywhere
        return Work(
            counts=counts,
            divided=self._divided_s(counts),
            repeated=float(costs[1]) * tuples if everywhere else 0.0,
            rest=float(self.estimator.rest_fit.costs @ [0.0, tuples, counts.outputs]),
            expected=self._divided_s(ahead),
            settled=settled,
            pairs=pairs,
        )

    def _divided_s(self, counts: Counts) -> float:
        """What instances take together for the work of a second."""
        tuples = 0.0 if self.operation.everywhere else counts.tuples
        return float(self.estimator.work_fit.costs @ [0.0, tuples, counts.compared, counts.outputs])

    @property
    def fixed_s(self) -> tuple[float, float]:
        """What a batch takes however small it is: instances, and what is beside them."""
        return float(self.estimator.work_fit.costs[0]), float(self.estimator.rest_fit.costs[0])

    def seconds(
        self, batches: int, tuples: float, compared: float, outputs: float, instances: int
    ) -> tuple[float, float]:
        """What so many batches with all this take: instances, and what is beside them."""
        seen = tuples if self.operation.everywhere else tuples / instances
        work = [batches, seen, compared / instances, outputs / instances]
        return (
            float(self.estimator.work_fit.costs @ work),
            float(self.estimator.rest_fit.costs @ [batches, tuples, outputs]),
        )

    @property
    def scatter(self) -> tuple[float, float]:
        """How far both are from that, as parts of what they take."""
        return self.estimator.work_fit.scatter, self.estimator.rest_fit.scatter

    @property
    def ready_s(self) -> float:
        """How long tuples wait until they are ready, with the sources of a side all alike."""
        every = [
            rate / count
            for rate, count in zip(self.rates.now, self.sources, strict=True)
            for _ in range(count)
        ]
        if len(every) < 2:
            return 1 / every[0] if every and every[0] else 0.0
        found = float(input_latency(np.array([every]), strict=True)[0])
        return found if isfinite(found) else 0.0

    def _by_tuples(self, rate: float) -> Work:
        """Work in proportion to the tuples; the highest of the last rates for the time ahead."""
        highest = rate
        if self.rates.chunks:
            r, s, step_s = self.rates.over(())
            highest = float((r + s)[-max(round(_RECENT_S / step_s), 1) :].max())
        return self._work(rate, 0.0, self._counts(max(highest, rate), 0.0), settled=True)

    def _pairs(self, ahead_s: float | None, over: bool) -> tuple[float, float, bool]:
        """Comparisons in a second, equation 4: now, the most ahead, and whether it stays."""
        left, right = (w.at_speed(self.rates.speed) for w in self.operation.windows)
        r, s, step_s = self.rates.over(self.operation.windows)
        contents = (w.contents(rates, step_s) for w, rates in ((left, r), (right, s)))
        held_r, held_s = ((in_the_middle(of) if over else of)[-1] for of in contents)
        now = float(r[-1] * held_s + s[-1] * held_r)
        if ahead_s == 0:
            return now, now, True
        if ahead_s is None:
            ahead_s = min(longest_s((left, right)) or _RECENT_S, _FAR_S)
        seen = outlook(r, s, (left, right), ahead_s=ahead_s, step_s=step_s)
        return now, float(seen.expected[-1]), bool(seen.settled[-1])

    def _counts(self, tuples: float, pairs: float) -> Counts:
        shares = self._shares
        if self.operation.windows:
            return Counts(tuples, compared=pairs * shares[0], outputs=pairs * shares[1])
        return Counts(tuples, outputs=tuples * shares[2])

    @cached_property
    def _shares(self) -> tuple[float, float, float]:
        """Compared pairs and outputs for each comparison, outputs for each tuple: in the last."""
        samples, ratio = self.estimator.samples, self.estimator.ratio
        comparisons = [s.comparisons for s in samples]
        outputs = [s.outputs for s in samples]
        return (
            ratio([s.compared for s in samples], comparisons).value,
            ratio(outputs, comparisons).value,
            ratio(outputs, [s.tuples for s in samples]).value,
        )

    def recorded(self) -> dict[str, Any]:
        """As a manifest has it; what the operator is, is known."""
        return {
            "estimator": self.estimator.recorded(),
            "rates": self.rates.recorded(),
            "open": list(self.rates.open),
            "unsampled_s": round(self.unsampled_s, 6),
            "epoch": self.epoch,
            "sources": list(self.sources),
        }

    @staticmethod
    def skipped(
        recorded: Mapping[str, Any], seen: Observation, interval_s: float
    ) -> dict[str, Any] | None:
        """What is recorded after a batch of which only arrivals count, as for most small ones.

        None where there is more to do: an interval is over, or it is time to look at costs.
        """
        came = Arrived.of(seen)
        unsampled_s = recorded["unsampled_s"] + came.seconds
        now = Rates(open=tuple(recorded["open"])).after(came)
        changed = recorded["epoch"] != int(seen.mapping.epoch)
        if changed or recorded["unsampled_s"] >= SAMPLE_S or now.is_over(interval_s):
            return None
        return {**recorded, "open": list(now.open), "unsampled_s": round(unsampled_s, 6)}

    @staticmethod
    def restored(recorded: Mapping[str, Any], operation: Operation) -> Followed:
        """What `recorded` gave."""
        return Followed(
            operation,
            Estimator.restored(recorded["estimator"]),
            Rates.restored(recorded["rates"], recorded["open"]),
            recorded["unsampled_s"],
            recorded["epoch"],
            (recorded["sources"][0], recorded["sources"][1]),
        )
