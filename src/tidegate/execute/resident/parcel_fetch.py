"""Fetches the parcels of an instance from the workers on other hosts that hold them.

All parcels are received into one piece of memory, in which Arrow uses them without a copy. A large
one is the map of a file without a name, so that the system may write it out. While one worker's
answer is read, the next few are already asked: they fill the buffers of their connections and wait.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from tidegate.errors import LostParcelsError
from tidegate.execute.exchange import ALIGNMENT, Shipment, unwritten
from tidegate.execute.job import Parcel
from tidegate.execute.resident.channel import Channel, visit
from tidegate.execute.resident.parcel_door import PATIENCE_S, TURNED_AWAY

Door = tuple[str, int]
"""The host and the port of a worker's door."""

Files = list[tuple[str, list[list[int]]]]
"""The request for parcels: pairs of a file's name and byte ranges [start, stop]."""

IN_MEMORY_BYTES = 64 << 20
"""Parcels of more bytes are received into a mapped file."""

AHEAD = 4
"""The most workers that are asked at a time; the first of them is being read."""

_PIECE_BYTES = 1 << 20


class ParcelFetch:
    """Connections to the doors of other workers; they stay open from batch to batch.

    A connection that a batch does not need is closed. Grows with the workers of a crew. For one
    thread.
    """

    def __init__(
        self,
        secret: bytes,
        folder: str,
        patience_s: float = PATIENCE_S,
        in_memory_bytes: int = IN_MEMORY_BYTES,
    ) -> None:
        self._secret, self._folder, self._patience_s = secret, folder, patience_s
        self._in_memory_bytes = in_memory_bytes
        self._open: dict[Door, Channel] = {}

    def fetch(self, shipments: Mapping[Door, Sequence[Shipment]], instance: int) -> list[Parcel]:
        """The parcels of an instance from other workers; `shipments` are by their doors."""
        asked = {door: _ranges(held, instance) for door, held in shipments.items()}
        asked = {door: files for door, files in asked.items() if files}
        for door in self._open.keys() - shipments.keys():
            self._open.pop(door).close()
        sizes = {d: sum(b - a for _, rs in files for a, b in rs) for d, files in asked.items()}
        room = self._room(sum(sizes.values()))
        doors, view, at = list(asked), memoryview(room), 0
        anew: dict[Door, bool] = {}
        try:
            for number, door in enumerate(doors):
                for ahead in doors[number : number + AHEAD]:
                    if ahead not in anew:
                        anew[ahead] = self._ask(ahead, asked[ahead])
                self._take(door, asked[door], anew[door], view[at : at + sizes[door]])
                at += sizes[door]
        except BaseException:
            self.close()  # answers that were not read would be taken for those of the next batch
            raise
        return _parcels(pa.py_buffer(room), shipments, instance)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _ask(self, door: Door, files: Files) -> bool:
        """Ask a door for files; return whether that opened a new connection."""
        if door in self._open:
            with suppress(*TURNED_AWAY):  # then the door has closed it, or the worker is gone
                self._open[door].send_bytes(json.dumps(files).encode())
                return False
            self._open.pop(door).close()
        try:
            self._open[door] = visit(door, self._secret, self._patience_s)
            self._open[door].send_bytes(json.dumps(files).encode())
        except TURNED_AWAY as error:
            raise _lost(door, str(error) or type(error).__name__) from error
        return True

    def _take(self, door: Door, files: Files, anew: bool, into: memoryview) -> None:
        """Read an answer; ask once more if the door has closed an old connection meanwhile."""
        try:
            there = _read(self._open[door], into)
        except TURNED_AWAY as error:
            if anew:
                raise _lost(door, str(error) or type(error).__name__) from error
            self._open.pop(door).close()
            self._take(door, files, self._ask(door, files), into)
            return
        if not there:
            raise _lost(door, "a worker that has them no more")

    def _room(self, size: int) -> bytearray | mmap.mmap:
        """Memory for `size` bytes; large ones are backed by a deleted temporary file."""
        if not size:
            return bytearray()
        if size <= self._in_memory_bytes:
            return mmap.mmap(-1, size)
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                # Reserve the space now: writing to a map on a full disk kills the process.
                os.posix_fallocate(file.fileno(), 0, size)
                return mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise unwritten(self._folder, error) from error


def _lost(door: Door, got: str) -> LostParcelsError:
    where = f"worker at {door[0]}:{door[1]}"
    return LostParcelsError(where, "must give the parcels of its map tasks", got)


def _read(channel: Channel, into: memoryview) -> bool:
    """Read one answer into memory; return false if the parcels are gone."""
    if channel.recv_bytes():
        return False
    with socket.socket(fileno=os.dup(channel.fileno())) as end:
        end.setblocking(True)
        at = 0
        while at < len(into):
            read = end.recv_into(into[at : at + _PIECE_BYTES])
            if not read:
                raise EOFError("the worker is gone")
            at += read
    return True


def _ranges(shipments: Sequence[Shipment], instance: int) -> Files:
    """The byte ranges that an instance needs of each file; adjacent ranges are joined."""
    files = []
    for shipment in shipments:
        ranges: list[list[int]] = []
        for *_, offset, size in shipment.for_instance(instance):
            stop = _padded(offset + size)
            if ranges and ranges[-1][1] == offset:
                ranges[-1][1] = stop
            elif size:
                ranges.append([offset, stop])
        if ranges:
            files.append((os.path.basename(shipment.path), ranges))
    return files


def _parcels(
    room: pa.Buffer, shipments: Mapping[Door, Sequence[Shipment]], instance: int
) -> list[Parcel]:
    """The parcels as views of `room`, where they lie in the order in which they were asked for."""
    found, at = [], 0
    for shipment in (s for held in shipments.values() for s in held):
        for owner, split, kind, label, _, size in shipment.for_instance(instance):
            found.append(Parcel(owner, split, kind, room.slice(at, size), label))
            at += _padded(size)
    return found


def _padded(size: int) -> int:
    return size + -size % ALIGNMENT
