"""Estimates users' own aggregates from samples; the error is how much parts of a sample differ.

A pilot of some hundred tuples of each group says how many tuples the error takes. If the sample has
less than half of these, the window is computed exactly at once. Otherwise they are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.bound import Interval
from tidegate.approx.decision import Reason, decided, hopeless
from tidegate.approx.replicate import PARTS, replicated, replicated_rows
from tidegate.operate.aggregate.bounded.cells import Cells, alone, estimated
from tidegate.operate.aggregate.bounded.windows import SampledWindows
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.order import Floats, Ints, Mask

PART_ROWS = 2
"""The fewest tuples of a part: no part may be empty, and one tuple says little."""


def own(found: SampledWindows) -> Cells:
    """Estimate the windows that the sample can answer; the others are computed from all tuples.

    All tuples were kept unfolded, and are folded only for windows that need it. If they were not
    kept, the sample answers all windows, however wide the intervals are.
    """
    falls_back, most = found.answer.falls_back, _most(found)
    first = np.minimum(most, max(found.promise.pilot, PARTS * PART_ROWS))
    look = _Look.at(found, first)
    needed = replicated_rows(
        look.values,
        look.of_parts,
        rows=first,
        tuples=found.tuples,
        alpha=_alpha(found, first),
        allowed=found.promise.allowed,
    )
    failed = np.zeros(found.windows.count, np.int64)
    if falls_back:
        failed = hopeless(needed, most, first < found.tuples, found.windows)
        failed[found.crowded] = Reason.GROUPS
    learned = np.where(needed > 0, np.clip(needed, first, most), most)
    sizes = most if found.shares is not None and falls_back else learned
    sizes = np.where((failed != Reason.NONE)[found.windows.of_group], first, sizes)
    look = look if bool(np.all(sizes == first)) else _Look.at(found, sizes)
    interval, relied_on = replicated(
        look.values,
        look.of_parts,
        rows=sizes,
        tuples=found.tuples,
        alpha=_alpha(found, sizes),
    )
    whole = sizes >= found.tuples
    relied_on = relied_on & (found.agrees(sizes) | whole)
    error = np.where(relied_on, found.promise.allowed.of(interval), np.inf)
    error = np.where(whole, 0.0, error)
    looked = found.looked(sizes, np.where(needed > 0, needed, most))
    if not falls_back:
        return alone(look.result, _open_ended(interval, relied_on), error, whole, looked)
    decision = decided(interval, error, found.promise, found.windows, failed)
    exact = found.exactly(look.result, ~decision.by_sample & ~whole)
    return estimated(decision.by_sample & ~whole, interval, error, exact, looked)


def _most(found: SampledWindows) -> Ints:
    """How many sampled tuples of each row may be evaluated: its share of the budget, or all."""
    most = np.minimum(found.sample.sizes, found.rules.mean_rows)
    return most if found.shares is None else np.minimum(found.shares, most)


def _alpha(found: SampledWindows, sizes: Ints) -> Floats:
    alphas = found.promise.alphas(found.windows.groups(sizes < found.tuples))
    return alphas[found.windows.of_group]


@dataclass(frozen=True)
class _Look:
    """The aggregate over some sampled tuples of each row, and over each part of these.

    `result` is NULL for rows without such tuples. `of_parts` has PARTS values for each row, which
    are NaN where there are too few tuples for parts.
    """

    result: pa.Array
    of_parts: Floats

    @property
    def values(self) -> Floats:
        return _numbers(self.result)

    @staticmethod
    def at(found: SampledWindows, sizes: Ints) -> _Look:
        """Evaluate `sizes` tuples of each row: fold each into its part, then merge the parts."""
        function = found.answer.function
        family = function.family
        there = (sizes > 0) | (found.tuples == 0)
        enough = sizes >= PARTS * PART_ROWS
        width = np.where(enough, PARTS, there)
        taken = found.lowest(sizes)
        row, ranks = found.sample.groups.codes[taken], found.sample.ranks[taken]
        part = (np.cumsum(width) - width)[row] + ranks % width[row]
        columns = [column.filter(pa.array(taken)) for column in found.sample.columns]
        states = family.fold(Groups(part, int(width.sum())), columns)
        row_of_part = np.repeat(np.arange(len(sizes)), width)
        number = np.cumsum(there) - 1
        merged = family.merge(Groups(number[row_of_part], int(there.sum())), states)
        known = pa.nulls(len(sizes), function.result)
        result = pc.replace_with_mask(known, pa.array(there), family.finish(merged))
        of_parts = np.full((len(sizes), PARTS), np.nan)
        of_parts[enough] = _numbers(family.finish(states))[enough[row_of_part]].reshape(-1, PARTS)
        return _Look(result, of_parts.reshape(-1))


def _open_ended(found: Interval, relied_on: Mask) -> Interval:
    """Intervals that are infinite where they are not `relied_on`."""
    low = np.where(relied_on, found.low, -np.inf)
    return Interval(found.value, low, np.where(relied_on, found.high, np.inf))


def _numbers(results: pa.Array) -> Floats:
    """Results as floats, NaN for NULL."""
    numbers: Floats = results.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers
