"""What batches come to at rates that last, between the work of subqueries and latency.

The subqueries of a batch run in turn, so it takes what all of them do. A batch that takes `fixed`
seconds however small it is, and has `load` seconds of work for every second of input, takes
`fixed + load * D` where the one before it took `D`: in the end `fixed / (1 - load)`, or longer and
longer where the load is 1 or more. docs/model.md has the derivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, inf

from tidegate.model.live.subquery import Followed, Work
from tidegate.model.scatter import settled_share

_MOST_BATCHES = 10_000
"""So many batches are followed within an interval; then they are as long as they will be."""


@dataclass(frozen=True)
class Part:
    """One subquery: what is known of it, its work, and its instances."""

    followed: Followed
    work: Work
    instances: int


@dataclass(frozen=True)
class Batches:
    """What batches of a query take, and how long tuples wait until they are ready.

    `rate` are the tuples that come to it in a second, `trigger_s` the least time between the starts
    of two batches, `scatter` how far batches are from what they take on average, as a part of it.
    """

    fixed_s: float
    load: float
    ready_s: float
    rate: float
    trigger_s: float = 0.0
    scatter: float = 0.0

    def times(self, slowdown: float) -> Batches:
        """The same where everything takes so many times as long."""
        return replace(self, fixed_s=self.fixed_s * slowdown, load=self.load * slowdown)

    @property
    def settled_s(self) -> float:
        """What a batch takes in the end; infinite where it falls behind."""
        alone_s = self.fixed_s / (1 - self.load) if self.load < 1 else inf
        return alone_s if alone_s > self.trigger_s else self.fixed_s + self.load * self.trigger_s

    def after(self, batch_s: float, seconds: float) -> float:
        """What a batch takes so many seconds after one that took `batch_s`.

        One that takes longer than that changes by a part of what it will.
        """
        for _ in range(_MOST_BATCHES):
            cycle_s = max(batch_s, self.trigger_s, 1e-6)
            more_s = self.fixed_s + self.load * cycle_s - batch_s
            batch_s += more_s * min(seconds / cycle_s, 1.0)
            seconds -= cycle_s
            if seconds <= 0 or abs(more_s) <= 1e-6 * batch_s:
                break
        return batch_s

    def unfinished(self, batch_s: float) -> float:
        """The tuples of a batch that takes so long."""
        return max(batch_s - self.fixed_s, 0.0) * self.rate / self.load if self.load > 0 else 0.0

    def latency_s(self, batch_s: float) -> float:
        """From arrival to commit on average, where batches take so long.

        Tuples that are so rare that a batch is over before the next one comes have each their own.
        """
        cycle_s = max(batch_s, self.trigger_s)
        if self.rate > 0 and cycle_s * self.rate < 1:
            return self.ready_s + self.fixed_s + self.load / self.rate
        latency_s = self.ready_s + cycle_s / 2 + min(self.fixed_s + self.load * cycle_s, inf)
        return latency_s + self._scattered_s(batch_s)

    def _scattered_s(self, batch_s: float) -> float:
        """How much longer it is because batches vary; not where they start by the trigger.

        In overload each is much longer than the one before, and how they vary is little to that.
        """
        if not self.scatter or batch_s <= self.trigger_s or self.load >= 1:
            return 0.0
        return batch_s * float(settled_share(self.scatter, self.load)) * (0.5 + self.load)


def batches_of(parts: Sequence[Part], trigger_s: float = 0.0, *, waits: bool = True) -> Batches:
    """The batches of a query with these subqueries, one at least.

    With `waits` tuples wait until they are ready. What is beside instances was measured with each
    of them, so the most of it counts, once.
    """
    fixed = [part.followed.fixed_s for part in parts]
    shared = [part.work.load(part.instances) - part.work.rest for part in parts]
    found = Batches(
        fixed_s=sum(own for own, _ in fixed) + max(rest for _, rest in fixed),
        load=sum(shared) + max(part.work.rest for part in parts),
        ready_s=parts[0].followed.ready_s if waits else 0.0,
        rate=parts[0].work.counts.tuples,
        trigger_s=trigger_s,
    )
    return replace(found, scatter=_scatter(parts, found))


def _scatter(parts: Sequence[Part], batches: Batches) -> float:
    """How far batches are from their mean: each part of them scatters by itself."""
    batch_s = min(batches.settled_s, 1.0)
    if batch_s <= 0:
        return 0.0
    rests, scattered = [(0.0, 0.0)], []
    for part in parts:
        (own_s, rest_s), (own, rest) = part.followed.fixed_s, part.followed.scatter
        working = part.work.load(part.instances) - part.work.rest
        scattered.append(own * (own_s + working * batch_s))
        rests.append((rest_s + part.work.rest * batch_s, rest))
    seconds, of = max(rests)
    return hypot(*scattered, of * seconds) / batch_s
