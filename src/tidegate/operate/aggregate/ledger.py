"""The ledgers of a partitioner, kept as state of an aggregate.

Map tasks read what the batches before have noted, and send what they note themselves to one of the
instances, which writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.pane_window import WindowPanes
from tidegate.operate.aggregate.side_state import SideState
from tidegate.operate.operator import MapWork, Share
from tidegate.route.key_memory import load_loop
from tidegate.route.ledger import LEDGER_SCHEMA, Ledger, source_number
from tidegate.state.compaction import by_bucket

LEDGER = "ledger"
"""What the segments hold, by the name that they have below the operator in a manifest."""


@dataclass(frozen=True)
class LedgerState(SideState):
    """What is noted of periods; it goes with them."""

    window: WindowPanes

    name: ClassVar[str] = LEDGER
    order: ClassVar[str] = "period"

    @property
    def schema(self) -> pa.Schema:
        return LEDGER_SCHEMA

    def first(self, frontier_us: int) -> int:
        return self.window.first_period(frontier_us)

    def arrange(self, rows: pa.Table) -> pa.Table:
        """One row for the tuples of a bucket or bin, so that long periods do not have many."""
        names = [name for name in LEDGER_SCHEMA.names if name != "tuples"]
        is_sum = ints(rows, "tuples") > 0
        sums = rows.filter(pa.array(is_sum)).group_by(names, use_threads=False)
        summed = sums.aggregate([("tuples", "sum")]).rename_columns([*names, "tuples"])
        others = rows.filter(pa.array(~is_sum)).select(LEDGER_SCHEMA.names)
        parts = [summed.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA), others]
        return by_bucket(pa.concat_tables(parts), self.order)

    def opened(self, work: MapWork, keys: str | None) -> Ledger:
        """The ledger of the source of a split, as the batch before has left it.

        `keys` is how keys are remembered, None where they are not.
        """
        first = self.first(work.previous_us)
        held: Ledger | None = None if work.kept is None else work.kept.take(LEDGER)
        if held is not None and held.mapping.epoch == work.mapping.epoch:
            held.forget(first)
            return held
        load_loop(keys)
        source = source_number(work.upstream)
        ledger = Ledger.begun(work.mapping, keys, source, self.window.overlapping)
        ledger.alone = work.kept is not None
        if work.state.get(LEDGER):
            ledger.restore(self.read(work.state, work.opened(), work.previous_us), first)
        work.spans.mark("map read state")
        return ledger


def noted(work: MapWork, ledger: Ledger) -> list[Share]:
    """What a split has added to the ledger, for the instance that writes it."""
    news = ledger.news()
    if work.kept is not None and ledger.whole:
        work.kept.leave(LEDGER, ledger, ledger.nbytes)
    return [] if news is None else [Share(work.mapping.owners[0], news, LEDGER)]
