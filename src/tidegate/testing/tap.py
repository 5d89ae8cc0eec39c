"""A disk that reports each change to a file to a test, before it happens."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

import pyarrow as pa

from tidegate.storage import disk
from tidegate.storage.disk import Disk, FileLock, Path, Status

CHANGES = (
    "create",
    "write",
    "sync",
    "sync folder",
    "replace",
    "link",
    "unlink",
    "make folder",
    "remove folder",
    "claim",
)
"""All operations that alter a disk, or what of it survives a loss of power."""


@dataclass(frozen=True)
class DiskChange:
    """One of CHANGES that is about to happen: its path, another path, and the bytes of a write."""

    kind: str
    path: str
    target: str = ""
    offset: int = 0
    bytes: int = 0


class TappedDisk:
    """Passes everything on to another disk, and calls `before` ahead of each change.

    An exception of `before` comes out of the operation, which then does not happen. Bytes that
    libraries such as Arrow write are seen as well, because they get an open file of this disk.
    """

    def __init__(self, inner: Disk | None = None) -> None:
        self.inner = inner or disk.current()
        self.notifies = self.inner.notifies

    def before(self, change: DiskChange) -> None:
        """Called ahead of each change, by the thread that makes it."""

    def write(self, file: IO[bytes], change: DiskChange, data: Any) -> int:
        """Put bytes into a file that this disk has created."""
        self.before(change)
        file.write(data)
        return change.bytes

    def status(self, path: Path) -> Status:
        return self.inner.status(path)

    def is_link(self, path: Path) -> bool:
        return self.inner.is_link(path)

    def writable(self, folder: Path) -> bool:
        return self.inner.writable(folder)

    def names(self, folder: Path) -> list[str]:
        return self.inner.names(folder)

    def walk(self, folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        return self.inner.walk(folder)

    def matching(self, pattern: str) -> list[str]:
        return self.inner.matching(pattern)

    def open(self, path: Path) -> IO[bytes]:
        return self.inner.open(path)

    def open_arrow(self, path: Path) -> pa.NativeFile:
        return self.inner.open_arrow(path)

    def map(self, path: Path) -> pa.Buffer:
        return self.inner.map(path)

    def create(self, path: Path, mode: int = 0o666) -> IO[bytes]:
        self.before(DiskChange("create", str(path)))
        made = _TappedFile(self, self.inner.create(path, mode), str(path))
        return cast("IO[bytes]", made)

    def sync(self, file: IO[bytes]) -> None:
        tapped = file if isinstance(file, _TappedFile) else None  # None: created before the tap
        self.before(DiskChange("sync", tapped.path if tapped else ""))
        self.inner.sync(tapped.inner if tapped else file)

    def sync_file(self, path: Path) -> None:
        self.before(DiskChange("sync", str(path)))
        self.inner.sync_file(path)

    def sync_folder(self, path: Path) -> None:
        self.before(DiskChange("sync folder", str(path)))
        self.inner.sync_folder(path)

    def replace(self, source: Path, target: Path) -> None:
        self.before(DiskChange("replace", str(source), str(target)))
        self.inner.replace(source, target)

    def link(self, source: Path, target: Path) -> None:
        self.before(DiskChange("link", str(source), str(target)))
        self.inner.link(source, target)

    def unlink(self, path: Path) -> None:
        self.before(DiskChange("unlink", str(path)))
        self.inner.unlink(path)

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        self.before(DiskChange("make folder", str(path)))
        self.inner.make_folder(path, mode)

    def remove_folder(self, path: Path) -> None:
        self.before(DiskChange("remove folder", str(path)))
        self.inner.remove_folder(path)

    def claim(self, path: Path, holder: bytes) -> FileLock:
        self.before(DiskChange("claim", str(path)))
        return self.inner.claim(path, holder)


class _TappedFile(io.BufferedIOBase):
    """A file that is being written."""

    def __init__(self, tap: TappedDisk, inner: IO[bytes], path: str) -> None:
        super().__init__()
        self.inner = inner
        self.path = path
        self._tap = tap
        self._offset = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        change = DiskChange("write", self.path, offset=self._offset, bytes=size)
        self._offset += size
        return self._tap.write(self.inner, change, data)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.inner.fileno()

    def tell(self) -> int:
        return self.inner.tell()

    def flush(self) -> None:
        if not self.inner.closed:
            self.inner.flush()

    def close(self) -> None:
        self.inner.close()
        super().close()
