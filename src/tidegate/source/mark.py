"""Tells an input file from another at the same path, so that a restart can check what was read.

A digest is the CRC-32 of bytes. It finds changes that happen by accident, not ones made to go
unnoticed. For text it covers all bytes that were read, from the first one on, so a file may get
longer. For Parquet it covers the end of the file with the footer, which has offsets, sizes and
statistics of all row groups.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tidegate.errors import RunError, SourceError
from tidegate.remote.reason import reason, remedy
from tidegate.storage import disk

EDGE_BYTES = 64 * 2**10
"""How many bytes a digest covers where not all were read: the first ones of text, the last ones of
Parquet. Small files are covered whole. Arrow reads as much for a footer anyway."""

_PASS_BYTES = 2**20

PUT_BACK = "Put it back as it was, or start from an empty checkpoint."


class FileMark(NamedTuple):
    """What was read of a file: its first `read_bytes` with `rows` rows, and their digest.

    Size, time of change and inode are those of the whole file then. While they stay the same, the
    file is the same. Once they differ, the digest decides.
    """

    read_bytes: int
    rows: int
    digest: int
    size_bytes: int
    modified_ns: int
    inode: int

    @staticmethod
    def of(saved: Mapping[str, Any]) -> FileMark:
        return FileMark(**saved)

    def saved(self) -> dict[str, int]:
        """The mark as JSON values, for a manifest."""
        return self._asdict()

    def is_of(self, status: disk.Status) -> bool:
        """Whether the file has not been touched since."""
        return status[:3] == (self.size_bytes, self.modified_ns, self.inode)


def digest(data: bytes | memoryview, before: int = 0) -> int:
    """The digest of bytes that come after bytes with the digest `before`."""
    return zlib.crc32(data, before)


def status_of(path: str) -> disk.Status | None:
    """What is at a path; None where nothing is."""
    try:
        return disk.at(path).status(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def digest_of(path: str, length: int) -> int:
    """The digest of the first bytes of a file, or of all where it is shorter."""
    found = 0
    with readable(path), disk.at(path).open(path) as file:
        while length > 0 and (data := file.read(min(length, _PASS_BYTES))):
            found, length = digest(data, found), length - len(data)
    return found


def moved_to(path: str, inode: int, read_bytes: int, expected: int) -> str | None:
    """The path in the same folder to which a file was renamed; None where it is not found.

    Inode numbers are reused, so the first bytes must also be those that were read.
    """
    if disk.is_remote(path):
        return None
    folder = os.path.dirname(path)
    with suppress(OSError, SourceError):
        for name in sorted(disk.current().names(folder or ".")):
            place = os.path.join(folder, name)
            status = status_of(place)
            if place == path or status is None or status.inode != inode:
                continue
            if not status.folder and digest_of(place, read_bytes) == expected:
                return place
    return None


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn an OSError into the error that `unreadable` words."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: OSError) -> SourceError | RunError:
    """The error for a file that cannot be read.

    A server that does not answer is no mistake of the user, and the run can go on later: a
    RunError. When a run starts, `FilesConnector.at` turns it into a SourceError.
    """
    if disk.is_remote(path):
        missing = isinstance(error, FileNotFoundError)
        got = "no such file" if missing else reason(error)
        return RunError(path, "must be readable", got, None if missing else remedy(error))
    return SourceError(
        path, "the file must be readable", str(error), "Check its permissions and its disk."
    )


def changed_since(path: str, rows: int, got: str, remedy: str = PUT_BACK) -> SourceError:
    """The error at a restart for a file that is not the one that was read."""
    must = f"was read up to row {rows} by this checkpoint and must be the same up to there"
    return SourceError(path, must, got, remedy)


def reused(path: str, got: str) -> SourceError:
    """The error at a restart for a consumed file of a folder that has another content now."""
    return SourceError(
        path,
        "was consumed by this checkpoint, and its name must not be used again for other rows",
        got,
        "Give new rows a file of another name; put this one back as it was, or remove it.",
    )
