"""The ledgers of a partitioner as state of an aggregate, between its map tasks and segments.

Map tasks read what the batches before have noted, and send what they note themselves to one of the
instances, which writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.pane import AggregateSpec
from tidegate.operate.aggregate.pane_window import PaneWindow
from tidegate.operate.keeper import OrderHorizon
from tidegate.operate.operator import InstanceWork, MapWork, Share
from tidegate.route.key_memory import load_loop
from tidegate.route.ledger import LEDGER_SCHEMA, Ledger, source_number
from tidegate.state.compaction import DEAD_SHARE, by_bucket
from tidegate.state.segment import Segment, read_segment, write_segment

LEDGER = "ledger"
"""What the segments hold, by the name that they have below the operator in a manifest."""

_ORDER = "period"


@dataclass(frozen=True)
class LedgerKeeper:
    """What is noted of periods; it goes with them."""

    window: PaneWindow
    order = _ORDER
    dead_share = DEAD_SHARE
    grouped = True
    cell = 1

    @property
    def columns(self) -> list[str]:
        return list(LEDGER_SCHEMA.names)

    def horizon(
        self, frontier_us: int, tuples: int, segments: Sequence[Segment] = ()
    ) -> OrderHorizon:
        return OrderHorizon(_ORDER, self.window.first_period(frontier_us))

    def arrange(self, rows: pa.Table) -> pa.Table:
        """One row for the tuples of a bucket or bin, so that long periods do not have many."""
        names = [name for name in LEDGER_SCHEMA.names if name != "tuples"]
        is_sum = ints(rows, "tuples") > 0
        sums = rows.filter(pa.array(is_sum)).group_by(names, use_threads=False)
        summed = sums.aggregate([("tuples", "sum")]).rename_columns([*names, "tuples"])
        others = rows.filter(pa.array(~is_sum)).select(LEDGER_SCHEMA.names)
        parts = [summed.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA), others]
        return by_bucket(pa.concat_tables(parts), self.order)

    def kin(
        self, segments: Sequence[Segment], owners: Sequence[int], since_us: int
    ) -> list[int | None]:
        return [0] * len(segments)


def opened(work: MapWork, keys: str | None, spec: AggregateSpec) -> Ledger:
    """The ledger of the source of a split, as the batch before has left it.

    `keys` is how keys are remembered, None where they are not.
    """
    first = spec.window.first_period(work.previous_us)
    held: Ledger | None = None if work.kept is None else work.kept.take(LEDGER)
    if held is not None and held.mapping.epoch == work.mapping.epoch:
        held.forget(first)
        return held
    load_loop(keys)
    source = source_number(work.upstream)
    ledger = Ledger.begun(work.mapping, keys, source, spec.window.overlapping)
    ledger.alone = work.kept is not None
    segments = [s for s in work.state.get(LEDGER, ()) if s.high >= first]
    if segments:
        store = work.opened()
        tables = (read_segment(store, s, None, LEDGER_SCHEMA.names) for s in segments)
        ledger.restore(tables, first)
    work.spans.mark("map read state")
    return ledger


def noted(work: MapWork, ledger: Ledger) -> list[Share]:
    """What a split has added to the ledger, for the instance that writes it."""
    news = ledger.news()
    if work.kept is not None and ledger.whole:
        work.kept.leave(LEDGER, ledger, ledger.nbytes)
    return [] if news is None else [Share(work.mapping.owners[0], news, LEDGER)]


def write_ledger(
    work: InstanceWork, spec: AggregateSpec, parts: Sequence[pa.Table]
) -> tuple[Segment, ...]:
    """What splits have added to periods that the next batch may ask for, as one segment."""
    if not parts:
        return ()
    rows = pa.concat_tables(parts)
    first = spec.window.first_period(work.frontier_us)
    rows = by_bucket(rows.filter(pa.array(ints(rows, _ORDER) >= first)), _ORDER)
    if not rows.num_rows:
        return ()
    return (write_segment(work.store, f"{work.name}-ledger", rows, order=_ORDER, tag=0),)
