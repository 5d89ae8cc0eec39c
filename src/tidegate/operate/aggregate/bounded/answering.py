"""The rules of an aggregate WITH ERROR: from which state each function is answered.

A function is *kept* if panes have its exact value anyway. It is answered from a sample if the exact
value would cost. Beside the sample of a user's aggregate, panes keep what computes it exactly: its
error is known only when the sample is evaluated. Functions of the same arguments share a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from tidegate.approx.bound import most
from tidegate.approx.decision import Promise
from tidegate.approx.error import Metric
from tidegate.approx.error_scale import Absolute, Relative, Scale
from tidegate.approx.rank import rank_rows
from tidegate.operate.aggregate.estimate import KEPT, OWN, QUANTILES
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.sample.sample_pool import DRAWN

MOST_ROWS = 10_000
"""The largest sample without a budget: beyond it exact sums are much cheaper."""

GROUPS = 1_000
"""The largest rank error of a window is within the bound for up to so many groups."""


@dataclass(frozen=True)
class Answer:
    """How one aggregate is answered: in which way, and from which states.

    `way` is a value of `estimate.py`. `sampled` is the function that samples for the aggregate;
    without one it is exact. `state` is the name of the state that computes it exactly; for a user's
    aggregate that state has its tuples. It is None for quantiles, and for a user's aggregate
    without fallback. `means` are functions with the exact means of the arguments that are numbers:
    a sample that disagrees with them is not used. `text` is the aggregate as the query writes it.
    """

    function: Function
    way: str
    text: str
    state: str | None = None
    sampled: Function | None = None
    means: tuple[Function | None, ...] = ()

    @property
    def spills(self) -> bool:
        """Whether all tuples are on disk, and the sample is drawn from them."""
        return self.sampled is not None and self.sampled.definition is DRAWN

    @property
    def falls_back(self) -> bool:
        """Whether it can be answered exactly where the sample is not good enough."""
        return self.state is not None or self.spills

    def renamed(self, names: Mapping[str, str]) -> Answer:
        """The same over states of other names."""
        sampled, *means = (
            function and replace(function, name=names[function.name])
            for function in (self.sampled, *self.means)
        )
        state = self.state and names[self.state]
        return replace(self, state=state, sampled=sampled, means=tuple(means))


@dataclass(frozen=True, kw_only=True)
class Answering:
    """What the query asked for, and how each of its aggregates is answered.

    `window_rows` is the budget of a window. `budget_rows` is the part of each sample: the budget
    divided by the number of samples.
    """

    error: float
    confidence: float
    metric: str
    budget_rows: int | None
    grouped: bool
    window_rows: int | None = None
    answers: tuple[Answer, ...] = ()
    scale: Scale = Relative

    def __str__(self) -> str:
        of = f", by the {self.metric} of its groups" if self.grouped else ""
        how_far = f"{self.error:g}" if self.by_value else f"{self.error * 100:.4g} percent"
        return f"within {how_far} in {self.confidence * 100:.4g} percent of windows{of}"

    @property
    def by_value(self) -> bool:
        """Whether the errors of quantiles are errors of values too, known only at the end."""
        return self.scale is Absolute

    @property
    def promise(self) -> Promise:
        """What the query asked for, as `approx` needs it."""
        return Promise(self.error, self.confidence, Metric(self.metric), self.scale)

    @property
    def rank_confidence(self) -> float:
        """The confidence of each group's rank error, so that all groups keep it together."""
        together = self.grouped and self.metric == Metric.MAX.value
        return 1 - (1 - self.confidence) / (GROUPS if together else 1)

    def quantile_rows(self, function: Function) -> int:
        """The sample size of a group for a quantile; it does not depend on the values."""
        (fraction,) = function.parameters
        return rank_rows(self.error, self.rank_confidence, fraction)

    def samples_quantile(self, function: Function) -> bool:
        """Whether samples can answer a quantile: the sample of one group must fit in the budget.

        The sample size for an error of values is not known before the values are. So such a sample
        is drawn from all values, and these are on disk only if there is a budget.
        """
        if self.by_value:
            return self.budget_rows is not None
        return self.budget_rows is None or self.quantile_rows(function) <= self.budget_rows

    @property
    def mean_rows(self) -> int:
        """The largest sample of a group, for all functions except quantiles."""
        worth = MOST_ROWS
        if not self.by_value:
            worth = max(most(self.error, self.confidence), 2 * self.promise.pilot)
        return min(worth, MOST_ROWS if self.budget_rows is None else self.budget_rows)

    @property
    def sampled(self) -> tuple[Answer, ...]:
        """The aggregates that are answered from samples."""
        return tuple(answer for answer in self.answers if answer.sampled is not None)

    @property
    def columns(self) -> list[pa.Field]:
        """The columns of answers: for each aggregate a*, l* and h* (value and ends), then e0."""
        fields = []
        for i, answer in enumerate(self.answers):
            fields += [pa.field(f"{letter}{i}", answer.function.result) for letter in "alh"]
        return [*fields, pa.field("e0", pa.bool_())]

    def renamed(self, names: Mapping[str, str]) -> Answering:
        """The same over states of other names."""
        return replace(self, answers=tuple(answer.renamed(names) for answer in self.answers))

    def details(self) -> list[str]:
        """How each aggregate is answered, for people."""
        lines = [f"{answer.text}: {self._said(answer)}" for answer in self.answers]
        if self.budget_rows is not None:
            each = ""
            if self.window_rows != self.budget_rows:
                each = f", {self.budget_rows:,} for each of its samples"
            lines.append(f"budget: {self.window_rows:,} rows of a window{each}")
        return lines

    def _said(self, answer: Answer) -> str:
        estimate = answer.function.definition.estimate
        if answer.spills:
            return (
                "from the budget's rows, drawn at the end of a window from all, which are on disk"
            )
        if answer.way == QUANTILES:
            rows = f"{self.quantile_rows(answer.function):,} values or more of each group"
            return f"from {rows}, by rank; no exact state is kept"
        rows = f"from up to {self.mean_rows:,} rows of each group"
        if answer.way == OWN and answer.state is None:
            return f"{rows}, as good as they are; nothing else is kept"
        if answer.way == OWN:
            return f"{rows}; else its arguments, which are kept, are folded"
        if answer.way != KEPT:
            return f"{rows}; else from the exact state, which is kept"
        if estimate == QUANTILES:
            if self.by_value and self.budget_rows is None:
                return "exact, as only all values tell how near those of a sample are"
            if not self.samples_quantile(answer.function):
                needed = self.quantile_rows(answer.function)
                return f"exact, as a sample of a group takes {needed:,} rows, more than the budget"
        if estimate in (OWN, QUANTILES):
            return "exact, as overlapping windows share its work"
        return "exact, from the state that panes keep anyway"
