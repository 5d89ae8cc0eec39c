"""Writes whole files, at once or not at all, on any file system."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol, TypeVar

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, SubTreeFileSystem

from tidegate import disk
from tidegate.durable import Due
from tidegate.errors import StateError
from tidegate.remote.folder import Entry
from tidegate.whole_file import FileWriter, sole_file, temporary, whole_file

T = TypeVar("T")

OWNER_ONLY = 0o700
"""The mode of the folders of a checkpoint: state shows what input and results do."""

ATOMIC_ON_CLOSE = frozenset({"s3", "gcs", "abfs"})
"""File systems whose objects appear whole when the stream closes, and that have no rename."""


class Files(Protocol):
    """A folder on some file system. Names are relative to it; a missing one FileNotFoundError."""

    root: str
    local: bool

    def full(self, name: str) -> str:
        """The name a person finds the file by; for messages."""

    def create(self, name: str) -> AbstractContextManager[FileWriter]:
        """Write a file that appears, replacing its namesake, when the block ends without an error.

        When the block or the writing fails, the old file, if any, stands. A crash leaves at most
        a temporary file (`is_temporary`). A full disk and the like are a StateError.
        """

    def put_new(self, name: str, data: bytes, due: Due | None = None) -> bool:
        """Write a file whole unless its name is taken; False then, and what is there stays.

        What is `due` is on the disk before. Each kind of store says what it holds against others
        that try at the same time.
        """

    def buffer(self, name: str) -> pa.Buffer:
        """All bytes of a file: a memory map on a local file system, else a copy in memory."""

    def part(self, name: str, begin: int, size: int) -> pa.Buffer:
        """Some bytes of a file, and no others read."""

    def stamp(self, name: str) -> tuple[int, ...]:
        """What changes when a file is altered in place; empty where asking costs a round trip."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def is_folder(self) -> bool:
        """Whether the root is there and a folder."""

    def delete(self, name: str) -> bool:
        """Remove a file; False if it was not there."""

    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        """The files in a folder, sorted by name; none if there is no such folder."""

    def names(self, folder: str) -> Sequence[str]:
        """The names of the files in a folder, in no order; cheaper than `list`."""

    def make(self, folder: str) -> None:
        """Make a folder with its parents, if it is not there."""

    def prune(self, folder: str) -> None:
        """Remove the empty folders below a folder."""

    def settle(self, folders: Sequence[str]) -> None:
        """Make all names that are in the root and in these folders outlive a loss of power.

        What is written is durable in any case; but a process that was killed in between may have
        left a name that is seen and not on the disk yet.
        """


def files_at(fs: FileSystem, path: str) -> Files:
    """The folder `path` of a file system; a subtree of a local one is local."""
    while isinstance(fs, SubTreeFileSystem):
        path = fs.base_path.rstrip("/") + "/" + path.strip("/")
        fs = fs.base_fs
    if isinstance(fs, LocalFileSystem):
        return LocalFiles(path)
    return RemoteFiles(fs, path)


