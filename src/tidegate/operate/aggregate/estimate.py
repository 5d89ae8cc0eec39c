"""How an aggregate is answered within an error: what its row of the registry says of it."""

from __future__ import annotations

from tidegate.approx.bound import Kind

KEPT = "kept"
"""Exactly: its state is small, and panes keep it anyway."""

MEAN, SUM = Kind.MEAN.value, Kind.SUM.value
VARIANCE, DEVIATION = Kind.VARIANCE.value, Kind.DEVIATION.value

QUANTILES = "quantile"
"""By the values at the same ranks; the error is one of ranks, and known before there is a value."""

DRAWN_QUANTILES = "drawn quantile"
"""The same with a budget that the groups of a window share, else exactly."""

DRAWN_VALUES = "drawn quantile by value"
"""The same within an error of values, not of ranks."""

OWN = "own"
"""A user's own aggregate: as it is, of the sample and of parts of the sample."""

MOMENTS = (MEAN, SUM, VARIANCE, DEVIATION)
"""Exactly too. From a sample only where `tidegate.testing.sampled_means` or WITH BALANCE ... TRIM
ALL asks for it: by sums over the sample, with an interval that its own variance gives."""
