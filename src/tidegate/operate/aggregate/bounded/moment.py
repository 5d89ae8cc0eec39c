"""Sums, means, variances and deviations from samples, or exactly where these will not do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.approx.bound import Kind, Sample
from tidegate.approx.decision import Decision, decide, early_fail, sizes_for
from tidegate.operate.aggregate.bounded.answering import Answer
from tidegate.operate.aggregate.bounded.cells import Cells, estimated, representable
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.aggregate.estimate import MOMENTS
from tidegate.operate.kernels.order import Ints, Mask, floats, valid


def moment(found: SampledWindows, answer: Answer) -> Cells:
    """What the sample says in windows that it answers, else what the exact state does.

    A group that the sample has as a whole is exact in any case.
    """
    said = decided_moment(found, answer)
    return said.cells(answer.function.family.finish(found.exact_states(answer)))


@dataclass(frozen=True)
class SaidMoment:
    """What samples say of an aggregate, and of which rows that is the answer."""

    chosen: Mask
    decision: Decision
    sizes: Ints
    needed: Ints

    def cells(self, exact: pa.Array) -> Cells:
        """The answers, with exact ones for all rows that are not chosen."""
        found, error = self.decision.interval, self.decision.error
        return estimated(self.chosen, found, error, exact, rows=self.sizes, needed=self.needed)


def decided_moment(found: SampledWindows, answer: Answer) -> SaidMoment:
    """What is said before anything exact is computed."""
    kind, sizes = Kind(answer.way), moment_sizes(found)
    pilot = _sample(found, answer, np.minimum(sizes, found.promise.pilot))
    failed = early_fail(
        kind,
        pilot,
        sizes,
        found.promise,
        found.windows,
        found.rules.budget_rows,
    )
    sample = _sample(found, answer, sizes)
    decision = decide(kind, sample, found.promise, found.windows, failed)
    fits = representable(decision.interval, answer.function.result)
    chosen = decision.by_sample & ~sample.whole & fits
    return SaidMoment(chosen, decision, sizes, sizes_for(kind, pilot, found.promise, found.windows))


def moment_sizes(found: SampledWindows) -> Ints:
    """How much of the sample of each row is looked at.

    A budget is divided among the groups of its window. Without one, a first look at each group
    says how much of it is needed.
    """
    rules, kept = found.rules, found.sample.sizes
    if found.shares is not None:
        return np.minimum(found.shares, kept)
    first = np.full(len(kept), found.promise.pilot)
    sizes: Ints = first
    for answer in rules.answers:
        if answer.way in MOMENTS:
            pilot = _sample(found, answer, first)
            needed = sizes_for(Kind(answer.way), pilot, found.promise, found.windows)
            sizes = np.maximum(sizes, needed)
    sizes = np.minimum(sizes, rules.mean_rows)
    return np.minimum(sizes, kept)


def _sample(found: SampledWindows, answer: Answer, sizes: Ints) -> Sample:
    """The values of an aggregate in so many tuples of each row."""
    (column,) = found.arguments(answer)
    taken, present = found.lowest(sizes), valid(column)
    values = floats(column if present is None else column.fill_null(0))
    return Sample.of(
        Kind(answer.way),
        found.tuples,
        found.sample.groups.codes[taken],
        values[taken],
        None if present is None else present[taken],
    )
