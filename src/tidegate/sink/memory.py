"""Results inside this process: kept as tables."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.sink.address import Address
from tidegate.sink.batch_output import BatchOutput, HeldParts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt


class MemorySink:
    """Keeps every batch that has something as a table; `table()` is the output sequence so far.

    Grows with the rows of the output, which is its purpose. Only batches of this process are here:
    what another one kept went with it.
    """

    parallel = False
    side_outputs = True

    def __init__(self) -> None:
        self.batches: dict[int, BatchOutput] = {}
        self._held: dict[int, HeldParts] = {}
        self._schema: pa.Schema | None = None

    @staticmethod
    def at(address: Address, output: str | None) -> MemorySink:
        """The sink of `memory:`."""
        address.check_bare()
        return MemorySink()

    def __repr__(self) -> str:
        rows = sum(batch.rows.num_rows for batch in self.batches.values())
        batches = len(self.batches)
        return (
            f"MemorySink({batches:,} batch{'' if batches == 1 else 'es'}, "
            f"{rows:,} row{'' if rows == 1 else 's'})"
        )

    def open(self, opening: Opening) -> None:
        self._schema = opening.schema

    def begin(self, batch: BatchId) -> HeldParts:
        self._held = {batch: HeldParts()}
        return self._held[batch]

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if batch in self._held:
            self.batches[batch] = self._held.pop(batch).output(self._schema)

    def close(self) -> None:
        """Nothing is held open."""

    def table(self) -> pa.Table:
        """All rows committed so far, in the output order."""
        if self._schema is None:
            raise SinkError(
                "memory sink", "must belong to a started query", "a sink not yet opened"
            )
        tables = [self.batches[b].rows for b in sorted(self.batches)]
        return pa.concat_tables([self._schema.empty_table(), *tables])
