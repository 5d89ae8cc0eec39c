"""Reads tables of Postgres, for joins: in one snapshot by COPY, parsed to columns by Arrow.

Rows come as CSV, which Arrow parses; no value becomes a Python object. Rows of a table come in the
order of the primary key, or of all columns, so that the same rows are the same version of a table.
Rows of a query come in the query's own order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from tidegate.connector import check_columns
from tidegate.errors import SourceError
from tidegate.leaf import each_leaf
from tidegate.remote.postgres import Database, remedy_of, said
from tidegate.remote.scheme import distinct
from tidegate.schema import TIME
from tidegate.source.subscription import Subscription
from tidegate.source.table import TableRows

if TYPE_CHECKING:
    import psycopg

PARAMETERS = ("table", "query")
_NUMERIC = re.compile(r"numeric(?:\((\d+),(\d+)\))?")
_COLUMN = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)")
_EXAMPLE = "Write postgresql://user@host:port/database?table=name."
_MOST_DIGITS = 38
_ANY_NUMBER = pa.decimal128(_MOST_DIGITS, 18)
"""The type for numbers without a precision, as in Spark."""

_FITTING = (
    f"CASE WHEN abs({{0}}) < 1e{_ANY_NUMBER.precision - _ANY_NUMBER.scale} THEN {{0}}::text "
    "ELSE {0}::text || ' of too many digits' END"
)
"""Arrow would not say where such a number has more."""

_PLAIN = {
    "boolean": (pa.bool_(), "{}"),
    "smallint": (pa.int16(), "{}"),
    "integer": (pa.int32(), "{}"),
    "bigint": (pa.int64(), "{}"),
    "oid": (pa.int64(), "{}"),
    "real": (pa.float32(), "{}"),
    "double precision": (pa.float64(), "{}"),
    "date": (pa.date32(), "{}"),
    "time without time zone": (pa.time64("us"), "{}"),
    "timestamp with time zone": (TIME, "{}"),
    "timestamp without time zone": (TIME, "{} AT TIME ZONE 'UTC'"),
    "bytea": (pa.binary(), "{}"),
    "interval": (
        pa.duration("us"),
        "CASE WHEN date_trunc('month', {0}) = interval '0' "
        "THEN (extract(epoch FROM {0}) * 1000000)::bigint::text ELSE {0}::text END",
    ),
}
"""For each type of Postgres the Arrow type, and the expression to select; others are texts."""


_TEXTS_IN_ARRAYS = (_ANY_NUMBER, pa.duration("us"), pa.time64("us"))


@dataclass(frozen=True)
class SelectedColumn:
    """A column to read: its type, and the SQL expression that gives its text."""

    name: str
    type: pa.DataType
    expression: str

    @staticmethod
    def of(name: str, type_: str) -> SelectedColumn:
        """The column of a name; `type_` is Postgres's name of its type."""
        quoted = _quoted(name)
        if type_.endswith("[]"):
            element, _ = _typed(type_.removesuffix("[]"))
            plain = f"{quoted}::timestamptz[]" if element == TIME else quoted
            if element in _TEXTS_IN_ARRAYS:
                element = pa.string()
            return SelectedColumn(name, pa.list_(element), f"to_json({plain}::text[])")
        found, expression = _typed(type_)
        return SelectedColumn(name, found, expression.format(quoted))

    @property
    def read_as(self) -> pa.DataType:
        """The type in which Arrow first reads the text."""
        if pa.types.is_duration(self.type):
            return pa.int64()
        return pa.string() if _is_made(self.type) else self.type


