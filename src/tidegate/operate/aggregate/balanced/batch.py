"""Balancing in one batch of an instance, between its panes and the rows of windows that close."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.balanced.answer import balanced
from tidegate.operate.aggregate.balanced.balancing import Balancing
from tidegate.operate.aggregate.balanced.decide import Surveyed
from tidegate.operate.aggregate.balanced.figures import BalancedCounts
from tidegate.operate.aggregate.balanced.survey import SURVEY, known_survey, write_survey
from tidegate.operate.aggregate.pane import PART, AggregateSpec
from tidegate.operate.figures import WindowFigures
from tidegate.operate.kernels.order import Ints, Mask, flat, integers
from tidegate.operate.operator import InstanceWork
from tidegate.route.bucket import bucket_of
from tidegate.state.segment import Segment


class BalancedBatch:
    """What was surveyed, what is decided from it, and the windows that are closed by that.

    `surveyed` is what the map tasks of this batch have counted.
    """

    def __init__(
        self,
        rules: Balancing,
        spec: AggregateSpec,
        work: InstanceWork,
        surveyed: Sequence[pa.Table],
    ) -> None:
        self._rules, self._spec, self._work = rules, spec, work
        self._survey = rules.survey(spec)
        self._arrived = surveyed
        self._known = known_survey(work, self._survey, surveyed)
        self._counts = BalancedCounts(spec.range_us)
        self._surveyed: Surveyed | None = None

    def written(self) -> dict[str, tuple[Segment, ...]]:
        """The segments of what came."""
        if not self._arrived:
            return {}
        return {SURVEY: write_survey(self._work, self._survey, self._arrived)}

    def closed(self, states: pa.Table, partly: bool) -> pa.Table:
        """Windows closed in part, answered; or with `partly` marked, for who has all parts."""
        ends = integers(flat(states.column("window_end")))
        marked, skipped = self._marked(states, ends, partly)
        if partly:
            return marked
        found = balanced(self._rules, states_of(self._spec, marked))
        self._counts.add(ends, found, skipped)
        return results_of(self._rules, self._spec, marked, found.columns)

    def figures(self) -> tuple[WindowFigures, ...]:
        return self._counts.figures()

    def _marked(self, states: pa.Table, ends: Ints, split: bool) -> tuple[pa.Table, Mask]:
        """States that say which groups are to be trimmed; and where nothing was looked for.

        Where keys are `split`, their tuples may be in other buckets than that of their hash.
        """
        buckets = self._work.mapping.buckets
        place = ints(states, PART)
        if split:
            keys = [flat(states.column(name)) for name, _ in self._spec.keys]
            place = bucket_of(keys, buckets).astype(np.int64)
        windows, codes = np.unique(ends, return_inverse=True)
        if self._surveyed is None:
            self._surveyed = Surveyed(self._rules, self._survey, self._known, buckets)
        found = [self._surveyed.trim(end_us) for end_us in windows.tolist()]
        chosen = np.array([one.buckets for one in found]).reshape(-1, buckets)[codes, place]
        skipped = np.array([one.skipped for one in found], np.bool_)[codes]
        name = f"{self._rules.state.name}.trim"
        at = states.schema.get_field_index(name)
        return states.set_column(at, states.schema.field(at), pa.array(chosen)), skipped


def states_of(spec: AggregateSpec, table: pa.Table) -> dict[str, list[pa.Array]]:
    """The states of windows that are closed in part, by the names of the functions."""
    return {f.name: [flat(table.column(name)) for name, _ in f.state] for f in spec.functions}


def results_of(
    rules: Balancing, spec: AggregateSpec, table: pa.Table, columns: Sequence[pa.Array]
) -> pa.Table:
    """Answered windows as rows."""
    schema = rules.result_schema(spec)
    heads = [table.column(name) for name in schema.names[: 2 + len(spec.keys)]]
    return pa.Table.from_arrays([*heads, *columns], schema=schema)
