"""From the text after `FROM` to a connector, between the query and the sources."""

from __future__ import annotations

from tidegate import disk
from tidegate.connector import Connector
from tidegate.errors import OptionError, RunError, SourceError
from tidegate.remote.disk import remote_path
from tidegate.remote.scheme import is_remote_uri, scheme_of, shown, unusable
from tidegate.source.files import FilesConnector
from tidegate.source.generator import open_generator
from tidegate.source.listing import local_path
from tidegate.source.reading import AS_FOUND, Reading


def open_uri(
    uri: str, stream: str, time: str | None, follow: bool, reading: Reading = AS_FOUND
) -> Connector:
    """Open a path, a folder, a glob, a URI of a file system or a generator as a stream's input.

    `time` is the name of the time column; None to look at the columns only. With `follow`, files
    and rows that come later count too. `reading` is what the stream says of its files. Raises
    SourceError for whatever cannot be read.
    """
    where = f"stream {stream}, {shown(uri)}"
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
    if is_remote_uri(uri):
        try:
            return FilesConnector(remote_path(uri), where, time, follow, reading=reading)
        except OptionError as error:
            raise SourceError(where, error.requirement, error.got, error.remedy) from error
        except RunError as error:
            raise SourceError(error.where, error.requirement, error.got, error.remedy) from error
    if scheme_of(uri) not in (None, "file") and not disk.exists(uri):
        raise unusable(uri, where, SourceError, also=("generator",))
    return FilesConnector(local_path(uri, where), where, time, follow, reading=reading)
