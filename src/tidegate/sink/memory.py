"""Results inside this process: kept as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.sink.address import Address
from tidegate.sink.batch_output import BatchOutput, HeldParts
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt
from tidegate.sink.upsert import applied


class MemorySink:
    """Keeps every batch that has something as a table; `table()` is the output sequence so far.

    Grows with the rows of the output, which is its purpose. Holds only the batches of this process:
    those of an earlier process went with it.
    """

    parallel = False
    side_outputs = True
    uri = None

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
            self._take(batch, self._held.pop(batch).output(self._schema))

    def _take(self, batch: BatchId, output: BatchOutput) -> None:
        self.batches[batch] = output

    def close(self) -> None:
        """Nothing is held open."""

    def table(self) -> pa.Table:
        """All rows committed so far, in the output order."""
        tables = [self.batches[b].rows for b in sorted(self.batches)]
        return pa.concat_tables([self._opened_schema.empty_table(), *tables])

    @property
    def _opened_schema(self) -> pa.Schema:
        if self._schema is None:
            raise SinkError(
                "memory sink", "must belong to a started query", "a sink not yet opened"
            )
        return self._schema


class NewestSink(MemorySink):
    """Keeps the newest row of each key; `table()` has them in the order in which they came.

    Grows with the keys. Changes are applied once they outnumber the rows, so the cost of one change
    does not depend on the size of the table. `batches` has late and rejected tuples only.
    """

    upserts = True

    def __init__(self) -> None:
        super().__init__()
        self._rows: pa.Table | None = None
        self._changes: list[pa.Table] = []

    def __repr__(self) -> str:
        rows = 0 if self._schema is None else self.table().num_rows
        return f"NewestSink({rows:,} row{'' if rows == 1 else 's'})"

    def open(self, opening: Opening) -> None:
        super().open(opening)
        self._key = opening.key

    def table(self) -> pa.Table:
        """The newest row of each key, of those committed so far."""
        rows = self._opened_schema.empty_table() if self._rows is None else self._rows
        if self._changes:
            rows = applied(rows, pa.concat_tables(self._changes), self._key)
            self._rows, self._changes = rows, []
        return rows

    def _take(self, batch: BatchId, output: BatchOutput) -> None:
        if output.late or output.rejected is not None:
            self.batches[batch] = replace(output, rows=self._opened_schema.empty_table())
        if output.rows.num_rows:
            self._changes.append(output.rows)
        held = 0 if self._rows is None else self._rows.num_rows
        if sum(changes.num_rows for changes in self._changes) > held:
            self.table()
