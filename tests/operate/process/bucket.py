"""One bucket's object through batches without calls: what is written of it, and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.advance import Process
from tidegate.operate.process.entry import ENTRY, STATE, StateRow, newest, table_of
from tidegate.operate.process.object_state import ObjectState
from tidegate.operate.process.stored import StoredState


class Bucket:
    """An object with these attributes; `layers` are what was written, the oldest first."""

    def __init__(self, attributes: dict[str, Any], timers: tuple[int, ...] = ()) -> None:
        self.layers: list[pa.Table] = []
        self.attributes = attributes
        self.timers = timers
        self._state = ObjectState(None)

    def commit(self, merge: int = 0) -> list[StateRow]:
        """Write what changed; with `merge` n, merge the newest n layers first, as compaction does.

        Only the oldest layer loses what hides older rows, and not when it is merged.
        """
        made = Process()
        vars(made).update(self.attributes)
        rows = self._state.changes(made, made.snapshot(), self.timers)
        if merge and len(self.layers) >= merge:
            last = self.layers[-merge:]
            if len(last) == len(self.layers):
                last[0] = last[0].filter(pa.array(last[0][ENTRY].to_numpy() < HIDES))
            self.layers[-merge:] = [newest(pa.concat_tables(last))]
        if rows:
            self.layers.append(self.table(rows))
        return rows

    def table(self, rows: list[StateRow]) -> pa.Table:
        table = table_of([(3, rows)])
        assert table.schema == STATE
        assert bool((np.diff(table[ENTRY].to_numpy()) >= 0).all())
        return table

    def restore(self, whole: frozenset[str] | None) -> dict[str, Any]:
        """Go on with the object as it is read."""
        self.attributes = self.read(whole)
        return self.attributes

    def read(self, whole: frozenset[str] | None) -> dict[str, Any]:
        stored = StoredState(self.layers, [1, 3]).bucket(3, expected=4)
        self._state = ObjectState(stored)
        kept = self._state.restored(Process(), whole, "test")
        assert kept is not None
        assert set(kept.timers) == set(self.timers)
        attributes: dict[str, Any] = kept.state
        return attributes
