"""The sink of a table of Postgres: rows and the number of their batch in one transaction.

Before the commit of a batch the checkpoint has its rows, as the very text that COPY takes.
`publish` locks the ledger's row, checks whether the table has the batch already, copies the rows
and writes the number. So the table has each batch whole and once, wherever a run or a connection
ends.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.compute as pc

from tidegate import schedule
from tidegate.batch import BatchId
from tidegate.errors import OptionError, SinkError, TidegateError
from tidegate.leaf import each_leaf
from tidegate.remote.postgres import MOST_NAME_BYTES, Database, remedy_of, said
from tidegate.sink.address import Address
from tidegate.sink.checkpoint_staging import kept_bytes
from tidegate.sink.json import objects
from tidegate.sink.postgres.copy_text import copy_text
from tidegate.sink.postgres.ledger import LedgerEntry, TableLedger
from tidegate.sink.postgres.table import ResultTable
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Part, Receipt

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql", "postgres")
PARAMETERS = ("table", "newest")
SIDES = ("late", "rejected")
"""Suffixes of the names of the tables for side outputs."""

_RUN, _SIDE = "run", "side"
_EXAMPLE = "Write postgresql://user@host:port/database?table=name."
T = TypeVar("T")


class PostgresSink:
    """A table of a database, created where it does not exist.

    With `newest` the table has one row for each key, which later rows replace. An output with a
    name has a table of its own, `<table>_<output>`. Late and rejected tuples go to `<table>_late`
    and `<table>_rejected`, as JSON.
    """

    parallel = False
    side_outputs = True

    def __init__(self, database: Database, table: str, newest: bool, output: str | None) -> None:
        self.database = database
        self.upserts = newest
        self._schema, name = _split(table, database.where, output)
        self._table = f"{name}_{output}" if output else name
        self._sides = {side: f"{name}_{side}" for side in SIDES}
        self._output = output
        self._connection: psycopg.Connection[Any] | None = None
        self._opening: Opening | None = None
        self._run = ""
        """The query's id in the ledger and in receipts, the same from its first batch on."""
        self._taken = False
        """Whether the ledger has this run as its owner."""
        self._begun: BatchId | None = None
        self._kept: dict[str, BatchId] = {}
        """The kept parts of the newest batch that is in the table, by name."""

    def __repr__(self) -> str:
        return f"PostgresSink({self.database.where!r}, table={self._table!r})"

    @staticmethod
    def at(address: Address, output: str | None) -> PostgresSink:
        """The sink of a table, for an output of a query."""
        if address.scheme not in SCHEMES:
            raise OptionError(address.where, "must be a URI of Postgres", address.text, _EXAMPLE)
        given = address.parameters
        uri = f"{address.scheme}:{address.place}"
        database = Database.parse(uri, given, PARAMETERS, address.where, OptionError)
        table, newest = given.get("table", ""), given.get("newest", "false")
        if not table:
            raise OptionError(address.where, "must name a table", "no table=", _EXAMPLE)
        if newest not in ("true", "false"):
            raise OptionError(
                address.where,
                "newest must be true or false",
                newest,
                "Write newest=true for one row of each key, or leave it out.",
            )
        return PostgresSink(database, table, newest == "true", output)

    @property
    def side_places(self) -> dict[str, str]:
        """Where late and rejected rows are, for the summary of a run."""
        return {side: f"are in table {self._full_name}_{side}" for side in SIDES}

    @property
    def uri(self) -> str:
        return f"{self.database.where}?{urlencode({'table': self._full_name})}"

    @property
    def where(self) -> str:
        """How messages call the table."""
        return f"{self.database.where}, table {self._full_name}"

    @property
    def _full_name(self) -> str:
        return f"{self._schema}.{self._table}" if self._schema else self._table

    def open(self, opening: Opening) -> None:
        import psycopg

        self._opening, self._taken, self._begun, self._kept = opening, False, None, {}
        self._run = opening.checkpoint or schedule.current().token()
        try:
            with self._cursor() as cursor:
                self._settle(cursor)
                cursor.connection.rollback()
        except psycopg.Error as error:
            raise OptionError(
                self.where, "must be a table that can be written", said(error), remedy_of(error)
            ) from error

    def begin(self, batch: BatchId) -> CopyParts:
        if not self._taken:
            self._tried(self._take, "must be ready before a batch is written", "Then run again.")
            self._taken = True
        self._begun = batch
        return CopyParts(self, batch)

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        again = "Then run again: the batch is kept in the checkpoint."
        done = self._tried(
            lambda: batch != self._begun and self._has(batch, receipts),
            f"must tell whether it has batch {batch}",
            again,
        )
        if not done:
            until = "it is in the table"
            kept = [(r, kept_bytes(self._keep, batch, r, self.where, until)) for r in receipts]
            must = f"batch {batch} is committed and must be written"
            self._tried(lambda: self._write(batch, kept), must, again)
        for name, earlier in self._kept.items():
            self._keep.delete(earlier, name)
        self._kept = {receipt.name: batch for receipt in receipts}

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def make_side(self, side: str) -> None:
        """Create the table of a side output, where it does not exist."""
        name = self._sides[side]

        def make() -> None:
            with self._cursor() as cursor:
                self._target(cursor).make_side(cursor, name)
                cursor.connection.commit()

        must = f"the table {name} for {side} tuples must be there before the batch is committed"
        self._tried(make, must, "Then run again.")

    @property
    def run(self) -> str:
        return self._run

    @property
    def opening(self) -> Opening:
        assert self._opening is not None, "only a sink that was opened is written to"
        return self._opening

    @property
    def _keep(self) -> Any:
        return self.opening.keep

    def _cursor(self) -> psycopg.Cursor[Any]:
        """A cursor of the connection; connects where there is none, or where it broke."""
        if self._connection is None or self._connection.closed:
            self._connection = self.database.connect()
        return self._connection.cursor()

    def _tried(self, work: Callable[[], T], must: str, then: str) -> T:
        """Run `work`, once more where the connection broke.

        A second try does nothing twice: `work` reads the ledger first, in its own transaction.
        """
        import psycopg

        for last in (False, True):
            try:
                return work()
            except psycopg.Error as error:
                broken = self._connection is None or self._connection.closed
                self._undo()
                if broken and not last:
                    continue
                remedy = f"{remedy_of(error)} {then}"
                raise SinkError(self.where, must, said(error), remedy) from error
            except TidegateError:
                self._undo()
                raise
        raise AssertionError("the last try returns or raises")

    def _undo(self) -> None:
        """Roll back the transaction that failed."""
        import psycopg

        if self._connection is not None:
            with suppress(psycopg.Error):  # a broken connection has no transaction
                self._connection.rollback()

    def _target(self, cursor: psycopg.Cursor[Any]) -> ResultTable:
        if self._schema is None:
            cursor.execute("SELECT current_schema()")
            (self._schema,) = cursor.fetchone() or (None,)
            if self._schema is None:
                must, got = "must be in a schema", "a search_path without one that exists"
                raise OptionError(self.where, must, got, "Write table=schema.name.")
        key = self.opening.key if self.upserts else ()
        return ResultTable(self._schema, self._table, self.opening.schema, key, self.where)

    def _ledger(self, target: ResultTable) -> TableLedger:
        return TableLedger(target.schema, target.name, self._output)

    def _take(self) -> None:
        with self._cursor() as cursor:
            self._settle(cursor)
            cursor.connection.commit()

    def _settle(self, cursor: psycopg.Cursor[Any]) -> None:
        """Create the tables that are missing, check the others, and take over the ledger's row."""
        # Two runs that start together would both find no table and both create one.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('tidegate_ledger'))")
        target = self._target(cursor)
        ledger = self._ledger(target)
        target.make(cursor)
        ledger.make(cursor)
        entry = ledger.entry(cursor, lock=True)
        opening = self.opening
        if opening.newest is None or not opening.results:
            if entry is not None and entry.run == self._run:
                self._check_owner(entry)
            self._check_unused(cursor, target)
        else:
            self._run = self._checked(entry, opening).run
        ledger.take(cursor, self._run, opening.owner)

    def _check_unused(self, cursor: psycopg.Cursor[Any], target: ResultTable) -> None:
        """Refuse a table with rows: readers would take those of another run for this one's."""
        sides = self._sides.values() if self.opening.newest is None else ()
        for name in (target.name, *sides):
            if target.has_rows(cursor, name):
                raise OptionError(
                    self.where,
                    "a new run needs a table without rows",
                    f"rows in {target.schema}.{name}",
                    "Name another table, TRUNCATE it, or continue with its --checkpoint.",
                )

    def _checked(self, entry: LedgerEntry | None, opening: Opening) -> LedgerEntry:
        """The entry, where the table has the batches of this checkpoint and none beyond them.

        The newest committed batch may be missing: `publish` writes it next.
        """
        newest, *before = [batch for batch in opening.results if batch >= 0]
        fit = {newest, *((*before, None)[:1] if newest == opening.newest else ())}
        if entry is None or entry.batch not in fit:
            batch = None if entry is None else entry.batch
            raise OptionError(
                self.where,
                f"must have the results of this checkpoint, up to batch {newest}",
                "no batch of it" if batch is None else f"batch {batch} as the newest",
                "Continue with the table of the earlier run, or start from an empty checkpoint.",
            )
        self._check_owner(entry)
        return entry

    def _check_owner(self, entry: LedgerEntry) -> None:
        if entry.owner > self.opening.owner:
            raise SinkError(
                self.where,
                "must be written by one run at a time",
                f"a later run of the checkpoint, owner {entry.owner}, that took it over",
                "Leave it to that run; or stop it and start this one again.",
            )

    def _found(
        self, cursor: psycopg.Cursor[Any], receipts: Sequence[Receipt], lock: bool
    ) -> LedgerEntry:
        """The ledger's entry; refused where it is another query's, or a later run owns it."""
        entry = self._ledger(self._target(cursor)).entry(cursor, lock)
        if entry is None or any(r.more.get(_RUN) != entry.run for r in receipts):
            raise SinkError(
                self.where,
                "must be the table that this checkpoint writes",
                "no entry in tidegate_ledger" if entry is None else "the rows of another query",
                "Give each query a table of its own; if rows were removed on purpose, start from "
                "an empty checkpoint.",
            )
        self._check_owner(entry)
        return entry

    def _has(self, batch: BatchId, receipts: Sequence[Receipt]) -> bool:
        with self._cursor() as cursor:
            entry = self._found(cursor, receipts, lock=False)
            cursor.connection.rollback()
        return entry.batch is not None and entry.batch >= batch

    def _write(self, batch: BatchId, kept: Sequence[tuple[Receipt, bytes]]) -> None:
        with self._cursor() as cursor:
            entry = self._found(cursor, [receipt for receipt, _ in kept], lock=True)
            if entry.batch is not None and entry.batch >= batch:
                cursor.connection.rollback()  # an earlier try committed it; its answer was lost
                return
            target, rows = self._target(cursor), 0
            for receipt, data in kept:
                side = str(receipt.more.get(_SIDE, ""))
                if side:
                    target.copy_side(cursor, self._sides[side], data)
                else:
                    target.copy(cursor, data)
                    rows += receipt.rows
            self._ledger(target).write(cursor, self.opening.owner, batch, rows)
            cursor.connection.commit()


