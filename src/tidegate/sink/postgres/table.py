"""Creates the table of the results from their schema, or checks an existing one against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.errors import OptionError
from tidegate.remote.postgres import MOST_NAME_BYTES
from tidegate.schema import type_name
from tidegate.sink.postgres.column import TableColumn, column_type, fits
from tidegate.sink.upsert import DELETE, OP, UPSERT

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

CHANGES = "tidegate_changes"
"""The temporary table of a session, into which the changes of a batch are copied."""

SIDE_COLUMNS = {"batch": "bigint", "stream": "text", "tuple": "jsonb"}
"""The columns of the tables of late and of rejected tuples."""

_NOT_DISTINCT_SINCE = 150_000
"""From this server version on a unique index can treat NULLs as equal."""


@dataclass(frozen=True)
class ResultTable:
    """A table for results; calls take part in the transaction of their cursor."""

    schema: str
    name: str
    columns: pa.Schema
    key: tuple[str, ...]
    """The columns that tell rows apart; empty for a table that rows are added to."""
    where: str

    def make(self, cursor: psycopg.Cursor[Any]) -> None:
        """Create the table where it does not exist; refuse one that cannot take the rows."""
        self._check_names()
        there = self._found(cursor)
        if there is None:
            self._create(cursor)
            return
        self._check_columns(there)
        if self.key:
            self._check_key(cursor)

    def has_rows(self, cursor: psycopg.Cursor[Any], name: str) -> bool:
        """Whether a table of the schema, which may be missing, has rows."""
        from psycopg import sql

        if _kind(cursor, self.schema, name) is None:
            return False
        table = sql.Identifier(self.schema, name)
        cursor.execute(sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(table))
        return bool((cursor.fetchone() or (False,))[0])

    def make_side(self, cursor: psycopg.Cursor[Any], name: str) -> None:
        """Create a table of late or rejected tuples, where it does not exist."""
        from psycopg import sql

        columns = ", ".join(f"{column} {type_}" for column, type_ in SIDE_COLUMNS.items())
        made = sql.SQL("CREATE TABLE IF NOT EXISTS {} (" + columns + ")")
        cursor.execute(made.format(sql.Identifier(self.schema, name)))

    def copy_side(self, cursor: psycopg.Cursor[Any], name: str, data: bytes) -> None:
        from psycopg import sql

        _copy(cursor, sql.Identifier(self.schema, name), [*SIDE_COLUMNS], data)

    def copy(self, cursor: psycopg.Cursor[Any], data: bytes) -> None:
        """Add the rows of a batch, or apply its changes."""
        from psycopg import sql

        table, names = sql.Identifier(self.schema, self.name), self.columns.names
        if not self.key:
            _copy(cursor, table, names, data)
            return
        changes, op = sql.Identifier("pg_temp", CHANGES), sql.Identifier(OP)
        listed, key = _listed(names), _listed(self.key)
        cursor.execute(
            sql.SQL(
                "CREATE TEMPORARY TABLE IF NOT EXISTS {} ON COMMIT DELETE ROWS AS "
                "SELECT {}, ''::text AS {} FROM {} WITH NO DATA"
            ).format(sql.Identifier(CHANGES), listed, op, table)
        )
        _copy(cursor, changes, [*names, OP], data)
        if f"\t{DELETE}\n".encode() in data:
            self._delete(cursor, table, changes)
        others = [sql.Identifier(name) for name in names if name not in self.key]
        taken = sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(name) for name in others)
        then = sql.SQL("UPDATE SET {}").format(taken) if others else sql.SQL("NOTHING")
        put = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE {} = {} ON CONFLICT ({}) DO {}")
        cursor.execute(
            put.format(table, listed, listed, changes, op, sql.Literal(UPSERT), key, then)
        )

    def _delete(
        self, cursor: psycopg.Cursor[Any], table: sql.Identifier, changes: sql.Identifier
    ) -> None:
        from psycopg import sql

        same = sql.SQL(" AND ").join(
            sql.SQL("t.{0} IS NOT DISTINCT FROM c.{0}").format(sql.Identifier(name))
            for name in self.key
        )
        gone = sql.SQL("DELETE FROM {} t USING {} c WHERE c.{} = {} AND {}")
        op = sql.Identifier(OP)
        cursor.execute(gone.format(table, changes, op, sql.Literal(DELETE), same))

    def _create(self, cursor: psycopg.Cursor[Any]) -> None:
        from psycopg import sql

        lines = [
            sql.SQL("{} " + column_type(field.type)).format(sql.Identifier(field.name))
            for field in self.columns
        ]
        if self.key:
            new = cursor.connection.info.server_version >= _NOT_DISTINCT_SINCE
            unique = sql.SQL("UNIQUE NULLS NOT DISTINCT ({})" if new else "PRIMARY KEY ({})")
            lines.append(unique.format(_listed(self.key)))
        table = sql.Identifier(self.schema, self.name)
        cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(lines)))

    def _found(self, cursor: psycopg.Cursor[Any]) -> list[TableColumn] | None:
        """The columns that the table has; None where there is no such table."""
        kind = _kind(cursor, self.schema, self.name)
        if kind is None:
            return None
        if kind not in "rp":
            raise OptionError(
                self.where,
                "must be a table",
                "a view, or something else that rows are not written to",
                "Name a table, which is made where it is not there.",
            )
        cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod), "
            "NOT attnotnull OR atthasdef OR attidentity <> '' FROM pg_attribute "
            "WHERE attrelid = format('%%I.%%I', %s::text, %s::text)::regclass "
            "AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            (self.schema, self.name),
        )
        return [TableColumn(*row) for row in cursor.fetchall()]

    def _check_names(self) -> None:
        for name in (self.name, *self.columns.names):
            if len(name.encode()) > MOST_NAME_BYTES:
                raise OptionError(
                    self.where,
                    f"names in Postgres must have at most {MOST_NAME_BYTES} bytes",
                    name,
                    "Give the column a shorter name with AS, or the table another one.",
                )

    def _check_columns(self, there: Sequence[TableColumn]) -> None:
        known = {column.name: column.type for column in there}
        for field in self.columns:
            type_, wanted = type_name(field.type), column_type(field.type)
            alter = f'ALTER TABLE "{self.schema}"."{self.name}"'
            if field.name not in known:
                raise OptionError(
                    self.where,
                    f"must have column {field.name} of type {wanted} for {type_}",
                    f"a table with {', '.join(known)}",
                    f'{alter} ADD COLUMN "{field.name}" {wanted}, or name another table.',
                )
            if not fits(field.type, known[field.name]):
                raise OptionError(
                    self.where,
                    f"column {field.name} must be of type {wanted} for {type_}",
                    known[field.name],
                    f'{alter} ALTER COLUMN "{field.name}" TYPE {wanted}, CAST it in the query, or '
                    "name another table.",
                )
        lacking = [c for c in there if c.name not in self.columns.names and not c.optional]
        if lacking:
            raise OptionError(
                self.where,
                "columns that the query does not give must have a default, or take NULL",
                f"{lacking[0].name} {lacking[0].type} NOT NULL",
                "Select such a column, or give it a default.",
            )

    def _check_key(self, cursor: psycopg.Cursor[Any]) -> None:
        """Refuse a table without an index that finds the row of each key, also with NULLs."""
        cursor.execute(
            'SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE "C"), '
            "bool_and(a.attnotnull) OR "
            "coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) "
            "FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
            "AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]) "
            "WHERE i.indrelid = format('%%I.%%I', %s::text, %s::text)::regclass "
            "AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL "
            "AND i.indexprs IS NULL GROUP BY i.indexrelid, i.*",
            (self.schema, self.name),
        )
        wanted = sorted(self.key, key=str.encode)
        if not any(names == wanted and whole for names, whole in cursor.fetchall()):
            listed = ", ".join(f'"{name}"' for name in self.key)
            raise OptionError(
                self.where,
                f"must have one row for each {', '.join(self.key)}, and a unique index that says "
                "so, also for NULL",
                "a table without it",
                f'CREATE UNIQUE INDEX ON "{self.schema}"."{self.name}" ({listed}) NULLS NOT '
                "DISTINCT, or make these columns its PRIMARY KEY.",
            )


def _kind(cursor: psycopg.Cursor[Any], schema: str, name: str) -> str | None:
    """What a name stands for, as pg_class has it; None for nothing."""
    cursor.execute(
        "SELECT c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = %s",
        (schema, name),
    )
    found = cursor.fetchone()
    return None if found is None else str(found[0])


_CHUNK_BYTES = 1 << 20


def _copy(
    cursor: psycopg.Cursor[Any], table: sql.Identifier, names: Sequence[str], data: bytes
) -> None:
    from psycopg import sql

    into = sql.SQL("COPY {} ({}) FROM STDIN").format(table, _listed(names))
    view = memoryview(data)
    with cursor.copy(into) as copy:
        for start in range(0, len(view), _CHUNK_BYTES):
            copy.write(view[start : start + _CHUNK_BYTES])


def _listed(names: Sequence[str]) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))
