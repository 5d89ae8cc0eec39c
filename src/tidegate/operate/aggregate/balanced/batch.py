"""The answer of an aggregate WITH BALANCE: it trims groups of the fullest buckets.

Map tasks survey the tuples that they deal. Every instance decides from the same survey which bins
of a closing window are trimmed, and evaluates its groups. Where keys are split, the parts of a
group carry the decision to the merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.operate.aggregate.answer import AnswerBatch, Channels, ExactAnswer, WindowAnswer
from tidegate.operate.aggregate.balanced.answer import balanced
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.balanced.decide import Surveyed
from tidegate.operate.aggregate.balanced.survey import (
    SURVEY,
    SURVEYS,
    SurveyState,
    bins_of,
)
from tidegate.operate.aggregate.balanced.trimming_figures import (
    BALANCED_SHOWN,
    POINTLESS,
    POINTLESS_SHOWN,
    SKIPPED,
    BalancedCounts,
    balanced_window,
)
from tidegate.operate.aggregate.figures import MERGED_SHOWN
from tidegate.operate.aggregate.function import states_in
from tidegate.operate.aggregate.pane.fold_placement import Folding
from tidegate.operate.aggregate.pane.pane import AggregateSpec, named_states
from tidegate.operate.figures import ShownFigure, ToldWindow, WindowFigures
from tidegate.operate.keeper import Keeper
from tidegate.operate.kernels.family import States
from tidegate.operate.kernels.order import Ints, Mask, flat, integers
from tidegate.operate.operator import InstanceWork, MapWork, Share
from tidegate.state.segment.segment import Segment


@dataclass(frozen=True)
class PointlessAnswer(ExactAnswer):
    """Exact: no aggregate is held, so trimming would save nothing; plans and summaries say so."""

    shown: ClassVar[tuple[ShownFigure, ...]] = POINTLESS_SHOWN

    def window(self, told: ToldWindow) -> dict[str, float]:
        return dict(POINTLESS)


@dataclass(frozen=True)
class BalancedAnswer(WindowAnswer):
    """Evaluates all tuples of a group; in full buckets only as many as the error takes."""

    rules: Balancing

    from_states: ClassVar[bool] = True
    piecewise: ClassVar[bool] = False
    counts_groups: ClassVar[bool] = False
    shown: ClassVar[tuple[ShownFigure, ...]] = BALANCED_SHOWN
    finish: ClassVar[str] = "trim groups, finish windows: one task per instance, shuffle by bucket"

    def renamed(self, names: Mapping[str, str]) -> BalancedAnswer:
        return BalancedAnswer(self.rules.renamed(names))

    def schema(self, spec: AggregateSpec) -> pa.Schema:
        return pa.schema([*spec.heads, *self.rules.answering.columns])

    def beside(
        self, work: MapWork, spec: AggregateSpec, folding: Folding, dealt: pa.Table
    ) -> list[Share]:
        if not dealt.num_rows:
            return []
        found = SURVEYS[folding.name](self.rules, spec, dealt, work.mapping.buckets)
        work.spans.mark("map survey")
        return [Share.for_all(found, SURVEY)]

    def keepers(self, spec: AggregateSpec) -> dict[str, Keeper]:
        return {SURVEY: SurveyState(self.rules.survey(spec))}

    def batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        return BalancedBatch(self, spec, work, came.get(SURVEY, ()))

    def part_batch(self, spec: AggregateSpec, work: InstanceWork, came: Channels) -> AnswerBatch:
        return self.batch(spec, work, came)

    def window(self, told: ToldWindow) -> dict[str, float]:
        return balanced_window(told)

    @property
    def merged_shown(self) -> tuple[ShownFigure, ...]:
        return (*(one for one in self.shown if one.name != SKIPPED), *MERGED_SHOWN)

    def title(self, keys: str) -> str:
        return f"merge and balance windows by {keys}"

    def held_lines(self) -> list[str]:
        return self.rules.details()


class BalancedBatch(AnswerBatch):
    """Stores the survey, decides from it, and answers windows.

    `arrived` are the surveys of this batch's map tasks.
    """

    def __init__(
        self,
        answer: BalancedAnswer,
        spec: AggregateSpec,
        work: InstanceWork,
        arrived: Sequence[pa.Table],
    ) -> None:
        super().__init__(spec)
        self._answer, self._rules, self._work = answer, answer.rules, work
        self._kept = SurveyState(answer.rules.survey(spec))
        self._arrived = arrived
        self._known: list[pa.Table] = []
        self._counts = BalancedCounts(spec.window)
        self._surveyed: Surveyed | None = None

    def segments(self) -> dict[str, tuple[Segment, ...]]:
        self._known = self._kept.known(self._work, self._arrived)
        return self._kept.written(self._work, self._arrived)

    def closed(self, windows: pa.Table, partly: bool) -> pa.Table:
        """Decide which groups are trimmed, and answer them; with `partly` only mark them."""
        ends = integers(flat(windows.column("window_end")))
        marked, skipped = self._marked(windows, ends)
        if partly:
            return marked
        heads = [marked.column(field.name) for field in self._spec.heads]
        states = named_states(self._spec, states_in(self._spec.functions, marked))
        return self._rows(heads, states, ends, skipped)

    def merged(self, heads: Sequence[pa.Array], states: Sequence[States]) -> pa.Table:
        """Answer groups that were at several instances; their states say which are trimmed."""
        ends, named = integers(heads[1]), named_states(self._spec, states)
        self._work.spans.mark("instance merge")
        results = self._rows(heads, named, ends, np.zeros(len(ends), np.bool_))
        self._work.spans.mark("instance answer")
        return results

    def _rows(
        self, heads: Sequence[pa.Array], states: Mapping[str, States], ends: Ints, skipped: Mask
    ) -> pa.Table:
        found = balanced(self._rules, states)
        self._counts.add(ends, found, skipped)
        schema = self._answer.schema(self._spec)
        return pa.Table.from_arrays([*heads, *found.columns], schema=schema)

    def figures(self) -> tuple[WindowFigures, ...]:
        return self._counts.figures()

    def _marked(self, states: pa.Table, ends: Ints) -> tuple[pa.Table, Mask]:
        """Mark the groups to trim; also says which rows are of windows that are not trimmed."""
        buckets = self._work.mapping.buckets
        windows, codes = np.unique(ends, return_inverse=True)
        if self._surveyed is None:
            self._surveyed = Surveyed(self._rules, self._kept.survey, self._known, buckets)
        found = [self._surveyed.trim(end_us) for end_us in windows.tolist()]
        skipped = np.array([one.skipped for one in found], np.bool_)[codes]
        if skipped.all():  # no state says otherwise
            return states, skipped
        keys = [flat(states.column(name)) for name, _ in self._spec.keys]
        chosen = np.array([one.bins for one in found])[codes, bins_of(keys, buckets)]
        name = f"{self._rules.state.name}.trim"
        at = states.schema.get_field_index(name)
        return states.set_column(at, states.schema.field(at), pa.array(chosen)), skipped
