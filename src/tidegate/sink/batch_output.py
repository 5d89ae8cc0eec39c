"""Holds what a query gives to one output in one batch, and the parts that sinks keep in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tidegate.sink.digest.digest import Digest
from tidegate.sink.receipt import Part, Receipt


@dataclass(frozen=True)
class BatchOutput:
    """One batch of results, in the output order, with its side outputs.

    `late` has one table per stream: the stream's columns and why the tuple was late. `rejected` has
    one row per tuple that had no readable time or could not be parsed. Where tasks have written the
    rows already, `receipts` confirm their parts in order, and `rows` holds only the last part.
    """

    rows: pa.Table
    late: Mapping[str, pa.Table] = field(default_factory=dict)
    rejected: pa.Table | None = None
    receipts: tuple[Receipt, ...] | None = None

    @property
    def count(self) -> int:
        """The number of rows of the batch, without side outputs."""
        if self.receipts is None:
            return int(self.rows.num_rows)
        return sum(receipt.rows for receipt in self.receipts)

    def digest(self) -> Digest:
        """The digest of the rows of this batch alone, computed or from the receipts of tasks."""
        if self.receipts is None:
            return Digest.of(self.rows)
        whole = Digest()
        for receipt in self.receipts:
            whole = whole.then(Digest(receipt.rows, int(receipt.digest or "0", 16)))
        return whole


class HeldParts:
    """A part writer that holds the tables of one batch in memory, for sinks in one process."""

    def __init__(self) -> None:
        self._tables: dict[Part, pa.Table] = {}

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        self._tables[part] = rows
        return Receipt(part.side or "rows", rows.num_rows)

    def output(self, schema: pa.Schema | None = None) -> BatchOutput:
        """The written parts as one batch; a batch without rows gets `schema`."""
        late = {p.stream: table for p, table in self._tables.items() if p.side == "late"}
        rows = self._tables.get(Part(), (schema or pa.schema([])).empty_table())
        return BatchOutput(rows, late, self._tables.get(Part(side="rejected")))


@dataclass(frozen=True)
class CountedParts:
    """A part writer that keeps nothing and only counts the rows; works in any task."""

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        return Receipt(part.side or "rows", rows.num_rows)