class PostgresTable(TableRows):
    """A table or a query of a database."""

    def __init__(self, subscription: Subscription, database: Database, given: str, table: bool):
        self._where = subscription.where
        self._database, self._given, self._is_table = database, given, table
        with self._connected() as connection:
            self._columns, self._order = self._described(connection)
        self.schema = pa.schema([(column.name, column.type) for column in self._columns])
        self.types_from = f"the {'table' if table else 'query'} in Postgres"

    @staticmethod
    def at(subscription: Subscription) -> PostgresTable:
        where = subscription.where
        subscription.refuse_reading("a table of Postgres", "Leave them out: it says its columns.")
        uri, _, query = subscription.uri.partition("?")
        given = distinct(parse_qsl(query, keep_blank_values=True), where, SourceError)
        database = Database.parse(uri, given, PARAMETERS, where, SourceError)
        asked = [name for name in PARAMETERS if given.get(name)]
        if len(asked) != 1:
            got = " and ".join(asked) or "neither"
            raise SourceError(where, "must name a table or a query, one of both", got, _EXAMPLE)
        return PostgresTable(subscription, database, given[asked[0]], asked == ["table"])

    def parts(self, schema: pa.Schema, where: str) -> Iterator[pa.Table]:
        check_columns(schema.names, self.schema, self._where)
        for part in self._read():
            yield part.select(schema.names).cast(schema)

    def _connected(self) -> psycopg.Connection[Any]:
        import psycopg

        try:
            connection = self._database.connect()
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
        except psycopg.Error as error:
            raise self._unreadable(error) from error
        return connection

    def _source(self) -> str:
        """The text for FROM."""
        if not self._is_table:
            return f"({self._given.rstrip().rstrip(';')}\n) AS q"
        return ".".join(map(_quoted, self._given.split(".", 1)))

    def _described(
        self, connection: psycopg.Connection[Any]
    ) -> tuple[list[SelectedColumn], list[str]]:
        """The columns, and the expressions for ORDER BY."""
        import psycopg

        try:
            cursor = connection.execute(f"SELECT * FROM {self._source()} LIMIT 0".encode())
            found = cursor.pgresult
            assert found is not None
            kinds = [(found.ftype(n), found.fmod(n)) for n in range(found.nfields)]
            names = [column.name for column in cursor.description or ()]
            cursor = connection.execute(
                "SELECT format_type(coalesce(nullif(t.typbasetype, 0), t.oid), "
                "CASE WHEN t.typbasetype = 0 THEN u.m ELSE t.typtypmod END) "
                "FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS u(o, m, n) "
                "JOIN pg_type t ON t.oid = u.o ORDER BY u.n",
                ([oid for oid, _ in kinds], [mod for _, mod in kinds]),
            )
            types = [row[0] for row in cursor.fetchall()]
            key = self._key(connection) if self._is_table else []
        except psycopg.Error as error:
            raise self._unreadable(error) from error
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            must, remedy = "columns must have names of their own", "Name one of them with AS."
            raise SourceError(self._where, must, f"{twice} twice", remedy)
        columns = [SelectedColumn.of(*pair) for pair in zip(names, types, strict=True)]
        plain = [f'({column.expression})::text COLLATE "C"' for column in columns]
        order = key or (plain if self._is_table else [])
        return columns, order

    def _key(self, connection: psycopg.Connection[Any]) -> list[str]:
        """The columns of the primary key, quoted; none where there is no key."""
        cursor = connection.execute(
            "SELECT format('%%I', a.attname) FROM pg_index i JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) "
            "WHERE i.indrelid = %s::regclass AND i.indisprimary "
            "ORDER BY array_position(i.indkey::int2[], a.attnum)",
            (self._source(),),
        )
        return [row[0] for row in cursor.fetchall()]

    def _read(self) -> Iterator[pa.Table]:
        """All rows of one snapshot, some at a time."""
        import psycopg

        listed = ", ".join(column.expression for column in self._columns)
        order = f" ORDER BY {', '.join(self._order)}" if self._order else ""
        query = f"COPY (SELECT {listed} FROM {self._source()}{order}) TO STDOUT (FORMAT csv)"
        try:
            with (
                self._connected() as connection,
                connection.cursor() as cursor,
                cursor.copy(query.encode()) as copy,
            ):
                yield from self._parsed(CopyStream(copy))
        except psycopg.Error as error:
            raise self._unreadable(error) from error

    def _parsed(self, stream: CopyStream) -> Iterator[pa.Table]:
        if stream.is_empty():
            return
        names = [f"c{n}" for n in range(len(self._columns))]
        types = {name: column.read_as for name, column in zip(names, self._columns, strict=True)}
        try:
            batches = pyarrow.csv.open_csv(
                stream,
                pyarrow.csv.ReadOptions(column_names=names, use_threads=False),
                pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
                pyarrow.csv.ConvertOptions(
                    column_types=types,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    true_values=["t"],
                    false_values=["f"],
                ),
            )
            for batch in batches:
                columns = zip(batch.columns, self._columns, strict=True)
                made = [_made(array, column.type) for array, column in columns]
                yield pa.table(made, schema=self.schema)
        except pa.ArrowInvalid as error:
            raise self._unfit(error) from error

    def _unfit(self, error: pa.ArrowInvalid) -> SourceError:
        found = _COLUMN.search(str(error))
        column = self._columns[int(found[1])] if found else None
        must = "every value must be readable"
        if column is not None:
            must = f"column {column.name} must have values of type {column.type}"
        return SourceError(
            self._where,
            must,
            found[3] if found else str(error),
            "Select it as text, or as a type that holds all its values, with "
            "?query=SELECT CAST(... AS text) ... in place of ?table=.",
        )

    def _unreadable(self, error: psycopg.Error) -> SourceError:
        what = "table" if self._is_table else "query"
        return SourceError(
            self._where, f"the {what} must be readable", said(error), remedy_of(error)
        )


