"""TableDef: the rows that streams are joined to, and when which version of them counts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidegate.batch import to_bytes
from tidegate.duration import duration_text
from tidegate.errors import QueryError, near
from tidegate.query.name import find_name
from tidegate.schema import type_name
from tidegate.source.subscription import AS_FOUND, Reading
from tidegate.source.table import AT_ONCE, MOST_BYTES, table_parts


@dataclass(frozen=True)
class TableContent:
    """What was read of a table: its rows as bytes, and what tells them from others."""

    rows: int
    data: bytes

    @property
    def bytes(self) -> int:
        return len(self.data)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class LargeTable:
    """The rows of a table that is larger than it may be held whole; they can be taken once.

    `rows`, `bytes` and `digest` are those of the rows that were taken.
    """

    def __init__(self, begun: list[pa.Table], rest: Iterator[pa.Table]) -> None:
        self._begun, self._rest = begun, rest
        self._sum = hashlib.sha256()
        self.rows = 0
        self.bytes = 0

    def parts(self) -> Iterator[pa.Table]:
        """The rows in their order, some at a time; those that were given are held no more."""
        self._begun.reverse()
        while self._begun:
            yield self._counted(self._begun.pop())
        yield from map(self._counted, self._rest)

    def measured(self) -> LargeTable:
        """The same after all rows were read, and none of them kept."""
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
    """A named table: where its rows are, their columns, and how they change.

    Plain, it is read when a query first starts. With `valid_from`, a column of times, it has a row
    of each key for each span of event time. With `refresh_us` it is read again so often, and what
    was read counts from an event time on. `check` is asked about the rows with the name of the
    table; two that are equal ask the same. `given` are rows of the program in place of `uris`.
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
        """How messages name it."""
        return f"table {self.name}"

    def read(
        self, most_bytes: int = MOST_BYTES, *, row_bytes: int = 0
    ) -> TableContent | LargeTable:
        """Its rows as they are now, in their order: that of its files, then of their rows.

        Up to `most_bytes`, and `row_bytes` for each row counted in, they are read at once.
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
        """What it is, for the record of a checkpoint."""
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
