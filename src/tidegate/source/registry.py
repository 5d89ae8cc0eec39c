"""Lists the sources by scheme and the file formats by the ending of names, and opens URIs.

Modules are imported on first use, so a source or a format may need a library that others do
without.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import Any

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
from tidegate.storage import disk

SOURCES: dict[str, str] = {
    "generator": "tidegate.source.generator:GeneratorSource",
    "file": "tidegate.source.files:FilesConnector",
    "kafka": "tidegate.source.kafka.connector:KafkaConnector",
    **dict.fromkeys(REMOTE, "tidegate.source.files:FilesConnector"),
    "delta": "tidegate.source.lake.delta:DeltaSource",
    "delta+s3": "tidegate.source.lake.delta:DeltaSource",
    "iceberg": "tidegate.source.lake.iceberg:IcebergSource",
}
"""The class of connectors for each scheme. Its `at(subscription)` makes one: it opens as much as it
needs to know the columns, and raises SourceError for whatever cannot be read."""

BACKFILL = "tidegate.source.backfill.connector:BackfillConnector"
"""The class for `HISTORY THEN TOPIC`."""

TABLE = "table"
"""The word for a table in messages; other inputs are streams."""

TABLES: dict[str, str] = {
    "postgresql": "tidegate.source.postgres:PostgresTable",
    "postgres": "tidegate.source.postgres:PostgresTable",
}
"""Schemes whose rows have no lasting order, so they can be tables but not streams. By scheme the
class (`source.table.TableRows`), with an `at` like that of connectors."""

FORMATS: dict[str, str] = {
    ".parquet": "tidegate.source.parquet:ParquetFormat",
    ".csv": "tidegate.source.text.csv:CsvFormat",
    ".json": "tidegate.source.text.json:JsonFormat",
    ".jsonl": "tidegate.source.text.json:JsonFormat",
    ".ndjson": "tidegate.source.text.json:JsonFormat",
    ".orc": "tidegate.source.orc:OrcFormat",
}
"""The class of the format for each ending of a file's name."""


def open_uri(
    uri: str,
    stream: str,
    time: str | None,
    follow: bool,
    reading: Reading = AS_FOUND,
    kind: str = "stream",
) -> Connector:
    """Open a path, a folder, a glob or a URI as a stream's input.

    `time` is the name of the time column, None to open it only for its columns. With `follow`,
    files and rows that come later count too. `reading` has the declared columns and options.
    Messages call the input `kind`. Raises SourceError for whatever cannot be read.
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
    """The subscription of a URI; refuses an empty URI and one with keys."""
    where = f"{kind} {stream}, {shown(uri)}"
    if not uri:
        raise SourceError(
            f"{kind} {stream}", "the URI must not be empty", "''", "Give a path or generator:NAME."
        )
    refuse_keys(uri, where, SourceError)
    return Subscription(uri, where, time, follow, reading)


def format_named(path: str) -> FileFormat | None:
    """The format of a file by its name; None where no format has this ending.

    Only text may be compressed as a whole.
    """
    plain, last = os.path.splitext(path)
    packed = last.lower() in SUFFIXES
    ending = os.path.splitext(plain)[1] if packed else last
    if ending.lower() not in FORMATS:
        return None
    found = _format(FORMATS[ending.lower()])
    return None if packed and not found.text else found


def check_reading(reading: Reading, format_: FileFormat, where: str) -> None:
    """Refuse options that mean nothing for a format, and types that it cannot hold.

    The option `format` is for the values of messages. It may stand where files have that format,
    so that a query on a topic can be tried with files.
    """
    for name in reading.given:
        if name == "format" and reading.get(name) == format_.name:
            continue
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
    if not format_.nested:
        reading.refuse_nested(where)


@lru_cache
def _format(target: str) -> FileFormat:
    found: FileFormat = loaded(target)()
    return found


def loaded(target: str) -> Any:
    """The class that a line of a registry names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
