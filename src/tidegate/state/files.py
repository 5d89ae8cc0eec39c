"""Reads and writes whole files on any file system; a write happens at once or not at all."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol, TypeVar

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, SubTreeFileSystem

from tidegate.errors import StateError
from tidegate.remote.folder import Entry
from tidegate.storage import disk
from tidegate.storage.durable import Due
from tidegate.storage.whole_file import FileWriter, sole_file, temporary, whole_file

T = TypeVar("T")

OWNER_ONLY = 0o700
"""The mode of a checkpoint's folders: state is as confidential as input and results."""

ATOMIC_ON_CLOSE = frozenset({"s3", "gcs", "abfs"})
"""File systems without rename, whose objects appear whole when the stream is closed."""


class Files(Protocol):
    """A folder on some file system. Names are relative to it.

    Reading a missing file is a FileNotFoundError.
    """

    root: str
    local: bool

    def full(self, name: str) -> str:
        """The name by which a person finds the file; for messages."""

    def create(self, name: str) -> AbstractContextManager[FileWriter]:
        """Write a file that replaces its namesake when the block ends without an error.

        If the block or the writing fails, the old file stays. A crash leaves at most a temporary
        file (`is_temporary`). A full disk and the like are a StateError.
        """

    def put_new(self, name: str, data: bytes, due: Due | None = None) -> bool:
        """Write a file whole unless its name is taken; False if it is, and that file stays.

        What is `due` is synced to the disk first, so that no reader finds the file without it. Each
        kind of store says what it guarantees if several runs try at the same time.
        """

    def buffer(self, name: str) -> pa.Buffer:
        """All bytes of a file: a memory map on a local file system, otherwise a copy in memory."""

    def part(self, name: str, begin: int, size: int) -> pa.Buffer:
        """Some bytes of a file, and no others read."""

    def stamp(self, name: str) -> tuple[int, ...]:
        """Numbers that change when a file is altered in place; empty if that needs a request."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def is_folder(self) -> bool:
        """Whether the root is there and a folder."""

    def delete(self, name: str) -> bool:
        """Remove a file; False if it was not there."""

    def list(self, folder: str, recursive: bool = False) -> list[Entry]:
        """The files in a folder, sorted by name; none if there is no such folder."""

    def names(self, folder: str) -> Sequence[str]:
        """The names of the files in a folder, unsorted; cheaper than `list`."""

    def make(self, folder: str) -> None:
        """Make a folder with its parents unless it is there."""

    def prune(self, folder: str) -> None:
        """Remove the empty folders below a folder."""

    def settle(self, folders: Sequence[str]) -> None:
        """Make all names in the root and in these folders durable: they outlive a loss of power.

        `create` syncs the bytes of a file, then renames it, then syncs the folder. A process that
        was killed in between may have left a name that can be read and is not on the disk yet.
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
    """A folder on a local or mounted file system: memory maps, fsync and rename."""

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
        """Exactly one of several runs succeeds, where hard links work; see `sole_file`."""
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
            above = os.path.dirname(self.root)  # not ours, so it gets the usual mode
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
        with suppress(OSError):  # a folder that cannot be listed stays
            found += [path for path, _, _ in disk.current().walk(self.full(folder))]
        for path in reversed(found[1:]):
            with suppress(OSError):  # a folder with files stays
                disk.current().remove_folder(path)


class WholeFiles(ABC):
    """A remote folder: a file is collected in memory and written in one call.

    A stream would be wrong after an error: closing it half-written, as garbage collection does,
    makes a short object appear under the final name.
    """

    local = False

    @abstractmethod
    def full(self, name: str) -> str:
        """The name by which a person finds the file; for messages."""

    @abstractmethod
    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write a file whole in place of its namesake. Errors are OSErrors."""

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
        """Nothing to do: an object that can be read is durable."""
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
        """Looks for the file before and after the write, so exactly one of several runs succeeds
        unless they write at the same moment. On HDFS one succeeds always, because HDFS does not
        rename onto a file."""
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
        """Write a file under a temporary name and move it; whether the move was done."""
        temp = temporary(name)
        try:
            with self._stream(temp) as stream:
                stream.write(data)
            return move(temp, name)
        except Exception:
            with suppress(OSError):  # the first error is the one to report
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
            # Some file systems (HDFS) do not rename onto a file. Only the replay of a batch
            # replaces one, and no manifest lists that yet: so a crash between the delete and the
            # move loses nothing that counts.
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
    """The files in a local folder, with `recursive` also below it, sorted by name."""
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
    """Run an action that reads a file; if that is missing or unreadable, raise a StateError."""
    try:
        return action()
    except FileNotFoundError as error:
        raise StateError(where, "must be there", "no such file", remedy) from error
    except OSError as error:
        raise StateError(where, "must be readable", reason(error), remedy) from error


def unwritten(where: str, error: OSError) -> StateError:
    """The error for a file that could not be written and so does not count."""
    return StateError(
        where,
        "must be writable",
        reason(error),
        "Make room or give access, and restart: the run continues after its last committed batch.",
    )


def reason(error: OSError) -> str:
    """The system's message, without the error number and without the path."""
    return (error.strerror or str(error) or type(error).__name__).rstrip(".")
