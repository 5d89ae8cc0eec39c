"""Which buckets of closing windows are trimmed, between what was surveyed and who has the groups.

It is decided by every instance from the same counts, so all of them decide the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tidegate.approx.bound import Kind
from tidegate.approx.trim import Trim, sample_size, trim
from tidegate.batch import ints
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.estimate import QUANTILES
from tidegate.operate.aggregate.pane import AggregateSpec, close_steps
from tidegate.operate.kernels.exact_sum import covariances, round_sums
from tidegate.operate.kernels.order import Floats, Ints, flat, integers

_SQUARES = 2.0
"""The variance of squared deviations by the square of their mean, for a normal distribution: what
variances and deviations are taken to need, for nothing else is known of bins."""


def trims(
    rules: Balancing,
    survey: AggregateSpec,
    known: pa.Table,
    above_us: int,
    upto_us: int,
    buckets: int,
) -> Mapping[int, Trim]:
    """What is trimmed of all windows that end above one time and up to another, by their ends."""
    found: dict[int, Trim] = {}
    for bins in close_steps(survey, known, above_us, upto_us, partly=True):
        ends = integers(flat(bins.column("window_end")))
        tuples, place = ints(bins, "n.n"), ints(bins, "bin") % buckets
        # Most bins are smaller than any sample, and need not be looked at.
        hot, sizes = tuples > rules.fewest, tuples.copy()
        sizes[hot] = _needed(rules, bins.filter(pa.array(hot)), tuples[hot])
        starts = np.flatnonzero(np.append(True, ends[1:] != ends[:-1]))
        for first, last in zip(starts, np.append(starts[1:], len(ends)), strict=True):
            of = slice(first, last)
            found[int(ends[first])] = trim(place[of], tuples[of], sizes[of], buckets)
    return found


def _needed(rules: Balancing, bins: pa.Table, tuples: Ints) -> Ints:
    """How many tuples of each bin stand for it in all aggregates; all where none would do."""
    places = {name: i for i, (name, _) in enumerate(rules.surveyed)}
    answering, needed = rules.answering, np.zeros(len(tuples), np.int64)
    for answer in rules.held:
        if answer.way == QUANTILES:
            most = answering.quantile_rows(answer.function)
            needed = np.maximum(needed, np.minimum(most, tuples))
            continue
        spreads = [_spread(bins, places[n]) for n in answer.function.arguments if n in places]
        if answer.way in (Kind.VARIANCE.value, Kind.DEVIATION.value):
            spreads = [(tuples, np.ones(len(tuples)), np.full(len(tuples), _SQUARES))]
        for rows, mean, variance in spreads:
            size = sample_size(tuples, rows, mean, variance, answering.error, answering.confidence)
            needed = np.maximum(needed, size)
        if not spreads:
            needed = np.maximum(needed, np.minimum(answering.mean_rows, tuples))
        needed = np.where(needed > answering.mean_rows, tuples, needed)
    return needed


def _spread(bins: pa.Table, number: int) -> tuple[Ints, Floats, Floats]:
    """How many values of an argument were looked at, their mean and their variance."""
    n = ints(bins, f"v{number}.n")
    x, xx = (flat(bins.column(f"v{number}.{part}")) for part in ("x", "xx"))
    with np.errstate(all="ignore"):
        mean = round_sums(x) / n
    variance = np.where(n > 1, covariances(n, 1, x, x, xx), np.nan)
    return n, mean, variance
