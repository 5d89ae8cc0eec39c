"""How a sample of the tuples answers an aggregate, between its row of the registry and a bound."""

from __future__ import annotations

from tidegate.approx.bound import Kind

KEPT = "kept"
"""Not at all: its state is one number, which is kept exactly."""

MEAN, SUM = Kind.MEAN.value, Kind.SUM.value
VARIANCE, DEVIATION = Kind.VARIANCE.value, Kind.DEVIATION.value

QUANTILES = "quantile"
"""By the values at the same ranks; the error is one of ranks, and known before there is a value."""

OWN = "own"
"""A user's own aggregate: as it is, of the sample and of parts of the sample."""

MOMENTS = (MEAN, SUM, VARIANCE, DEVIATION)
"""By sums over the sample, with an interval that the sample's own variance gives."""

AT_THE_EDGE = "the extreme of a window is one tuple, which a sample need not hold"
ONE_TUPLE = "its value is that of one tuple, which a sample need not hold"