class CopyStream:
    """The output of COPY as a file that Arrow can read; holds one piece of it at a time."""

    closed = False

    def __init__(self, copy: psycopg.Copy) -> None:
        self._copy = copy
        self._left = memoryview(b"")

    def is_empty(self) -> bool:
        """Whether there is no row; asked first."""
        self._left = memoryview(self._copy.read())
        return not len(self._left)

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; none at the end."""
        pieces, room = [], size
        while room > 0:
            if not len(self._left):
                self._left = memoryview(self._copy.read())
                if not len(self._left):
                    break
            pieces.append(self._left[:room])
            self._left = self._left[room:]
            room -= len(pieces[-1])
        return b"".join(pieces)

    def close(self) -> None:
        """Does nothing: the code that opened the connection closes it."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _typed(type_: str) -> tuple[pa.DataType, str]:
    """The Arrow type for a type of Postgres, and the expression to select."""
    number = _NUMERIC.fullmatch(type_)
    if number is not None:
        digits, scale = (int(number[1]), int(number[2])) if number[1] else (0, 0)
        if not digits:
            return _ANY_NUMBER, _FITTING
        if scale <= digits <= _MOST_DIGITS:
            return pa.decimal128(digits, scale), "{}"
    plain = re.sub(r"\(\d+\)", "", type_)  # times of fewer digits
    return _PLAIN.get(plain, (pa.string(), "{}::text"))


def _is_made(type_: pa.DataType) -> bool:
    """Whether Arrow cannot read values of a type from CSV."""
    return bool(pa.types.is_nested(type_) or pa.types.is_binary(type_))


def _made(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values in their final type, from the array that Arrow has read."""
    if pa.types.is_list(type_):
        return each_leaf(_lists(array), lambda leaf: _leaf(leaf, type_.value_type)).cast(type_)
    return _leaf(array, type_)


def _leaf(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_binary(type_):
        return _bytes(array)
    return array if array.type == type_ else array.cast(type_)


def _lists(texts: pa.Array) -> pa.Array:
    """Lists of texts from JSON."""
    lines = pc.binary_join_element_wise('{"v":', pc.fill_null(texts, "null"), "}\n", "")
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")[0].as_buffer()
    schema = pa.schema([("v", pa.list_(pa.string()))])
    options = pyarrow.json.ParseOptions(schema, unexpected_field_behavior="error")
    block = pyarrow.json.ReadOptions(use_threads=False, block_size=max(len(whole), 1))
    found = pyarrow.json.read_json(pa.BufferReader(whole), block, options)
    return found.column("v").combine_chunks()


def _bytes(texts: pa.Array) -> pa.Array:
    r"""Bytes from texts such as `\x0aff`: all digits in one pass, because two make a byte."""
    digits = pc.utf8_slice_codeunits(pc.fill_null(texts, "\\x"), 2)
    lengths = pc.binary_length(digits).to_numpy(zero_copy_only=False) // 2
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(digits)], digits), "")[0].as_py()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    data = pa.py_buffer(bytes.fromhex(whole))
    made = pa.Array.from_buffers(pa.binary(), len(digits), [None, pa.py_buffer(offsets), data])
    return pc.if_else(texts.is_valid(), made, pa.scalar(None, pa.binary()))
