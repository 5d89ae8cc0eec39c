"""Fetches the parcels of an instance from the workers on other hosts that hold them.

They come into one piece of memory, where Arrow takes them as they are; many come into a file that
has no name and is mapped, so that the system may write them out. A few workers are asked ahead of
the one whose answer is read: they fill the buffers of their connections and wait.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence

import pyarrow as pa

from tidegate.errors import LostParcelsError
from tidegate.execute.exchange import ALIGNMENT, Shipment
from tidegate.execute.job import Parcel
from tidegate.execute.resident.channel import Channel, visit
from tidegate.execute.resident.parcel_door import PATIENCE_S, TURNED_AWAY

Door = tuple[str, int]
"""The host and the port of a worker's door."""

IN_MEMORY_BYTES = 64 << 20
"""More parcels of an instance are received into a file."""

AHEAD = 4
"""So many workers are asked before the first has answered."""

_PIECE_BYTES = 1 << 20


class ParcelFetch:
    """Connections to the doors of other workers, which stay open from batch to batch.

    Grows with the workers of a crew. For one thread.
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
        self._last_s = min(patience_s, 10.0)
        """How long a second connection may take; the first says that something is wrong."""

    def fetch(self, shipments: Mapping[Door, Sequence[Shipment]], instance: int) -> list[Parcel]:
        """The parcels of an instance in the shipments of other workers, by their doors."""
        asked = {door: _ranges(held, instance) for door, held in shipments.items()}
        asked = {door: files for door, files in asked.items() if files}
        sizes = {d: sum(b - a for _, rs in files for a, b in rs) for d, files in asked.items()}
        room = self._room(sum(sizes.values()))
        doors, view, at = list(asked), memoryview(room), 0
        waiting: set[Door] = set()
        try:
            for number, door in enumerate(doors):
                for ahead in doors[number : number + AHEAD]:
                    if ahead not in waiting:
                        self._ask(ahead, asked[ahead])
                        waiting.add(ahead)
                self._take(door, asked[door], view[at : at + sizes[door]])
                at += sizes[door]
        except BaseException:
            self.close()  # what was asked and not read would come before the next answer
            raise
        return _parcels(pa.py_buffer(room), shipments, instance)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _ask(self, door: Door, files: Sequence[tuple[str, list[list[int]]]]) -> None:
        """Send a question; one that cannot be sent is sent again by who waits for the answer."""
        try:
            if door not in self._open:
                self._open[door] = visit(door, self._secret, self._patience_s)
            self._open[door].send_bytes(json.dumps(files).encode())
        except TURNED_AWAY:
            self._let_go(door)

    def _take(
        self, door: Door, files: Sequence[tuple[str, list[list[int]]]], into: memoryview
    ) -> None:
        """Read an answer. A door that has closed a connection in the meantime is asked anew."""
        try:
            if door in self._open and _read(self._open[door], into):
                return
        except TURNED_AWAY:
            pass  # the second connection says whether the worker is there
        self._let_go(door)
        try:
            self._open[door] = visit(door, self._secret, self._last_s)
            self._open[door].send_bytes(json.dumps(files).encode())
            if _read(self._open[door], into):
                return
            got = "a worker that has them no more"
        except TURNED_AWAY as error:
            got = str(error) or type(error).__name__
        raise LostParcelsError(
            f"worker at {door[0]}:{door[1]}", "must give the parcels of its map tasks", got
        )

    def _room(self, size: int) -> bytearray | mmap.mmap:
        """Memory for so many bytes; what is much has a file behind it, which ends with it."""
        if not size:
            return bytearray()
        if size <= self._in_memory_bytes:
            return mmap.mmap(-1, size)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error now, no signal
            return mmap.mmap(file.fileno(), size)

    def _let_go(self, door: Door) -> None:
        if door in self._open:
            self._open.pop(door).close()


def _read(channel: Channel, into: memoryview) -> bool:
    """Read one answer; false where the parcels are gone."""
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


def _ranges(shipments: Sequence[Shipment], instance: int) -> list[tuple[str, list[list[int]]]]:
    """By file what an instance needs of it, as ranges; neighbours are one."""
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
    """The parcels where they lie, one after the other as they were asked for."""
    found, at = [], 0
    for shipment in (s for held in shipments.values() for s in held):
        for owner, split, kind, label, _, size in shipment.for_instance(instance):
            found.append(Parcel(owner, split, kind, room.slice(at, size), label))
            at += _padded(size)
    return found


def _padded(size: int) -> int:
    return size + -size % ALIGNMENT