class LocalFiles:
    """A folder on a local (or mounted) file system: memory maps, fsync and rename."""

    local = True

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)

    def full(self, name: str) -> str:
        return os.path.join(self.root, name)

    @contextmanager
    def create(self, name: str) -> Iterator[FileWriter]:
        path = self.full(name)
        try:
            with whole_file(path, sync="folder", parents=True, folder_mode=OWNER_ONLY) as file:
                yield FileWriter(file)
        except OSError as error:
            raise unwritten(path, error) from error

    def put_new(self, name: str, data: bytes, due: Due | None = None) -> bool:
        """One of several succeeds, where files can have second names; see `sole_file`."""
        path = self.full(name)
        try:
            return sole_file(path, data, OWNER_ONLY, due)
        except OSError as error:
            raise unwritten(path, error) from error

    def buffer(self, name: str) -> pa.Buffer:
        return disk.current().map(self.full(name))

    def part(self, name: str, begin: int, size: int) -> pa.Buffer:
        return self.buffer(name).slice(begin, size)

    def stamp(self, name: str) -> tuple[int, ...]:
        status = disk.current().status(self.full(name))
        return (status.bytes, status.modified_ns, status.inode)

    def exists(self, name: str) -> bool:
        return disk.is_file(self.full(name))

    def is_folder(self) -> bool:
        return disk.is_folder(self.root)

    def delete(self, name: str) -> bool:
        return disk.unlink_if_there(self.full(name))

    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        try:
            return _entries(self.root, self.full(folder), recursive)
        except OSError as error:
            remedy = "Give access or see to the disk, and restart; nothing was changed."
            raise StateError(
                self.full(folder), "must be readable", reason(error), remedy
            ) from error

    def names(self, folder: str) -> Sequence[str]:
        try:
            return [f"{folder}/{name}" for name in disk.current().names(self.full(folder))]
        except FileNotFoundError:
            return []

    def make(self, folder: str) -> None:
        path = self.full(folder)
        try:
            above = os.path.dirname(self.root)  # which is not ours to close to others
            made = [*disk.make_folders(above), *disk.make_folders(path, OWNER_ONLY)]
            for parent in dict.fromkeys(map(os.path.dirname, made)):
                disk.current().sync_folder(parent)
        except OSError as error:
            raise unwritten(path, error) from error

    def settle(self, folders: Sequence[str]) -> None:
        try:
            for folder in folders:
                if disk.is_folder(self.full(folder)):
                    disk.current().sync_folder(self.full(folder))
            disk.current().sync_folder(self.root)
            disk.sync_above(self.root)
        except OSError as error:
            raise unwritten(self.root, error) from error

    def prune(self, folder: str) -> None:
        found = []
        with suppress(OSError):  # what is not found stays
            found += [path for path, _, _ in disk.current().walk(self.full(folder))]
        for path in reversed(found[1:]):
            with suppress(OSError):  # not empty: it holds what is kept
                disk.current().remove_folder(path)


