"""The input of an answer: the merged states of one function, its sample, and the windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.approx.allot import congress
from tidegate.approx.decision import Promise
from tidegate.approx.decision import Windows as OfGroups
from tidegate.approx.moments import Moments
from tidegate.approx.replicate import agrees
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.bounded.cells import Looked
from tidegate.operate.aggregate.functions.raw_arguments import unfolded_rows
from tidegate.operate.aggregate.sample.sample_pool import drawn_rows
from tidegate.operate.aggregate.sample.sample_state import SampledRows, rows_of
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.order import Ints, Mask, floats, valid


@dataclass(frozen=True)
class SampledWindows:
    """One aggregate over windows whose groups are all here; a row is a window and group.

    `states` has the merged states of each function, by its name. `windows` has the window of each
    row.
    """

    rules: Answering
    answer: Answer
    states: Mapping[str, States]
    windows: OfGroups

    @property
    def promise(self) -> Promise:
        return self.rules.promise

    @cached_property
    def sample(self) -> SampledRows:
        """The sampled tuples, row after row, each sorted by priority."""
        states = self.sampled_states
        return drawn_rows(states) if self.answer.spills else rows_of(states)

    @cached_property
    def crowded(self) -> Mask:
        """Marks windows with more groups than the budget has rows: no sample is used there."""
        budget = self.rules.budget_rows
        groups = self.windows.groups()
        return np.zeros(len(groups), np.bool_) if budget is None else groups > budget

    @cached_property
    def tuples(self) -> Ints:
        """How many tuples the aggregate sees in each row, sampled or not."""
        count: Ints = self.sampled_states[0].to_numpy()
        return count

    @cached_property
    def shares(self) -> Ints | None:
        """Each row's share of its window's budget; None where there is no budget.

        The rows of a window must be adjacent. In a crowded window all shares are 0.
        """
        budget = self.rules.budget_rows
        if budget is None:
            return None
        window = self.windows.of_group
        first = np.flatnonzero(run_starts(window))
        shares = [
            np.zeros(len(counts), np.int64) if len(counts) > budget else congress(counts, budget)
            for counts in np.split(self.tuples, first[1:])
        ]
        return np.concatenate(shares)

    def lowest(self, sizes: Ints) -> Mask:
        """Marks the `sizes` sampled tuples of lowest priority in each row."""
        return self.sample.ranks < sizes[self.sample.groups.codes]

    def agrees(self, sizes: Ints) -> Mask:
        """Marks rows in which the mean of the sample is near the exact mean, for each argument.

        A single huge value may be in no sample, but it always shows in the exact mean.
        """
        taken, agreed = self.lowest(sizes), np.ones(len(sizes), np.bool_)
        codes = self.sample.groups.codes[taken]
        for mean, column in zip(self.answer.means, self.sample.columns, strict=False):
            if mean is None:
                continue
            there = column.filter(pa.array(taken))
            inside = codes if there.null_count == 0 else codes[valid(there)]
            found = Moments.of(inside, len(sizes), floats(there.drop_null()))
            exact = mean.family.finish(self.states[mean.name]).cast(pa.float64(), safe=False)
            known = exact.to_numpy(zero_copy_only=False)
            agreed &= agrees(found, known, sizes, self.tuples, self.promise.allowed)
        return agreed

    def looked(self, rows: Ints, needed: Ints) -> Looked:
        """The numbers of tuples, where `rows` were evaluated and `needed` would be enough."""
        spilled = self.tuples if self.answer.spills else np.zeros_like(self.tuples)
        return Looked(self.tuples, self.sample.sizes, rows, needed, spilled)

    def exact_where(self, wanted: Mask) -> pa.Array:
        """Results that are exact at least where wanted, from the exact state."""
        return self.answer.function.family.finish(self.exact_states)

    def exactly(self, known: pa.Array, wanted: Mask) -> pa.Array:
        """The results `known`, computed from all kept tuples of a row where wanted."""
        if not wanted.any():
            return known
        held = [column.filter(pa.array(wanted)) for column in self._tuple_states]
        groups, columns = unfolded_rows(held)
        family = self.answer.function.family
        results = family.finish(family.fold(groups, columns))
        return pc.replace_with_mask(known, pa.array(wanted), results)

    @property
    def _tuple_states(self) -> States:
        """All tuples of each row: their number, and a list for each argument."""
        if not self.answer.spills:
            return self.exact_states
        count, _, *columns = self.sampled_states
        return [count, *columns]

    @property
    def sampled_states(self) -> States:
        """The states with the samples of the aggregate."""
        assert self.answer.sampled is not None
        return self.states[self.answer.sampled.name]

    @property
    def exact_states(self) -> States:
        """The states that give the aggregate exactly."""
        assert self.answer.state is not None
        return self.states[self.answer.state]
