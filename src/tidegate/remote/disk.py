"""Reads files of any `pyarrow.fs` file system, through a small cache of what was read last."""

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
from tidegate.errors import OptionError
from tidegate.remote.object_uri import object_place, with_region
from tidegate.remote.reason import reason, remedy
from tidegate.remote.scheme import is_object_uri, shown
from tidegate.storage.disk import Path, RemotePath, Status

_KEPT_BYTES = 32 * 2**20
"""The size of the cache. The driver reads a block of text twice, and a task of the same process
once more; and files are opened first for their columns, then for their rows."""

_SIDE_BY_SIDE = 16
"""How many requests run at once where many small ranges are wanted."""

VARIABLES = ("AWS_", "GOOGLE_", "AZURE_", "HADOOP_")
"""Prefixes of the variables of the environment that give access."""


class RemoteDisk:
    """One file system. The path of a file is `base`, then the name that the file system has for it.

    A disk made from a URI is pickled as that URI: other processes connect by themselves. Threads
    may share it. Caches what was read last, up to _KEPT_BYTES.
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
        """The path of a file, by its text in the names of sources."""
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
            # The status of a listed file is part of the key. Without it, an object that was
            # written anew under the same name would be served from the cache.
            if path.listed is not None:
                self._keep(key, found)
        return found

    def _keep(self, key: tuple[object, ...], data: bytes) -> None:
        with self._lock:
            self._kept_bytes += len(data) - len(self._ranges.pop(key, b""))
            self._ranges[key] = data
            while self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= len(self._ranges.popitem(last=False)[1])

    def fetch(self, ranges: Sequence[tuple[RemotePath, int, int]]) -> None:
        """Read ranges side by side into the cache. Errors are left to `read`, which tries again."""
        wanted = iter(ranges)

        def read_some() -> None:
            while True:
                with self._lock:
                    one = next(wanted, None)
                if one is None:
                    return
                with suppress(OSError):
                    self.read(*one)

        start = schedule.current().start
        count = min(_SIDE_BY_SIDE, len(ranges))
        schedule.wait([start(f"tidegate-fetch-{n}", read_some) for n in range(count)])

    def files(self, path: RemotePath) -> list[RemotePath]:
        try:  # a missing folder counts as empty; a missing bucket is an error
            found = self.fs.get_file_info(FileSelector(self.inner(path), recursive=True))
        except FileNotFoundError:
            return []
        return [
            self.path(self.base + info.path, _status(info))
            for info in found
            if info.type == FileType.File
        ]

    def inner(self, path: Path) -> str:
        """The file system's own name for a path."""
        return str(path)[len(self.base) :]


def _status(info: FileInfo) -> Status:
    return Status(info.size or 0, info.mtime_ns or 0, 0, info.type == FileType.Directory)


def remote_path(uri: str) -> RemotePath:
    """The file or folder that a URI names; an OptionError where no connection can be set up.

    Costs no round trip, except to ask for the region of a bucket that nothing says. Whether the
    server answers shows with the first read.
    """
    disk = disk_of(with_region(uri) if is_object_uri(uri) else uri)
    if is_object_uri(uri):
        return disk.path(object_place(uri).root)
    return disk.path(disk.base + urlsplit(uri).path.rstrip("/"))


def disk_of(uri: str) -> RemoteDisk:
    """The file system of a URI, cached in the process by the URI and the access keys."""
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
