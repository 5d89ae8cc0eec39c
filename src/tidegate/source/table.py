"""Reads the rows of a table: all of its files, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidegate.connector import Connector, Source
from tidegate.errors import SourceError
from tidegate.remote.scheme import scheme_of, shown
from tidegate.source.registry import open_uri
from tidegate.source.subscription import Reading

MOST_BYTES = 1 << 30
"""Every task holds a table whole; a larger one is refused."""

_AT_ONCE = 1_048_576


def open_table(uri: str, name: str, reading: Reading) -> Connector:
    """The files of a table, opened for their columns."""
    if scheme_of(uri) == "generator":
        raise SourceError(
            f"table {name}", "must be made of files", shown(uri), "Write it to a file first."
        )
    return open_uri(uri, name, None, False, reading, kind="table")


def read_table(uris: Sequence[str], name: str, schema: pa.Schema, reading: Reading) -> pa.Table:
    """All rows: file by file in the order of their names, each from its beginning."""
    where, parts, size = f"table {name}", [schema.empty_table()], 0
    for uri in uris:
        for source in _sources(open_table(uri, name, reading)):
            for part in _parts(source, schema, where):
                parts.append(part)
                size += part.nbytes
                check_size(size, where)
    return pa.concat_tables(parts).combine_chunks()


def check_size(size: int, where: str) -> None:
    """Refuse a table that is too large to be held by every task."""
    if size > MOST_BYTES:
        raise SourceError(
            where,
            f"must not be larger than {MOST_BYTES >> 20:,} MB, because every task holds it",
            f"{size >> 20:,} MB and more",
            "Leave columns and rows out that no query needs, or make it a stream with TIME.",
        )


def _sources(connector: Connector) -> Iterator[Source]:
    if not connector.several:
        yield from connector.discover()
        return
    for listed in connector.list_new():
        yield connector.open(listed.id)


def _parts(source: Source, schema: pa.Schema, where: str) -> Iterator[pa.Table]:
    start = 0
    while True:
        known = source.extend(start + _AT_ONCE)
        if known > start:
            rows = source.reader(start, known).read(schema.names)
            for reject in rows.rejects:
                raise SourceError(
                    where,
                    "every row must be readable",
                    f"{source.id}, row {reject.seq + 1}: {reject.reason}: {reject.raw[:60]}",
                    "Correct the row, or declare the columns with other types.",
                )
            yield rows.table.cast(schema)
            start = known
        elif source.ended():
            source.confirm()
            return
