"""How aggregates within an error bound are answered, between a query's bound and finished windows.

An aggregate is *kept* where its state is one number, and answered from a sample where it is not.
One sample serves all aggregates of a query: of every group and pane the tuples of lowest priority,
`size` of them. Beside it there are the exact states of those aggregates whose error the sample may
turn out not to keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from tidegate.approx.bound import most
from tidegate.approx.decision import Promise
from tidegate.approx.error import Metric
from tidegate.approx.rank import rank_rows
from tidegate.operate.aggregate.estimate import KEPT, OWN, QUANTILES
from tidegate.operate.aggregate.function import Function

MOST_ROWS = 10_000
"""Of a sample whose size nobody has said: beyond it, exact sums are cheaper by far."""

GROUPS = 1_000
"""With how many groups in a window the largest of their rank errors is still within the bound."""


@dataclass(frozen=True)
class Answer:
    """How one aggregate is answered: its way, and the name of the state that has it exactly.

    For a user's aggregate the state has the tuples to compute it from. Without a state, as for
    quantiles and for a user's aggregate that wants no fallback, the sample answers alone. `text`
    is the aggregate as the query writes it.
    """

    function: Function
    way: str
    state: str | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Answering:
    """What was asked for, and what it comes to for each aggregate of the query.

    `sample` is the name of the state with the sample, `arguments` the columns that it has.
    """

    error: float
    confidence: float
    metric: str
    budget_rows: int | None
    grouped: bool
    answers: tuple[Answer, ...] = ()
    sample: str | None = None
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        of = f", by the {self.metric} of its groups" if self.grouped else ""
        return (
            f"within {self.error * 100:.4g} percent in {self.confidence * 100:.4g} percent of "
            f"windows{of}"
        )

    @property
    def promise(self) -> Promise:
        """What was asked for, in the terms of samples."""
        return Promise(self.error, self.confidence, Metric(self.metric))

    @property
    def rank_confidence(self) -> float:
        """That of the rank error of each group, for all of them to be within it together."""
        together = self.grouped and self.metric == Metric.MAX.value
        return 1 - (1 - self.confidence) / (GROUPS if together else 1)

    def quantile_rows(self, function: Function) -> int:
        """How large a sample of a group must be for a quantile, whatever the values are."""
        (fraction,) = function.parameters
        return rank_rows(self.error, self.rank_confidence, fraction)

    def way(self, function: Function) -> str:
        """How an aggregate is answered; one whose sample would exceed the budget is kept."""
        way = function.definition.estimate
        if way is None:
            raise ValueError(f"{function.title} has no estimate")
        if way != QUANTILES or self.budget_rows is None:
            return way
        return QUANTILES if self.quantile_rows(function) <= self.budget_rows else KEPT

    @property
    def mean_rows(self) -> int:
        """The largest sample of a group that all but quantiles are answered from.

        Of two first looks at least, as some values may be NULL.
        """
        worth = max(most(self.error, self.confidence), 2 * self.promise.pilot)
        return min(worth, MOST_ROWS if self.budget_rows is None else self.budget_rows)

    @cached_property
    def size(self) -> int:
        """How many tuples of every group and pane are sampled."""
        return max(self._rows(answer) for answer in self.answers if answer.way != KEPT)

    @property
    def columns(self) -> list[pa.Field]:
        """The columns that answers have: by aggregate a*, l* and h*, then e0."""
        fields = []
        for i, answer in enumerate(self.answers):
            fields += [pa.field(f"{letter}{i}", answer.function.result) for letter in "alh"]
        return [*fields, pa.field("e0", pa.bool_())]

    def renamed(self, names: Mapping[str, str]) -> Answering:
        """The same over states of other names."""
        answers = tuple(replace(a, state=a.state and names[a.state]) for a in self.answers)
        return replace(self, answers=answers, sample=self.sample and names[self.sample])

    def details(self) -> list[str]:
        """What becomes of each aggregate, for people."""
        lines = [f"{answer.text}: {self._said(answer)}" for answer in self.answers]
        if self.budget_rows is not None:
            lines.append(f"budget: {self.budget_rows:,} rows of a window")
        return lines

    def _rows(self, answer: Answer) -> int:
        return self.quantile_rows(answer.function) if answer.way == QUANTILES else self.mean_rows

    def _said(self, answer: Answer) -> str:
        if answer.way == KEPT:
            if answer.function.definition.estimate == KEPT:
                return "kept exactly, as one number"
            needed = self.quantile_rows(answer.function)
            return f"exact, as a sample of a group needs {needed:,} rows, more than the budget"
        rows = f"{self._rows(answer):,} rows"
        if answer.way == QUANTILES:
            return f"from {rows} of each group, by rank; no exact state is kept"
        if answer.way == OWN and answer.state is None:
            return f"from up to {rows} of each group, as good as they are; nothing else is kept"
        if answer.way == OWN:
            return (
                f"from up to {rows} of each group; else its arguments, which are kept, are folded"
            )
        return f"from up to {rows} of each group; else from the exact state, which is kept"
