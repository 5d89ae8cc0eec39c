"""The ledger of a schema: for each table of results, whose it is and the newest batch it has.

`tidegate_ledger` has one row for each table. A batch changes that row in the transaction that
writes its rows, so the ledger tells whether the batch was committed, also where the answer to
COMMIT was lost. A writer locks the row, so two runs do not write side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.batch import BatchId

if TYPE_CHECKING:
    import psycopg

LEDGER = "tidegate_ledger"

_COLUMNS = (
    "target text PRIMARY KEY, output text, run text NOT NULL, owner bigint NOT NULL, "
    "batch bigint, rows bigint NOT NULL DEFAULT 0, written timestamptz NOT NULL DEFAULT now()"
)


@dataclass(frozen=True)
class LedgerEntry:
    """One row of the ledger.

    `run` is the name of the checkpoint, which receipts carry too. `owner` is the number of the run
    that wrote last. `batch` is None until something is written.
    """

    run: str
    owner: int
    batch: int | None


class TableLedger:
    """The ledger's row of one table; calls take part in the transaction of their cursor."""

    def __init__(self, schema: str, table: str, output: str | None) -> None:
        from psycopg import sql

        self._table, self._output = table, output
        self._schema = schema
        self._name = sql.Identifier(schema, LEDGER)
        self._sql = sql.SQL

    def make(self, cursor: psycopg.Cursor[Any]) -> None:
        """Create the ledger, where the schema has none."""
        cursor.execute(
            "SELECT to_regclass(format('%%I.%%I', %s::text, %s::text))", (self._schema, LEDGER)
        )
        (there,) = cursor.fetchone() or (None,)
        if there is None:
            cursor.execute(self._sql("CREATE TABLE {} (" + _COLUMNS + ")").format(self._name))

    def entry(self, cursor: psycopg.Cursor[Any], lock: bool) -> LedgerEntry | None:
        """The row; with `lock` nobody else writes the table until the transaction ends."""
        query = "SELECT run, owner, batch FROM {} WHERE target = %s" + (" FOR UPDATE" * lock)
        cursor.execute(self._sql(query).format(self._name), (self._table,))
        found = cursor.fetchone()
        return None if found is None else LedgerEntry(*found)

    def take(self, cursor: psycopg.Cursor[Any], run: str, owner: int) -> None:
        """Make a run the owner; a new query forgets the batch of the one before it."""
        query = (
            "INSERT INTO {} AS l (target, output, run, owner) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (target) DO UPDATE SET run = EXCLUDED.run, owner = EXCLUDED.owner, "
            "output = EXCLUDED.output, "
            "batch = CASE WHEN l.run = EXCLUDED.run THEN l.batch END"
        )
        values = (self._table, self._output, run, owner)
        cursor.execute(self._sql(query).format(self._name), values)

    def write(self, cursor: psycopg.Cursor[Any], owner: int, batch: BatchId, rows: int) -> None:
        """Record that the table has a batch, in the transaction that writes its rows."""
        query = "UPDATE {} SET owner = %s, batch = %s, rows = %s, written = now() WHERE target = %s"
        cursor.execute(self._sql(query).format(self._name), (owner, batch, rows, self._table))
