"""Reads the first rows of a stream, for the estimates of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tidegate.connector import Connector, Source
from tidegate.driver.connection import IN_PROGRAM
from tidegate.errors import SourceError
from tidegate.plan.join.sample import RawRows
from tidegate.query.node.node import StreamDef
from tidegate.source.registry import open_uri

PREVIEW_ROWS = 4096
"""The rows of a stream that are read, over all its sources."""

PREVIEW_SOURCES = 8


def first_rows(given: Mapping[str, Connector]) -> RawRows:
    """What reads the first rows of streams; `given` are the sources that have no URI.

    A source that only gives its rows once, or cannot be read, gives none; the run will say why.
    What was read is kept for as long as who asks: a plan asks more than once.
    """
    known: dict[tuple[object, ...], pa.Table | None] = {}

    def rows(stream: StreamDef, columns: Sequence[str]) -> pa.Table | None:
        key = (stream.name, stream.uris, *columns)
        if key not in known:
            try:
                known[key] = _read(stream, columns, given)
            except SourceError:
                known[key] = None
        return known[key]

    return rows


def _read(
    stream: StreamDef, columns: Sequence[str], given: Mapping[str, Connector]
) -> pa.Table | None:
    sources: list[Source] = []
    for uri in stream.uris:
        connector = given.get(uri)
        if connector is None and uri.startswith(IN_PROGRAM):
            return None
        connector = connector or open_uri(uri, stream.name, stream.time, False, stream.reading)
        if connector.once:
            return None
        sources += connector.first_sources(PREVIEW_SOURCES - len(sources))
    share = PREVIEW_ROWS // max(len(sources), 1)
    parts = []
    for source in sources:
        known = min(source.extend(share), share)
        parts.append(source.reader(0, known).read(columns).table)
    return pa.concat_tables(parts) if parts else None
