"""Windows with their samples, between merged states and those who answer one aggregate of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.approx.allot import congress
from tidegate.approx.decision import Promise
from tidegate.approx.decision import Windows as OfGroups
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.sampled import SampledRows, rows_of
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.order import Ints, Mask


@dataclass(frozen=True)
class SampledWindows:
    """Windows whose groups are all here: a row for each window and group.

    `states` are merged, by the names of the functions whose states they are; `windows` says of
    which window each row is.
    """

    rules: Answering
    states: Mapping[str, States]
    windows: OfGroups

    @property
    def promise(self) -> Promise:
        return self.rules.promise

    @cached_property
    def sample(self) -> SampledRows:
        """The sampled tuples, row after row and by priority in each."""
        return rows_of(self._sampled)

    @cached_property
    def tuples(self) -> Ints:
        """How many tuples each row is of, sampled or not."""
        count: Ints = self._sampled[0].to_numpy()
        return count

    @cached_property
    def whole(self) -> Mask:
        """Rows whose sample is all there is."""
        return self.sample.sizes >= self.tuples

    @cached_property
    def shares(self) -> Ints | None:
        """How much of its window's budget each row has; None where there is no budget.

        The rows of a window stand together.
        """
        budget = self.rules.budget_rows
        if budget is None:
            return None
        window = self.windows.of_group
        first = np.flatnonzero(np.append(True, window[1:] != window[:-1]))
        shares = [congress(counts, budget) for counts in np.split(self.tuples, first[1:])]
        return np.concatenate(shares)

    @property
    def window_budgets(self) -> Ints:
        """How many sampled tuples each window may be answered from."""
        if self.rules.budget_rows is not None:
            return np.full(self.windows.count, self.rules.budget_rows)
        if self.rules.sample is None:
            return np.zeros(self.windows.count, np.int64)
        kept = np.bincount(self.windows.of_group, self.sample.sizes, self.windows.count)
        return kept.astype(np.int64)

    def lowest(self, sizes: Ints) -> Mask:
        """Of the sampled tuples, those that are among so many of lowest priority in their row."""
        return self.sample.ranks < sizes[self.sample.groups.codes]

    def arguments(self, answer: Answer) -> list[pa.Array]:
        """What the sample has of the arguments of an aggregate."""
        places = [self.rules.arguments.index(name) for name in answer.function.arguments]
        return [self.sample.columns[place] for place in places]

    def exact_states(self, answer: Answer) -> States:
        """The states that give an aggregate exactly."""
        assert answer.state is not None
        return self.states[answer.state]

    @property
    def _sampled(self) -> States:
        assert self.rules.sample is not None
        return self.states[self.rules.sample]