@dataclass(frozen=True)
class CopyParts:
    """Writes the text for COPY into the checkpoint: that of the rows, and of each side output."""

    sink: PostgresSink
    batch: BatchId

    def write(self, part: Part, rows: pa.Table) -> Receipt:
        data = self._side(part, rows) if part.side else copy_text(rows, self.sink.where)
        opening = self.sink.opening
        label = ".".join(filter(None, (part.side, part.stream.encode().hex())))
        name = f"{opening.output or 'output'}.{opening.owner:08d}.{label or 'rows'}.copy"
        opening.keep.write(self.batch, name, data)
        more = {_RUN: self.sink.run, _SIDE: part.side}
        return Receipt(name, rows.num_rows, len(data), zlib.crc32(data), more)

    def _side(self, part: Part, rows: pa.Table) -> bytes:
        """The rows of a side table: the batch, the stream, and each tuple as a JSON object."""
        self.sink.make_side(part.side)
        texts = [objects(_without_nul(batch)) for batch in rows.combine_chunks().to_batches()]
        tuples = pa.chunked_array(texts, pa.string())
        count = len(tuples)
        columns = {
            "batch": pa.array([int(self.batch)] * count, pa.int64()),
            "stream": pa.array([part.stream or None] * count, pa.string()),
            "tuple": tuples,
        }
        return copy_text(pa.table(columns), self.sink.where)


def _without_nul(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Replace NUL, which Postgres has not: a late or rejected tuple must never end a run."""

    def change(leaf: pa.Array) -> pa.Array:
        text = pa.types.is_string(leaf.type)
        return pc.replace_substring(leaf, "\0", "\ufffd") if text else leaf

    columns = [each_leaf(column, change) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _split(table: str, where: str, output: str | None) -> tuple[str | None, str]:
    """The schema, if one is named, and the name with which those of all tables begin."""
    schema, dot, name = table.rpartition(".")
    if not name or "." in schema or (dot and not schema):
        raise OptionError(where, "table must be a name, or schema.name", table, _EXAMPLE)
    if output in SIDES:
        raise OptionError(
            where,
            f"{name}_{output} is the table of {output} tuples",
            f"an output {output}",
            "Give the output another name.",
        )
    longest = max((f"{name}_{part}" for part in (*SIDES, output or "")), key=len)
    if len(longest.encode()) > MOST_NAME_BYTES:
        raise OptionError(
            where,
            f"names in Postgres must have at most {MOST_NAME_BYTES} bytes",
            longest,
            "Give the table a shorter name.",
        )
    return schema or None, name
