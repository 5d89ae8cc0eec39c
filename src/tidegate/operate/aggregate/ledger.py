"""The ledgers of a partitioner, kept as part of the state of an aggregate.

A map task reads what earlier batches have noted. It sends its own notes to one of the instances,
which writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from tidegate.batch import ints
from tidegate.operate.aggregate.pane.pane_window import WindowPanes
from tidegate.operate.aggregate.side_state import SideState
from tidegate.operate.operator import MapWork, Share
from tidegate.route.key_memory import load_loop
from tidegate.route.ledger import LEDGER_SCHEMA, Ledger, source_number
from tidegate.state.segment.compaction import by_bucket

LEDGER = "ledger"
"""The name of this part of the state in a manifest."""


@dataclass(frozen=True)
class LedgerState(SideState):
    """Keeps the notes of a period as long as the period is needed."""

    window: WindowPanes

    name: ClassVar[str] = LEDGER
    order: ClassVar[str] = "period"

    @property
    def schema(self) -> pa.Schema:
        return LEDGER_SCHEMA

    def first(self, frontier_us: int) -> int:
        return self.window.first_period(frontier_us)

    def arrange(self, rows: pa.Table) -> pa.Table:
        """Add up the tuples of each bucket or bin, so that a long period has few rows."""
        names = [name for name in LEDGER_SCHEMA.names if name != "tuples"]
        is_sum = ints(rows, "tuples") > 0
        sums = rows.filter(pa.array(is_sum)).group_by(names, use_threads=False)
        summed = sums.aggregate([("tuples", "sum")]).rename_columns([*names, "tuples"])
        others = rows.filter(pa.array(~is_sum)).select(LEDGER_SCHEMA.names)
        parts = [summed.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA), others]
        return by_bucket(pa.concat_tables(parts), self.order)

    def opened(self, work: MapWork, keys: str | None) -> Ledger:
        """The ledger of the source of a split, after the batch before.

        `keys` names the way in which keys are remembered; None where they are not.
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
    """The notes that a split has added, for the instance that writes them."""
    news = ledger.news()
    if work.kept is not None and ledger.whole:
        work.kept.leave(LEDGER, ledger, ledger.nbytes)
    return [] if news is None else [Share(work.mapping.owners[0], news, LEDGER)]
