"""TableDef: a table that streams are joined to, and which version of its rows counts when."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidegate.batch import to_bytes
from tidegate.calendar.duration import duration_text
from tidegate.errors import QueryError, near
from tidegate.query.name import find_name
from tidegate.schema import type_name
from tidegate.source.subscription import AS_FOUND, Reading
from tidegate.source.table import AT_ONCE, MOST_BYTES, table_parts


@dataclass(frozen=True)
class TableContent:
    """A table's rows as bytes, with a digest that tells them from others."""

    rows: int
    data: bytes

    @property
    def bytes(self) -> int:
        return len(self.data)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class LargeTable:
    """The rows of a table that is too large to hold in memory; they can be iterated once.

    `rows`, `bytes` and `digest` cover the rows that were taken so far.
    """

    def __init__(self, begun: list[pa.Table], rest: Iterator[pa.Table]) -> None:
        self._begun, self._rest = begun, rest
        self._sum = hashlib.sha256()
        self.rows = 0
        self.bytes = 0

    def parts(self) -> Iterator[pa.Table]:
        """The rows in order, part by part; a part that was yielded is not held any more."""
        self._begun.reverse()
        while self._begun:
            yield self._counted(self._begun.pop())
        yield from map(self._counted, self._rest)

    def measured(self) -> LargeTable:
        """Reads all rows and keeps none, so that `rows`, `bytes` and `digest` are complete."""
        for _ in self.parts():
            pass
        return self

    @property
    def digest(self) -> str:
        return self._sum.hexdigest()

    def _counted(self, part: pa.Table) -> pa.Table:
        self.rows += part.num_rows
        self.bytes += part.nbytes
        self._sum.update(to_bytes(part))
        return part


@dataclass(frozen=True)
class TableDef:
    """A named table: the source of its rows, their columns, and how they change.

    By default it is read once, when a query first starts. With `valid_from`, a time column, it has
    one row per key for each span of event time. With `refresh_us` it is read again at that
    interval, and each reading counts from an event time on. `check` is called with the rows and the
    table's name; equal definitions make equal checks. `given` are rows of the program, in place of
    `uris`.
    """

    name: str
    uris: tuple[str, ...]
    schema: pa.Schema
    reading: Reading = AS_FOUND
    valid_from: str | None = None
    refresh_us: int | None = None
    types_from: str = ""
    check: Callable[[pa.Table, str], None] | None = None
    given: Callable[[], pa.Table] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.valid_from is not None:
            object.__setattr__(self, "valid_from", self._time_column(self.valid_from))
        if self.refresh_us is None:
            return
        if self.refresh_us <= 0:
            raise QueryError(
                self.where,
                "REFRESH EVERY must be longer than zero",
                duration_text(self.refresh_us),
            )
        if self.valid_from is not None:
            raise QueryError(
                self.where,
                "is read again, or has versions by VALID FROM",
                "both",
                "Leave one of them out.",
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "given": None}

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f"table {self.name}"

    def read(
        self, most_bytes: int = MOST_BYTES, *, row_bytes: int = 0
    ) -> TableContent | LargeTable:
        """Its rows now, in order: by file, then by row.

        Up to `most_bytes`, counting `row_bytes` extra per row, they are read into memory at once.
        """
        begun, size, rest = [self.schema.empty_table()], 0, self._parts()
        for part in rest:
            begun.append(part)
            size += part.nbytes + row_bytes * part.num_rows
            if size > most_bytes:
                return LargeTable(begun, rest)
        rows = pa.concat_tables(begun).combine_chunks()
        if self.check is not None:
            self.check(rows, self.where)
        return TableContent(rows.num_rows, to_bytes(rows))

    def _parts(self) -> Iterator[pa.Table]:
        if self.given is None:
            return table_parts(self.uris, self.name, self.schema, self.reading)
        rows = self.given().cast(self.schema).combine_chunks()
        starts = range(0, rows.num_rows, AT_ONCE)
        return (rows.slice(start, AT_ONCE) for start in starts)

    @property
    def words(self) -> str:
        """Its definition as text, for the record in a checkpoint."""
        read = "".join(f" {line}" for line in self.reading.lines())
        valid = "" if self.valid_from is None else f" valid from {self.valid_from}"
        every = self.refresh_us
        again = "" if every is None else f" refresh every {duration_text(every)}"
        return f"table {self.name}{valid}{again}{read}"

    def _time_column(self, name: str) -> str:
        found = find_name(name, self.schema.names)
        if found is None:
            raise QueryError(
                self.where,
                "VALID FROM must name one of its columns",
                name,
                near(name, self.schema.names),
            )
        type_ = self.schema.field(found).type
        if not (pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
            raise QueryError(
                self.where,
                "VALID FROM must be a column of times",
                f"{found} of type {type_name(type_)}",
                f"Declare it: CREATE TABLE {self.name} ({found} TIMESTAMP, ...) FROM ...",
            )
        return found
