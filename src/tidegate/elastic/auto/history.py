"""Accumulates what batches have shown (rates, costs, skew, latency); it becomes evidence.

A batch in which something else happened than work counts by its arrivals alone: one with a switch,
one that ran again, one with a pause, of the driver or of an instance. What batches of a start-up
cost counts little once it is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, isfinite, log
from typing import Any

import numpy as np

from tidegate.elastic.auto.costs import UnitCosts
from tidegate.elastic.auto.evidence import Evidence, SubqueryEvidence
from tidegate.elastic.auto.machine import AHEAD_S
from tidegate.elastic.auto.saving import Saving
from tidegate.model.join.readiness import mean_ready_s
from tidegate.model.live.rates import ArrivalCounts, Rates
from tidegate.model.observation import START_UP, Observation
from tidegate.model.operation import Operation

_PAUSE_S, _PAUSE_TIMES, _MOST_PAUSES = 0.3, 5.0, 3
"""A batch in which so much more passed beside its work than was expected had a pause; but not so
many in a row, nor several for longer than `_MOST_LAG_S`: that is how the query runs now."""

_WARM_UP_S = 5.0
"""So long after a run began, and after its first windows closed, code is loaded and compiled."""

_OVERLOADED = 2.0
"""No start-up makes tuples so many targets late: that is decided about."""

_SMOOTHED = 0.3


_PACE_HALF_LIFE_S, _MOST_PACE, _SLOWED = 4.0, 3.0, 1.6
"""What an instance took longer than others counts half after so long, and up to so many times: a
pause of a few seconds does not make it slow, which it is from so many times on."""

_LAGS, _MUCH, _MOST_LAG_S, _LEAST_LAG_S = 2.0, 0.2, 8.0, 4.0
"""An instance lags that takes so many times as long as others, and that is so much of the batch:
whether it pauses or has become slow shows in this time at most, and no sooner than in the last."""

_STARTING = 0.1
"""What a batch of a start-up counts at its end, as a part of another."""


@dataclass(frozen=True)
class KnownSubquery:
    """One subquery; `skew` is its busiest instance over the mean, `hottest` its busiest bucket.

    `epoch` is that of the mapping that has this skew: another one has its own from the first batch.
    `lags` has the logarithm of each instance's pace, over that of most: over some seconds, which
    say whether it is slow, and lately, which say how slow.
    """

    rates: Rates = field(default_factory=Rates)
    costs: UnitCosts = field(default_factory=UnitCosts)
    skew: float = 1.0
    hottest: float = 0.0
    lags: tuple[tuple[float, float], ...] = ()
    epoch: int = -1

    @property
    def paces(self) -> tuple[float, ...]:
        """Of each instance, if one has been slow for long enough to count on that; else empty."""
        slow = [exp(max(*lag)) if lag[0] >= log(_SLOWED) else 1.0 for lag in self.lags]
        return tuple(slow) if max(slow, default=1.0) > 1 else ()

    def after(self, seen: Observation, saving: Saving, share: float) -> KnownSubquery:
        """With a batch that nothing disturbed, of which a share was shed.

        Costs are counted by the tuples that would have been as much work if nothing were shed.
        """
        operation = seen.operation or Operation("subquery")
        sample = seen.sample()
        busy = [load.cpu_s for load in seen.instances]
        left, beside_left = 1 - saving.saved * share, 1 - saving.beside_saved * share
        units = sample.comparisons if operation.scans else seen.taken * left
        costs = self.costs.after(
            units, sample.cpu_s, seen.taken * beside_left, _beside_s(seen), seen.period_s
        )
        whole = float(seen.buckets.sum())
        if whole <= 0 or not any(busy):
            return replace(self, costs=costs)
        known = self.paces or (1.0,) * len(busy)
        longest = max(s * pace for s, pace in zip(busy, known, strict=True))
        skew, epoch = longest * len(busy) / sum(busy), int(seen.mapping.epoch)
        hottest = float(np.max(seen.buckets)) / whole
        return replace(
            self,
            costs=costs,
            skew=skew + (1 - _SMOOTHED) * (self.skew - skew) * (self.epoch == epoch),
            hottest=self.hottest + _SMOOTHED * (hottest - self.hottest),
            epoch=epoch,
        )

    def paced(self, seen: Observation) -> KnownSubquery:
        """With the paces of one batch, which tell whether a pause lasts."""
        kept = 0.5 ** (seen.period_s / _PACE_HALF_LIFE_S)
        share = max(_SMOOTHED, 1 - 0.5**seen.period_s)
        before = dict(enumerate(self.lags))
        found = []
        for instance, (pace, ratio) in enumerate(zip(_paces(seen), _ratios(seen), strict=True)):
            long, late = before.get(instance, (0.0, 0.0))
            if pace < _SLOWED <= ratio:
                found.append((long, late))  # it had too little to do to tell
                continue
            now = log(min(pace, _MOST_PACE))
            found.append((now + kept * (long - now), late + share * (now - late)))
        return replace(self, lags=tuple(found))

    def lagging(self, seen: Observation) -> bool:
        """Whether an instance lags that is not known to be slow."""
        return not self.paces and max(_paces(seen)) >= _LAGS

    def work(self, operation: Operation, later_s: float = 0.0) -> float:
        """Seconds of instances in a second, at the rates of now."""
        if not operation.scans:
            return self.rate * self.costs.unit_s
        return self.rates.comparisons(operation.windows, later_s) * self.costs.unit_s

    @property
    def rate(self) -> float:
        """Tuples in a second before any filter."""
        pairs = zip(self.rates.now, self.rates.shares, strict=True)
        return sum(rate / share for rate, share in pairs if share)

    def recorded(self) -> dict[str, Any]:
        return {
            "rates": self.rates.recorded(),
            "open": list(self.rates.open),
            "costs": self.costs.recorded(),
            "skew": [round(self.skew, 6), round(self.hottest, 6)],
            "epoch": self.epoch,
            "lags": [[round(part, 6) for part in lag] for lag in self.lags],
        }

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> KnownSubquery:
        skew, hottest = recorded["skew"]
        return KnownSubquery(
            rates=Rates.restored(recorded["rates"], recorded["open"]),
            costs=UnitCosts.restored(recorded["costs"]),
            skew=skew,
            hottest=hottest,
            lags=tuple((long, late) for long, late in recorded.get("lags", ())),
            epoch=recorded.get("epoch", -1),
        )


def _is_measured(seen: Observation) -> bool:
    """Whether times are such as can be: sums of costs would keep any other for ever."""
    times = [seen.seconds, seen.period_s, *(load.cpu_s for load in seen.instances)]
    return all(isfinite(s) and s >= 0 for s in times)


def _ratios(seen: Observation) -> list[float]:
    """By instance, how many times as long as most others it takes."""
    usual = sorted(load.pace for load in seen.instances)[(len(seen.instances) - 1) // 2]
    return [max(load.pace / usual, 1.0) for load in seen.instances]


def _paces(seen: Observation) -> list[float]:
    """The same, where that is much of the batch."""
    return [
        ratio if load.cpu_s * (ratio - 1) >= _MUCH * seen.seconds else 1.0
        for load, ratio in zip(seen.instances, _ratios(seen), strict=True)
    ]


def _beside_s(seen: Observation) -> float:
    """What a batch took beside its instances: the time that one waits longer than others is its."""
    busy = [load.cpu_s for load in seen.instances]
    waits_s = max(s * pace for s, pace in zip(busy, _paces(seen), strict=True)) - max(busy)
    return max(seen.sample().overhead_s - waits_s, 0.0)


@dataclass(frozen=True)
class KnownQuery:
    """All subqueries by name. Grows with them, and by no batch.

    `at_s` is the time since the first batch, `epochs` those of the newest one. `beside_s` is what
    batches take beside their work, lately; `pauses` is how many had a pause in a row, and
    `paused_s` for how long. `latency_s` is the longest of the interval at hand. `seen` is the
    newest batch, `clean` whether nothing disturbed it. Until `warm_s` batches are those of a
    start-up; `closing` says whether this run has closed windows. `lag_s` is for how long an
    instance has lagged.
    """

    subqueries: Mapping[str, KnownSubquery] = field(default_factory=dict)
    at_s: float = 0.0
    epochs: tuple[int, ...] = ()
    beside_s: float | None = None
    pauses: int = 0
    paused_s: float = 0.0
    latency_s: float | None = None
    warm_s: float = 0.0
    closing: bool = False
    lag_s: float = 0.0
    saving: Saving = field(default_factory=Saving)
    seen: Sequence[Observation] = ()
    clean: bool = False

    def after(self, seen: Sequence[Observation]) -> KnownQuery:
        """With one batch more."""
        first, at_s = seen[0], self.at_s + seen[0].period_s
        begins = first.disturbed == START_UP
        closing = (self.closing and not begins) or any(one.closed for one in seen)
        first_time = begins or closing > self.closing
        warm_s = at_s + _WARM_UP_S if first_time else self.warm_s
        epochs = tuple(int(one.mapping.epoch) for one in seen)
        beside_s = _beside_s(first)
        usual_s = self.beside_s
        paused = usual_s is not None and beside_s > _PAUSE_TIMES * self._usual_s(first) + _PAUSE_S
        paused_s = self.paused_s + first.period_s if paused else 0.0
        paused = paused and self.pauses < _MOST_PAUSES
        paused = paused and (not self.pauses or paused_s <= _MOST_LAG_S)
        clean = epochs == (self.epochs or epochs) and not paused and first.disturbed is None
        subqueries = self.subqueries
        lagging = [
            known.paced(one).paces
            for one in seen
            if (known := subqueries.get(one.subquery)) and known.lagging(one)
        ]
        lag_s = self.lag_s + first.period_s if lagging else 0.0
        unsure_s = _LEAST_LAG_S if all(lagging) else _MOST_LAG_S
        clean = clean and not 0 < lag_s <= unsure_s and all(map(_is_measured, seen))
        share = 0.0 if first.shed is None else first.shed.share
        saving, found = self.saving, {}
        if clean:
            first_known = self.subqueries.get(first.subquery, KnownSubquery())
            slow = any(known.paces for known in self.subqueries.values())
            saving = saving.after(seen, share, first_known.costs, tells=not slow)
        for one in seen:
            known = self.subqueries.get(one.subquery, KnownSubquery())
            known = replace(known, rates=known.rates.after(ArrivalCounts.of(one))).paced(one)
            if self.at_s < self.warm_s <= at_s:
                known = replace(known, costs=known.costs.faded(_STARTING))
            found[one.subquery] = known.after(one, saving, share) if clean else known
        late = [s for s in (self.latency_s, first.latency_s) if s is not None]
        usual_s = beside_s if usual_s is None else usual_s + _SMOOTHED * (beside_s - usual_s)
        return KnownQuery(
            subqueries=found,
            at_s=at_s,
            epochs=epochs,
            beside_s=usual_s if clean else self.beside_s,
            pauses=self.pauses + 1 if paused else 0,
            paused_s=paused_s if paused else 0.0,
            latency_s=max(late, default=None),
            warm_s=warm_s,
            closing=closing,
            lag_s=lag_s,
            saving=saving,
            seen=seen,
            clean=clean,
        )

    def _usual_s(self, seen: Observation) -> float:
        """What is beside instances in a batch like this: more tuples take longer, without a pause.

        A batch after a jump of the load, or after a pause, has many times as many as those before.
        """
        known = self.subqueries.get(seen.subquery, KnownSubquery())
        return max(self.beside_s or 0.0, known.costs.beside_of(seen.taken))

    def ready(self, interval_s: float, target_s: float) -> bool:
        """Whether an interval is over, with a clean batch, and costs are known.

        Where it is late already, a few batches must do, whatever they differ by.
        """
        late_s = 0.0 if self.latency_s is None else self.latency_s
        late = late_s > target_s
        if self.at_s < self.warm_s and late_s <= _OVERLOADED * target_s:
            return False
        return self.clean and all(
            one.rates.is_over(interval_s) and (one.costs.guessed if late else one.costs.known)
            for one in self.subqueries.values()
        )

    def closed(self, cost: int | None, *, sheds: bool) -> tuple[KnownQuery, Evidence]:
        """At the end of an interval: what it shows, and what is known at the start of the next."""
        found, evidence = {}, []
        for seen in self.seen:
            operation = seen.operation or Operation("subquery")
            known = self.subqueries[seen.subquery]
            known = replace(known, rates=known.rates.closed(operation.windows))
            found[seen.subquery] = known
            buckets = seen.mapping.buckets
            slots = seen.slots or buckets
            evidence.append(
                SubqueryEvidence(
                    name=seen.subquery,
                    instances=seen.mapping.instances,
                    work=known.work(operation),
                    ahead=known.work(operation, AHEAD_S),
                    beside=known.rate * known.costs.beside_tuple_s,
                    fixed_s=known.costs.beside_batch_s,
                    skew=known.skew,
                    hottest=known.hottest,
                    most=min(cost or slots, slots, buckets),
                    even=operation.everywhere,
                    split=seen.split,
                    state_bytes=seen.state_bytes,
                    paces=known.paces,
                )
            )
        first, rates = self.seen[0], found[self.seen[0].subquery].rates
        rate = found[first.subquery].rate
        waiting_s = first.seconds if first.backlog is None else first.backlog / max(rate, 1e-9)
        windows = first.operation.windows if first.operation is not None else ()
        return replace(self, subqueries=found, latency_s=None), Evidence(
            batch=first.batch,
            at_s=self.at_s,
            subqueries=tuple(evidence),
            backlog_s=min(waiting_s, 3600.0),
            ready_s=mean_ready_s(list(rates.now)) if windows else 0.0,
            cadence=first.cadence,
            own_cadence=first.own_cadence,
            rate=rate,
            latency_s=self.latency_s,
            doubt=max(one.costs.doubt for one in found.values()),
            saved=self.saving.instances,
            saved_beside=self.saving.beside,
            saving_known=self.saving.known,
            shed=first.shed if sheds else None,
            half_error=self.saving.half_error,
            limit=first.limit,
            memory_bytes=first.memory_bytes,
        )

    def recorded(self) -> dict[str, Any]:
        """As a manifest has it, without the newest batch."""
        return {
            "subqueries": {name: of.recorded() for name, of in self.subqueries.items()},
            "at_s": round(self.at_s, 6),
            "epochs": list(self.epochs),
            "beside_s": self.beside_s,
            "pauses": self.pauses,
            "paused_s": round(self.paused_s, 6),
            "latency_s": self.latency_s,
            "warm_s": round(self.warm_s, 6),
            "closing": self.closing,
            "lag_s": round(self.lag_s, 6),
            "saving": self.saving.recorded(),
        }

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> KnownQuery:
        if not recorded:
            return KnownQuery()
        every = recorded["subqueries"].items()
        return KnownQuery(
            subqueries={name: KnownSubquery.restored(of) for name, of in every},
            at_s=recorded["at_s"],
            epochs=tuple(recorded["epochs"]),
            beside_s=recorded["beside_s"],
            pauses=recorded["pauses"],
            paused_s=recorded.get("paused_s", 0.0),
            latency_s=recorded["latency_s"],
            warm_s=recorded.get("warm_s", 0.0),
            closing=recorded.get("closing", True),
            lag_s=recorded.get("lag_s", 0.0),
            saving=Saving.restored(recorded["saving"]),
        )
