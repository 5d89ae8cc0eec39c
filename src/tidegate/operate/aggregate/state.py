"""The state of an aggregate: partials of open panes, and complete panes that open windows need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.function import unfolded_state
from tidegate.operate.aggregate.pane.open_panes import OpenPanes, split
from tidegate.operate.aggregate.pane.pane import AggregateSpec, merge
from tidegate.operate.aggregate.pane.tenure import needed_of, received, spans_of, stored
from tidegate.operate.aggregate.sample.release import released
from tidegate.operate.keeper import CELLS, Keeper
from tidegate.operate.operator import InstanceWork
from tidegate.state.segment.compaction import by_bucket
from tidegate.state.segment.segment import Absent, Segment, read_segment, write_segment
from tidegate.state.store import Store

PANES = "panes"
"""The name of this part of the state in a manifest."""

_APART_ROWS = 2_048
"""Parts with fewer rows share a segment: one more file would cost more than their dead rows."""


@dataclass(frozen=True)
class PaneHorizon:
    """Which rows of segments are needed at a frontier.

    The rows of a segment in panes below its `tag` are complete panes: they are needed while a
    window over them is open, from pane `needed` on. The other rows are partials: they are needed
    until their pane is complete, from pane `sealed` on.
    """

    needed: int
    sealed: int

    @property
    def tag(self) -> int:
        return self.sealed

    @staticmethod
    def at(spec: AggregateSpec, frontier_us: int) -> PaneHorizon:
        return PaneHorizon(
            spec.window.needed_from(frontier_us), spec.window.sealed_before(frontier_us)
        )

    def live(self, rows: pa.Table, segment: Segment) -> npt.NDArray[np.bool_]:
        pane: npt.NDArray[Any] = rows.column("pane").to_numpy()
        return np.where(pane < segment.tag, pane >= self.needed, pane >= self.sealed)

    def passed(self, segment: Segment) -> bool:
        complete_until = min(segment.high, segment.tag - 1)
        no_complete = segment.low >= segment.tag or complete_until < self.needed
        no_partial = segment.high < segment.tag or segment.high < self.sealed
        return no_complete and no_partial

    def whole(self, segment: Segment) -> bool:
        partials_from = max(segment.low, segment.tag)
        no_dead_partial = segment.high < segment.tag or partials_from >= self.sealed
        return segment.low >= self.needed and no_dead_partial


@dataclass(frozen=True)
class PaneKeeper(Keeper):
    """Panes of an aggregate; the order of segments matters: a user's states are merged in it."""

    spec: AggregateSpec
    order = "pane"

    @property
    def columns(self) -> list[str]:
        return list(self.spec.partial_schema.names)

    @property
    def absent(self) -> Absent:
        return partial(unfolded_state, self.spec.functions)

    @property
    def cell(self) -> int:
        return max(self.spec.window.panes // CELLS, 1)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> PaneHorizon:
        return PaneHorizon.at(self.spec, frontier_us)


def read_panes(work: InstanceWork, spec: AggregateSpec) -> OpenPanes:
    """Read the panes that an instance needs from the segments."""
    mapping = work.mapping
    spans = spans_of(spec, mapping, work.instance)
    horizon = PaneHorizon.at(spec, work.previous_us)
    waiting, complete = [], []
    for segment in work.state.get(PANES, ()):
        mine = needed_of(spans, segment)
        if not mine:
            continue
        names, absent = spec.partial_schema.names, PaneKeeper(spec).absent
        rows = read_segment(work.store, segment, mine, names, absent=absent)
        if mapping.formers:
            rows = rows.filter(pa.array(received(spec, mapping, work.instance, rows)))
        pane = ints(rows, "pane")
        is_complete = pane < segment.tag
        waiting.append(rows.filter(pa.array(~is_complete & (pane >= horizon.sealed))))
        complete.append(rows.filter(pa.array(is_complete & (pane >= horizon.needed))))
    return OpenPanes.of(complete, waiting)


@dataclass(frozen=True)
class PaneTurn:
    """What a batch makes of the panes of an instance.

    `panes` are the complete panes with which windows are closed; it is empty where the batch
    completes no pane. `keep` is what the batch adds to the segments. `sealed` is the first pane
    that may still get tuples. `held` is what stays in memory; None where it does not fit, was not
    read yet, or is kept on disk only.
    """

    panes: pa.Table
    keep: list[pa.Table]
    sealed: int
    held: OpenPanes | None

    def written(self, spec: AggregateSpec, work: InstanceWork) -> tuple[Segment, ...]:
        """Write `keep`; after a switch each partial is written by one instance only."""
        keep = self.keep
        if work.mapping.formers:
            keep = [stored(spec, work, part) for part in keep]
        return write_panes(work.store, work.name, keep, self.sealed)

    def leave(self, spec: AggregateSpec, work: InstanceWork) -> None:
        """Leave in memory what the next batch needs.

        Former owners that have no window left at this frontier need nothing any more.
        """
        held, after = self.held, work.mapping.lasting(work.frontier_us)
        assert held is not None
        if after.formers != work.mapping.formers:
            held = held.those(lambda rows: received(spec, after, work.instance, rows))
        work.kept.leave(PANES, held, held.nbytes)


def turned(
    spec: AggregateSpec, work: InstanceWork, news: pa.Table, *, splits_keys: bool = False
) -> PaneTurn:
    """Add the partials of a batch to the open panes, and complete those that the frontier passed.

    It reads the state only where a pane becomes complete and the state is not in memory. With
    `splits_keys` a key may be in several buckets.
    """
    sealed = spec.window.sealed_before(work.frontier_us)
    held: OpenPanes | None = work.kept.take(PANES)
    # No pane becomes complete, so no window ends: the batch only appends its partials.
    if sealed <= spec.window.sealed_before(work.previous_us):
        if not spec.spills and (held is not None or not work.state.get(PANES)):
            held = (held or OpenPanes()).with_waiting(news)
        return PaneTurn(news.slice(0, 0), [news], sealed, held)
    held = read_panes(work, spec) if held is None else held
    work.spans.mark("instance read state")
    needed = spec.window.needed_from(work.frontier_us)
    complete, later = split(news, sealed)
    due, held = held.due(sealed)
    ended = released(spec, with_due(spec, due, complete), splits_keys=splits_keys)
    panes = pa.concat_tables([*(part.rows for part in held.complete), ended])
    _, lasting = split(ended, needed)
    # To divide panes costs a copy of them, so do not where they would not fit in memory anyway.
    fits = not spec.spills and work.kept.fits(held.nbytes)
    left = held.needed(needed).with_complete(lasting).with_waiting(later) if fits else None
    work.spans.mark("instance seal")
    return PaneTurn(panes, [lasting, later], sealed, left)


def with_due(spec: AggregateSpec, due: Sequence[pa.Table], news: pa.Table) -> pa.Table:
    """Merge partials of earlier batches with those of this one, pane by pane.

    Partials of panes that are later than all of the earlier ones are merged already. In a large
    batch most panes are, so they are left as they came.
    """
    if not due:
        return news
    newest = max(int(ints(rows, "pane").max()) for rows in due)
    again, alone = split(news, newest + 1)
    return pa.concat_tables([merge(spec, [*due, again]), alone])


def write_panes(
    store: Store, name: str, parts: Sequence[pa.Table], sealed: int
) -> tuple[Segment, ...]:
    """Write complete panes and partials as one segment, or as two where both are large.

    Partials are dead as soon as their pane is complete. A segment of partials is then deleted as a
    whole. Beside complete panes, compaction would have to remove them.
    """
    if any(part.num_rows < _APART_ROWS for part in parts):
        parts = [pa.concat_tables(parts)]
    return tuple(
        write_segment(store, f"{name}-{i}", by_bucket(part, "pane"), order="pane", tag=sealed)
        for i, part in enumerate(parts)
        if part.num_rows
    )