class WholeFiles(ABC):
    """A folder that is elsewhere: a file is gathered in memory and written at once.

    Closing a half-written stream (which a collected stream does by itself) would make a short
    object appear under the final name.
    """

    local = False

    @abstractmethod
    def full(self, name: str) -> str:
        """The name a person finds the file by; for messages."""

    @abstractmethod
    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a file whole; its namesake is gone then. Errors are OSErrors."""

    @abstractmethod
    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        """The files in a folder, sorted by name."""

    @contextmanager
    def create(self, name: str) -> Iterator[FileWriter]:
        memory = io.BytesIO()
        yield FileWriter(memory)
        try:
            self.put(name, memory.getbuffer())
        except OSError as error:
            raise unwritten(self.full(name), error) from error

    def stamp(self, name: str) -> tuple[int, ...]:
        return ()

    def names(self, folder: str) -> Sequence[str]:
        return [entry.name for entry in self.list(folder)]

    def settle(self, folders: Sequence[str]) -> None:
        """Nothing: an object that is seen stays."""
        return None


class RemoteFiles(WholeFiles):
    """A folder on any other `pyarrow.fs` file system: whole reads, whole writes."""

    def __init__(self, fs: FileSystem, root: str) -> None:
        self.fs = fs
        self.root = root.rstrip("/") if fs.type_name != "mock" else root.strip("/")

    def full(self, name: str) -> str:
        return f"{self.fs.type_name}:{self._path(name)}"

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if self.root else name

    def put_new(self, name: str, data: bytes, due: Due | None = None) -> bool:
        """Looks before and after, and so one of several succeeds unless they write at the same
        moment; on HDFS always, because it does not rename onto a file."""
        try:
            if due is not None:
                due.sync()
            if self.exists(name):
                return False
            if self.fs.type_name == "hdfs":
                return self._put_aside(name, data, self._move_to_free)
            self.put(name, data)
            return bool(self.buffer(name).to_pybytes() == data)
        except OSError as error:
            raise unwritten(self.full(name), error) from error

    def put(self, name: str, data: bytes | memoryview) -> None:
        if self.fs.type_name in ATOMIC_ON_CLOSE:
            with self.fs.open_output_stream(self._path(name)) as stream:
                stream.write(data)
            return
        self._put_aside(name, data, self._move)

    def _put_aside(
        self, name: str, data: bytes | memoryview, move: Callable[[str, str], bool]
    ) -> bool:
        """Write a file under another name, then move it; whether that was done."""
        temp = temporary(name)
        try:
            with self._stream(temp) as stream:
                stream.write(data)
            return move(temp, name)
        except Exception:
            with suppress(OSError):  # the first error is the one to tell
                self.fs.delete_file(self._path(temp))
            raise

    def _stream(self, name: str) -> pa.NativeFile:
        try:
            return self.fs.open_output_stream(self._path(name))
        except FileNotFoundError:
            self.make(name.rpartition("/")[0])
            return self.fs.open_output_stream(self._path(name))

    def _move_to_free(self, source: str, target: str) -> bool:
        try:
            self.fs.move(self._path(source), self._path(target))
        except OSError:
            if not self.exists(target):
                raise
            self.delete(source)
            return False
        return True

    def _move(self, source: str, target: str) -> bool:
        try:
            self.fs.move(self._path(source), self._path(target))
        except OSError:
            # Some (HDFS) do not rename onto a file. Only the replay of a batch replaces one, and
            # then no manifest lists it yet, so that the moment without it does no harm.
            if not (self.exists(source) and self.delete(target)):
                raise
            self.fs.move(self._path(source), self._path(target))
        return True

    def buffer(self, name: str) -> pa.Buffer:
        with self.fs.open_input_file(self._path(name)) as file:
            return file.read_buffer()

    def part(self, name: str, begin: int, size: int) -> pa.Buffer:
        with self.fs.open_input_file(self._path(name)) as file:
            return pa.py_buffer(file.read_at(size, begin))

    def exists(self, name: str) -> bool:
        return bool(self.fs.get_file_info(self._path(name)).type == FileType.File)

    def is_folder(self) -> bool:
        return bool(self.fs.get_file_info(self.root).type == FileType.Directory)

    def delete(self, name: str) -> bool:
        try:
            self.fs.delete_file(self._path(name))
        except FileNotFoundError:
            return False
        return True

    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        base = f"{self.root}/{folder}" if self.root and folder else self.root or folder
        chosen = FileSelector(base, recursive=recursive, allow_not_found=True)
        skip = len(self.root) + 1 if self.root else 0
        found = [i for i in self.fs.get_file_info(chosen) if i.type == FileType.File]
        return sorted((Entry(i.path[skip:], i.size) for i in found), key=lambda e: e.name)

    def make(self, folder: str) -> None:
        try:
            self.fs.create_dir(self._path(folder) if folder else self.root, recursive=True)
        except OSError as error:
            raise unwritten(self.full(folder), error) from error

    def prune(self, folder: str) -> None:
        found = self.fs.get_file_info(
            FileSelector(self._path(folder), recursive=True, allow_not_found=True)
        )
        kept = [info.path for info in found if info.type == FileType.File]
        for info in found:
            folder = info.path + "/"
            if info.type == FileType.Directory and not any(p.startswith(folder) for p in kept):
                with suppress(FileNotFoundError):  # went with its parent
                    self.fs.delete_dir(info.path)


def _entries(root: str, folder: str, recursive: bool) -> list[Entry]:
    """The files in a local folder, or also in those below it, sorted by name."""
    entries = []
    for path, folders, names in disk.current().walk(folder):
        for name in names:
            file = os.path.join(path, name)
            try:
                size = disk.current().status(file).bytes
            except FileNotFoundError:  # gone since it was listed
                continue
            entries.append(Entry(os.path.relpath(file, root), size))
        if not recursive:
            folders.clear()
    return sorted(entries, key=lambda entry: entry.name)


def guard(action: Callable[[], T], where: str, remedy: str) -> T:
    """Read, and turn a file that is missing or cannot be read into a StateError naming it."""
    try:
        return action()
    except FileNotFoundError as error:
        raise StateError(where, "must be there", "no such file", remedy) from error
    except OSError as error:
        raise StateError(where, "must be readable", reason(error), remedy) from error


def unwritten(where: str, error: OSError) -> StateError:
    """The error for a file that could not be written, and does not count."""
    return StateError(
        where,
        "must be writable",
        reason(error),
        "Make room or give access, and restart: the run continues after its last committed batch.",
    )


def reason(error: OSError) -> str:
    """What the system says, without its number and the path that the message names anyway."""
    return (error.strerror or str(error) or type(error).__name__).rstrip(".")
