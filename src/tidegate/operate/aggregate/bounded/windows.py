"""What a function is answered from: its merged states, its sample, the windows of its groups."""

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
from tidegate.operate.aggregate.drawn import drawn_rows
from tidegate.operate.aggregate.functions.unfolded import unfolded_rows
from tidegate.operate.aggregate.sampled import SampledRows, rows_of
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.order import Ints, Mask, floats, valid


@dataclass(frozen=True)
class SampledWindows:
    """One aggregate of windows whose groups are all here: a row for each window and group.

    `states` are merged, by the names of the functions whose states they are; `windows` says of
    which window each row is.
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
        """The tuples to take samples from, row after row and by priority in each."""
        states = self.sampled_states
        return drawn_rows(states) if self.answer.spills else rows_of(states)

    @cached_property
    def crowded(self) -> Mask:
        """Windows with more groups than the budget has rows: no sample is looked at there."""
        budget = self.rules.budget_rows
        groups = self.windows.groups()
        return np.zeros(len(groups), np.bool_) if budget is None else groups > budget

    @cached_property
    def tuples(self) -> Ints:
        """How many tuples of each row the aggregate sees, sampled or not."""
        count: Ints = self.sampled_states[0].to_numpy()
        return count

    @cached_property
    def shares(self) -> Ints | None:
        """How much of its window's budget each row has; None where there is no budget.

        The rows of a window stand together. Where they are too many, none has any.
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
        """Of the sampled tuples, those that are among so many of lowest priority in their row."""
        return self.sample.ranks < sizes[self.sample.groups.codes]

    def agrees(self, sizes: Ints) -> Mask:
        """Rows in which so much of the sample has nearly the mean that each argument has.

        What no sampled tuple shows, such as one huge value, a sum over all tuples does.
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
        """What was looked at of the samples, and what is on disk for them."""
        spilled = self.tuples if self.answer.spills else np.zeros_like(self.tuples)
        return Looked(self.tuples, self.sample.sizes, rows, needed, spilled)

    def exact_where(self, wanted: Mask) -> pa.Array:
        """Results that are exact where wanted, for an aggregate whose exact state is kept."""
        return self.answer.function.family.finish(self.exact_states)

    def exactly(self, known: pa.Array, wanted: Mask) -> pa.Array:
        """Results, of all tuples of a row where wanted, which were kept as they came."""
        if not wanted.any():
            return known
        held = [column.filter(pa.array(wanted)) for column in self._tuple_states]
        groups, columns = unfolded_rows(held)
        family = self.answer.function.family
        results = family.finish(family.fold(groups, columns))
        return pc.replace_with_mask(known, pa.array(wanted), results)

    @property
    def _tuple_states(self) -> States:
        """All tuples of each row: how many, and by argument a list of them."""
        if not self.answer.spills:
            return self.exact_states
        count, _, *columns = self.sampled_states
        return [count, *columns]

    @property
    def sampled_states(self) -> States:
        """The states that are samples for the aggregate."""
        assert self.answer.sampled is not None
        return self.states[self.answer.sampled.name]

    @property
    def exact_states(self) -> States:
        """The states that give the aggregate exactly."""
        assert self.answer.state is not None
        return self.states[self.answer.state]
