"""One subquery of a running query: its rates and costs so far, and the work that they mean.

What comes in is known by its rates, what it takes by the costs that its own batches showed. Both
together say how much work there is for its instances, whatever they have done of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Any

from tidegate.model.control.outlook import outlook
from tidegate.model.cost.estimator import Estimator
from tidegate.model.cost.sample import WorkCounts
from tidegate.model.join.readiness import mean_ready_s
from tidegate.model.live.rates import ArrivalCounts, Rates
from tidegate.model.observation import Observation
from tidegate.model.operation import Operation, in_the_middle, longest_s
from tidegate.model.pace import BatchPace

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
class LiveWork:
    """What there is to do in a second at the rates of now, in seconds.

    `divided` is the time of instances for it, which is less for each where they are more,
    `repeated` what every instance does again, and `rest` what is beside them, as the driver's part.
    `expected` is the most of the first that the rates lead to, and `settled` whether it stays at
    that. `counts` is what it is for, `pairs` the comparisons of a join. `fixed_s` is what a batch
    takes however small it is, and `scatter` how far batches are from what they take on average:
    both of instances, and of what is beside them. Tuples are ready after `ready_s`.
    """

    counts: WorkCounts
    divided: float
    repeated: float
    rest: float
    expected: float
    settled: bool
    pairs: float
    fixed_s: tuple[float, float]
    scatter: tuple[float, float]
    ready_s: float

    @property
    def free(self) -> float:
        """The part of the time that instances have for what is divided among them."""
        return max(1.0 - self.repeated - self.rest, _LEAST_FREE)

    def own(self, instances: int) -> float:
        """The share of the time in which so many instances work."""
        return self.divided / instances + self.repeated


def pace_of(
    every: Sequence[tuple[LiveWork, int]], trigger_s: float = 0.0, *, waits: bool = True
) -> BatchPace:
    """The batches of a query with this work of each subquery, for so many instances of it.

    With `waits` tuples wait until they are ready. What is beside instances was measured with each
    of them, so the most of it counts, once.
    """
    first, _ = every[0]
    found = BatchPace(
        fixed_s=sum(w.fixed_s[0] for w, _ in every) + max(w.fixed_s[1] for w, _ in every),
        load=sum(w.own(n) for w, n in every) + max(w.rest for w, _ in every),
        ready_s=first.ready_s if waits else 0.0,
        rate=first.counts.tuples,
        trigger_s=trigger_s,
    )
    batch_s = min(float(found.settled_s), 1.0)
    if batch_s <= 0:
        return found
    # Each part of a batch scatters by itself, so that squares add up.
    own = (w.scatter[0] * (w.fixed_s[0] + w.own(n) * batch_s) for w, n in every)
    rest_s, scatter = max((w.fixed_s[1] + w.rest * batch_s, w.scatter[1]) for w, _ in every)
    return replace(found, scatter=hypot(*own, scatter * rest_s) / batch_s)


@dataclass(frozen=True)
class LiveSubquery:
    """The rates and the costs of one subquery; `operation` is what it is.

    `unsampled_s` is the time since the newest batch that costs were estimated from began, and
    `epoch` that of the newest batch: the first one of an epoch had a switch to do, and says
    nothing. `sources` is how many there are of each side.
    """

    operation: Operation
    estimator: Estimator
    rates: Rates = field(default_factory=Rates)
    unsampled_s: float = SAMPLE_S
    epoch: int | None = None
    sources: tuple[int, int] = (1, 1)

    @staticmethod
    def of(operation: Operation, estimator: Estimator | None = None) -> LiveSubquery:
        """One of which nothing was observed; its costs may be known from before."""
        return LiveSubquery(operation, estimator or Estimator(operation.everywhere))

    def after(self, seen: Observation) -> LiveSubquery:
        """With one batch more."""
        return self.arrived(ArrivalCounts.of(seen)).sampled(seen)

    def arrived(self, came: ArrivalCounts) -> LiveSubquery:
        """With what came in a batch, and nothing else of it."""
        unsampled_s = self.unsampled_s + came.seconds
        return replace(self, rates=self.rates.after(came), unsampled_s=unsampled_s)

    def sampled(self, seen: Observation) -> LiveSubquery:
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

    def closed(self) -> LiveSubquery:
        """With the interval at hand among those that are over."""
        return replace(self, rates=self.rates.closed(self.operation.windows))

    @property
    def is_known(self) -> bool:
        """Whether there are rates, and costs to go with them.

        The first batches of a run are slow, so there have to be some more before they count.
        """
        return bool(self.rates.chunks) and self.estimator.batches >= LEAST_SAMPLES

    def work(self, ahead_s: float | None = None, *, over: bool = False) -> LiveWork:
        """What there is to do at the rates of now; asked only where that is known.

        It looks as far ahead as the longer window is long, if that is not said, but a minute at
        most. With `over` it is what there was to do in the interval that is over: tuples met
        windows as they were in the middle of it.
        """
        if self.operation.windows:
            now = zip(self.rates.now, self.rates.shares, strict=True)
            tuples = sum(rate / share for rate, share in now if share)
            pairs, expected, settled = self._pairs(ahead_s, over)
            counts, ahead = self._counts(tuples, pairs), self._counts(tuples, expected)
        else:
            tuples, pairs, settled = sum(self.rates.now), 0.0, True
            counts, ahead = self._counts(tuples, pairs), self._counts(self._highest(tuples), pairs)
        work, rest = self.estimator.work_fit, self.estimator.rest_fit
        every = [
            rate / count
            for rate, count in zip(self.rates.now, self.sources, strict=True)
            for _ in range(count)
        ]
        return LiveWork(
            counts=counts,
            divided=self._divided_s(counts),
            repeated=float(work.costs[1]) * tuples if self.operation.everywhere else 0.0,
            rest=float(rest.costs @ [0.0, tuples, counts.outputs]),
            expected=self._divided_s(ahead),
            settled=settled,
            pairs=pairs,
            fixed_s=(float(work.costs[0]), float(rest.costs[0])),
            scatter=(work.scatter, rest.scatter),
            ready_s=mean_ready_s(every),
        )

    def _divided_s(self, counts: WorkCounts) -> float:
        """What instances take together for the work of a second."""
        tuples = 0.0 if self.operation.everywhere else counts.tuples
        return float(self.estimator.work_fit.costs @ [0.0, tuples, counts.compared, counts.outputs])

    def _highest(self, rate: float) -> float:
        """The highest of the last rates, for the time ahead where no windows fill."""
        if not self.rates.chunks:
            return rate
        r, s, step_s = self.rates.over(())
        return max(float((r + s)[-max(round(_RECENT_S / step_s), 1) :].max()), rate)

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

    def _counts(self, tuples: float, pairs: float) -> WorkCounts:
        """By what the last batches compared and put out of as much."""
        known = self.estimator
        if self.operation.windows:
            return WorkCounts(tuples, pairs * known.compared.value, pairs * known.sigma.value)
        return WorkCounts(tuples, outputs=tuples * known.outputs.value)

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
        came = ArrivalCounts.of(seen)
        unsampled_s = recorded["unsampled_s"] + came.seconds
        now = Rates(open=tuple(recorded["open"])).after(came)
        changed = recorded["epoch"] != int(seen.mapping.epoch)
        if changed or recorded["unsampled_s"] >= SAMPLE_S or now.is_over(interval_s):
            return None
        return {**recorded, "open": list(now.open), "unsampled_s": round(unsampled_s, 6)}

    @staticmethod
    def restored(recorded: Mapping[str, Any], operation: Operation) -> LiveSubquery:
        """What `recorded` gave."""
        return LiveSubquery(
            operation,
            Estimator.restored(recorded["estimator"]),
            Rates.restored(recorded["rates"], recorded["open"]),
            recorded["unsampled_s"],
            recorded["epoch"],
            (recorded["sources"][0], recorded["sources"][1]),
        )
