"""Reads files of any `pyarrow.fs` file system, and keeps what was read last."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from threading import Lock
from typing import IO, cast
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from tidegate import schedule
from tidegate.disk import Path, RemotePath, Status
from tidegate.errors import OptionError
from tidegate.remote.object_uri import object_place, with_region
from tidegate.remote.reason import reason, remedy
from tidegate.remote.scheme import is_object_uri, shown

_KEPT_BYTES = 32 * 2**20
"""How much of what was read last is kept: the driver looks at a block of text twice, and a task of
the same process once more; and a folder is opened first for its columns, then to be read."""

_SIDE_BY_SIDE = 16
"""How many requests are under way at once where many small ranges are wanted."""

VARIABLES = ("AWS_", "GOOGLE_", "AZURE_", "HADOOP_")
"""How the names of variables of the environment begin that say how to get access."""


class RemoteDisk:
    """One file system; its files have paths that begin with `base`, and then as it calls them.

    Where it was made from a URI it is that URI in other processes too: they connect by themselves.
    Keeps what was read last, up to a size.
    """

    def __init__(self, fs: FileSystem, base: str, uri: str | None = None) -> None:
        self.fs = fs
        self.base = base
        self._uri = uri
        self._ranges: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._kept_bytes = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        if self._uri is None:
            return RemoteDisk, (self.fs, self.base)
        return disk_of, (self._uri,)

    def path(self, text: str, listed: Status | None = None) -> RemotePath:
        """The path of a file, by the text that it has in names of sources."""
        return RemotePath(text, self, listed)

    def status(self, path: Path) -> Status:
        info = self.fs.get_file_info(self.inner(path))
        if info.type == FileType.NotFound:
            raise FileNotFoundError(2, "No such file or folder", str(path))
        return _status(info)

    def open(self, path: Path) -> IO[bytes]:
        return cast("IO[bytes]", self.open_arrow(path))

    def open_arrow(self, path: Path) -> pa.NativeFile:
        return self.fs.open_input_file(self.inner(path))

    def read(self, path: RemotePath, offset: int, length: int) -> bytes:
        key = (str(path), path.listed, offset, length)
        with self._lock:
            found = self._ranges.get(key)
        if found is None:
            with self.open_arrow(path) as file:
                size = file.size()
                most = size - offset if length < 0 else min(length, size - offset)
                found = file.read_at(most, offset) if most > 0 else b""
            if path.listed is not None:  # else an object written anew would not be told apart
                self._keep(key, found)
        return found

    def _keep(self, key: tuple[object, ...], data: bytes) -> None:
        with self._lock:
            self._kept_bytes += len(data) - len(self._ranges.pop(key, b""))
            self._ranges[key] = data
            while self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= len(self._ranges.popitem(last=False)[1])

    def fetch(self, ranges: Sequence[tuple[RemotePath, int, int]]) -> None:
        """Read ranges side by side, so that `read` has them; what fails fails there again."""
        wanted = iter(ranges)

        def some() -> None:
            while True:
                with self._lock:
                    one = next(wanted, None)
                if one is None:
                    return
                with suppress(OSError):
                    self.read(*one)

        start = schedule.current().start
        count = min(_SIDE_BY_SIDE, len(ranges))
        schedule.wait([start(f"tidegate-fetch-{n}", some) for n in range(count)])

    def files(self, path: RemotePath) -> list[RemotePath]:
        try:  # a folder that is missing is an empty one; a bucket that is missing is an error
            found = self.fs.get_file_info(FileSelector(self.inner(path), recursive=True))
        except FileNotFoundError:
            return []
        return [
            self.path(self.base + info.path, _status(info))
            for info in found
            if info.type == FileType.File
        ]

    def inner(self, path: Path) -> str:
        """What the file system itself calls a path."""
        return str(path)[len(self.base) :]


def _status(info: FileInfo) -> Status:
    return Status(info.size or 0, info.mtime_ns or 0, 0, info.type == FileType.Directory)


def remote_path(uri: str) -> RemotePath:
    """The file or folder that a URI names; an OptionError where it cannot be connected to.

    Costs no round trip but for the region of a bucket where nothing says it. That somebody answers
    is found out by who reads.
    """
    disk = disk_of(with_region(uri) if is_object_uri(uri) else uri)
    if is_object_uri(uri):
        return disk.path(object_place(uri).root)
    return disk.path(disk.base + urlsplit(uri).path.rstrip("/"))


def disk_of(uri: str) -> RemoteDisk:
    """The file system of a URI; one for all in a process that have the same, and the same keys."""
    said = ((name, value) for name, value in os.environ.items() if name.startswith(VARIABLES))
    return _connected(uri, tuple(sorted(said)))


@lru_cache
def _connected(uri: str, said: tuple[tuple[str, str], ...]) -> RemoteDisk:
    if is_object_uri(uri):
        place = object_place(uri)
        try:
            return RemoteDisk(place.file_system(), f"{place.kind}://", uri)
        except (pa.ArrowException, ValueError, OSError) as error:
            raise _unreachable(uri, error) from error
    try:
        fs, _ = FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _unreachable(uri, error) from error
    parts = urlsplit(uri)
    return RemoteDisk(fs, f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2]}", uri)


def _unreachable(uri: str, error: Exception) -> OptionError:
    scheme = urlsplit(uri).scheme
    must = f"the file system of {scheme}:// must be usable here"
    return OptionError(shown(uri), must, reason(error), remedy(error))
