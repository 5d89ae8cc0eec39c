"""Defines what /metrics shows of a metric: a family of series, named as Prometheus advises.

A family reads its samples from a run when somebody asks, or has a `SampleFold` that sees every
batch of a run that serves metrics. A value that a run does not have has no sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tidegate.batch import MAX_US, MIN_US

if TYPE_CHECKING:
    from tidegate.driver.report.latency import LatencyLog
    from tidegate.driver.report.metrics import BatchReport, Summary
    from tidegate.gate.extent import InletReach
    from tidegate.model.live.expectation import Expectation
    from tidegate.plan.physical import Plan
    from tidegate.state.manifest import Manifest

PREFIX = "tidegate_"
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
UNITS = ("seconds", "bytes", "ratio")
"""The units with which the name of a family may end."""

BOUNDS_S = (1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper bounds of the buckets of a histogram of times."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One series: its value, and its labels without that of the query.

    `suffix` follows the name of the family, as in the parts of a histogram.
    """

    labels: Labels
    value: float
    suffix: str = ""


Samples = Iterable[MetricSample]


@dataclass(frozen=True)
class RunView:
    """A run as it was after its newest batch; reading it does not delay any batch.

    `report`, `reaches` and `committed_at` (in seconds since 1970) are None or empty before the
    first batch of the run.
    """

    plan: Plan
    summary: Summary
    manifest: Manifest
    latency: LatencyLog
    expected: Callable[[], Expectation | None]
    report: BatchReport | None = None
    reaches: tuple[InletReach, ...] = ()
    committed_at: float | None = None

    def counter(self, name: str, absent: int | None) -> Iterator[MetricSample]:
        """The sample of a counter of the checkpoint; if there is none, `absent`, or no sample."""
        value = self.summary.counters.get(name, absent)
        if value is not None:
            yield MetricSample((), value)


class SampleFold(ABC):
    """Collects the samples of one family over the batches of one run; made when the run begins.

    The thread of the loop calls `add`, any thread calls `samples`.
    """

    @abstractmethod
    def add(self, report: BatchReport) -> None:
        """Add a batch. It must be fast: every batch waits for it."""

    @abstractmethod
    def samples(self) -> Samples:
        """All samples so far."""


@dataclass(frozen=True)
class MetricFamily:
    """Series of one name, type and meaning; `read` or `fold` returns the samples.

    `name` has neither the prefix nor the `_total` of a counter.
    """

    name: str
    kind: str
    help: str
    read: Callable[[RunView], Samples] | None = None
    fold: Callable[[], SampleFold] | None = None
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{PREFIX}{self.name}"

    @property
    def series_name(self) -> str:
        """The name of its series in PromQL; of a histogram, without the suffixes."""
        return f"{self.full_name}_total" if self.kind == COUNTER else self.full_name

    @property
    def unit(self) -> str | None:
        return next((unit for unit in UNITS if self.name.endswith(f"_{unit}")), None)


class SumBy(SampleFold):
    """Sums over batches, by labels; grows with the labels, that is with steps and instances."""

    def __init__(self, values: Callable[[BatchReport], Iterable[tuple[Labels, float]]]) -> None:
        self._values = values
        self._sums: dict[Labels, float] = {}

    def add(self, report: BatchReport) -> None:
        for labels, value in self._values(report):
            self._sums[labels] = self._sums.get(labels, 0.0) + value

    def samples(self) -> Samples:
        return [MetricSample(labels, value) for labels, value in list(self._sums.items())]


class TimeHistogram(SampleFold):
    """A histogram of a time per batch; no samples while no batch has that time."""

    def __init__(self, seconds: Callable[[BatchReport], float | None]) -> None:
        self._seconds = seconds
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def add(self, report: BatchReport) -> None:
        seconds = self._seconds(report)
        if seconds is not None:
            self._counts[bisect_left(BOUNDS_S, seconds)] += 1
            self._sum_s += seconds

    def samples(self) -> Samples:
        upto = list(accumulate(list(self._counts)))
        return histogram(upto[:-1], upto[-1], self._sum_s) if upto[-1] else ()


def histogram(upto: Sequence[int], count: int, sum_s: float) -> Samples:
    """The samples of a histogram; `upto` has the number of values up to each of BOUNDS_S."""
    bounds = [*(f"{bound}" for bound in BOUNDS_S), "+Inf"]
    for bound, number in zip(bounds, [*upto, count], strict=True):
        yield MetricSample((("le", bound),), number, "_bucket")
    yield MetricSample((), sum_s, "_sum")
    yield MetricSample((), count, "_count")


def gauge(
    name: str, help_: str, read: Callable[[RunView], Samples], labels: Sequence[str] = ()
) -> MetricFamily:
    return MetricFamily(name, GAUGE, help_, read, labels=tuple(labels))


def newest(
    name: str, help_: str, of: Callable[[BatchReport], float | None], labels: Sequence[str] = ()
) -> MetricFamily:
    """A gauge that is read from the report of the newest batch."""

    def read(view: RunView) -> Iterator[MetricSample]:
        value = None if view.report is None else of(view.report)
        if value is not None:
            yield MetricSample((), value)

    return gauge(name, help_, read, labels)


def total(name: str, help_: str, absent: int | None = None) -> MetricFamily:
    """A counter that the checkpoint adds up over all runs."""
    return MetricFamily(name, COUNTER, help_, lambda view: view.counter(name, absent))


def summed(
    name: str,
    help_: str,
    values: Callable[[BatchReport], Iterable[tuple[Labels, float]]],
    labels: Sequence[str],
) -> MetricFamily:
    """A counter over the batches of a run."""
    return MetricFamily(name, COUNTER, help_, fold=lambda: SumBy(values), labels=tuple(labels))


def timed(name: str, help_: str, seconds: Callable[[BatchReport], float | None]) -> MetricFamily:
    """A histogram of times of batches."""
    return MetricFamily(name, HISTOGRAM, help_, fold=lambda: TimeHistogram(seconds))


def peaks(name: str, label: str) -> tuple[MetricFamily, MetricFamily]:
    """Two gauges of a `PeakFold`: the newest value and the largest of the run."""
    what, _, unit = name.rpartition("_")

    def held(view: RunView) -> Mapping[str, Any]:
        return view.summary.folds[name].as_dict(name, ())

    return (
        gauge(name, f"{label}, now.", lambda v: [MetricSample((), held(v)[name])]),
        gauge(
            f"{what}_peak_{unit}",
            f"{label}, the most in this run.",
            lambda v: [MetricSample((), held(v)[f"{name}_max"])],
        ),
    )


def by(name: str, values: Iterable[tuple[str, float]]) -> Samples:
    """A sample for each value of one label."""
    return [MetricSample(((name, key),), value) for key, value in values]


def event_s(time_us: int) -> float | None:
    """An event time in seconds since 1970; None for the ends of time."""
    return time_us / 1e6 if MIN_US < time_us < MAX_US else None
