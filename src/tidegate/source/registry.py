"""Which sources and file formats there are: a line for each scheme, and for each ending of a name.

Modules are imported when they are asked for, so a source or a format may need a library that
others do without.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import Any

import pyarrow as pa

from tidegate import disk
from tidegate.connector import Connector
from tidegate.errors import OptionError, SourceError
from tidegate.remote.scheme import (
    REMOTE,
    SECOND_NAMES,
    is_remote_uri,
    refuse_keys,
    scheme_of,
    shown,
    unusable,
)
from tidegate.source.backfill.address import BackfillAddress, is_backfill
from tidegate.source.format import FileFormat
from tidegate.source.subscription import AS_FOUND, Reading, Subscription
from tidegate.source.text.compression import SUFFIXES

SOURCES: dict[str, str] = {
    "generator": "tidegate.source.generator:GeneratorSource",
    "file": "tidegate.source.files:FilesConnector",
    "kafka": "tidegate.source.kafka.connector:KafkaConnector",
    **dict.fromkeys(REMOTE, "tidegate.source.files:FilesConnector"),
    "delta": "tidegate.source.lake.delta:DeltaSource",
    "delta+s3": "tidegate.source.lake.delta:DeltaSource",
    "iceberg": "tidegate.source.lake.iceberg:IcebergSource",
}
"""By scheme the class of its connectors. `at(subscription)` of the class makes one: it opens what
it must to know the columns, and raises SourceError for whatever cannot be read."""

BACKFILL = "tidegate.source.backfill.connector:BackfillConnector"
"""The class of a history and then a topic (`HISTORY THEN TOPIC`)."""

TABLE = "table"
"""What messages call a table; other kinds of inputs are streams."""

TABLES: dict[str, str] = {
    "postgresql": "tidegate.source.postgres:PostgresTable",
    "postgres": "tidegate.source.postgres:PostgresTable",
}
"""Schemes whose rows have no order that a stream could go on in: by each the class of its tables
(`source.table.TableRows`), with `at` as connectors have it."""

FORMATS: dict[str, str] = {
    ".parquet": "tidegate.source.parquet:ParquetFormat",
    ".csv": "tidegate.source.text.csv:CsvFormat",
    ".json": "tidegate.source.text.json:JsonFormat",
    ".jsonl": "tidegate.source.text.json:JsonFormat",
    ".ndjson": "tidegate.source.text.json:JsonFormat",
    ".orc": "tidegate.source.orc:OrcFormat",
}
"""By the ending of a file's name the class of its format."""


def open_uri(
    uri: str,
    stream: str,
    time: str | None,
    follow: bool,
    reading: Reading = AS_FOUND,
    kind: str = "stream",
) -> Connector:
    """Open a path, a folder, a glob, a URI of a file system or a generator as a stream's input.

    `time` is the name of the time column; None to look at the columns only. With `follow`, files
    and rows that come later count too. `reading` is what the stream says of its files. `kind` is
    what messages call it. Raises SourceError for whatever cannot be read.
    """
    subscription = subscribe(uri, stream, time, follow, reading, kind)
    if is_backfill(uri):
        return _open_backfill(uri, stream, time, follow, reading, kind)
    where, scheme = subscription.where, scheme_of(uri) or "file"
    if scheme in TABLES:
        raise SourceError(
            where,
            f"{scheme}: is read as a table, which streams are joined to",
            f"a {kind}",
            f"Write CREATE TABLE {stream} FROM '...', and join a stream to it.",
        )
    if scheme not in SOURCES or (scheme in REMOTE and not is_remote_uri(uri)):
        if not disk.exists(uri):
            known = [*SOURCES, *(TABLES if kind == TABLE else ())]
            apart = (*REMOTE, "file", *SECOND_NAMES)
            raise unusable(uri, where, SourceError, [n for n in known if n not in apart])
        scheme = "file"
    connector: Connector = loaded(SOURCES[scheme]).at(subscription)
    return connector


def _open_backfill(
    uri: str, stream: str, time: str | None, follow: bool, reading: Reading, kind: str
) -> Connector:
    where = f"{kind} {stream}"
    if kind == TABLE:
        remedy = f"Leave THEN out, or write CREATE STREAM {stream}."
        raise SourceError(where, "a table is read from one place", shown(uri), remedy)

    def open_place(place: str, follows: bool, read: Reading) -> Connector:
        return open_uri(place, stream, time, follows, read)

    address = BackfillAddress.parse(uri, where)
    found: Connector = loaded(BACKFILL).at(address, where, time, follow, reading, open_place)
    return found


def subscribe(
    uri: str, stream: str, time: str | None, follow: bool, reading: Reading, kind: str
) -> Subscription:
    """What is asked of a URI; refuses none, and one with keys."""
    where = f"{kind} {stream}, {shown(uri)}"
    if not uri:
        raise SourceError(
            f"{kind} {stream}", "the URI must not be empty", "''", "Give a path or generator:NAME."
        )
    refuse_keys(uri, where, SourceError)
    return Subscription(uri, where, time, follow, reading)


def format_named(path: str) -> FileFormat | None:
    """The format that a name stands for; only text may be compressed as a whole."""
    plain, last = os.path.splitext(path)
    packed = last.lower() in SUFFIXES
    ending = os.path.splitext(plain)[1] if packed else last
    if ending.lower() not in FORMATS:
        return None
    found = _format(FORMATS[ending.lower()])
    return None if packed and not found.text else found


def check_reading(reading: Reading, format_: FileFormat, where: str) -> None:
    """Refuse options that mean nothing for a format, and types that it cannot hold."""
    for name in reading.given:
        if name not in format_.options:
            every = dict.fromkeys(_format(target) for target in FORMATS.values())
            titles = [f.title for f in every if name in f.options]
            users = f"{' and '.join(titles)} files" if titles else "the values of messages"
            own = f"Options for {format_.title}: {', '.join(format_.options)}."
            raise OptionError(
                where,
                f"option {name} is for {users}",
                f"{format_.title} files",
                own if format_.options else "Leave it out: the files say how they are to be read.",
            )
    for column in () if format_.nested else reading.schema or ():
        if pa.types.is_nested(column.type):
            raise OptionError(
                where,
                f"column {column.name} must be of a type that one cell can hold",
                str(column.type),
                "Declare it STRING.",
            )


@lru_cache
def _format(target: str) -> FileFormat:
    found: FileFormat = loaded(target)()
    return found


def loaded(target: str) -> Any:
    """The class that a line of a registry names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
