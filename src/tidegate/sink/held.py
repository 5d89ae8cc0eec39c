"""Parts held in the driver's memory, for sinks that show or keep rows in this process."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.receipt import Part, Receipt


class HeldParts:
    """A part writer that holds the tables of one batch; for sinks that are not `parallel`."""

    def __init__(self) -> None:
        self._tables: dict[Part, pa.Table] = {}

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        self._tables[part] = rows
        return Receipt(part.side or "rows", rows.num_rows)

    def output(self, schema: pa.Schema | None = None) -> BatchOutput:
        """What was written, as one batch; the schema is for one that has no rows."""
        late = {p.stream: table for p, table in self._tables.items() if p.side == "late"}
        rows = self._tables.get(Part(), (schema or pa.schema([])).empty_table())
        return BatchOutput(rows, late, self._tables.get(Part(side="rejected")))


@dataclass(frozen=True)
class CountedParts:
    """A part writer that keeps nothing and says how many rows there were; for any task."""

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        return Receipt(part.side or "rows", rows.num_rows)
