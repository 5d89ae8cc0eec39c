"""Opens tables, and reads all of their rows in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidegate.connector import Connector, Source
from tidegate.errors import SourceError
from tidegate.remote.scheme import scheme_of, shown
from tidegate.source.registry import TABLE, TABLES, loaded, open_uri, subscribe
from tidegate.source.subscription import Reading

MOST_BYTES = 1 << 30
"""A task holds a table in memory only up to this size."""

AT_ONCE = 262_144
"""How many rows are read at a time."""


class TableRows(ABC):
    """A table that is open. It can be read once; reading it again needs another `open_table`."""

    schema: pa.Schema
    """Normalised; see `tidegate.schema`."""

    types_from: str
    """Where the types of the columns come from, in words."""

    @abstractmethod
    def parts(self, schema: pa.Schema, where: str) -> Iterator[pa.Table]:
        """All rows in the columns of `schema`, some at a time, always in the same order."""


class ConnectorRows(TableRows):
    """Reads a connector as a table: all that is there, source by source."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self.schema, self.types_from = connector.schema, connector.types_from

    def parts(self, schema: pa.Schema, where: str) -> Iterator[pa.Table]:
        for source in _sources(self._connector):
            yield from _parts(source, schema, where)


def open_table(uri: str, name: str, reading: Reading) -> TableRows:
    """Open a table; its rows are read by `parts`."""
    scheme = scheme_of(uri)
    if scheme == "generator":
        raise SourceError(
            f"table {name}", "must be made of files", shown(uri), "Write it to a file first."
        )
    if scheme in TABLES:
        opened: TableRows = loaded(TABLES[scheme]).at(
            subscribe(uri, name, None, False, reading, TABLE)
        )
        return opened
    return ConnectorRows(open_uri(uri, name, None, False, reading, kind=TABLE))


def table_parts(
    uris: Sequence[str], name: str, schema: pa.Schema, reading: Reading
) -> Iterator[pa.Table]:
    """All rows, some at a time: URI by URI, and file by file in the order of their names."""
    for uri in uris:
        yield from open_table(uri, name, reading).parts(schema, f"table {name}")


def _sources(connector: Connector) -> Iterator[Source]:
    if not connector.several:
        yield from connector.discover()
        return
    for listed in connector.list_new():
        yield connector.open(listed.id)


def _parts(source: Source, schema: pa.Schema, where: str) -> Iterator[pa.Table]:
    start = 0
    while True:
        stop = min(source.extend(start + AT_ONCE), start + AT_ONCE)
        if stop > start:
            rows = source.reader(start, stop).read(schema.names)
            for reject in rows.rejects:
                raise SourceError(
                    where,
                    "every row must be readable",
                    f"{source.id}, row {reject.seq + 1}: {reject.reason}: {reject.raw[:60]}",
                    "Correct the row, or declare the columns with other types.",
                )
            yield rows.table.cast(schema)
            start = stop
        elif source.ended():
            source.confirm()
            return
