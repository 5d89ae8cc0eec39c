"""Estimates what the work of a subquery costs from the batches it has had.

A batch is taken apart into the time in which instances work and the rest. The work of an instance
is a part for every batch, for every tuple that it sees, for every pair that it compares, and for
every output that it makes; the rest is a part for every batch, tuple and output.

Newer batches count more, in two ways. How many outputs a comparison gives is seen in every batch,
changes with the data, and is that of the last few. Costs belong to the machine and to the query:
they change slowly, and are seen only while rates change, so that much older batches count too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from tidegate.model.cost.calibration import Calibration, Estimate
from tidegate.model.cost.fit import Fit, FitMoments, fitted, student
from tidegate.model.cost.sample import BatchSample, WorkCounts
from tidegate.model.operation import Floats

KEPT = 24
"""So many of the newest batches are kept as they are, and up to twice as many."""

HALF_LIFE = 256
"""After so many batches, what one says of costs counts half."""

DRIFT, OFF, DRIFTED = 4.0, 0.25, 0.1
"""Where the newest batches are off by so many standard errors, and by such a part of themselves,
costs have changed: what was before them counts so much less.

Batches of one second are slow or fast together, so that a few dozen of them are often many standard
errors off where nothing has changed but the machine's pace, which varies by a tenth or so."""

RATIO_HALF_LIFE = 8
"""After so many batches, what one says of outputs for each comparison counts half."""

LEAST_BATCHES = 3
"""Before so many batches nothing is estimated."""

_APART = 0.25
"""Two parts of a batch's time are told apart when the error of their difference is below this."""

_LIKELY_BATCH_S, _LIKELY_TUPLE_S = 0.02, 1e-5
"""What an instance of a join may well take for a batch and for a tuple, beside comparisons.

It decides only where all batches are alike: then their time is for comparisons, if it is longer."""

_FIELDS = tuple(f.name for f in fields(BatchSample))
"""Those of a sample, in the order in which a manifest has them."""

_FOR_BATCH, _FOR_TUPLE, _FOR_PAIR, _FOR_OUTPUT = np.eye(4)
"""The columns of work; those of the rest have none for pairs."""


