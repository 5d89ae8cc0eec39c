"""From the text after `FROM` to a connector, between the query and the sources."""

from __future__ import annotations

import re

from tidegate import disk
from tidegate.errors import SourceError
from tidegate.source.files import FilesConnector
from tidegate.source.generator import open_generator
from tidegate.source.listing import local_path
from tidegate.source.protocol import Connector
from tidegate.source.reading import AS_FOUND, Reading

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")


def open_uri(
    uri: str, stream: str, time: str | None, follow: bool, reading: Reading = AS_FOUND
) -> Connector:
    """Open a path, a folder, a glob, a file URI or a generator as the input of a stream.

    `time` is the name of the time column; None to look at the columns only. With `follow`, files
    and rows that come later count too. `reading` is what the stream says of its files. Raises
    SourceError for whatever cannot be read.
    """
    where = f"stream {stream}, {uri}"
    if not uri:
        raise SourceError(
            f"stream {stream}", "the URI must not be empty", "''", "Give a path or generator:NAME."
        )
    if uri.startswith("generator:"):
        if reading != AS_FOUND:
            raise SourceError(
                where,
                "only files can be read with declared columns and options",
                "a generator",
                "Leave them out: a generator says its columns.",
            )
        return open_generator(uri, where, time)
    scheme = _SCHEME.match(uri)
    if scheme and scheme[1].lower() != "file" and not disk.exists(uri):
        raise SourceError(
            where,
            "the scheme must be one that is read here",
            f"{scheme[1]}:",
            "Use a path, file:///path or generator:NAME; copy remote files to a local folder.",
        )
    return FilesConnector(local_path(uri, where), where, time, follow, reading=reading)
