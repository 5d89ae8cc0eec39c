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
from tidegate.remote.scheme import REMOTE, is_remote_uri, scheme_of, shown, unusable
from tidegate.source.format import FileFormat
from tidegate.source.subscription import AS_FOUND, Reading, Subscription
from tidegate.source.text.compression import SUFFIXES

SOURCES: dict[str, str] = {
    "generator": "tidegate.source.generator:GeneratorSource",
    "file": "tidegate.source.files:FilesConnector",
    **dict.fromkeys(REMOTE, "tidegate.source.files:FilesConnector"),
}
"""By scheme the class of its connectors. `at(subscription)` of the class makes one: it opens what
it must to know the columns, and raises SourceError for whatever cannot be read."""

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
    where = f"{kind} {stream}, {shown(uri)}"
    if not uri:
        raise SourceError(
            f"{kind} {stream}", "the URI must not be empty", "''", "Give a path or generator:NAME."
        )
    scheme = scheme_of(uri) or "file"
    if scheme not in SOURCES or (scheme in REMOTE and not is_remote_uri(uri)):
        if not disk.exists(uri):
            own = [name for name in SOURCES if name not in (*REMOTE, "file")]
            raise unusable(uri, where, SourceError, also=own)
        scheme = "file"
    subscription = Subscription(uri, where, time, follow, reading)
    connector: Connector = _loaded(SOURCES[scheme]).at(subscription)
    return connector


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
    for name, _ in reading.options:
        if name not in format_.options:
            every = dict.fromkeys(_format(target) for target in FORMATS.values())
            users = " and ".join(f.title for f in every if name in f.options)
            own = f"Options for {format_.title}: {', '.join(format_.options)}."
            raise OptionError(
                where,
                f"option {name} is for {users} files",
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
    found: FileFormat = _loaded(target)()
    return found


def _loaded(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
