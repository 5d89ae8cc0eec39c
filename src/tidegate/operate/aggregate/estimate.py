"""The ways in which WITH ERROR answers an aggregate; the registry gives one to each function."""

from __future__ import annotations

from tidegate.approx.bound import Kind

KEPT = "kept"
"""Exactly: the state is small, and panes keep it anyway."""

MEAN, SUM = Kind.MEAN.value, Kind.SUM.value
VARIANCE, DEVIATION = Kind.VARIANCE.value, Kind.DEVIATION.value

QUANTILES = "quantile"
"""By the sample's values at the same ranks. The error is one of ranks, known before any value."""

DRAWN_QUANTILES = "drawn quantile"
"""The same from a budget that the groups of a window share; exactly where it is too small."""

DRAWN_VALUES = "drawn quantile by value"
"""The same, with an error of values instead of ranks."""

OWN = "own"
"""A user's own aggregate: computed over the sample, and over parts of the sample for the error."""

MOMENTS = (MEAN, SUM, VARIANCE, DEVIATION)
"""Exactly too. Only `tidegate.testing.sampled_means` and WITH BALANCE ... TRIM ALL answer them from
a sample: by sums over the sample, with an interval from its variance."""
