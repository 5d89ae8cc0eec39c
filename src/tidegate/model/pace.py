"""How long batches take at rates that last, and how long tuples wait for them.

The subqueries of a batch run in turn, so a batch takes the sum of what they take. A batch that
starts when the one before has ended takes what arrived meanwhile. With `fixed` seconds for any
batch and `load` seconds of work for each second of input, a batch takes `fixed + load * D` where
the one before it took `D`: in the end `D = fixed / (1 - load)`, or longer and longer where the load
is 1 or more. A tuple waits `D / 2` for its batch on average and `D` for the commit, after it was
ready. With a trigger that lets batches start every `P` seconds, and work for less than that, they
have the input of `P`: `P / 2` and `fixed + load * P`.

Batches vary, and a tuple comes rather during a long one than during a short one: more tuples come
while a long batch runs, they wait longer for its end, and the batch that takes them has more to do.
With batches of the mean length D and the variance V, and a load of u,

    wait for the next batch   D / 2 + V / (2 D)
    what that batch takes     D + u V / D

A batch that is longer by some time makes the next one longer by u times that. So if each adds the
variance `(scatter * D) ** 2` of its own, there is in the end `V = (scatter * D) ** 2 / (1 - u u)`.
docs/model.md has the derivations: this is the extension of the paper's model to micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tidegate.model.operation import Floats

_MOST_BATCHES = 10_000
"""So many batches are followed within an interval; then they are as long as they will be."""


@dataclass(frozen=True)
class BatchPace:
    """Batches of a query, and how long tuples wait until they are ready.

    `rate` are the tuples that come to it in a second, `trigger_s` the least time between the starts
    of two batches, `scatter` how far batches are from what they take on average, as a part of it.
    `fixed_s` and `load` may be arrays, for as many guesses of what is not known for sure.
    """

    fixed_s: float | Floats
    load: float | Floats
    ready_s: float
    rate: float
    trigger_s: float = 0.0
    scatter: float = 0.0

    def times(self, slowdown: float) -> BatchPace:
        """The same where everything takes so many times as long."""
        return replace(self, fixed_s=self.fixed_s * slowdown, load=self.load * slowdown)

    @property
    def settled_s(self) -> Floats:
        """What a batch takes in the end; infinite where it falls behind."""
        with np.errstate(divide="ignore", invalid="ignore"):
            alone_s = np.where(self.load < 1, np.divide(self.fixed_s, 1 - self.load), np.inf)
        by_trigger_s = self.fixed_s + self.load * self.trigger_s
        return np.where(alone_s > self.trigger_s, alone_s, by_trigger_s)

    def after(self, batch_s: float, seconds: float) -> float:
        """What a batch takes so many seconds after one that took `batch_s`.

        One that takes longer than that changes by a part of what it will.
        """
        fixed_s, load = float(self.fixed_s), float(self.load)
        for _ in range(_MOST_BATCHES):
            cycle_s = max(batch_s, self.trigger_s, 1e-6)
            more_s = fixed_s + load * cycle_s - batch_s
            batch_s += more_s * min(seconds / cycle_s, 1.0)
            seconds -= cycle_s
            if seconds <= 0 or abs(more_s) <= 1e-6 * batch_s:
                break
        return batch_s

    def unfinished(self, batch_s: float) -> float:
        """The tuples of a batch that takes so long."""
        fixed_s, load = float(self.fixed_s), float(self.load)
        return max(batch_s - fixed_s, 0.0) * self.rate / load if load > 0 else 0.0

    def latency_s(self, batch_s: float | Floats) -> Floats:
        """From arrival to commit on average, where batches take so long."""
        cycle_s = np.maximum(batch_s, self.trigger_s)
        with np.errstate(invalid="ignore"):
            latency_s = cycle_s / 2 + self.fixed_s + self.load * cycle_s + self._longer_s(batch_s)
        return self.ready_s + self.or_alone(latency_s, batch_s)

    def or_alone(self, many_s: float | Floats, batch_s: float | Floats) -> Floats:
        """`many_s`; or what a batch of one tuple takes, where tuples are so rare.

        They are where a batch of `batch_s` seconds is over before the next tuple comes.
        """
        if self.rate <= 0:
            return np.asarray(many_s)
        rare = np.maximum(batch_s, self.trigger_s) * self.rate < 1
        return np.where(rare, self.fixed_s + self.load / self.rate, many_s)

    def _longer_s(self, batch_s: float | Floats) -> float | Floats:
        """How much longer it is because batches vary; not where they start by the trigger.

        In overload each is much longer than the one before, and how they vary is little to that.
        """
        varies = (batch_s > self.trigger_s) & (np.asarray(self.load) < 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.square(self.scatter) / (1 - np.square(self.load))  # V / D / D
            return np.where(varies, batch_s * share * (0.5 + self.load), 0.0)
