"""Sums, means, variances and deviations from samples, or exactly where samples are not good enough.

Panes keep the exact values of these functions, so queries normally get those. Samples are used only
where `tidegate.testing.sampled_means` or WITH BALANCE ... TRIM ALL asks for it.
"""

from __future__ import annotations

import numpy as np

from tidegate.approx.bound import Kind, Sample
from tidegate.approx.decision import decide, early_fail, sizes_for
from tidegate.operate.aggregate.bounded.cells import Cells, estimated, representable
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.kernels.order import Ints, floats


def moment(found: SampledWindows) -> Cells:
    """Estimate the windows that the sample can answer; the others get the exact values.

    A group is exact too if the sample has all of its tuples.
    """
    kind, sizes = Kind(found.answer.way), _sizes(found)
    pilot = _sample(found, np.minimum(sizes, found.promise.pilot))
    budget = found.rules.budget_rows
    failed = early_fail(kind, pilot, sizes, found.promise, found.windows, budget)
    sample = _sample(found, sizes)
    decision = decide(kind, sample, found.promise, found.windows, failed)
    needed = sizes_for(kind, pilot, found.promise, found.windows)
    fits = representable(decision.interval, found.answer.function.result)
    chosen = decision.by_sample & ~sample.whole & fits
    exact = found.exact_where(~chosen)
    return estimated(chosen, decision.interval, decision.error, exact, found.looked(sizes, needed))


def _sizes(found: SampledWindows) -> Ints:
    """How many sampled tuples of each row are evaluated.

    A budget is divided among the groups of its window. Without one, a pilot of each group says how
    many tuples are needed.
    """
    kept = found.sample.sizes
    if found.shares is not None:
        return np.minimum(found.shares, kept)
    first = np.full(len(kept), found.promise.pilot)
    pilot = _sample(found, first)
    needed = sizes_for(Kind(found.answer.way), pilot, found.promise, found.windows)
    sizes: Ints = np.minimum(np.maximum(first, needed), found.rules.mean_rows)
    return np.minimum(sizes, kept)


def _sample(found: SampledWindows, sizes: Ints) -> Sample:
    """The argument in the first `sizes` sampled tuples of each row."""
    (column,) = found.sample.columns
    taken = found.lowest(sizes)
    codes = found.sample.groups.codes[taken]
    return Sample.of(found.tuples, codes, floats(column)[taken])
