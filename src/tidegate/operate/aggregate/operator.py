"""The operator of aggregates over windows of time: it folds tuples into panes and closes windows.

It is made of three values. The `AggregateSpec` says what is computed, over which panes. The
`Placement` says where it is computed. The `WindowAnswer` turns a closed window into rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

import pyarrow as pa

from tidegate.collect.window import WindowOrder
from tidegate.model.operation import Operation
from tidegate.operate.aggregate.answer import AnswerBatch, Channels, ExactAnswer, WindowAnswer
from tidegate.operate.aggregate.choice import Ends, divided
from tidegate.operate.aggregate.figures import (
    MEMORY,
    WindowCounts,
    merging_constraint,
    sent_figures,
    sent_window,
)
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.merging import PARTS
from tidegate.operate.aggregate.pane.pane import PART, AggregateSpec, close_steps
from tidegate.operate.aggregate.pane.tenure import closings, migration_of, shares_of
from tidegate.operate.aggregate.placement import EVERY_WINDOW, Placement
from tidegate.operate.aggregate.rows import window_rows
from tidegate.operate.aggregate.sample.release import released
from tidegate.operate.aggregate.sample.thinning import Thinning
from tidegate.operate.aggregate.state import PANES, PaneKeeper, turned
from tidegate.operate.bucket_work import BucketWork, rows_by_bucket, values_by_bucket
from tidegate.operate.figures import ShownFigure, ToldWindow, Values
from tidegate.operate.operator import (
    Arrival,
    InstanceWork,
    MapWork,
    Migration,
    Operator,
    OperatorState,
    Result,
    Share,
    Traits,
    by_channel,
    plain_names,
)
from tidegate.operate.spill import Spill
from tidegate.route.partitioner import Partitioner
from tidegate.route.reach import Reach
from tidegate.route.send_counts import Sent
from tidegate.state.segment.segment import Segment


@dataclass(frozen=True)
class WindowAggregate(Operator):
    """Folds tuples into panes, merges these in the instances, and closes windows.

    With a `PartAnswer` its rows are states of windows by bucket, for a `MergeWindows`. Then a key
    may be at several instances. The placement may know windows in which no key is: those are
    answered at once, and their rows go to a second port.
    """

    kind: ClassVar[str] = "aggregate"

    spec: AggregateSpec
    key_names: tuple[str, ...]
    placement: Placement = field(default_factory=Placement)
    answer: WindowAnswer = field(default_factory=ExactAnswer)

    order = WindowOrder()

    @property
    def traits(self) -> Traits:
        return Traits(
            waits=False,
            levels=(MEMORY,),
            map_steps=(self.placement.folding.step,),
            deals_ahead=not self.partitioner.remembers,
            grouped=() if self.placement.folding.sent_whole else self.spec.grouped,
        )

    @property
    def partitioner(self) -> Partitioner:
        return self.placement.partitioner

    @property
    def splitting(self) -> WindowAggregate | None:
        chooser = self.partitioner.chooser
        if chooser is None:
            return None
        return replace(self, placement=replace(self.placement, partitioner=chooser))

    @property
    def finishes(self) -> bool:
        """Whether it answers some windows itself and closes the others in part."""
        return self.answer.partly and self.answer.piecewise and self.placement.finishes

    @property
    def operation(self) -> Operation:
        range_s, slide_s = self.spec.window.lengths_s
        by_tuple = self.placement.folding.sent_whole or self.spec.keeps_values
        return Operation(self.kind, range_s=range_s, slide_s=slide_s, by_tuple=float(by_tuple))

    def deal(self, work: MapWork, tuples: pa.Table) -> list[Share]:
        spec, folding = self.spec, self.placement.folding
        rows, sent = plain_names(tuples), Sent(work.mapping, work.spans.clock)
        router = self.placement.router(work, spec).counting(sent)
        dealt = folding.deal(spec, rows, router)
        if self._tells:
            work.told.append(sent_figures(spec, sent, router.ledger))
        work.spans.mark(folding.span)
        shares = shares_of(spec, work, dealt) if work.mapping.formers else work.by_bucket(dealt)
        shares += self.answer.beside(work, spec, folding, dealt)
        return [*shares, *self.placement.beside(work, router)]

    def run(self, work: InstanceWork, arrived: Sequence[Arrival]) -> Result:
        """Merge the batch's partials into the panes of this instance's buckets; close windows.

        It writes what later batches need: partials of open panes, and the complete panes of open
        windows.
        """
        spec, placement, came = self.spec, self.placement, by_channel(arrived)
        dealt, answer = came[""], self.answer.batch(spec, work, came)
        thinning = Thinning(spec, work)
        splits_keys = placement.splits_keys
        news = thinning.thinned(placement.folding.partials(spec, dealt))
        news = released(spec, news, splits_keys=splits_keys)
        work.spans.mark("instance merge")
        turn = turned(spec, work, news, splits_keys=splits_keys)
        beside = placement.written(work, spec, came) | answer.segments()
        segments = {PANES: turn.written(spec, work), **beside}
        work.spans.mark("instance write")
        counts = WindowCounts(spec.window)
        rows, groups = self._closed(self.steps(turn.panes, work, came, answer), work, counts)
        if turn.held is not None:
            turn.leave(spec, work)
            thinning.leave(turn.sealed)
        return Result(
            rows,
            sum(part.num_rows for part in dealt),
            segments,
            {"closed": groups} | answer.counts(),
            bucket_work=self._touched([*dealt, *placement.folded(news), turn.panes], work),
            windows=(*(counts.figures() if self._tells else ()), *answer.figures()),
            changes=placement.changes(work, spec, came),
        )

    @property
    def _tells(self) -> bool:
        """Whether to report how tuples were placed; one group in one place leaves no choice."""
        return bool(self.spec.keys) or self.answer.partly

    def window_figures(self, told: ToldWindow) -> Values:
        found = sent_window(told, self.partitioner.tuple_share) | self.answer.window(told)
        if self.answer.partly:
            return found | merging_constraint(told)
        return found | {"groups": found["parts"], "groups_split": 0, "aggregation_cost": 1}

    @property
    def shown_figures(self) -> tuple[ShownFigure, ...]:
        return self.answer.shown or self.placement.shown

    def _touched(self, partials: Sequence[pa.Table], work: InstanceWork) -> BucketWork:
        """The work by bucket: the partials that were merged, and the values in their lists."""
        buckets = work.mapping.buckets
        touched = rows_by_bucket(partials, buckets)
        for function in self.spec.functions:
            if function.definition.holistic:
                lists = (name for name, type_ in function.state if pa.types.is_list(type_))
                for name in lists:
                    kept = [part for part in partials if name in part.column_names]
                    touched += values_by_bucket(kept, name, buckets)
        return touched

    def _migration(
        self, frontier_us: int, state: Mapping[str, Sequence[Segment]], counts: Mapping[str, int]
    ) -> Migration | None:
        """The times of a switch after which windows stay with the owners they began with."""
        highest = max((s.high for s in state.get(PANES, ()) if s.rows), default=None)
        return None if highest is None else migration_of(self.spec, frontier_us, highest)

    def _closed(
        self, steps: Iterator[tuple[bool, pa.Table]], work: InstanceWork, counts: WindowCounts
    ) -> tuple[tuple[pa.Table, ...], int]:
        """The rows of windows that end, by port, and how many groups these windows have.

        It makes them step by step, and spills them to disk, because there may be very many.
        `counts` counts them.
        """
        closed = 0
        spills = [Spill.of(work, i) for i in range(len(work.ports))]
        try:
            for partly, results in chain(self._none(), steps):
                final = self.final(results)
                closed += final.num_rows
                counts.add(final)
                work.spans.mark("instance close")
                keys = [name for name, _ in self.spec.keys] + [PART] * partly
                for place, (port, spill) in enumerate(zip(work.ports, spills, strict=True)):
                    if not self.finishes or partly == (place == PARTS):
                        spill.add(window_rows(port, keys, results))
                work.spans.mark("instance finish")
            return tuple(spill.table() for spill in spills), closed
        finally:
            for spill in spills:
                spill.drop()

    def _none(self) -> Iterator[tuple[bool, pa.Table]]:
        """A table without rows for each port: every spill needs the columns at least."""
        if self.answer.partly:
            yield True, self.spec.window_schema.empty_table()
        if self.finishes or not self.answer.partly:
            yield False, self.answer.schema(self.spec).empty_table()

    def steps(
        self, panes: pa.Table, work: InstanceWork, came: Channels, answer: AnswerBatch
    ) -> Iterator[tuple[bool, pa.Table]]:
        """Give the rows of windows that end, step by step, and whether they are closed in part."""
        split: Sequence[Ends] = EVERY_WINDOW if self.answer.partly else ()
        if self.finishes:
            split = self.placement.split_windows(work, self.spec, came)
        for part, above_us, upto_us in closings(self.spec, work, panes):
            for above, upto, partly in divided(above_us, upto_us, split):
                states = partly or self.answer.from_states
                for windows in close_steps(self.spec, part, above, upto, partly=states):
                    yield partly, answer.closed(windows, partly)

    def final(self, rows: pa.Table) -> pa.Table:
        """Of rows of `steps` those that are the last ones of their window and group."""
        return rows

    @property
    def state(self) -> OperatorState:
        beside = self.placement.keepers(self.spec) | self.answer.keepers(self.spec)
        keepers = {PANES: PaneKeeper(self.spec), **beside}
        return OperatorState(keepers, Reach(self.spec.window.reach_us), self._migration)

    def title(self) -> str:
        what = "aggregate in part" if self.answer.partly else "aggregate"
        return f"{what} over [{self.spec.window}] by {', '.join(self.key_names) or 'nothing'}"

    def details(self, texts: Mapping[str, str]) -> list[str]:
        spec, window = self.spec, self.spec.window
        lines = [f"panes: {window.pane_text}, {window.panes} per window"]
        functions = [part for f in spec.functions for part in f.parts]
        constant = [_call(f, texts) for f in functions if not f.definition.holistic]
        holistic = [_call(f, texts) for f in functions if f.definition.holistic]
        if constant:
            side = self.placement.folding.side
            lines.append(f"pre-aggregated per pane {side}: {', '.join(constant)}")
        if holistic:
            lines.append(f"exact holistic, values kept per pane: {', '.join(holistic)}")
        lines += [*self.answer.held_lines(), *self.answer.lines(), *self.placement.details()]
        way = f"shuffle by {self.placement.way}"
        return [*lines, f"merge panes, close windows: one task per instance, {way}"]


def _call(function: Function, texts: Mapping[str, str]) -> str:
    """A call with the arguments as the query writes them."""
    given = [texts.get(a, a).replace("`", "") for a in function.arguments]
    return function.definition.written(given, function.parameters)
