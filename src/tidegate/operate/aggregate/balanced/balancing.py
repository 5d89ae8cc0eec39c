"""The rules of an aggregate WITH BALANCE: which tuples it holds, and how large its samples are.

A function that needs all values, or that is a user's code, is **held**: its tuples are kept with
their priorities. When the window closes, all of them are evaluated, or a sample. Other functions
are folded as tuples come, and are always exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from tidegate.approx.trim import TrimThresholds
from tidegate.operate.aggregate.bounded.answering import Answer, Answering
from tidegate.operate.aggregate.definition import NUMBER
from tidegate.operate.aggregate.estimate import KEPT, OWN, QUANTILES
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec


@dataclass(frozen=True, kw_only=True)
class Balancing:
    """What the query asked for, and how each of its aggregates is answered.

    Each group is answered by itself, so `answering` has neither groups nor a budget. `state` is the
    function whose state holds the tuples. `seed` is the seed of their priorities.
    """

    answering: Answering
    state: Function
    thresholds: TrimThresholds
    seed: int = 0

    @property
    def held(self) -> tuple[Answer, ...]:
        """The aggregates that are evaluated from held tuples."""
        return self.answering.sampled

    @cached_property
    def fewest(self) -> int:
        """A group with no more tuples is not trimmed: it is cold, or no smaller than a sample."""
        rules = self.answering
        sizes = (
            rules.quantile_rows(a.function) if a.way == QUANTILES else rules.promise.pilot
            for a in self.held
        )
        return max((self.thresholds.cold_rows or 1) - 1, *sizes)

    @cached_property
    def surveyed(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The arguments whose variance decides the sample size; quantiles need none."""
        known = dict(zip(self.state.arguments, self.state.types, strict=True))
        used = (n for a in self.held if a.way != QUANTILES for n in a.function.arguments)
        return tuple((n, known[n]) for n in dict.fromkeys(used) if NUMBER.accepts(known[n]))

    def survey(self, spec: AggregateSpec) -> AggregateSpec:
        """The aggregate over bins: counts of tuples, and the variance of some of their values."""
        spreads = (
            Function(f"v{i}", "var", (name,), (type_,))
            for i, (name, type_) in enumerate(self.surveyed)
        )
        bins = (("bin", pa.int64()),)
        return AggregateSpec(spec.window, bins, (Function("n", "count"), *spreads))

    def renamed(self, names: Mapping[str, str]) -> Balancing:
        """The same over states of other names."""
        made = [f for answer in self.held for f in (answer.sampled, *answer.means) if f is not None]
        own = {function.name: function.name for function in made}
        state = replace(self.state, name=names[self.state.name])
        return replace(self, answering=self.answering.renamed({**names, **own}), state=state)

    def details(self) -> list[str]:
        """How each aggregate is answered, for people."""
        rules = self.answering
        asked = f"error {rules.error:.4g} with confidence {rules.confidence:.4g} of each row"
        head = f"balance: groups of the fullest buckets are trimmed, {asked}"
        return [head, *_fates(rules)]


def folded_details(rules: Answering) -> tuple[str, ...]:
    """The lines of a plan where no aggregate is held."""
    head = (
        "balance: trimming is pointless and not done, as the work of all aggregates is folded or "
        "shared; TRIM ALL does it nevertheless"
    )
    return head, *_fates(rules)


def _fates(rules: Answering) -> list[str]:
    return [f"{answer.text}: {_said(rules, answer)}" for answer in rules.answers]


def _said(rules: Answering, answer: Answer) -> str:
    if answer.way == KEPT:
        return _EXACT_BECAUSE.get(answer.function.definition.estimate, _FOLDED)
    if answer.way == QUANTILES:
        rows = rules.quantile_rows(answer.function)
        return f"of all tuples, of a trimmed group from {rows:,} by rank"
    return f"of all tuples, of a trimmed group from up to {rules.mean_rows:,}"


_FOLDED = "exact, as tuples are folded where they come"
_EXACT_BECAUSE = {
    QUANTILES: "exact, as sorting its values costs less than keeping what a sample takes",
    OWN: "exact, as overlapping windows share its work",
}
"""Why an aggregate is not trimmed, by the way in which it could be estimated."""
