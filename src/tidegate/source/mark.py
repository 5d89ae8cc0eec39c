"""Tells an input file from another at its path: what was read of it is compared at a restart.

A digest is the CRC-32 of bytes: it finds changes that happen, not ones that somebody has computed.
Of text it is of all bytes that were read, from the first of the file on, so that a file may get
longer. Of Parquet it is of the file's end, with the footer: offsets and sizes of all row groups,
and their statistics.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tidegate import disk
from tidegate.errors import RunError, SourceError
from tidegate.remote.reason import reason, remedy

EDGE_BYTES = 64 * 2**10
"""How much of a file its digest is of where not all of it was read: the first bytes of text, the
last ones of Parquet. Small files are covered whole; Arrow reads as much for a footer."""

_PASS_BYTES = 2**20

PUT_BACK = "Put it back as it was, or start from an empty checkpoint."


class FileMark(NamedTuple):
    """The first `read_bytes` of a file with `rows` rows in them, their digest, and the file then.

    The size, the time of change and the inode are those of the whole file. As long as they are the
    same, the file is; when they are not, the digest tells.
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
        """What a manifest keeps."""
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
    """Where in its folder a file lies that had this path; None where it is not found.

    Numbers of inodes are used again, so its first bytes must be what was read of it, too.
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
    """Put into words what the system says where a path cannot be read."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: str, error: OSError) -> SourceError | RunError:
    """What to say of a file that the system does not let be read.

    That a server does not answer is no mistake of who has started the run: it can go on later. At
    a start, `open_uri` makes a mistake of it.
    """
    if disk.is_remote(path):
        missing = isinstance(error, FileNotFoundError)
        got = "no such file" if missing else reason(error)
        return RunError(path, "must be readable", got, None if missing else remedy(error))
    return SourceError(
        path, "the file must be readable", str(error), "Check its permissions and its disk."
    )


def changed_since(path: str, rows: int, got: str, remedy: str = PUT_BACK) -> SourceError:
    """What to say at a start of a file that is not the one that was read."""
    must = f"was read up to row {rows} by this checkpoint and must be the same up to there"
    return SourceError(path, must, got, remedy)


def reused(path: str, got: str) -> SourceError:
    """What to say at a start of a consumed file of a folder that holds something else now."""
    return SourceError(
        path,
        "was consumed by this checkpoint, and its name must not be used again for other rows",
        got,
        "Give new rows a file of another name; put this one back as it was, or remove it.",
    )
