"""Decides which bins of groups are trimmed in a closing window.

Every instance decides for itself. All have the same counts, so all decide the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.approx.trim import Trim, sample_size, trim
from tidegate.batch import ints
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.balanced.survey import bins_in
from tidegate.operate.aggregate.estimate import DEVIATION, QUANTILES, VARIANCE
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close_steps
from tidegate.operate.kernels.order import Floats, Ints, Mask, flat
from tidegate.operate.kernels.sum.exact_sum import covariances, round_sums


class Surveyed:
    """The surveys of the panes of open windows.

    `parts` may have several rows for a bin of a pane. Costs O(rows log rows) once, and O(rows of
    the window + bins) for each call of `trim`.
    """

    def __init__(
        self, rules: Balancing, survey: AggregateSpec, parts: Sequence[pa.Table], buckets: int
    ) -> None:
        self._rules, self._survey, self._buckets = rules, survey, buckets
        self._rows = pa.concat_tables([survey.partial_schema.empty_table(), *parts])
        pane = ints(self._rows, "pane")
        self._order = np.argsort(pane, kind="stable")
        self._pane = pane[self._order]
        self._bin, self._tuples = (ints(self._rows, n)[self._order] for n in ("bin", "n.n"))

    def trim(self, end_us: int) -> Trim:
        """The decision for the window that ends at `end_us`."""
        survey, buckets = self._survey, self._buckets
        first, last = np.searchsorted(self._pane, survey.window.panes_of(end_us))
        of = slice(int(first), int(last))
        bins = bins_in(buckets)
        tuples = np.bincount(self._bin[of], self._tuples[of], bins).astype(np.int64)
        # First without variances: most bins are smaller than any sample, which often decides it.
        hot, sizes = tuples > self._rules.fewest, tuples.copy()
        sizes[hot] = self._rules.fewest
        whole = int(tuples.sum())
        saving = (whole - int(sizes.sum())) / max(whole, 1)
        if saving < self._rules.thresholds.saving:
            return Trim(np.zeros(bins, np.bool_), saving, True)
        sizes[hot] = _needed(self._rules, self._spreads(of, hot, end_us), tuples[hot])
        place = np.arange(bins) % buckets
        return trim(place, tuples, sizes, buckets, self._rules.thresholds)

    def _spreads(self, of: slice, hot: Mask, end_us: int) -> pa.Table | None:
        """The merged states of the values of `hot` bins in a window, sorted by bin."""
        if not self._rules.surveyed:
            return None
        rows = self._rows.take(pa.array(self._order[of][hot[self._bin[of]]]))
        steps = close_steps(self._survey, rows, end_us - 1, end_us, partly=True)
        return pa.concat_tables([self._survey.window_schema.empty_table(), *steps])


def _needed(rules: Balancing, bins: pa.Table | None, tuples: Ints) -> Ints:
    """The sample size of each bin that is enough for all aggregates; all tuples if none is."""
    places = {name: i for i, (name, _) in enumerate(rules.surveyed)}
    answering, needed = rules.answering, np.zeros(len(tuples), np.int64)
    for answer in rules.held:
        if answer.way == QUANTILES:
            most = answering.quantile_rows(answer.function)
            needed = np.maximum(needed, np.minimum(most, tuples))
            continue
        by_mean = answer.way not in (VARIANCE, DEVIATION)
        known = [places[n] for n in answer.function.arguments if by_mean and n in places]
        spreads = [] if bins is None else [_spread(bins, number) for number in known]
        for rows, mean, variance in spreads:
            size = sample_size(tuples, rows, mean, variance, answering.error, answering.confidence)
            needed = np.maximum(needed, size)
        if not spreads:
            needed = np.maximum(needed, np.minimum(answering.mean_rows, tuples))
        needed = np.where(needed > answering.mean_rows, tuples, needed)
    return needed


def _spread(bins: pa.Table, number: int) -> tuple[Ints, Floats, Floats]:
    """The number of surveyed values of an argument, their mean and their variance."""
    n = ints(bins, f"v{number}.n")
    x, xx = (flat(bins.column(f"v{number}.{part}")) for part in ("x", "xx"))
    with np.errstate(all="ignore"):
        mean = round_sums(x) / n
    variance = np.where(n > 1, covariances(n, 1, x, x, xx), np.nan)
    return n, mean, variance
