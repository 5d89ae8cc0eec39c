"""Puts whole files into a folder of an object store or another file system.

Files appear whole. Object stores have no folders and no renames: there a folder is a prefix of
names, and the server copies a file that gets another name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from tidegate.remote.disk import VARIABLES, disk_of, remote_path
from tidegate.remote.object_uri import object_place
from tidegate.remote.scheme import is_object_uri


@dataclass(frozen=True)
class Entry:
    """A file of a folder: its name below it, with `/` between the parts, and its size."""

    name: str
    bytes: int


class DataFolder(Protocol):
    """Files by their names below a root, here or elsewhere.

    Calls raise OSError, FileNotFoundError for a file that is not there; the caller puts these into
    words (`reason`).
    """

    root: str

    def full(self, name: str) -> str:
        """The name by which a person, or a log of absolute names, finds a file."""

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a file whole and durably; it replaces one of the same name."""

    def read(self, name: str) -> bytes:
        """All bytes of a file."""

    def list(self, folder: str) -> Sequence[Entry]:
        """The files in a folder, sorted by name; none where there is no such folder."""

    def folders(self, folder: str) -> Sequence[str]:
        """The names of the folders in a folder, sorted; none where there is no such folder."""

    def delete_all(self, names: Sequence[str]) -> None:
        """Remove files; names without a file are passed over."""


class Folder(DataFolder, Protocol):
    """A folder whose files can also be moved, and listed with those of all folders below."""

    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        """The files in a folder, sorted by name; none where there is no such folder."""

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Rename files, from the first member of each pair to the second, in this order.

        Existing files are replaced. A crash leaves the first pairs moved; of one pair both names
        may exist.
        """


def folder_of(uri: str) -> Folder:
    """The folder of a URI, cached in the process by the URI and the access keys.

    OptionError where no connection can be set up. Whether the server answers shows with first use.
    """
    said = ((name, value) for name, value in os.environ.items() if name.startswith(VARIABLES))
    return _opened(uri, tuple(sorted(said)))


@lru_cache
def _opened(uri: str, said: tuple[tuple[str, str], ...]) -> Folder:
    if is_object_uri(uri):
        from tidegate.remote.object_folder import ObjectFolder  # imports a client library

        return ObjectFolder(object_place(uri))
    disk = disk_of(uri)
    path = remote_path(uri)
    return TreeFolder(disk.fs, disk.inner(path), str(path))


class TreeFolder:
    """A folder of a file system that can rename, such as HDFS."""

    def __init__(self, fs: FileSystem, path: str, root: str) -> None:
        self.root = root
        self._fs = fs
        self._base = path.rstrip("/")

    def full(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def put(self, name: str, data: bytes | memoryview) -> None:
        self._make_parent(name)
        with self._fs.open_output_stream(self._path(name)) as stream:
            stream.write(data)

    def read(self, name: str) -> bytes:
        with self._fs.open_input_file(self._path(name)) as file:
            return bytes(file.readall())

    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        skip = len(self._base) + 1
        found = self._infos(folder, recursive)
        files = [Entry(i.path[skip:], i.size) for i in found if i.type == FileType.File]
        return sorted(files, key=lambda entry: entry.name)

    def folders(self, folder: str) -> Sequence[str]:
        found = self._infos(folder, False)
        return sorted(i.base_name for i in found if i.type == FileType.Directory)

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        for source, target in pairs:
            self._make_parent(target)
            self._delete(target)  # HDFS does not rename onto a file
            self._fs.move(self._path(source), self._path(target))
        self._prune([source for source, _ in pairs])

    def delete_all(self, names: Sequence[str]) -> None:
        for name in names:
            self._delete(name)
        self._prune(names)

    def _prune(self, names: Sequence[str]) -> None:
        """Remove the folders that are empty without these files, up to the root."""
        for folder in sorted({name.rpartition("/")[0] for name in names}, reverse=True):
            while folder and not self._infos(folder, False):
                with suppress(FileNotFoundError):  # some stores drop a folder with its last file
                    self._fs.delete_dir(self._path(folder))
                folder = folder.rpartition("/")[0]

    def _delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.delete_file(self._path(name))

    def _infos(self, folder: str, recursive: bool) -> Sequence[FileInfo]:
        selector = FileSelector(self._path(folder), recursive=recursive, allow_not_found=True)
        found: Sequence[FileInfo] = self._fs.get_file_info(selector)
        return found

    def _make_parent(self, name: str) -> None:
        self._fs.create_dir(self._path(name.rpartition("/")[0]), recursive=True)

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}" if name else self._base