@dataclass(frozen=True)
class Estimator:
    """What the batches of one subquery have shown so far; plain data, of bounded size.

    With `everywhere` each instance sees all tuples, as in a join whose tuples are dealt
    round-robin; else they are divided among instances. `batches` is how many there were.
    """

    everywhere: bool
    batches: int = 0
    samples: tuple[BatchSample, ...] = ()
    work: FitMoments = field(default_factory=lambda: FitMoments.none(4))
    rest: FitMoments = field(default_factory=lambda: FitMoments.none(3))

    def after(self, sample: BatchSample) -> Estimator:
        """With one more batch; one without tuples, or that took no time, says nothing."""
        if sample.tuples <= 0 or sample.seconds <= 0:
            return self
        after = replace(self, batches=self.batches + 1, samples=(*self.samples, sample))
        return after if len(after.samples) < 2 * KEPT else after._without_oldest()

    def estimate(self) -> Calibration | None:
        """What is known now; None where there were too few batches."""
        if self.batches < LEAST_BATCHES:
            return None
        newest, work, rest = self.samples[-1], self.work_fit, self.rest_fit
        instances = newest.instances
        sigma, found = self.sigma, self.compared
        each = 1.0 if self.everywhere else 1.0 / instances
        pair = np.array([0.0, 0.0, found.value, sigma.value])
        # The driver's part of an output is not divided among instances, as the model divides beta.
        driver = np.array([0.0, 0.0, float(instances)])
        return Calibration(
            batches=self.batches,
            instances=instances,
            alpha=_estimate((work, _FOR_PAIR)) * found,
            beta=_estimate((work, _FOR_OUTPUT), (rest, driver)),
            sigma=sigma,
            comparison=_estimate((work, pair), (rest, driver * sigma.value)),
            tuple_s=_estimate((work, _FOR_TUPLE * each), (rest, _FOR_TUPLE[:3])),
            batch_s=_estimate((work, _FOR_BATCH), (rest, _FOR_BATCH[:3])),
            told_apart=self._told_apart(pair),
            scatter=self.scatter,
        )

    def work_costs(self) -> list[Estimate]:
        """What an instance takes for a batch, a tuple, a pair that is compared, an output."""
        return [_estimate((self.work_fit, of)) for of in np.eye(4)]

    def rest_costs(self) -> list[Estimate]:
        """What is beside instances: for a batch, a tuple, an output."""
        return [_estimate((self.rest_fit, of)) for of in np.eye(3)]

    @cached_property
    def work_fit(self) -> Fit:
        """The costs of an instance: for a batch, a tuple that it sees, a pair, an output."""
        joins = any(s.comparisons for s in self.samples)
        likely = np.array([_LIKELY_BATCH_S, _LIKELY_TUPLE_S, np.inf, np.inf]) if joins else None
        return fitted(*self._work_of(), self.work, likely)

    @cached_property
    def rest_fit(self) -> Fit:
        """The costs beside instances: for a batch, a tuple, an output."""
        return fitted(*self._rest_of(), self.rest)

    @property
    def skew(self) -> float:
        """How many times the mean of all instances the busiest one works, most often; 1 is even."""
        found = [s.working_s * s.abreast / s.cpu_s for s in self.samples if s.cpu_s > 0]
        return float(np.median(found)) if found else 1.0

    @property
    def scatter(self) -> float:
        """How far batches like the last ones are from what they take on average, as a part of it.

        The two parts of a batch scatter by themselves.
        """
        parts = [
            (fit.scatter, float(np.mean(x @ fit.costs)))
            for fit, x in (
                (self.work_fit, self._work_of()[0]),
                (self.rest_fit, self._rest_of()[0]),
            )
        ]
        whole_s = sum(seconds for _, seconds in parts)
        return math.hypot(*(of * s for of, s in parts)) / whole_s if whole_s > 0 else 0.0

    @cached_property
    def sigma(self) -> Estimate:
        """Outputs for each comparison of the definition."""
        return self._ratio("outputs", "comparisons")

    @cached_property
    def compared(self) -> Estimate:
        """Pairs that were compared for each comparison of the definition; 1 for a scan."""
        return self._ratio("compared", "comparisons")

    @cached_property
    def outputs(self) -> Estimate:
        """Outputs for each tuple."""
        return self._ratio("outputs", "tuples")

    def _ratio(self, counted: str, of: str) -> Estimate:
        """How many of something there are for each of another in the last batches; 0 of none."""
        above, below = (
            np.array([getattr(s, name) for s in self.samples], np.float64) for name in (counted, of)
        )
        weights = 0.5 ** (np.arange(len(above))[::-1] / RATIO_HALF_LIFE)
        whole = float(weights @ below)
        if whole <= 0:
            return Estimate(0.0, 0.0, 0.0)
        value = float(weights @ above) / whole
        errors = weights * (above - value * below)
        count = whole**2 / float((weights * below) @ (weights * below))
        spread = float(np.sqrt(errors @ errors * count / max(count - 1, 1.0))) / whole
        reach = student(max(count - 1, 1.0)) * spread
        return Estimate(value, max(value - reach, 0.0), value + reach)

    def work_row(
        self, of: WorkCounts | BatchSample, instances: int, batches: float = 1
    ) -> list[float]:
        """How often each cost of an instance is due: batches, tuples it sees, pairs, outputs."""
        seen = of.tuples if self.everywhere else of.tuples / instances
        return [batches, seen, of.compared / instances, of.outputs / instances]

    def seconds(self, of: WorkCounts, instances: int, batches: int) -> tuple[float, float]:
        """What so many batches with all this take: instances, and what is beside them."""
        return (
            float(self.work_fit.costs @ self.work_row(of, instances, batches)),
            float(self.rest_fit.costs @ [batches, of.tuples, of.outputs]),
        )

    def _work_of(self) -> tuple[Floats, Floats]:
        """How often each cost of an instance was due by batch, and what an instance took."""
        rows = [self.work_row(s, s.instances) for s in self.samples]
        return np.array(rows), np.array([s.cpu_s / s.instances for s in self.samples])

    def _rest_of(self) -> tuple[Floats, Floats]:
        """The same beside instances."""
        rows = [[1.0, s.tuples, s.outputs] for s in self.samples]
        return np.array(rows), np.array([s.overhead_s for s in self.samples])

    def _told_apart(self, pair: Floats) -> bool:
        """Whether the time for pairs and that for outputs are known one by one."""
        fit, apart = self.work_fit, pair * np.array([0, 0, 1, -1])
        whole = float(pair @ fit.costs)
        error = float(np.sqrt(max(apart @ fit.covariance @ apart, 0.0)))
        return bool(pair @ _FOR_OUTPUT > 0) and error < _APART * whole

    def _without_oldest(self) -> Estimator:
        """With the older half of the batches as moments only."""
        old = slice(0, len(self.samples) - KEPT)
        moments = []
        for (x, y), past, fit in (
            (self._work_of(), self.work, self.work_fit),
            (self._rest_of(), self.rest, self.rest_fit),
        ):
            changed = fit.drift >= DRIFT and fit.off >= OFF
            kept = DRIFTED if changed else 0.5 ** (KEPT / HALF_LIFE)
            count = float(fit.counted[old].sum())
            moments.append(past.fading(kept).with_more(x[old], y[old], fit.weights[old], count))
        return Estimator(
            self.everywhere, self.batches, self.samples[old.stop :], moments[0], moments[1]
        )

    def recorded(self) -> dict[str, Any]:
        """As JSON has it, in a manifest or a file."""
        return {
            "everywhere": self.everywhere,
            "batches": self.batches,
            "samples": [[getattr(sample, name) for name in _FIELDS] for sample in self.samples],
            "work": self.work.recorded(),
            "rest": self.rest.recorded(),
        }

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> Estimator:
        """What `recorded` gave."""
        return Estimator(
            everywhere=recorded["everywhere"],
            batches=recorded["batches"],
            samples=tuple(
                BatchSample(**dict(zip(_FIELDS, values, strict=True)))
                for values in recorded["samples"]
            ),
            work=FitMoments.restored(recorded["work"]),
            rest=FitMoments.restored(recorded["rest"]),
        )


def _estimate(*parts: tuple[Fit, Floats]) -> Estimate:
    """A sum of costs of several fits, each so often.

    At most what it would be if it alone explained everything, where the data cannot tell.
    """
    value = sum(float(of @ fit.costs) for fit, of in parts)
    free = sum(float(of @ fit.free) for fit, of in parts)
    most = sum(float(of @ fit.most) for fit, of in parts)
    error = float(np.sqrt(sum(fit.variance(of) for fit, of in parts)))
    reach = error * student(min(fit.freedom for fit, _ in parts))
    low, high = max(free - reach, 0.0), min(free + reach, most)
    return Estimate(value, min(low, value), max(high, value))
