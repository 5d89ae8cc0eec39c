"""Decides from samples whether they answer a window within its error.

A window is answered by its samples where the errors of its groups, put together by the metric of
the promise, are within the error asked for; else as a whole by what was computed exactly. Then

    P(a window is answered by samples, and its error is larger) <= 1 - confidence

as far as the intervals hold what they say (`bound.trusted`). With the metric `max` all intervals of
a window have to hold at once, so each is made for a higher confidence, c ** (1 / groups). Checked
over 1,000 windows of many distributions in `benchmarks/promise.py`, and over fewer in
`tests/approx/test_promise.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tidegate.approx.array import Floats, Ints, Mask
from tidegate.approx.bound import Interval, Kind, Sample, interval, least, needed, trusted
from tidegate.approx.error import Metric, combined
from tidegate.approx.error_scale import AllowedError, Relative, Scale


class Reason(IntEnum):
    """Why a window is not answered by its samples."""

    NONE = 0
    GROUPS = 1
    """There are more groups than rows in the budget."""
    SKEWED = 2
    """Too few rows, or too skewed, for an interval to be relied on."""
    WIDE = 3
    """The intervals are too wide."""


@dataclass(frozen=True)
class Promise:
    """The error that is allowed, on a scale, and how often it must be kept."""

    error: float
    confidence: float
    metric: Metric = Metric.MAX
    scale: Scale = Relative

    @property
    def allowed(self) -> AllowedError:
        return self.scale(self.error)

    @property
    def pilot(self) -> int:
        """How many rows a first look at a group takes."""
        return int(least(1 - self.confidence))

    def alphas(self, groups: Ints) -> Floats:
        """How often an interval may miss, in windows with so many groups that are estimated."""
        one = 1 - self.confidence
        if self.metric is not Metric.MAX:
            return np.full(len(groups), one)
        alphas: Floats = -np.expm1(np.log1p(-one) / np.maximum(groups, 1))
        return alphas


@dataclass(frozen=True)
class Windows:
    """Which window each group is in; without `of_group` there is one window, or none."""

    of_group: Ints
    count: int

    @staticmethod
    def single(groups: int) -> Windows:
        return Windows(np.zeros(groups, np.int64), min(groups, 1))

    def groups(self, mask: Mask | None = None) -> Ints:
        """How many groups each window has, or of a kind."""
        codes = self.of_group if mask is None else self.of_group[mask]
        return np.bincount(codes, minlength=self.count).astype(np.int64)

    def any(self, mask: Mask) -> Mask:
        """Which windows have a group of a kind."""
        return self.groups(mask) > 0


@dataclass(frozen=True)
class SampleDecision:
    """What the samples say of each group, and of each window whether that is the answer.

    `error` is the bound of each group's error, `window_error` that of each window's, by the metric
    of the promise; infinite where an interval cannot be relied on.
    """

    interval: Interval
    error: Floats
    windows: Windows
    window_error: Floats
    reason: npt.NDArray[np.int64]

    @property
    def answered(self) -> Mask:
        """Which windows are answered by their samples."""
        return np.equal(self.reason, Reason.NONE)

    @property
    def by_sample(self) -> Mask:
        """Which groups are."""
        return self.answered[self.windows.of_group]


def decide(
    kind: Kind,
    sample: Sample,
    promise: Promise,
    windows: Windows | None = None,
    failed: npt.NDArray[np.int64] | None = None,
) -> SampleDecision:
    """Estimates of all groups, and which windows they answer.

    `failed` are the reasons of windows that are known not to be, as `early_fail` finds them.
    """
    windows = windows or Windows.single(len(sample.tuples))
    alpha = promise.alphas(windows.groups(~sample.whole))[windows.of_group]
    found = interval(kind, sample, alpha)
    relied_on = trusted(kind, sample, alpha) | sample.whole
    error = np.where(sample.whole, 0.0, promise.allowed.of(found))
    error = np.where(relied_on, error, np.inf)
    return decided(found, error, promise, windows, failed, relied_on)


def decided(
    found: Interval,
    error: Floats,
    promise: Promise,
    windows: Windows,
    failed: npt.NDArray[np.int64] | None = None,
    relied_on: Mask | None = None,
) -> SampleDecision:
    """The same for intervals of any making; errors are infinite where they are not relied on."""
    relied_on = np.isfinite(error) if relied_on is None else relied_on
    window_error = combined(promise.metric, error, windows.of_group, windows.count)
    reason = np.where(window_error <= promise.error, Reason.NONE, Reason.WIDE).astype(np.int64)
    reason[windows.any(~relied_on)] = Reason.SKEWED
    if failed is not None:
        reason = np.where(failed != Reason.NONE, failed, reason)
    return SampleDecision(found, error, windows, window_error, reason)


def early_fail(
    kind: Kind,
    pilot: Sample,
    sizes: Ints,
    promise: Promise,
    windows: Windows | None = None,
    budget: int | None = None,
) -> npt.NDArray[np.int64]:
    """Reasons of windows that samples of these sizes will not answer, from a first look.

    A window fails with more groups than rows in the budget, or if groups that vary as they do on
    average need twice the rows that they get.
    """
    windows = windows or Windows.single(len(pilot.tuples))
    estimated = ~pilot.whole & (sizes < pilot.tuples)
    reason = hopeless(sizes_for(kind, pilot, promise, windows), sizes, estimated, windows)
    if budget is not None:
        reason[windows.groups() > budget] = Reason.GROUPS
    return reason


def hopeless(needed: Ints, sizes: Ints, estimated: Mask, windows: Windows) -> npt.NDArray[np.int64]:
    """Reasons of windows whose groups that are `estimated` need twice the rows that they get."""
    needs, gets = (
        np.bincount(windows.of_group, weights=np.where(estimated, rows, 0), minlength=windows.count)
        for rows in (needed, sizes)
    )
    return np.where(needs > 2 * gets, Reason.WIDE, Reason.NONE).astype(np.int64)


def sizes_for(kind: Kind, pilot: Sample, promise: Promise, windows: Windows | None = None) -> Ints:
    """How many rows of each group the promise needs, from a first look: the lowest priorities.

    These rows are part of the sample that is taken then, so nothing is looked at twice.
    """
    windows = windows or Windows.single(len(pilot.tuples))
    alpha = promise.alphas(windows.groups(~pilot.whole))[windows.of_group]
    return needed(kind, pilot, promise.allowed, alpha)
