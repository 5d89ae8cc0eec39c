"""Estimates quantiles of one argument from a sample of its values, with confidence intervals.

The rank error depends on the sizes of sample and group, not on the values. So each group is
answered by itself, and only the sample is kept. Overlapping windows share the samples of one depth,
and slide from one to the next as exact quantiles do (`kernels.slide`). The promise is checked in
`tests/operate/aggregate/test_coverage.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.approx.array import Words
from tidegate.approx.rank import rank_bound, rank_places, rank_rows
from tidegate.approx.sample import depths, window_depths
from tidegate.operate.aggregate.definition import NUMBER, RuledFunction
from tidegate.operate.aggregate.functions.holistic import Quantile
from tidegate.operate.aggregate.sample.sample_state import Sampled, Sampling
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import Groups
from tidegate.operate.kernels.lists import as_lists, list_sizes
from tidegate.operate.kernels.order import Floats, Ints, Mask, floats, one_zero
from tidegate.operate.kernels.sort import sorted_values
from tidegate.operate.kernels.window.slide import Sliding
from tidegate.operate.kernels.window.window import expand

TUPLES, ROWS = "tuples", "rows"
"""The fields of a result beside the quantiles: the number of values, and how many of them were
sampled."""

Places = Callable[[Ints], tuple[Floats, Floats]]
"""From a place in the sorted values of each group to the values there, and the next ones."""


@dataclass(frozen=True)
class Ranking:
    """Which quantiles are asked for, within which rank error and with which confidence."""

    seed: int
    fractions: tuple[float, ...]
    error: float
    confidence: float
    most: int | None = None

    @cached_property
    def sampling(self) -> Sampling:
        """The sample that the most demanding of the quantiles needs."""
        return Sampling(self.seed, max(map(self.rows_for, self.fractions)), most=self.most)

    def rows_for(self, fraction: float) -> int:
        return rank_rows(self.error, self.confidence, fraction)

    def bound(self, rows: Ints, tuples: Ints) -> Floats:
        """The largest rank error of the quantiles, by group."""
        bounds = [rank_bound(rows, tuples, self.confidence, f) for f in self.fractions]
        widest: Floats = np.maximum.reduce(bounds)
        return widest


@dataclass(frozen=True)
class Ranked:
    """The quantiles of a sample: at least `Ranking.sampling.k` values, or all there are.

    The result has, by the number i of a quantile, `value{i}`, `low{i}` and `high{i}`.
    """

    type: pa.DataType
    ranking: Ranking

    @property
    def state(self) -> tuple[tuple[str, pa.DataType], ...]:
        return self._sampled.state

    @property
    def result(self) -> pa.DataType:
        numbers = range(len(self.ranking.fractions))
        ends = ((f"{end}{i}", pa.float64()) for i in numbers for end in ("value", "low", "high"))
        return pa.struct([(TUPLES, pa.int64()), (ROWS, pa.int64()), *ends])

    def fold(self, groups: Groups, columns: Sequence[pa.Array]) -> States:
        return self._sampled.fold(groups, columns)

    def merge(self, groups: Groups, states: Sequence[pa.Array]) -> States:
        return self._sampled.merge(groups, states)

    def finish(self, states: Sequence[pa.Array]) -> pa.Array:
        tuples, priority, lists = states
        rows = list_sizes(priority)
        groups = Groups(np.repeat(np.arange(len(rows)), rows), len(rows))
        values = np.append(sorted_values(groups, _values(lists)), np.nan)
        last = np.cumsum(rows) - 1
        starts = last + 1 - rows

        def places(place: Ints) -> tuple[Floats, Floats]:
            at = np.where(rows > 0, starts + place, -1)
            return values[at], values[np.minimum(at + 1, last)]

        return self._answers(tuples.to_numpy(), rows, places)

    def slide(self, states: Sequence[pa.Array], first: Ints, last: Ints) -> pa.Array:
        tuples, priority, lists = states
        before = np.append(0, np.cumsum(tuples.to_numpy()))
        counts = before[last] - before[first]
        starts = np.append(0, np.cumsum(list_sizes(priority)))
        first, last = starts[first], starts[last]
        values, words = _values(lists), priority.flatten().to_numpy()
        found: list[pa.Array] = []
        place = np.empty(len(first), np.int64)

        def add(windows: Ints, results: pa.Array) -> None:
            place[windows] = sum(len(part) for part in found) + np.arange(len(windows))
            found.append(results)

        for _, windows, taken in window_depths(depths(words), first, last, self.ranking.sampling.k):
            among = np.append(0, np.cumsum(taken))
            low, high = among[first[windows]], among[last[windows]]
            fits = self._within_most(high - low)
            if not fits.all():
                over = ~fits
                rows, of = values[taken], words[taken]
                states = self._lowest(rows, of, low[over], high[over])
                add(windows[over], self.finish([pa.array(counts[windows[over]]), *states]))
                windows, low, high = windows[fits], low[fits], high[fits]
            if len(windows):
                sliding = Sliding(values[taken], low, high)
                add(windows, self._answers(counts[windows], high - low, sliding.places))
        return pa.concat_arrays(found).take(pa.array(place))

    def _within_most(self, rows: Ints) -> Mask:
        """Marks samples that the limit has not cut; one of exactly that size may have been."""
        most = self.ranking.most
        return np.ones(len(rows), np.bool_) if most is None else rows < most

    def _lowest(self, values: Floats, words: Words, first: Ints, last: Ints) -> States:
        """The rows of lowest priority of some windows, as many as the limit, as states."""
        most = self.ranking.most
        assert most is not None
        window, row = expand(first, last - 1)
        order = np.lexsort((words[row], window))
        sizes = last - first
        ranks = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[window]
        taken = order[ranks < most]
        columns = [pa.array(column[row[taken]]) for column in (words, values)]
        return as_lists(np.minimum(sizes, most), columns)

    def _answers(self, tuples: Ints, rows: Ints, places: Places) -> pa.Array:
        """The results of groups or windows; an interval is one value where the sample is all."""
        whole, empty = rows >= tuples, rows == 0
        columns: list[pa.Array] = [pa.array(tuples), pa.array(rows)]
        for fraction in self.ranking.fractions:
            value = Quantile(fraction).of_places(rows, places)
            columns.append(value)
            exact = value.fill_null(0.0).to_numpy(zero_copy_only=False)
            if whole.all():
                columns += [value, value]
                continue
            ends = rank_places(rows, tuples, fraction=fraction, confidence=self.ranking.confidence)
            for end, beyond in zip(ends, (-np.inf, np.inf), strict=True):
                inside = (end >= 0) & (end < rows)
                found, _ = places(np.where(inside, end, 0))
                reached = np.where(inside, found, beyond)
                columns.append(pa.array(np.where(whole, exact, reached), mask=empty))
        return pa.StructArray.from_arrays(columns, [field.name for field in self.result])

    @cached_property
    def _sampled(self) -> Sampled:
        return Sampled((self.type,), self.ranking.sampling)


def _values(lists: pa.Array) -> Floats:
    return one_zero(floats(lists.flatten()))


RANKED = RuledFunction(
    name="ranked",
    doc="Quantiles from a sample of the values, for queries within an error.",
    arguments=(NUMBER,),
    least=None,
    what="a sample of quantiles",
    rule=Ranking,
    titled=lambda _: "sample",
    # The state is the same for all quantiles that take as large a sample.
    shows=lambda rule: [rule.sampling.text.replace(" rows ", " values ")],
    in_order=True,
    family=Ranked,
)
