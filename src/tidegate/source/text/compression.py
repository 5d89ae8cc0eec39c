"""Reads ranges of the unpacked content of a compressed file, without unpacking it to disk.

Such a file can only be read from its beginning. Decoders stay open where they stopped, so a reader
that asks for ranges in order gets them in one pass. A file may have several, because the driver is
ahead of the tasks.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

import pyarrow as pa

from tidegate.errors import RunError, SourceError
from tidegate.remote.reason import is_of_server
from tidegate.source.mark import digest, unreadable
from tidegate.storage import disk

NONE = "none"
SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
"""The compression for each ending that may follow that of the format."""

OPEN_DECODERS = 64
"""How many decoders a process keeps; each takes a few hundred kilobytes."""

_PASS_BYTES = 2**20
_KEPT_PIECES = 4


class _Decoder:
    """Unpacks a file from its beginning on; `offset` is its place in the unpacked bytes."""

    def __init__(self, path: str, packing: str) -> None:
        self.offset = 0
        self._path = path
        self._stream = pa.CompressedInputStream(disk.at(path).open_arrow(path), packing)

    def read(self, length: int) -> bytes:
        parts = []
        while length > 0:
            part = self._part(min(length, _PASS_BYTES))
            if not part:
                break
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def skip_to(self, offset: int) -> None:
        while self.offset < offset and self._part(min(offset - self.offset, _PASS_BYTES)):
            pass

    def _part(self, length: int) -> bytes:
        part: bytes = self._stream.read(length)
        self.offset += len(part)
        return part


class Unpacking:
    """The decoders of a process; thread-safe: a read takes its decoder out while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._decoders: OrderedDict[tuple[object, ...], list[_Decoder]] = OrderedDict()
        self._pieces: OrderedDict[tuple[object, ...], bytes] = OrderedDict()

    def read(self, path: str, packing: str, offset: int, length: int) -> bytes:
        """Unpacked bytes of a file; fewer where it has no more."""
        try:
            key = (str(path), packing, disk.seen(path)[:3])
            with self._lock:
                kept = self._pieces.get((*key, offset, length))
            if kept is not None:
                return kept
            decoder = self._taken(key, offset) or _Decoder(path, packing)
            decoder.skip_to(offset)
            data = decoder.read(length)
        except OSError as error:
            raise _damaged(path, packing, error) from error
        with self._lock:
            self._decoders.setdefault(key, []).append(decoder)
            self._decoders.move_to_end(key)
            self._pieces[(*key, offset, length)] = data
            while len(self._pieces) > _KEPT_PIECES:
                self._pieces.popitem(last=False)
            while sum(map(len, self._decoders.values())) > OPEN_DECODERS:
                _, oldest = self._decoders.popitem(last=False)
                oldest.clear()
        return data

    def _taken(self, key: tuple[object, ...], offset: int) -> _Decoder | None:
        """Take out the decoder nearest before a place; the caller owns it until it puts it back."""
        with self._lock:
            there = self._decoders.get(key, [])
            # A decoder cannot go back, so only those before the place can serve, the nearest best.
            before = [d for d in there if d.offset <= offset]
            if not before:
                return None
            nearest = max(before, key=lambda d: d.offset)
            there.remove(nearest)
            return nearest


_UNPACKING = Unpacking()


def packing_of(path: str, told: str | None) -> str:
    """The compression of a text file, by the option (`told`) or the ending of its name."""
    return told or SUFFIXES.get(os.path.splitext(path)[1].lower(), NONE)


def read_unpacked(path: str, packing: str, offset: int, length: int) -> bytes:
    """Unpacked bytes of a compressed file; fewer where it ends before."""
    return _UNPACKING.read(path, packing, offset, length)


def digest_unpacked(path: str, packing: str, length: int) -> int:
    """The digest of the first unpacked bytes of a compressed file; costs a pass over them."""
    found, offset = 0, 0
    while length > 0 and (data := read_unpacked(path, packing, offset, min(length, _PASS_BYTES))):
        found, offset, length = digest(data, found), offset + len(data), length - len(data)
    return found


def check_whole(path: str, packing: str) -> None:
    """Refuse a compressed file that is not complete; costs a pass over it."""
    try:
        decoder = _Decoder(path, packing)
        while decoder.read(_PASS_BYTES):
            pass
    except OSError as error:
        raise _damaged(path, packing, error) from error


def _damaged(path: str, packing: str, error: OSError) -> SourceError | RunError:
    if error.errno is not None or is_of_server(error):
        return unreadable(path, error)
    return SourceError(
        path,
        f"must be a whole {packing} file",
        str(error).splitlines()[0] if str(error) else "one that is cut short",
        "Write it elsewhere, and move it here when it is complete.",
    )
